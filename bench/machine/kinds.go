package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
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

// maxKinds is more than any machine has.
const maxKinds = 16

const register = "regs/identification/midr_el1"

// readKinds finds the MIDR of each online core: in sysfs, else in
// /proc/cpuinfo, else in the register of the core that this program runs on.
func (d *detector) readKinds() coreKinds {
	if d.wsl == wsl1 {
		return coreKinds{err: errWSL1}
	}
	ids := d.online
	if len(ids) == 0 {
		ids = []int{0}
	}
	listed := map[int]midr{}
	for _, p := range d.info.processors {
		if p.midr != nil {
			listed[p.id] = *p.midr
		}
	}
	cpus, doubts, first := d.readRegisters(ids, listed)
	inSysfs := len(cpus) > 0
	if !inSysfs {
		cpus, doubts = listed, damaged(first)
	}
	kinds := d.groupKinds(cpus)
	switch {
	case len(kinds) > maxKinds:
		return coreKinds{err: fmt.Errorf("the registers MIDR_EL1 make no sense: %d kinds of core", len(kinds))}
	case len(kinds) > 0 && inSysfs:
		return coreKinds{kinds: kinds, source: cpuPath(kinds[0].cpus[0], register), doubts: doubts}
	case len(kinds) > 0:
		return coreKinds{kinds: kinds, source: "proc/cpuinfo", doubts: doubts}
	case d.live != nil && d.live.MIDR != 0:
		return coreKinds{kinds: []kind{{midr: decodeMIDR(d.live.MIDR)}}, source: "the register MIDR_EL1", doubts: damaged(first)}
	}
	return coreKinds{err: first}
}

// readRegisters reads the MIDR of each CPU in sysfs. A CPU that has none there is
// what /proc/cpuinfo lists it as. The error is the first one met.
func (d *detector) readRegisters(ids []int, listed map[int]midr) (cpus map[int]midr, doubts []string, first error) {
	cpus = map[int]midr{}
	var without, differing []int
	for _, id := range ids {
		m, err := sysfsMIDR(d.root, cpuPath(id, register))
		was, isListed := listed[id]
		switch {
		case err == nil:
			cpus[id] = m
			if isListed && was != m {
				differing = append(differing, id)
			}
			continue
		case !isListed:
			without = append(without, id)
		}
		first = cmp.Or(first, err)
	}
	if len(cpus) == 0 {
		return cpus, nil, first
	}
	for _, id := range ids {
		if _, ok := cpus[id]; !ok && !slices.Contains(without, id) {
			cpus[id] = listed[id]
		}
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

func sysfsMIDR(root fs.FS, file string) (midr, error) {
	line, err := process.ReadLine(root, file)
	if err != nil {
		return midr{}, err
	}
	m, err := parseMIDR(line)
	if err != nil {
		return midr{}, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// damaged says what is wrong with a file that is there: old kernels do not have
// it.
func damaged(err error) []string {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{process.Reason(err)}
}

// beside adds doubts to the reason for a conclusion.
func (c coreKinds) beside(why string) string {
	return strings.Join(append([]string{why}, c.doubts...), "; ")
}

// groupKinds sorts cores by kind. The strongest is the one with the largest
// capacity, where the kernel tells it, then the most numerous.
func (d *detector) groupKinds(cpus map[int]midr) []kind {
	var kinds []kind
	for _, id := range slices.Sorted(maps.Keys(cpus)) {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.midr == cpus[id] })
		if i < 0 {
			i = len(kinds)
			capacity, err := process.ReadUint(d.root, cpuPath(id, "cpu_capacity"))
			if err != nil || capacity > 1024 {
				capacity = 0
			}
			kinds = append(kinds, kind{midr: cpus[id], capacity: int(capacity)})
		}
		kinds[i].cpus = append(kinds[i].cpus, id)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.capacity, a.capacity), cmp.Compare(len(b.cpus), len(a.cpus)))
	})
	return kinds
}

// explainKinds gives the evidence of several kinds.
func (d *detector) explainKinds() {
	if len(d.cores.kinds) < 2 {
		return
	}
	var names []string
	for _, k := range d.cores.kinds {
		names = append(names, fmt.Sprintf("%s on CPUs %s", coreOrIDs(coreName(k.midr), k.midr.implementerHex(), k.midr.partHex()), process.FormatCPUList(k.cpus)))
	}
	source := "proc/cpuinfo"
	if d.cores.source != source {
		source = cpuDir + "/cpu*/" + register
	}
	why := source + "; the most numerous first, since nothing tells which is the strongest"
	if d.cores.kinds[0].capacity > 0 {
		why = source + "; the strongest first, by cpu_capacity"
	}
	d.because("cpu.kinds", strings.Join(names, ", "), "%s", why)
}

// describeKinds lists the kinds if there are several.
func describeKinds(kinds []kind) []Kind {
	if len(kinds) < 2 {
		return nil
	}
	var list []Kind
	for _, k := range kinds {
		list = append(list, Kind{
			Implementer: k.midr.implementerHex(),
			Part:        k.midr.partHex(),
			Variant:     k.midr.variantHex(),
			Revision:    strconv.Itoa(int(k.midr.revision)),
			Core:        coreName(k.midr),
			CPUs:        process.FormatCPUList(k.cpus),
			Count:       len(k.cpus),
		})
	}
	return list
}
