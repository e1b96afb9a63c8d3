package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Options adds to the tree what only the running system tells.
type Options struct {
	// Live is nil for a recorded tree.
	Live *Live
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
}

// Detect says what machine the tree at root, a machine's /, belongs to, and
// what each conclusion rests on. It always answers: what is missing,
// unreadable or senseless stays unknown, with the reason as its evidence.
func Detect(root fs.FS, opts Options) (Machine, []Evidence) {
	d := &detector{root: root, live: opts.Live}
	d.cpuInfo()
	d.arch()
	d.system()
	d.cores()
	d.memory()
	d.cloud()
	d.processor()
	return d.m, d.evidence
}

type detector struct {
	root     fs.FS
	live     *Live
	m        Machine
	evidence []Evidence

	info    cpuInfo
	infoErr error
	dmi     dmi
	dmiErr  error
}

// because records evidence. An empty value is an unknown one.
func (d *detector) because(field, value, format string, args ...any) {
	d.evidence = append(d.evidence, Evidence{field, value, fmt.Sprintf(format, args...)})
}

func (d *detector) cpuInfo() {
	b, err := readFile(d.root, "proc/cpuinfo")
	if err == nil {
		d.info, err = parseCPUInfo(b)
		if err != nil {
			err = fmt.Errorf("proc/cpuinfo: %w", err)
		}
	}
	d.infoErr = err
}

func (d *detector) arch() {
	const field = "arch"
	if d.live != nil {
		d.m.Arch = d.live.Arch
		d.because(field, d.m.Arch, "this program was built for it")
		return
	}
	if line, err := readLine(d.root, "proc/sys/kernel/arch"); err == nil {
		d.m.Arch = goArch(line)
		d.because(field, d.m.Arch, "proc/sys/kernel/arch is %q", line)
		return
	}
	switch p := d.info.first(); {
	case p.midr != nil:
		d.m.Arch = "arm64"
		d.because(field, d.m.Arch, "proc/cpuinfo has a CPU implementer")
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

func (d *detector) system() {
	release, err := readLine(d.root, "proc/sys/kernel/osrelease")
	source := "proc/sys/kernel/osrelease"
	if err != nil {
		var line string
		if line, err = readLine(d.root, "proc/version"); err == nil {
			release, source = kernelOf(line), "proc/version"
		}
	}
	d.m.Kernel = release
	if release == "" {
		d.because("kernel", "", "%s", reason(cmpErr(err, errors.New("proc/version does not begin as Linux writes it"))))
	} else {
		d.because("kernel", release, "%s", source)
	}
	size, source, err := pageSize(d.root, d.live)
	if err != nil {
		d.because("page_size", "", "%s", reason(err))
		return
	}
	d.m.PageSize = size
	d.because("page_size", strconv.Itoa(size), "%s", source)
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
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

// pageSize is the size of a page in bytes and where it was read. A recorded
// tree tells it in the auxiliary vector of a process.
func pageSize(root fs.FS, live *Live) (int, string, error) {
	if live != nil {
		return live.PageSize, "the system's answer", nil
	}
	b, err := readBounded(root, "proc/self/auxv", maxLineBytes)
	if err != nil {
		return 0, "", err
	}
	const atPageSize, entry = 6, 16
	for ; len(b) >= entry; b = b[entry:] {
		size := binary.LittleEndian.Uint64(b[8:])
		if binary.LittleEndian.Uint64(b) == atPageSize && size >= 1<<12 && size <= 1<<16 && size&(size-1) == 0 {
			return int(size), "AT_PAGESZ in proc/self/auxv", nil
		}
	}
	return 0, "", errors.New("proc/self/auxv has no AT_PAGESZ")
}

func (d *detector) cores() {
	const file = "sys/devices/system/cpu/online"
	line, err := readLine(d.root, file)
	if err == nil {
		var cpus []int
		if cpus, err = ParseCPUList(line); err == nil && len(cpus) > 0 {
			d.m.Cores = len(cpus)
			d.because("cores", strconv.Itoa(d.m.Cores), "%s is %s", file, line)
			return
		}
	}
	if n := len(d.info.processors); n > 0 {
		d.m.Cores = n
		d.because("cores", strconv.Itoa(n), "proc/cpuinfo lists so many")
		return
	}
	d.because("cores", "", "%s", reason(err))
}

func (d *detector) memory() {
	total, err := memInfo(d.root, "MemTotal")
	if err != nil {
		d.because("memory_bytes", "", "%s", reason(err))
		return
	}
	d.m.MemoryBytes = total
	d.because("memory_bytes", strconv.FormatUint(total, 10), "MemTotal in proc/meminfo")
}

// memInfo reads one value of /proc/meminfo in bytes.
func memInfo(root fs.FS, name string) (uint64, error) {
	b, err := readFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	for key, value := range keyValues(b) {
		if key == name {
			return kibibytes(value)
		}
	}
	return 0, fmt.Errorf("proc/meminfo has no %s", name)
}

func (d *detector) cloud() {
	d.dmi, d.dmiErr = readDMI(d.root)
	if d.dmiErr != nil {
		d.because("cloud", "", "%s", reason(d.dmiErr))
		d.because("instance", "", "%s", reason(d.dmiErr))
		return
	}
	cloud, why := findCloud(d.dmi)
	d.m.Cloud = cloud
	if cloud == "" {
		why = "what DMI tells is none of the known clouds"
	}
	d.because("cloud", cloud, "%s", why)
	if cloud == "AWS" {
		d.m.Instance = d.dmi["product_name"]
		d.because("instance", d.m.Instance, "DMI product_name")
		return
	}
	d.because("instance", "", "the firmware does not tell it here")
}

func (d *detector) processor() {
	if x := d.info.first().x86; d.m.Arch != "arm64" && x.vendor != "" {
		d.m.CPU.Vendor, d.m.CPU.Product = x.vendor, x.model
		d.because("cpu.product", x.model, "model name in proc/cpuinfo")
		return
	}
	m, why, err := d.findMIDR()
	if err != nil {
		d.because("cpu.core", "", "%s", reason(err))
		d.because("cpu.product", "", "the core is unknown")
		return
	}
	cpu := &d.m.CPU
	cpu.Implementer, cpu.Part = m.implementerHex(), m.partHex()
	cpu.Variant, cpu.Revision = m.variantHex(), strconv.Itoa(int(m.revision))
	cpu.Vendor, cpu.Core = implementers[m.implementer], coreName(m)
	if d.m.Arch == "arm64" && d.info.first().midr != nil {
		cpu.BogoMIPS = d.info.first().bogoMIPS
	}
	if cpu.Core == "" {
		why = fmt.Sprintf("%s (%s) is not in the table of cores", m, why)
	} else {
		why = fmt.Sprintf("%s, %s", m, why)
	}
	d.because("cpu.core", cpu.Core, "%s", why)
	names := fittingProducts(chip{m, cpu.BogoMIPS, d.m.Cloud, d.dmiErr == nil})
	cpu.Product = alternatives(names)
	d.because("cpu.product", cpu.Product, "%s with BogoMIPS %.2f", m.stepping(), cpu.BogoMIPS)
}

// findMIDR finds the identification of the first core and says where.
func (d *detector) findMIDR() (midr, string, error) {
	const file = "sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
	line, err := readLine(d.root, file)
	if err == nil {
		var m midr
		if m, err = parseMIDR(line); err == nil {
			return m, file, nil
		}
	}
	if p := d.info.first(); p.midr != nil {
		return *p.midr, "proc/cpuinfo", nil
	}
	if d.live != nil && d.live.MIDR != 0 {
		return decodeMIDR(d.live.MIDR), "the register MIDR_EL1", nil
	}
	return midr{}, "", err
}

// LiveFacts asks the running system for what its files do not tell.
func LiveFacts() *Live {
	return &Live{Arch: runtime.GOARCH, PageSize: os.Getpagesize()}
}
