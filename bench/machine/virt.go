package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// hypervisorIDs are the signatures that hypervisors show to x86 processors'
// CPUID instruction.
var hypervisorIDs = map[string]string{
	"KVMKVMKVM":    "KVM",
	"Linux KVM Hv": "KVM",
	"Microsoft Hv": "Hyper-V",
	"VMwareVMware": "VMware",
	"XenVMMXenVMM": "Xen",
	"TCGTCGTCGTCG": "QEMU",
	"bhyve bhyve ": "bhyve",
	"ACRNACRNACRN": "ACRN",
	" lrpepyh  vr": "Parallels",
}

// hypervisor names what the machine runs under; none on bare metal.
func (d *detector) hypervisor() (name, why string, err error) {
	// Emulators of user mode show the flags of another CPU.
	isX86 := d.m.Arch == "amd64" && d.first.vendor != "" && !d.m.Emulated
	xen, _ := process.ReadLine(d.root, "sys/hypervisor/type")
	firmware, firmwareWhy := d.dmi.hypervisor()
	tree, treeWhy := deviceTreeHypervisor(d.root)
	switch {
	case d.live != nil && hypervisorIDs[d.live.HypervisorID] != "":
		return hypervisorIDs[d.live.HypervisorID], fmt.Sprintf("CPUID shows %q", process.Clean(d.live.HypervisorID)), nil
	case d.wsl == wsl2:
		return "Hyper-V", "WSL2 runs on it", nil
	case xen == "xen":
		return "Xen", "sys/hypervisor/type is xen", nil
	case d.m.Cloud == "AWS" && strings.Contains(d.dmi["product_name"], ".metal"):
		return none, d.dmi.why("product_name"), nil
	case isX86 && !slices.Contains(d.first.features, "hypervisor"):
		return none, "the CPU has no flag hypervisor", nil
	case firmware != "":
		return firmware, firmwareWhy, nil
	case tree != "":
		return tree, treeWhy, nil
	case isX86:
		return "", "", errors.New("the CPU has the flag hypervisor, but nothing names it")
	case d.dmiErr != nil:
		return "", "", d.dmiErr
	}
	return "", "", errors.New("DMI names none, and the CPU cannot tell")
}

const none = "none"

// deviceTreeHypervisor asks the device tree, which machines without DMI have.
func deviceTreeHypervisor(root fs.FS) (name, why string) {
	for _, m := range []struct{ file, text, name, why string }{
		{"hypervisor/compatible", "linux,kvm", "KVM", "the device tree has a hypervisor linux,kvm"},
		{"hypervisor/compatible", "xen", "Xen", "the device tree has a hypervisor xen"},
		{"compatible", "linux,dummy-virt", "QEMU", "the device tree is that of QEMU's machine virt"},
	} {
		b, _ := process.ReadFile(root, deviceTree+m.file)
		if strings.Contains(string(b), m.text) {
			return m.name, m.why
		}
	}
	return "", ""
}

// The versions of the Windows Subsystem for Linux. The first has no kernel of
// Linux: Windows answers in its place.
const wsl1, wsl2 = "WSL1", "WSL2"

// wslOf tells WSL by the kernel's release: 4.4.0-19041-Microsoft is the first's,
// 5.15.90.1-microsoft-standard-WSL2 the second's. It is empty elsewhere.
func wslOf(release string) string {
	switch {
	case strings.HasSuffix(release, "-Microsoft"):
		return wsl1
	case strings.Contains(release, "microsoft-standard"), strings.HasSuffix(release, wsl2):
		return wsl2
	}
	return ""
}

// containerMarks are what appears in the control groups or mounts of a process
// inside a container, in order: an engine inside Kubernetes is Kubernetes.
var containerMarks = []struct{ text, name string }{
	{"/kubepods", "kubernetes"},
	{"/var/lib/kubelet/", "kubernetes"},
	{"/libpod-", "podman"},
	{"/containers/storage/overlay", "podman"},
	{"/docker/", "docker"},
	{"/docker-", "docker"},
	{"/lib/docker/", "docker"},
	{"/ecs/", "ecs"},
	{"/lxc/", "lxc"},
	{"/lxc.payload", "lxc"},
	{"/containerd/", "containerd"},
	{"/machine.slice/", "systemd-nspawn"},
}

// container names the container this is; none if there is no sign of one.
func (d *detector) container() (name, why string, err error) {
	if d.wsl != "" {
		return d.wsl, osRelease + " is that of " + d.wsl, nil
	}
	if line, err := readName(d.root, "run/systemd/container"); err == nil {
		return line, "run/systemd/container says so", nil
	}
	for _, f := range []struct{ file, name string }{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := fs.Stat(d.root, f.file); err == nil {
			return f.name, "there is /" + f.file, nil
		}
	}
	group, groupErr := process.ReadFile(d.root, "proc/self/cgroup")
	mounts, mountsErr := process.ReadFile(d.root, "proc/self/mountinfo")
	for _, place := range []struct{ text, says string }{
		{string(group), "proc/self/cgroup has "}, {rootMount(mounts), "the root file system lies in "},
	} {
		for _, m := range containerMarks {
			if strings.Contains(place.text, m.text) {
				return m.name, place.says + m.text, nil
			}
		}
	}
	if groupErr != nil && mountsErr != nil {
		return "", "", groupErr
	}
	return none, "no sign of one in proc/self/cgroup, proc/self/mountinfo or /", nil
}

// rootMount is the line of mountinfo for / and the ones for files that an
// engine mounts into a container from a folder of its own.
func rootMount(mounts []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && slices.Contains([]string{"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}, fields[4]) {
			b.WriteString(line)
		}
	}
	return b.String()
}

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

// errHosts is the reason for what an emulator of user mode hides: it shows what the
// kernel tells of the host's CPU.
var errHosts = errors.New("the CPU is emulated, and what the kernel tells is of the one that emulates it")

// findEmulation looks for what shows that the CPU is emulated.
func (d *detector) findEmulation() {
	foreign := d.foreign()
	if foreign != "" {
		d.hosts = errHosts
	}
	d.m.EmulatedWhy = cmp.Or(foreign, d.translated())
	d.m.Emulated = d.m.EmulatedWhy != ""
}

// foreign compares this program with the CPU that /proc/cpuinfo describes, and with
// the kernel's own architecture: emulators of user mode leave them as they are.
func (d *detector) foreign() string {
	if d.live == nil {
		return ""
	}
	program := "this is an " + d.live.Arch + " program, but "
	arch, _ := process.ReadLine(d.root, kernelArch)
	// cpu:type:x86,ven… or cpu:type:aarch64:feature:…
	modalias, _ := process.ReadLine(d.root, process.CPUDir+"/modalias")
	other := map[string]string{"arm64": "x86", "amd64": "aarch64"}[d.live.Arch]
	switch {
	case d.live.Arch == "arm64" && d.first.midr == nil && d.first.model != "":
		return fmt.Sprintf("%sproc/cpuinfo has no CPU implementer; it describes %q", program, d.first.model)
	case d.live.Arch == "arm64" && d.first.midr == nil && len(d.processors) > 0:
		return program + "proc/cpuinfo has no CPU implementer"
	case d.live.Arch == "amd64" && d.first.midr != nil:
		return program + "proc/cpuinfo is that of an Arm CPU"
	case arch != "" && goArch(arch) != d.live.Arch:
		return program + "the kernel is built for " + arch
	case other != "" && strings.HasPrefix(modalias, "cpu:type:"+other):
		return program + "the kernel runs on " + other
	}
	return ""
}

// translated knows x86 processors that are none by what they call themselves, and
// QEMU's own models of Arm cores.
func (d *detector) translated() string {
	model := d.first.model
	switch {
	case d.live != nil && d.live.HypervisorID == "TCGTCGTCGTCG":
		return "CPUID shows TCGTCGTCGTCG, QEMU's translator"
	case strings.HasPrefix(model, "QEMU TCG CPU") || strings.HasPrefix(model, "VirtualApple"):
		return fmt.Sprintf("the CPU calls itself %q", model)
	case d.coreErr != nil:
		return ""
	}
	m := d.kinds[0].midr
	switch {
	case m.part() == qemuMax:
		return fmt.Sprintf("%s is QEMU's model max", m)
	case slices.Contains(qemuModels, m) && sameBogoMIPS(d.bogoMIPS(), qemuTimerBogoMIPS):
		return fmt.Sprintf("%s with BogoMIPS 125.00 is QEMU's model of the core: no chip has a timer of 62.5 MHz", m)
	}
	return ""
}
