package machine

import (
	"errors"
	"io/fs"
	"maps"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

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

func readCPUInfo(root fs.FS) ([]processor, error) {
	b, err := process.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	return parseCPUInfo(string(b))
}

// Bounds on a line and on a block, which the kernel stays below: all the flags of an
// x86 CPU are under 3000 bytes.
const (
	maxValueBytes = 8 << 10
	maxBlockLines = 64
)

// parseCPUInfo parses /proc/cpuinfo. Lines and values that make no sense are
// passed over: they leave their fact unknown.
func parseCPUInfo(text string) ([]processor, error) {
	var blocks []cpuBlock
	block, common := cpuBlock{}, cpuBlock{}
	end := func() {
		if id, err := strconv.Atoi(block["processor"]); err == nil && id >= 0 && id < maxCPUs && len(blocks) < maxCPUs {
			blocks = append(blocks, block)
		} else {
			// Old kernels describe the core once, in a block without a
			// processor of its own.
			maps.Copy(common, block)
		}
		block = cpuBlock{}
	}
	for line := range strings.Lines(text) {
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
