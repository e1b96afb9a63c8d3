package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// Live holds facts that no file tells, or not for certain.
type Live struct {
	// Arch is the architecture of this program.
	Arch string
	// PageSize is in bytes.
	PageSize int
	// MIDR is the register of the core this program runs on, 0 if it
	// cannot be read.
	MIDR uint64
	// HypervisorID is the signature of the hypervisor in CPUID, x86 only.
	HypervisorID string
	// Calibrate measures the CPU's frequency, which takes up to 50 ms.
	Calibrate bool
}

// Detect says what machine the tree at root, a machine's /, belongs to, and
// what each conclusion rests on. It always answers: what is missing,
// unreadable or senseless stays unknown, with the reason as its evidence. Live is nil
// for a recorded tree.
func Detect(root fs.FS, live *Live) (Machine, []Evidence) {
	d := &detector{root: root, live: live}
	d.read()
	m := &d.m
	fact(d, "arch", &m.Arch, d.arch)
	d.findEmulation()
	fact(d, "cloud", &m.Cloud, d.cloud)
	fact(d, "instance", &m.Instance, d.instance)
	d.findCPU()
	d.findFrequency()
	fact(d, "kernel", &m.Kernel, d.kernel)
	fact(d, "os", &m.OS, d.osName)
	fact(d, "page_size", &m.PageSize, d.pageSize)
	fact(d, "cores", &m.Cores, d.coresOnline)
	d.findUsableCores()
	fact(d, "threads_per_core", &m.ThreadsPerCore, d.countOf(siblingsFile(d.firstCPU())))
	fact(d, "numa_nodes", &m.NUMANodes, d.countOf("sys/devices/system/node/online"))
	fact(d, "memory_bytes", &m.MemoryBytes, d.memory)
	fact(d, "hypervisor", &m.Hypervisor, d.hypervisor)
	fact(d, "container", &m.Container, d.container)
	d.conclude("emulated", strconv.FormatBool(m.Emulated), cmp.Or(m.EmulatedWhy, "nothing shows it"), nil)
	states, why, err := d.mitigations()
	m.Mitigations = states
	d.conclude("mitigations", m.Mitigated(), why, err)
	return d.m, d.evidence
}

// detector collects what is known about one machine.
type detector struct {
	root     fs.FS
	live     *Live
	m        Machine
	evidence []Evidence

	// What more than one conclusion rests on. first is the first of processors.
	first      processor
	processors []processor
	infoErr    error
	dmi        dmi
	dmiErr     error
	smbios     []smbiosProcessor
	smbiosErr  error
	auxv       auxv
	auxvErr    error
	online     []int
	onlineErr  error
	// kinds are in the order of groupKinds; coreSource is where they were read,
	// and doubts say what was missing there or contradicts.
	kinds      []kind
	coreSource string
	doubts     []string
	coreErr    error
	// wsl is wsl1 or wsl2, empty elsewhere.
	wsl string
	// hosts is errHosts where the kernel describes another CPU than the one
	// that this program runs on.
	hosts error
}

func (d *detector) read() {
	d.processors, d.infoErr = readCPUInfo(d.root)
	if d.infoErr == nil {
		d.first = d.processors[0]
	}
	d.dmi, d.dmiErr = readDMI(d.root)
	d.smbios, d.smbiosErr = readSMBIOS(d.root)
	d.auxv, d.auxvErr = readAuxv(d.root)
	d.online, d.onlineErr = process.ReadCPUList(d.root, process.CPUDir+"/online")
	release, _ := process.ReadLine(d.root, osRelease)
	d.wsl = wslOf(release)
	d.coreErr = d.readKinds()
}

// conclude records evidence: what a conclusion rests on, or why it is unknown.
func (d *detector) conclude(field, value, why string, err error) {
	if err != nil {
		value, why = "", process.Reason(err)
	}
	d.evidence = append(d.evidence, Evidence{field, value, why})
}

// fact finds one thing, and records what it rests on. Zero is unknown.
func fact[T comparable](d *detector, field string, to *T, find func() (value T, why string, err error)) {
	value, why, err := find()
	*to = value
	text := ""
	if value != *new(T) {
		text = fmt.Sprint(value)
	}
	d.conclude(field, text, why, err)
}

const (
	osRelease  = "proc/sys/kernel/osrelease"
	kernelArch = "proc/sys/kernel/arch"
)

func (d *detector) arch() (arch, why string, err error) {
	if d.live != nil {
		return d.live.Arch, "this program was built for it", nil
	}
	name, err := readName(d.root, kernelArch)
	arch, why = goArch(name), kernelArch+" is "+name
	switch {
	case err == nil && (arch == "amd64" && d.first.midr != nil || arch == "arm64" && d.first.vendor != ""):
		return arch, why + ", although proc/cpuinfo is that of another architecture", nil
	case err == nil:
		return arch, why, nil
	case d.coreErr == nil:
		return "arm64", d.coreSource + " identifies an Arm core", nil
	case d.first.vendor != "":
		return "amd64", "proc/cpuinfo has a vendor_id", nil
	}
	return "", "", errors.New("neither " + kernelArch + " nor proc/cpuinfo tells it")
}

// goArch turns the kernel's name of an architecture into Go's.
func goArch(name string) string {
	return cmp.Or(map[string]string{"aarch64": "arm64", "x86_64": "amd64"}[name], name)
}

func (d *detector) kernel() (release, source string, err error) {
	if release, err = readName(d.root, osRelease); err == nil {
		return release, osRelease, nil
	}
	line, err := process.ReadLine(d.root, "proc/version")
	if err != nil {
		return "", "", err
	}
	// Linux version 6.1.0-13-arm64 (debian-kernel@…
	rest, ok := strings.CutPrefix(line, "Linux version ")
	release, _, _ = strings.Cut(rest, " ")
	if !ok || checkName(release) != nil {
		return "", "", errors.New("proc/version does not begin as Linux writes it")
	}
	return release, "proc/version", nil
}

// osName is the name and version of the distribution (man 5 os-release).
func (d *detector) osName() (name, source string, err error) {
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		text, readErr := process.ReadFile(d.root, file)
		_, rest, ok := strings.Cut("\n"+string(text), "\nPRETTY_NAME=")
		if readErr == nil && !ok {
			readErr = fmt.Errorf("%s has no PRETTY_NAME", file)
		}
		if err = cmp.Or(err, readErr); readErr != nil {
			continue
		}
		value, _, _ := strings.Cut(rest, "\n")
		name := process.Clean(strings.Trim(strings.TrimSpace(value), `"'`))
		if err := checkName(name); err != nil {
			return "", "", fmt.Errorf("PRETTY_NAME in %s is %w", file, err)
		}
		return name, file, nil
	}
	return "", "", err
}

func (d *detector) pageSize() (size int, source string, err error) {
	if d.live != nil {
		return d.live.PageSize, "the system's answer", nil
	}
	size = int(d.auxv[atPageSize])
	if err = d.auxvErr; err == nil && (size < 1<<12 || size > 1<<16 || size&(size-1) != 0) {
		size, err = 0, fmt.Errorf("AT_PAGESZ in proc/self/auxv is %d", d.auxv[atPageSize])
	}
	return size, "AT_PAGESZ in proc/self/auxv", err
}

func (d *detector) memory() (total uint64, source string, err error) {
	const most = 1 << 50
	total, err = process.ReadKiB(d.root, "proc/meminfo", "MemTotal")
	if total > most {
		total, err = 0, errors.New("MemTotal in proc/meminfo makes no sense")
	}
	return total, "MemTotal in proc/meminfo", err
}

// maxNameBytes is longer than any name of a product, a system or a machine type.
const maxNameBytes = 96

// identifying matches what tells one machine from all others: serial numbers,
// uuids, the ids of instances.
var identifying = regexp.MustCompile(`(?i)^i-|serial|\bs/?n\b|\bi-([0-9a-f]{8,}|[0-9a-z]{16,})|\bocid1\.|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12,}`)

// checkName says why text, which is foreign, is not shown as a name.
func checkName(text string) error {
	switch {
	case len(text) > maxNameBytes:
		return process.Defect("longer than a name")
	case identifying.MatchString(text):
		return process.Defect("like a serial number or an id, and not shown")
	}
	return nil
}

// readName reads a file that holds one name which is going to be shown.
func readName(root fs.FS, name string) (string, error) {
	line, err := process.ReadLine(root, name)
	if err != nil {
		return "", err
	}
	if err := checkName(line); err != nil {
		return "", &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return line, nil
}
