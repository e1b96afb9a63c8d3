package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// qemuTimerBogoMIPS is what the timer of 62.5 MHz makes that QEMU gives the
// models of its own; no chip has it, and KVM passes the host's on.
const qemuTimerBogoMIPS = 125

// qemuModels are the MIDRs of the models with that timer (QEMU,
// target/arm/tcg/cpu64.c). Later models have a timer of 1 GHz.
var qemuModels = []midr{
	{0x41, 1, 0xd04, 0}, // cortex-a35
	{0x41, 0, 0xd03, 4}, // cortex-a53
	{0x41, 2, 0xd05, 0}, // cortex-a55
	{0x41, 1, 0xd07, 0}, // cortex-a57
	{0x41, 2, 0xd47, 1}, // cortex-a710
	{0x41, 0, 0xd08, 3}, // cortex-a72
	{0x41, 4, 0xd0b, 1}, // cortex-a76
	{0x41, 4, 0xd0c, 1}, // neoverse-n1
	{0x41, 0, 0xd49, 3}, // neoverse-n2
	{0x41, 1, 0xd40, 2}, // neoverse-v1
	{0x46, 1, 0x001, 0}, // a64fx
}

// isQEMUMax says whether m is the MIDR of QEMU's model max: no implementer,
// and the letter Q as the part.
func isQEMUMax(m midr) bool { return m.implementer == 0 && m.part == 'Q' }

// emulation says what shows that the CPU is emulated; empty if nothing does.
func (d *detector) emulation() string {
	for _, check := range []func() string{d.foreignCPUInfo, d.foreignKernel, d.translatedModel, d.translatedCore} {
		if why := check(); why != "" {
			return why
		}
	}
	return ""
}

func (d *detector) isEmulated() bool { return d.emulation() != "" }

// hostsFacts says that sysfs describes another CPU than the one that this program
// runs on: emulators of user mode show the host's.
func (d *detector) hostsFacts() bool { return d.foreignCPUInfo() != "" || d.foreignKernel() != "" }

// errHosts is the reason for what such an emulator hides.
var errHosts = errors.New("the CPU is emulated, and what the kernel tells is of the one that emulates it")

// foreignCPUInfo compares this program with the CPU that /proc/cpuinfo
// describes: under QEMU in user mode it is the host's.
func (d *detector) foreignCPUInfo() string {
	p := d.info.first()
	switch {
	case d.live == nil || len(d.info.processors) == 0:
		return ""
	case d.live.Arch == "arm64" && p.midr == nil:
		return "this is an arm64 program, but proc/cpuinfo has no CPU implementer" + hostOf(p)
	case d.live.Arch == "amd64" && p.midr != nil:
		return "this is an amd64 program, but proc/cpuinfo is that of an Arm CPU"
	}
	return ""
}

func hostOf(p processor) string {
	if p.x86.model == "" {
		return ""
	}
	return fmt.Sprintf("; it describes %q", p.x86.model)
}

// foreignKernel compares this program with the kernel's own architecture,
// which emulators of user mode leave as it is.
func (d *detector) foreignKernel() string {
	if d.live == nil {
		return ""
	}
	if line, err := process.ReadLine(d.root, "proc/sys/kernel/arch"); err == nil && goArch(line) != d.live.Arch {
		return fmt.Sprintf("this is an %s program, but the kernel is built for %s", d.live.Arch, line)
	}
	// cpu:type:x86,ven… or cpu:type:aarch64:feature:…
	line, err := process.ReadLine(d.root, cpuDir+"/modalias")
	if err != nil {
		return ""
	}
	kind, found := strings.CutPrefix(line, "cpu:type:")
	foreign := map[string]string{"arm64": "x86", "amd64": "aarch64"}[d.live.Arch]
	if found && foreign != "" && strings.HasPrefix(kind, foreign) {
		return fmt.Sprintf("this is an %s program, but the kernel runs on %s", d.live.Arch, foreign)
	}
	return ""
}

// translatedModel knows x86 processors that are none by what they call
// themselves.
func (d *detector) translatedModel() string {
	if d.live != nil && d.live.HypervisorID == "TCGTCGTCGTCG" {
		return "CPUID shows TCGTCGTCGTCG, QEMU's translator"
	}
	model := d.info.first().x86.model
	for _, name := range []string{"QEMU TCG CPU", "VirtualApple"} {
		if strings.HasPrefix(model, name) {
			return fmt.Sprintf("the CPU calls itself %q", model)
		}
	}
	return ""
}

// translatedCore knows QEMU's own models of Arm cores.
func (d *detector) translatedCore() string {
	if d.cores.err != nil {
		return ""
	}
	m := d.cores.kinds[0].midr
	if isQEMUMax(m) {
		return fmt.Sprintf("%s is QEMU's model max", m)
	}
	if slices.Contains(qemuModels, m) && sameBogoMIPS(d.bogoMIPS(), qemuTimerBogoMIPS) {
		return fmt.Sprintf("%s with BogoMIPS 125.00 is QEMU's model of the core: no chip has a timer of 62.5 MHz", m)
	}
	return ""
}
