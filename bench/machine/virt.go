package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// virtMarks are what values begin with, in order: the first that fits counts.
// systemd's detect-virt knows the same ones.
var virtMarks = []mark{
	{"KVM", "product_name", "KVM"},
	{"KVM", "sys_vendor", "Amazon EC2"},
	{"KVM", "product_name", "Google Compute Engine"},
	{"KVM", "product_name", "Alibaba Cloud ECS"},
	{"KVM", "sys_vendor", "Hetzner"},
	{"KVM", "product_name", "OpenStack"},
	{"QEMU", "sys_vendor", "QEMU"},
	{"VMware", "sys_vendor", "VMware"},
	{"VirtualBox", "sys_vendor", "innotek GmbH"},
	{"VirtualBox", "sys_vendor", "Oracle Corporation VirtualBox"},
	{"Xen", "sys_vendor", "Xen"},
	{"Bochs", "bios_vendor", "Bochs"},
	{"Parallels", "sys_vendor", "Parallels"},
	{"bhyve", "bios_vendor", "BHYVE"},
	{"Hyper-V", "product_name", "Virtual Machine"},
	{"Apple Virtualization", "product_name", "Apple Virtualization"},
	{"Firecracker", "sys_vendor", "Firecracker"},
}

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
	product := d.dmi["product_name"]
	// Emulators of user mode show the flags of another CPU.
	isX86 := d.m.Arch == "amd64" && d.first.vendor != "" && !d.m.Emulated
	xen, _ := process.ReadLine(d.root, "sys/hypervisor/type")
	firmware := slices.IndexFunc(virtMarks, func(m mark) bool { return strings.HasPrefix(d.dmi[m.file], m.value) })
	tree, treeWhy := deviceTreeHypervisor(d.root)
	switch {
	case d.live != nil && hypervisorIDs[d.live.HypervisorID] != "":
		return hypervisorIDs[d.live.HypervisorID], fmt.Sprintf("CPUID shows %q", process.Clean(d.live.HypervisorID)), nil
	case d.wsl == wsl2:
		return "Hyper-V", "WSL2 runs on it", nil
	case xen == "xen":
		return "Xen", "sys/hypervisor/type is xen", nil
	case d.m.Cloud == "AWS" && strings.Contains(product, ".metal"):
		return none, d.dmi.why("product_name"), nil
	case isX86 && !slices.Contains(d.first.features, "hypervisor"):
		return none, "the CPU has no flag hypervisor", nil
	case firmware >= 0:
		return virtMarks[firmware].name, d.dmi.why(virtMarks[firmware].file), nil
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

// errWSL1 is the reason for what WSL1 hides.
var errWSL1 = errors.New("under WSL1 proc/cpuinfo is made up")

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
