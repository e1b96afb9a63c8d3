package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// Options adds to the tree what only the running system tells.
type Options struct {
	// Live is nil for a recorded tree.
	Live *Live
	// Calibrate measures the CPU's frequency, which takes up to 50 ms. It
	// needs Live.
	Calibrate bool
}

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
}

// Detect says what machine the tree at root, a machine's /, belongs to, and
// what each conclusion rests on. It always answers: what is missing,
// unreadable or senseless stays unknown, with the reason as its evidence.
func Detect(root fs.FS, opts Options) (Machine, []Evidence) {
	d := &detector{root: root, live: opts.Live}
	d.read()
	d.findArch()
	d.findCloud()
	d.findCPU()
	d.findFrequency(opts.Calibrate)
	d.findSystem()
	d.findCores()
	d.findMemory()
	d.findSurroundings()
	d.findMitigations()
	return d.m, d.evidence
}

// detector collects what is known about one machine.
type detector struct {
	root     fs.FS
	live     *Live
	m        Machine
	evidence []Evidence

	info      cpuInfo
	infoErr   error
	dmi       dmi
	dmiErr    error
	smbios    []smbiosProcessor
	smbiosErr error
	auxv      auxv
	auxvErr   error
	online    []int
	onlineErr error
	cores     coreKinds
	// wsl is wsl1 or wsl2, empty elsewhere.
	wsl string
}

// because records evidence. An empty value is an unknown one.
func (d *detector) because(field, value, format string, args ...any) {
	d.evidence = append(d.evidence, Evidence{field, value, fmt.Sprintf(format, args...)})
}

// read reads the files that more than one conclusion rests on.
func (d *detector) read() {
	b, err := process.ReadFile(d.root, "proc/cpuinfo")
	if err == nil {
		d.info, err = parseCPUInfo(b)
		if err != nil {
			err = fmt.Errorf("proc/cpuinfo: %w", err)
		}
	}
	d.infoErr = err
	d.dmi, d.dmiErr = readDMI(d.root)
	d.smbios, d.smbiosErr = readSMBIOS(d.root)
	d.auxv, d.auxvErr = readAuxv(d.root)
	d.online, d.onlineErr = onlineCPUs(d.root)
	release, _ := process.ReadLine(d.root, osRelease)
	d.wsl = wslOf(release)
	d.cores = d.readKinds()
}

const osRelease = "proc/sys/kernel/osrelease"

func (d *detector) findArch() {
	const field = "arch"
	if d.live != nil {
		d.m.Arch = d.live.Arch
		d.because(field, d.m.Arch, "this program was built for it")
		return
	}
	p := d.info.first()
	if line, err := readName(d.root, "proc/sys/kernel/arch"); err == nil {
		d.m.Arch = goArch(line)
		why := "proc/sys/kernel/arch is " + line
		if p.midr != nil && d.m.Arch == "amd64" || p.x86.vendor != "" && d.m.Arch == "arm64" {
			why += ", although proc/cpuinfo is that of another architecture"
		}
		d.because(field, d.m.Arch, "%s", why)
		return
	}
	switch {
	case d.cores.err == nil:
		d.m.Arch = "arm64"
		d.because(field, d.m.Arch, "%s identifies an Arm core", d.cores.source)
	case p.x86.vendor != "":
		d.m.Arch = "amd64"
		d.because(field, d.m.Arch, "proc/cpuinfo has a vendor_id")
	default:
		d.because(field, "", "neither proc/sys/kernel/arch nor proc/cpuinfo tells it")
	}
}

// goArch turns the kernel's name of an architecture into Go's.
func goArch(name string) string {
	switch name {
	case "aarch64":
		return "arm64"
	case "x86_64":
		return "amd64"
	}
	return name
}

func (d *detector) findCloud() {
	if d.dmiErr != nil {
		d.because("cloud", "", "%s", process.Reason(d.dmiErr))
	} else {
		cloud, why := cloudOf(d.dmi)
		d.m.Cloud = cloud
		d.because("cloud", cloud, "%s", why)
	}
	// Others on AWS, such as HVM domU, are Xen's name of the machine.
	if name := d.dmi["product_name"]; d.m.Cloud == "AWS" && awsType.MatchString(name) {
		why := "DMI product_name on AWS"
		if told, key, err := cloudInitInstance(d.root); err == nil && told != name {
			why += fmt.Sprintf("; %s in %s is %s", key, cloudInitData, told)
		}
		d.m.Instance = name
		d.because("instance", name, "%s", why)
		return
	}
	name, key, err := cloudInitInstance(d.root)
	if err != nil {
		d.because("instance", "", "DMI does not tell it, and %s", process.Reason(err))
		return
	}
	d.m.Instance = name
	d.because("instance", name, "%s in %s", key, cloudInitData)
}

// awsType matches the machine types of AWS: c7g.large, m6g.metal, u7i-12tb.224xlarge.
var awsType = regexp.MustCompile(`^[a-z][a-z0-9-]*\.(nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?)$`)

func (d *detector) findSystem() {
	release, source := "", osRelease
	line, err := readName(d.root, source)
	if err == nil {
		release = line
	} else if line, err = process.ReadLine(d.root, "proc/version"); err == nil {
		release, source = kernelOf(line), "proc/version"
		if release == "" || checkName(release) != nil {
			release, err = "", errors.New("proc/version does not begin as Linux writes it")
		}
	}
	d.m.Kernel = release
	d.report("kernel", release, source, err)

	name, source, err := osName(d.root)
	d.m.OS = name
	d.report("os", name, source, err)

	d.m.PageSize, source, err = d.pageSize()
	d.report("page_size", positive(d.m.PageSize), source, err)
}

// report records evidence: the source of a fact, or why it is unknown.
func (d *detector) report(field, value, source string, err error) {
	if err != nil {
		value, source = "", process.Reason(err)
	}
	d.because(field, value, "%s", source)
}

// positive is n in digits, or empty for 0, which means unknown.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// kernelOf takes the release out of /proc/version: "Linux version 6.1.0-…".
func kernelOf(line string) string {
	rest, ok := strings.CutPrefix(line, "Linux version ")
	if !ok {
		return ""
	}
	release, _, _ := strings.Cut(rest, " ")
	return release
}

// osName is the name and version of the distribution (man 5 os-release).
func osName(root fs.FS) (name, source string, err error) {
	var first error
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		b, err := process.ReadFile(root, file)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		for line := range strings.Lines(string(b)) {
			if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				name := process.Clean(strings.Trim(strings.TrimSpace(value), `"'`))
				if err := checkName(name); err != nil {
					return "", "", fmt.Errorf("PRETTY_NAME in %s is %w", file, err)
				}
				return name, file, nil
			}
		}
		first = cmp.Or(first, fmt.Errorf("%s has no PRETTY_NAME", file))
	}
	return "", "", first
}

func (d *detector) pageSize() (size int, source string, err error) {
	if d.live != nil {
		return d.live.PageSize, "the system's answer", nil
	}
	if d.auxvErr != nil {
		return 0, "", d.auxvErr
	}
	size, err = d.auxv.pageSize()
	return size, "AT_PAGESZ in proc/self/auxv", err
}

func (d *detector) findCores() {
	switch {
	case d.onlineErr == nil:
		d.m.Cores = len(d.online)
		why := cpuDir + "/online is " + process.FormatCPUList(d.online)
		if n := len(d.info.processors); n > 0 && n != d.m.Cores {
			why += fmt.Sprintf("; proc/cpuinfo lists %d", n)
		}
		d.because("cores", positive(d.m.Cores), "%s", why)
	case len(d.info.processors) > 0:
		d.m.Cores = len(d.info.processors)
		d.because("cores", positive(d.m.Cores), "proc/cpuinfo lists so many; %s", process.Reason(d.onlineErr))
	default:
		d.because("cores", "", "%s", process.Reason(d.onlineErr))
	}
	d.findUsableCores()

	file := cpuPath(d.firstCPU(), "topology/thread_siblings_list")
	threads, err := readCPUList(d.root, file)
	d.m.ThreadsPerCore = len(threads)
	d.report("threads_per_core", positive(len(threads)), file, err)

	file = path.Join(nodeDir, "online")
	nodes, err := readCPUList(d.root, file)
	d.m.NUMANodes = len(nodes)
	d.report("numa_nodes", positive(len(nodes)), file, err)
}

// firstCPU is the online CPU that stands for all where they are alike.
func (d *detector) firstCPU() int {
	if d.cores.err == nil && len(d.cores.kinds[0].cpus) > 0 {
		return d.cores.kinds[0].cpus[0]
	}
	if len(d.online) > 0 {
		return d.online[0]
	}
	return 0
}

// findUsableCores looks for what keeps this process from using all cores.
func (d *detector) findUsableCores() {
	usable := float64(d.m.Cores)
	allowed, err := process.AllowedCPUs(d.root)
	if err == nil && len(allowed) > 0 {
		d.m.Allowed = process.FormatCPUList(allowed)
		if usable = float64(len(allowed)); d.m.Cores > 0 {
			usable = min(usable, float64(d.m.Cores))
		}
	}
	if err == nil && len(allowed) == 0 {
		err = errors.New("Cpus_allowed_list in proc/self/status has no CPU that is online")
	}
	d.report("cpus_allowed", d.m.Allowed, "Cpus_allowed_list in proc/self/status", err)

	quota, file := math.Inf(1), ""
	group, err := GroupOf(d.root, "self", "cpu")
	if err == nil {
		quota, file, err = group.quota(d.root)
	}
	switch {
	case err != nil:
		d.because("quota_cores", "", "%s", process.Reason(err))
	case math.IsInf(quota, 1):
		d.because("quota_cores", none, "no control group above this process has one")
	default:
		d.m.QuotaCores = quota
		d.because("quota_cores", strconv.FormatFloat(quota, 'f', -1, 64), "%s", file)
		usable = min(usable, quota)
	}
	d.m.UsableCores = usable
}

func (d *detector) findMemory() {
	const most = 1 << 50
	total, err := process.ReadKiB(d.root, "proc/meminfo", "MemTotal")
	if total > most {
		err = errors.New("MemTotal in proc/meminfo makes no sense")
	}
	value := ""
	if err == nil {
		d.m.MemoryBytes = total
		value = strconv.FormatUint(total, 10)
	}
	d.report("memory_bytes", value, "MemTotal in proc/meminfo", err)
}

// findSurroundings looks for what is between this process and the hardware.
func (d *detector) findSurroundings() {
	name, why := d.findHypervisor()
	d.m.Hypervisor = name
	d.because("hypervisor", name, "%s", why)
	name, why = d.findContainer()
	d.m.Container = name
	d.because("container", name, "%s", why)
	d.m.EmulatedWhy = d.emulation()
	d.m.Emulated = d.m.EmulatedWhy != ""
	d.because("emulated", strconv.FormatBool(d.m.Emulated), "%s", cmp.Or(d.m.EmulatedWhy, "nothing shows it"))
}
