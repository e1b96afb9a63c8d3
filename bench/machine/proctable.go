package machine

import (
	"io/fs"
	"slices"
	"time"

	"armrepro/proxycheck/process"
)

// processTable is what each process had used of the CPUs at one moment; nil if
// it could not be read.
type processTable map[int]processUse

// processUse is the CPU time of a process.
type processUse struct {
	name string
	// used is its own time; ended is that of its children which have ended
	// and been waited for.
	used, ended time.Duration
	// own marks the processes of the measurement.
	own bool
}

// readProcessTable reads the CPU time of all processes. Those of pids and their
// descendants are the measurement's own.
func readProcessTable(root fs.FS, pids []int) (processTable, error) {
	procs, err := process.List(root)
	if err != nil {
		return nil, err
	}
	table := make(processTable, len(procs))
	parents := make(map[int]int, len(procs))
	for _, p := range procs {
		table[p.PID] = processUse{name: p.Name, used: p.Used, ended: p.Ended}
		parents[p.PID] = p.Parent
	}
	for id, use := range table {
		// The bound is for a table that changed while it was read.
		for at, steps := id, 0; at > 0 && steps < len(procs); at, steps = parents[at], steps+1 {
			if slices.Contains(pids, at) {
				use.own = true
				table[id] = use
				break
			}
		}
	}
	return table, nil
}

// ownSince is the CPU time that the measurement's processes used since before,
// and how many they are. What those of them used that have ended meanwhile is in
// their parents' time.
func (t processTable) ownSince(before processTable) (sum time.Duration, processes int) {
	for _, use := range t {
		if use.own {
			sum += use.used + use.ended
			processes++
		}
	}
	for id, use := range before {
		if use.own || t[id].own {
			sum -= use.used + use.ended
		}
	}
	return sum, processes
}

// busiest is the process of others that used the most CPU time since before;
// empty if none used any.
func (t processTable) busiest(before processTable) (name string, used time.Duration) {
	for id, use := range t {
		earlier, ok := before[id]
		if use.own || ok && earlier.name != use.name {
			continue
		}
		if d := use.used - earlier.used; d > used || d == used && d > 0 && use.name < name {
			name, used = use.name, d
		}
	}
	return name, used
}
