package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// kind is one kind of core and the CPUs that are of it.
type kind struct {
	midr     midr
	cpus     []int
	capacity int
}

// coreKinds are the kinds of core of a machine, in the order of groupKinds, and
// where they were read.
type coreKinds struct {
	kinds  []kind
	source string
	// doubts say what was missing or contradicts.
	doubts []string
	err    error
}

// first is the strongest kind's register; 0 if there is none.
func (c coreKinds) first() midr {
	if len(c.kinds) == 0 {
		return 0
	}
	return c.kinds[0].midr
}

// beside adds doubts to the reason for a conclusion.
func (c coreKinds) beside(why string) string {
	return strings.Join(append([]string{why}, c.doubts...), "; ")
}

// maxKinds is more than any machine has.
const maxKinds = 16

const register = "regs/identification/midr_el1"

// readKinds finds the MIDR of each online core: in sysfs, else in
// /proc/cpuinfo, else in the register of the core that this program runs on.
func (d *detector) readKinds() coreKinds {
	if d.wsl == wsl1 {
		return coreKinds{err: errors.New("under WSL1 proc/cpuinfo is made up")}
	}
	listed := map[int]midr{}
	for _, p := range d.processors {
		if p.midr != nil {
			listed[p.id] = *p.midr
		}
	}
	cpus, doubts, err := d.readRegisters(listed)
	inSysfs := len(cpus) > 0
	if !inSysfs {
		cpus = listed
		// Old kernels do not have the file.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			doubts = []string{process.Reason(err)}
		}
	}
	c := coreKinds{kinds: d.groupKinds(cpus), source: "proc/cpuinfo", doubts: doubts}
	switch {
	case len(c.kinds) > maxKinds:
		return coreKinds{err: fmt.Errorf("the registers MIDR_EL1 make no sense: %d kinds of core", len(c.kinds))}
	case inSysfs:
		c.source = process.CPUPath(c.kinds[0].cpus[0], register)
	case len(c.kinds) > 0:
	case d.live != nil && d.live.MIDR != 0:
		c.kinds, c.source = []kind{{midr: midrOf(d.live.MIDR)}}, "the register MIDR_EL1"
	default:
		c.err = err
	}
	return c
}

// readRegisters reads the MIDR of each CPU in sysfs; it returns none if no CPU has
// one there. Of several, a CPU that has none is what /proc/cpuinfo lists it as. The
// error is the first one met.
func (d *detector) readRegisters(listed map[int]midr) (cpus map[int]midr, doubts []string, first error) {
	ids := d.online
	if len(ids) == 0 {
		ids = []int{0}
	}
	cpus = map[int]midr{}
	found := false
	var without, differing []int
	for _, id := range ids {
		m, err := readRegister(d.root, process.CPUPath(id, register))
		was, isListed := listed[id]
		switch {
		case err == nil:
			cpus[id], found = m, true
			if isListed && was != m {
				differing = append(differing, id)
			}
		case isListed:
			cpus[id] = was
		default:
			without = append(without, id)
		}
		first = cmp.Or(first, err)
	}
	if !found {
		return nil, nil, first
	}
	if first != nil {
		doubts = append(doubts, process.Reason(first))
	}
	if len(without) > 0 {
		doubts = append(doubts, "CPUs "+process.FormatCPUList(without)+" could not be identified")
	}
	if len(differing) > 0 {
		doubts = append(doubts, "proc/cpuinfo says otherwise of CPUs "+process.FormatCPUList(differing))
	}
	return cpus, doubts, first
}

func readRegister(root fs.FS, file string) (midr, error) {
	line, err := process.ReadLine(root, file)
	if err != nil {
		return 0, err
	}
	m, err := parseMIDR(line)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// groupKinds sorts cores by kind. The strongest is the one with the largest
// capacity, where the kernel tells it, then the most numerous.
func (d *detector) groupKinds(cpus map[int]midr) []kind {
	var kinds []kind
	for _, id := range slices.Sorted(maps.Keys(cpus)) {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.midr == cpus[id] })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{midr: cpus[id], capacity: capacity(d.root, id)})
		}
		kinds[i].cpus = append(kinds[i].cpus, id)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.capacity, a.capacity), cmp.Compare(len(b.cpus), len(a.cpus)))
	})
	return kinds
}

// findKinds lists the kinds if there are several.
func (d *detector) findKinds() {
	kinds := d.cores.kinds
	if len(kinds) < 2 {
		return
	}
	var names []string
	for _, k := range kinds {
		public := Kind{MIDR: k.midr.fields(), Core: coreName(k.midr), CPUs: process.FormatCPUList(k.cpus), Count: len(k.cpus)}
		d.m.CPU.Kinds = append(d.m.CPU.Kinds, public)
		names = append(names, public.CoreName()+" on CPUs "+public.CPUs)
	}
	source := d.cores.source
	if source != "proc/cpuinfo" {
		source = process.CPUDir + "/cpu*/" + register
	}
	order := "; the most numerous first, since nothing tells which is the strongest"
	if kinds[0].capacity > 0 {
		order = "; the strongest first, by cpu_capacity"
	}
	d.conclude("cpu.kinds", strings.Join(names, ", "), source+order, nil)
}
