package fitness

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"armrepro/proxycheck/process"
)

// CPUTimes is the time that several CPUs together have spent since boot, from
// /proc/stat. The kernel counts it in steps of 10 ms.
type CPUTimes struct {
	// Busy is everything except Idle and Steal: user, nice, system, irq,
	// softirq. Guest time is already part of user.
	Busy time.Duration
	// IRQ is the part of Busy spent on interrupts, irq and softirq: mostly for
	// the network, and for no particular process.
	IRQ time.Duration
	// Idle includes the wait for disks.
	Idle time.Duration
	// Steal is what the hypervisor gave to other machines while this one
	// wanted to run.
	Steal time.Duration
}

// Total is the sum over all states.
func (t CPUTimes) Total() time.Duration { return t.Busy + t.Idle + t.Steal }

// Sub is the time spent since earlier. The kernel's idle counters can go back a
// little, which counts as 0.
func (t CPUTimes) Sub(earlier CPUTimes) CPUTimes {
	return CPUTimes{
		Busy:  max(0, t.Busy-earlier.Busy),
		IRQ:   max(0, t.IRQ-earlier.IRQ),
		Idle:  max(0, t.Idle-earlier.Idle),
		Steal: max(0, t.Steal-earlier.Steal),
	}
}

// ReadCPUTimes reads the machine's CPU times.
func ReadCPUTimes(root fs.FS) (CPUTimes, error) { return readCPUTimes(root, "cpu") }

// ReadCPUTimesOf reads the CPU times of some CPUs together. One that is offline is
// an error.
func ReadCPUTimesOf(root fs.FS, cpus []int) (CPUTimes, error) {
	if len(cpus) == 0 {
		return CPUTimes{}, errors.New("read CPU times: no CPU given")
	}
	var names []string
	for _, cpu := range cpus {
		names = append(names, fmt.Sprintf("cpu%d", cpu))
	}
	return readCPUTimes(root, names...)
}

// readCPUTimes adds up lines of /proc/stat.
func readCPUTimes(root fs.FS, names ...string) (sum CPUTimes, err error) {
	b, err := process.ReadFile(root, "proc/stat")
	if err != nil {
		return CPUTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	for _, name := range names {
		if err := sum.add(b, name); err != nil {
			return CPUTimes{}, fmt.Errorf("parse /proc/stat: %w", err)
		}
	}
	return sum, nil
}

// add adds the times in one line of /proc/stat.
func (t *CPUTimes) add(stat []byte, name string) error {
	// Guest time, behind these, is already part of user.
	const idle, iowait, irq, softirq, steal, columns = 3, 4, 5, 6, 7, 8
	line, ok := process.Field(stat, name)
	fields := strings.Fields(line)
	if !ok {
		return fmt.Errorf("no line for %s", name)
	}
	if len(fields) < columns {
		return errors.New("too few times")
	}
	for i, f := range fields[:columns] {
		n, err := strconv.ParseUint(f, 10, 63)
		if err != nil || n > uint64(1<<59/process.Tick) {
			return fmt.Errorf("bad time %q", f)
		}
		d := time.Duration(n) * process.Tick
		switch i {
		case idle, iowait:
			t.Idle += d
			continue
		case steal:
			t.Steal += d
			continue
		case irq, softirq:
			t.IRQ += d
		}
		t.Busy += d
	}
	return nil
}

// processTable is what each process had used of the CPUs at one moment; nil if
// it could not be read.
type processTable map[int]processUse

type processUse struct {
	process.Proc
	// own marks the processes of the measurement.
	own bool
}

// total is the CPU time of the process and of its children that have ended.
func (u processUse) total() time.Duration { return u.Used + u.Ended }

// readProcessTable reads the CPU time of all processes. Those of pids and their
// descendants are the measurement's own.
func readProcessTable(root fs.FS, pids []int) (processTable, error) {
	procs, err := process.List(root)
	if err != nil {
		return nil, err
	}
	table := make(processTable, len(procs))
	for _, p := range procs {
		table[p.PID] = processUse{Proc: p}
	}
	for id, use := range table {
		// The bound is for a table that changed while it was read.
		for at, steps := id, 0; at > 0 && steps < len(procs); at, steps = table[at].Parent, steps+1 {
			if slices.Contains(pids, at) {
				use.own = true
				table[id] = use
				break
			}
		}
	}
	return table, nil
}

// share is what all processes of one name used.
type share struct {
	used time.Duration
	pids []int
}

// since is the CPU time that the measurement's processes used since before, their
// number, and by name what the processes of others used. The time of ended ones is in
// their parents' time.
func (t processTable) since(before processTable) (own time.Duration, processes int, others map[string]*share) {
	others = map[string]*share{}
	for id, use := range t {
		earlier, old := before[id]
		d := use.total() - earlier.total()
		switch {
		case use.own:
			own, processes = own+d, processes+1
		case d > 0 && (!old || earlier.Name == use.Name):
			s := cmp.Or(others[use.Name], &share{})
			s.used, s.pids = s.used+d, append(s.pids, id)
			others[use.Name] = s
		}
	}
	for id, use := range before {
		now, alive := t[id]
		if use.own && !now.own {
			own -= use.total()
		}
		// What an ended one had used before is now in its parent's time.
		if s := others[t[use.Parent].Name]; s != nil && !alive {
			s.used -= use.total()
		}
	}
	return own, processes, others
}

// busiest names the program that used the most CPU time, and its process or how many
// it has; empty if none used any.
func busiest(shares map[string]*share) (who string, used time.Duration) {
	name, most := "", &share{}
	for n, s := range shares {
		if s.used > most.used || s.used == most.used && s.used > 0 && n < name {
			name, most = n, s
		}
	}
	switch len(most.pids) {
	case 0:
		return "", 0
	case 1:
		return fmt.Sprintf("%q (process %d)", name, most.pids[0]), most.used
	}
	return fmt.Sprintf("%q (%d processes)", name, len(most.pids)), most.used
}
