package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// virtMark is a row of the table of hypervisors: a DMI file and what its value
// begins with there.
type virtMark struct {
	name, file, prefix string
}

// virtMarks are in order: the first that fits counts. systemd's detect-virt
// knows the same ones.
var virtMarks = []virtMark{
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

// findHypervisor names what the machine runs under; none on bare metal, empty
// if unknown.
func (d *detector) findHypervisor() (name, why string) {
	if d.live != nil && d.live.HypervisorID != "" {
		if name := hypervisorIDs[d.live.HypervisorID]; name != "" {
			return name, fmt.Sprintf("CPUID shows %q", process.Clean(d.live.HypervisorID))
		}
	}
	if d.wsl == wsl2 {
		return "Hyper-V", "WSL2 runs on it"
	}
	if line, err := process.ReadLine(d.root, "sys/hypervisor/type"); err == nil && line == "xen" {
		return "Xen", "sys/hypervisor/type is xen"
	}
	if d.m.Cloud == "AWS" && strings.Contains(d.dmi["product_name"], ".metal") {
		return none, fmt.Sprintf("DMI product_name is %q", d.dmi["product_name"])
	}
	if d.m.Arch == "amd64" && d.info.first().x86.vendor != "" && !d.isEmulated() && !slices.Contains(d.info.first().features, "hypervisor") {
		return none, "the CPU has no flag hypervisor"
	}
	for _, m := range virtMarks {
		if strings.HasPrefix(d.dmi[m.file], m.prefix) {
			return m.name, fmt.Sprintf("DMI %s is %q", m.file, d.dmi[m.file])
		}
	}
	if name, why := deviceTreeHypervisor(d.root); name != "" {
		return name, why
	}
	if d.m.Arch == "amd64" && d.info.first().x86.vendor != "" && !d.isEmulated() {
		return "", "the CPU has the flag hypervisor, but nothing names it"
	}
	if d.dmiErr != nil {
		return "", process.Reason(d.dmiErr)
	}
	return "", "DMI names none, and the CPU cannot tell"
}

const none = "none"

// deviceTreeHypervisor asks the device tree, which machines without DMI have.
func deviceTreeHypervisor(root fs.FS) (name, why string) {
	const base = "sys/firmware/devicetree/base/"
	if b, err := process.ReadFile(root, base+"hypervisor/compatible"); err == nil {
		switch text := strings.ReplaceAll(string(b), "\x00", " "); {
		case strings.Contains(text, "linux,kvm"):
			return "KVM", "the device tree has a hypervisor linux,kvm"
		case strings.Contains(text, "xen"):
			return "Xen", "the device tree has a hypervisor xen"
		}
	}
	if b, err := process.ReadFile(root, base+"compatible"); err == nil && bytes.HasPrefix(b, []byte("linux,dummy-virt")) {
		return "QEMU", "the device tree is that of QEMU's machine virt"
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

// containerMark is a row of the table of containers: what appears in the
// control groups or mounts of a process inside one.
type containerMark struct{ text, name string }

// containerMarks are in order: an engine inside Kubernetes is Kubernetes.
var containerMarks = []containerMark{
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

// findContainer names the container this is; none if there is no sign of one,
// empty if nothing could be read.
func (d *detector) findContainer() (name, why string) {
	root := d.root
	if d.wsl != "" {
		return d.wsl, "proc/sys/kernel/osrelease is that of " + d.wsl
	}
	if line, err := readName(root, "run/systemd/container"); err == nil {
		return line, "run/systemd/container says so"
	}
	for _, f := range []struct{ file, name string }{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := fs.Stat(root, f.file); err == nil {
			return f.name, "there is /" + f.file
		}
	}
	group, err := process.ReadFile(root, "proc/self/cgroup")
	if err == nil {
		for _, m := range containerMarks {
			if strings.Contains(string(group), m.text) {
				return m.name, fmt.Sprintf("proc/self/cgroup has %s", m.text)
			}
		}
	}
	mounts, merr := process.ReadFile(root, "proc/self/mountinfo")
	if merr == nil {
		root := rootMount(mounts)
		for _, m := range containerMarks {
			if strings.Contains(root, m.text) {
				return m.name, fmt.Sprintf("the root file system lies in %s", m.text)
			}
		}
	}
	if err != nil && merr != nil {
		return "", process.Reason(err)
	}
	return none, "no sign of one in proc/self/cgroup, proc/self/mountinfo or /"
}

// rootMount is the line of mountinfo for / and the ones for files that an
// engine mounts into a container from a folder of its own.
func rootMount(mounts []byte) string {
	var b strings.Builder
	for line := range bytes.Lines(mounts) {
		fields := bytes.Fields(line)
		if len(fields) < 5 {
			continue
		}
		switch string(fields[4]) {
		case "/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf":
			b.Write(line)
		}
	}
	return b.String()
}
