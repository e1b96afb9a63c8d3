package machine

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// cpuInfo is what /proc/cpuinfo tells. Its format is the architecture's own:
// arch/arm64/kernel/cpuinfo.c, arch/x86/kernel/cpu/proc.c.
type cpuInfo struct {
	processors []processor
}

// processor is one block of /proc/cpuinfo. What the file does not have is
// empty or nil.
type processor struct {
	id       int
	midr     *midr
	bogoMIPS float64
	// features are the words of Features (arm64) or flags (x86).
	features []string
	x86      x86ID
}

// x86ID names an x86 processor.
type x86ID struct {
	vendor, model            string
	family, number, stepping int
	mhz                      float64
}

// first is the first processor, or an empty one.
func (c cpuInfo) first() processor {
	if len(c.processors) == 0 {
		return processor{}
	}
	return c.processors[0]
}

// parseCPUInfo parses /proc/cpuinfo. Lines and values that make no sense are
// passed over: they leave their fact unknown.
func parseCPUInfo(b []byte) (cpuInfo, error) {
	var (
		info   cpuInfo
		common = rawProcessor{}
		block  = rawProcessor{}
	)
	flush := func() {
		if id, err := strconv.Atoi(block["processor"]); err == nil && id >= 0 && id < maxCPUs && len(info.processors) < maxCPUs {
			info.processors = append(info.processors, block.parse(id))
		} else {
			// Old kernels describe the core once, in a block without a
			// processor of its own.
			for k, v := range block {
				common[k] = v
			}
		}
		block = rawProcessor{}
	}
	for line := range bytes.Lines(b) {
		if len(bytes.TrimSpace(line)) == 0 {
			flush()
			continue
		}
		key, value, ok := bytes.Cut(line, []byte{':'})
		name := string(bytes.TrimSpace(key))
		if !ok || !cpuInfoKeys[name] || len(value) > maxValueBytes {
			continue
		}
		if name == "processor" && block[name] != "" {
			flush()
		}
		if block[name] == "" {
			block[name] = process.Clean(string(value))
		}
	}
	flush()
	if len(info.processors) == 0 {
		return info, errors.New("no processor is listed in it")
	}
	info.fill(common)
	return info, nil
}

// fill gives the processors what only the common block has.
func (c cpuInfo) fill(common rawProcessor) {
	shared := common.parse(0)
	for i := range c.processors {
		p := &c.processors[i]
		if p.midr == nil {
			p.midr = shared.midr
		}
		if p.features == nil {
			p.features = shared.features
		}
		if p.bogoMIPS == 0 {
			p.bogoMIPS = shared.bogoMIPS
		}
	}
}

// maxValueBytes is more than the kernel writes in a line: all the flags of an x86
// CPU are under 3000 bytes.
const maxValueBytes = 8 << 10

var cpuInfoKeys = map[string]bool{
	"processor": true, "BogoMIPS": true, "bogomips": true,
	"Features": true, "flags": true,
	"CPU implementer": true, "CPU variant": true, "CPU part": true, "CPU revision": true,
	"vendor_id": true, "model name": true, "cpu family": true, "model": true, "stepping": true,
	"cpu MHz": true,
}

// rawProcessor is a block by its keys.
type rawProcessor map[string]string

func (r rawProcessor) parse(id int) processor {
	p := processor{id: id, midr: r.midr()}
	p.bogoMIPS = r.float("BogoMIPS") + r.float("bogomips")
	p.features = strings.Fields(r["Features"] + " " + r["flags"])
	p.x86 = x86ID{
		vendor:   r["vendor_id"],
		model:    r["model name"],
		family:   r.int("cpu family"),
		number:   r.int("model"),
		stepping: r.int("stepping"),
		mhz:      r.float("cpu MHz"),
	}
	return p
}

// midr puts the register together again; nil unless all four parts are there.
func (r rawProcessor) midr() *midr {
	var m midr
	for _, f := range []struct {
		key  string
		bits int
		set  func(uint64)
	}{
		{"CPU implementer", 8, func(v uint64) { m.implementer = uint8(v) }},
		{"CPU variant", 4, func(v uint64) { m.variant = uint8(v) }},
		{"CPU part", 12, func(v uint64) { m.part = uint16(v) }},
		{"CPU revision", 4, func(v uint64) { m.revision = uint8(v) }},
	} {
		v, err := strconv.ParseUint(r[f.key], 0, f.bits)
		if err != nil {
			return nil
		}
		f.set(v)
	}
	return &m
}

func (r rawProcessor) int(key string) int {
	n, err := strconv.Atoi(r[key])
	if err != nil {
		return 0
	}
	return n
}

// float parses a positive number of reasonable size; anything else is 0.
func (r rawProcessor) float(key string) float64 {
	f, err := strconv.ParseFloat(r[key], 64)
	if err != nil || !(f > 0 && f < 1e6) {
		return 0
	}
	return f
}
