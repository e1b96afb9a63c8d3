package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// findCPU names the processor.
func (d *detector) findCPU() {
	cpu := &d.m.CPU
	if d.m.Arch == "amd64" && d.first.midr == nil {
		d.findX86()
	} else {
		d.findArm()
	}
	found, source, err := d.features()
	cpu.Features = found
	d.conclude("cpu.features", cmp.Or(strings.Join(cpu.Features, " "), none), source, err)
	if err = d.hosts; err == nil {
		cpu.Caches, err = readCaches(d.root, d.firstCPU())
	}
	d.conclude("cpu.caches", strconv.Itoa(len(cpu.Caches)), process.CPUPath(d.firstCPU(), "cache"), err)
}

func (d *detector) findX86() {
	p, cpu := d.first, &d.m.CPU
	if p.vendor == "" {
		err := cmp.Or(d.infoErr, errors.New("proc/cpuinfo has no vendor_id"))
		d.conclude("cpu.product", "", "", err)
		d.conclude("cpu.core", "", "", err)
		return
	}
	if cpu.Vendor = x86Vendors[p.vendor]; cpu.Vendor == "" && checkName(p.vendor) == nil {
		cpu.Vendor = p.vendor
	}
	cpu.Family, cpu.Model, cpu.Stepping = p.family, p.number, p.stepping
	why := "model name in proc/cpuinfo"
	if err := checkName(p.model); err != nil {
		why += " is " + err.Error()
	} else if cpu.Product = productName(p.model); cpu.Product == "" {
		why = "proc/cpuinfo has no model name"
	}
	d.conclude("cpu.product", cpu.Product, why, nil)
	why = cpu.x86IDs()
	if cpu.Core = x86CoreName(cpu.Vendor, p); cpu.Core == "" {
		why += " is not in the table of cores"
	}
	d.conclude("cpu.core", cpu.Core, why, nil)
}

func (d *detector) findArm() {
	cpu := &d.m.CPU
	if d.coreErr != nil {
		d.conclude("cpu.core", "", "", d.coreErr)
		d.conclude("cpu.product", "", "the core is unknown", nil)
		return
	}
	m := d.kinds[0].midr
	cpu.MIDR, cpu.Vendor, cpu.Core, cpu.BogoMIPS = m.fields(), makers[m.part().implementer].name, coreName(m), d.bogoMIPS()
	why := m.String() + ", from " + d.coreSource
	if cpu.Core == "" {
		why += ", is not in the table of cores"
	}
	d.conclude("cpu.core", cpu.Core, d.beside(why), nil)
	d.findKinds()
	cpu.Product, why = d.product(m)
	if strings.HasPrefix(cpu.Product, appleName) {
		cpu.Vendor = "Apple" // some of its virtual machines show another implementer
	}
	d.conclude("cpu.product", cpu.Product, d.beside(why), nil)
}

// bogoMIPS is that of the first core; 0 if unknown, and on arm64 also if
// /proc/cpuinfo is another CPU's.
func (d *detector) bogoMIPS() float64 {
	if d.first.midr == nil {
		return 0
	}
	return d.first.bogoMIPS
}

// features lists those that matter, from /proc/cpuinfo or from what the kernel told
// this process. Cores of several kinds show what all of them have, as the kernel
// does.
func (d *detector) features() (found []string, source string, err error) {
	all, source := slices.Clone(d.first.features), "proc/cpuinfo"
	for _, p := range d.processors {
		all = slices.DeleteFunc(all, func(f string) bool { return !slices.Contains(p.features, f) })
	}
	if d.m.Arch == "arm64" && (d.first.midr == nil || len(all) == 0) {
		if d.auxvErr != nil {
			return nil, "", d.auxvErr
		}
		all, source = d.auxv.features(), "AT_HWCAP in proc/self/auxv"
	}
	if len(all) == 0 {
		return nil, "", cmp.Or(d.infoErr, errors.New("proc/cpuinfo lists no features"))
	}
	// A list that has none of them is not nil, which is unknown.
	found = []string{}
	for _, f := range gatewayFeatures[d.m.Arch] {
		// The kernel's name for pauth is paca.
		if slices.Contains(all, f) || f == "pauth" && slices.Contains(all, "paca") {
			found = append(found, f)
		}
	}
	return found, source, nil
}

// x86Vendors are the companies behind the vendor_id of /proc/cpuinfo.
var x86Vendors = map[string]string{
	"GenuineIntel": "Intel",
	"AuthenticAMD": "AMD",
	"HygonGenuine": "Hygon",
	"CentaurHauls": "Centaur",
	"Shanghai":     "Zhaoxin",
}

// x86Core is a row of the table of x86 cores: the models first to last of a
// family, in the steppings from to to, have this core. The field's own table is
// arch/x86/include/asm/intel-family.h of Linux, and for AMD arch/x86/kernel/
// cpu/amd.c. Server parts only.
type x86Core struct {
	vendor                        string
	family, first, last, from, to int
	name                          string
}

var x86Cores = []x86Core{
	{"Intel", 6, 0x3f, 0x3f, 0, 255, "Haswell"},
	{"Intel", 6, 0x4f, 0x4f, 0, 255, "Broadwell"},
	{"Intel", 6, 0x55, 0x55, 0, 4, "Skylake"},
	{"Intel", 6, 0x55, 0x55, 5, 7, "Cascade Lake"},
	{"Intel", 6, 0x55, 0x55, 10, 11, "Cooper Lake"},
	{"Intel", 6, 0x6a, 0x6a, 0, 255, "Ice Lake"},
	{"Intel", 6, 0x6c, 0x6c, 0, 255, "Ice Lake"},
	{"Intel", 6, 0x8f, 0x8f, 0, 255, "Sapphire Rapids"},
	{"Intel", 6, 0xcf, 0xcf, 0, 255, "Emerald Rapids"},
	{"Intel", 6, 0xad, 0xad, 0, 255, "Granite Rapids"},
	{"Intel", 6, 0xae, 0xae, 0, 255, "Granite Rapids"},
	{"Intel", 6, 0xaf, 0xaf, 0, 255, "Sierra Forest"},
	{"AMD", 0x17, 0x00, 0x2f, 0, 255, "Zen"},
	{"AMD", 0x17, 0x30, 0x7f, 0, 255, "Zen 2"},
	{"AMD", 0x17, 0x90, 0xaf, 0, 255, "Zen 2"},
	{"AMD", 0x19, 0x00, 0x0f, 0, 255, "Zen 3"},
	{"AMD", 0x19, 0x10, 0x1f, 0, 255, "Zen 4"},
	{"AMD", 0x19, 0x20, 0x5f, 0, 255, "Zen 3"},
	{"AMD", 0x19, 0x60, 0x7f, 0, 255, "Zen 4"},
	{"AMD", 0x19, 0xa0, 0xaf, 0, 255, "Zen 4"},
	{"AMD", 0x1a, 0x00, 0x2f, 0, 255, "Zen 5"},
	{"AMD", 0x1a, 0x40, 0x4f, 0, 255, "Zen 5"},
	{"AMD", 0x1a, 0x60, 0x7f, 0, 255, "Zen 5"},
}

// x86CoreName is the name of a core, empty if the table does not have it.
func x86CoreName(vendor string, p processor) string {
	for _, c := range x86Cores {
		if c.vendor == vendor && c.family == p.family &&
			c.first <= p.number && p.number <= c.last && c.from <= p.stepping && p.stepping <= c.to {
			return c.name
		}
	}
	return ""
}

// noise is what vendors' model names have and readers need not.
var noise = strings.NewReplacer("(R)", "", "(r)", "", "(TM)", "", "(tm)", "", "®", "", "™", "")

// productName makes a vendor's model name readable: trade marks and filling
// words are left out.
func productName(s string) string {
	s = strings.NewReplacer(" CPU @", " @", "Xeon CPU ", "Xeon ").Replace(noise.Replace(s))
	return process.Clean(strings.TrimSuffix(process.Clean(s), " Processor"))
}

// processor is one block of /proc/cpuinfo, whose format is the architecture's own:
// arch/arm64/kernel/cpuinfo.c, arch/x86/kernel/cpu/proc.c. What the file does not
// have is empty or nil.
type processor struct {
	id       int
	midr     *midr
	bogoMIPS float64
	// features are the words of Features (arm64) or flags (x86).
	features []string

	// The rest names an x86 processor.
	vendor, model            string
	family, number, stepping int
	mhz                      float64
}

// Bounds on a line and on a block, which the kernel stays below: all the flags of an
// x86 CPU are under 3000 bytes.
const (
	maxValueBytes = 8 << 10
	maxBlockLines = 64
)

// readCPUInfo parses /proc/cpuinfo. Lines and values that make no sense are
// passed over: they leave their fact unknown.
func readCPUInfo(root fs.FS) ([]processor, error) {
	text, err := process.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	var blocks []cpuBlock
	block, common := cpuBlock{}, cpuBlock{}
	end := func() {
		if id, err := strconv.Atoi(block["processor"]); err == nil && id >= 0 && id < process.MaxCPUs && len(blocks) < process.MaxCPUs {
			blocks = append(blocks, block)
		} else {
			// Old kernels describe the core once, in a block without a
			// processor of its own.
			maps.Copy(common, block)
		}
		block = cpuBlock{}
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if key == "" || key == "processor" && block[key] != "" {
			end()
		}
		if block[key] == "" && len(value) <= maxValueBytes && len(block) < maxBlockLines {
			block[key] = process.Clean(value)
		}
	}
	end()
	if len(blocks) == 0 {
		return nil, errors.New("proc/cpuinfo: no processor is listed in it")
	}
	processors := make([]processor, len(blocks))
	for i, own := range blocks {
		block := maps.Clone(common)
		maps.Copy(block, own)
		processors[i] = block.parse()
	}
	return processors, nil
}

// cpuBlock is a block by its keys.
type cpuBlock map[string]string

func (b cpuBlock) parse() processor {
	return processor{
		id: b.int("processor"), midr: b.midr(), bogoMIPS: b.float("BogoMIPS") + b.float("bogomips"),
		features: strings.Fields(b["Features"] + " " + b["flags"]),
		vendor:   b["vendor_id"], model: b["model name"],
		family: b.int("cpu family"), number: b.int("model"), stepping: b.int("stepping"),
		mhz: b.float("cpu MHz"),
	}
}

// midr puts the register together again; nil unless all four parts are there.
func (b cpuBlock) midr() *midr {
	var m midr
	for _, f := range []struct {
		key         string
		bits, shift int
	}{
		{"CPU implementer", 8, 24}, {"CPU variant", 4, 20}, {"CPU part", 12, 4}, {"CPU revision", 4, 0},
	} {
		v, err := strconv.ParseUint(b[f.key], 0, f.bits)
		if err != nil {
			return nil
		}
		m |= midr(v << f.shift)
	}
	return &m
}

// int is 0 for what is no number.
func (b cpuBlock) int(key string) int {
	n, err := strconv.Atoi(b[key])
	if err != nil {
		return 0
	}
	return n
}

// float parses a positive number of reasonable size; anything else is 0.
func (b cpuBlock) float(key string) float64 {
	f, err := strconv.ParseFloat(b[key], 64)
	if err != nil || !(f > 0 && f < 1e6) {
		return 0
	}
	return f
}

// gatewayFeatures are the features of a CPU that matter to a gateway, by
// architecture: atomics (LSE) for locks and counters, crc32, aes and hashes for TLS,
// vectors for parsing, pointer authentication for its cost.
var gatewayFeatures = map[string][]string{
	"arm64": {"atomics", "crc32", "aes", "pmull", "sha2", "sve", "sve2", "pauth"},
	"amd64": {"aes", "pclmulqdq", "sha_ni", "sse4_2", "bmi2", "avx2", "avx512f", "vaes"},
}

// FeatureNames lists all features that Detect looks for on an architecture.
func FeatureNames(arch string) []string { return gatewayFeatures[arch] }

// Keys of the auxiliary vector (include/uapi/linux/auxvec.h).
const (
	atPageSize = 6
	atHWCap    = 16
	atHWCap2   = 26
)

// auxv is the auxiliary vector that the kernel gave a process.
type auxv map[uint64]uint64

// readAuxv reads that of this process, in a recorded tree that of the process
// which recorded it: pairs of little-endian words of 64 bits, key and value.
func readAuxv(root fs.FS) (auxv, error) {
	const entry = 16
	b, err := process.ReadFile(root, "proc/self/auxv")
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || len(b)%entry != 0 {
		return nil, errors.New("proc/self/auxv is not that of a 64-bit process")
	}
	v := auxv{}
	for ; len(b) > 0; b = b[entry:] {
		v[binary.LittleEndian.Uint64(b)] = binary.LittleEndian.Uint64(b[8:])
	}
	return v, nil
}

// features turns HWCAP of arm64 (arch/arm64/include/uapi/asm/hwcap.h) into the
// names that /proc/cpuinfo has for it, as far as they matter here.
func (v auxv) features() []string {
	var names []string
	for _, f := range []struct {
		key  uint64
		bit  uint
		name string
	}{
		{atHWCap, 3, "aes"}, {atHWCap, 4, "pmull"}, {atHWCap, 6, "sha2"}, {atHWCap, 7, "crc32"},
		{atHWCap, 8, "atomics"}, {atHWCap, 22, "sve"}, {atHWCap, 30, "paca"}, {atHWCap2, 1, "sve2"},
	} {
		if v[f.key]>>f.bit&1 == 1 {
			names = append(names, f.name)
		}
	}
	return names
}
