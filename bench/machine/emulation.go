package machine

import (
	"cmp"
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
	0x4110d040, // cortex-a35
	0x4100d034, // cortex-a53
	0x4120d050, // cortex-a55
	0x4110d070, // cortex-a57
	0x4120d471, // cortex-a710
	0x4100d083, // cortex-a72
	0x4140d0b1, // cortex-a76
	0x4140d0c1, // neoverse-n1
	0x4100d493, // neoverse-n2
	0x4110d402, // neoverse-v1
	0x46100010, // a64fx
}

// qemuMax is QEMU's model max: no implementer, and the letter Q as the part.
var qemuMax = part{0, 'Q'}

// errHosts is the reason for what an emulator of user mode hides: it shows sysfs of
// the host's CPU.
var errHosts = errors.New("the CPU is emulated, and what the kernel tells is of the one that emulates it")

// findEmulation looks for what shows that the CPU is emulated.
func (d *detector) findEmulation() {
	foreign := cmp.Or(d.foreignCPUInfo(), d.foreignKernel())
	if foreign != "" {
		d.hosts = errHosts
	}
	d.m.EmulatedWhy = cmp.Or(foreign, d.translatedModel(), d.translatedCore())
	d.m.Emulated = d.m.EmulatedWhy != ""
}

// foreignCPUInfo compares this program with the CPU that /proc/cpuinfo
// describes: under QEMU in user mode it is the host's.
func (d *detector) foreignCPUInfo() string {
	switch {
	case d.live == nil || len(d.processors) == 0:
		return ""
	case d.live.Arch == "arm64" && d.first.midr == nil && d.first.model != "":
		return fmt.Sprintf("this is an arm64 program, but proc/cpuinfo has no CPU implementer; it describes %q", d.first.model)
	case d.live.Arch == "arm64" && d.first.midr == nil:
		return "this is an arm64 program, but proc/cpuinfo has no CPU implementer"
	case d.live.Arch == "amd64" && d.first.midr != nil:
		return "this is an amd64 program, but proc/cpuinfo is that of an Arm CPU"
	}
	return ""
}

// foreignKernel compares this program with the kernel's own architecture,
// which emulators of user mode leave as it is.
func (d *detector) foreignKernel() string {
	if d.live == nil {
		return ""
	}
	if line, err := process.ReadLine(d.root, kernelArch); err == nil && goArch(line) != d.live.Arch {
		return fmt.Sprintf("this is an %s program, but the kernel is built for %s", d.live.Arch, line)
	}
	// cpu:type:x86,ven… or cpu:type:aarch64:feature:…
	line, _ := process.ReadLine(d.root, process.CPUDir+"/modalias")
	foreign, known := map[string]string{"arm64": "x86", "amd64": "aarch64"}[d.live.Arch]
	if known && strings.HasPrefix(line, "cpu:type:"+foreign) {
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
	if strings.HasPrefix(d.first.model, "QEMU TCG CPU") || strings.HasPrefix(d.first.model, "VirtualApple") {
		return fmt.Sprintf("the CPU calls itself %q", d.first.model)
	}
	return ""
}

// translatedCore knows QEMU's own models of Arm cores.
func (d *detector) translatedCore() string {
	m := d.cores.first()
	switch {
	case d.cores.err != nil:
	case m.part() == qemuMax:
		return fmt.Sprintf("%s is QEMU's model max", m)
	case slices.Contains(qemuModels, m) && sameBogoMIPS(d.bogoMIPS(), qemuTimerBogoMIPS):
		return fmt.Sprintf("%s with BogoMIPS 125.00 is QEMU's model of the core: no chip has a timer of 62.5 MHz", m)
	}
	return ""
}
