package fitness

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"armrepro/proxycheck/process"
)

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

// ownSince is the CPU time that the measurement's processes used since before, and
// their number. The time of ended ones is in their parents' time.
func (t processTable) ownSince(before processTable) (sum time.Duration, processes int) {
	for _, use := range t {
		if use.own {
			sum += use.total()
			processes++
		}
	}
	for id, use := range before {
		if use.own || t[id].own {
			sum -= use.total()
		}
	}
	return sum, processes
}

// share is what all processes of one name used.
type share struct {
	used time.Duration
	pids []int
}

// sharesSince adds up by name what the processes of others used since before,
// with their children that have ended meanwhile.
func (t processTable) sharesSince(before processTable) map[string]*share {
	shares := map[string]*share{}
	for id, use := range t {
		earlier, old := before[id]
		if use.own || old && earlier.Name != use.Name {
			continue
		}
		if d := use.total() - earlier.total(); d > 0 {
			s := cmp.Or(shares[use.Name], &share{})
			s.used, s.pids = s.used+d, append(s.pids, id)
			shares[use.Name] = s
		}
	}
	for id, use := range before {
		// What an ended one had used before is now in its parent's time.
		_, alive := t[id]
		if s := shares[t[use.Parent].Name]; s != nil && !alive {
			s.used -= use.total()
		}
	}
	return shares
}

// busiest names the program of others that used the most CPU time since before,
// and its process or how many it has; empty if none used any.
func (t processTable) busiest(before processTable) (who string, used time.Duration) {
	name, most := "", &share{}
	for n, s := range t.sharesSince(before) {
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
