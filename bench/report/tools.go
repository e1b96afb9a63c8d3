package report

import (
	"strings"

	"armrepro/bench"
)

// program names an installed program that took part; empty for nil.
func program(e *bench.External) string {
	if e == nil {
		return ""
	}
	return join(" ", known(e.Name), e.Version)
}

// programFact is a program with its path.
func programFact(e *bench.External) string {
	if e == nil {
		return ""
	}
	return join(", ", program(e), e.Path)
}

// externals is what a reader has to know of them beside the figures.
func externals(t bench.Tools) string {
	var names []string
	for _, e := range []*bench.External{t.Load, t.Upstream} {
		if e != nil {
			names = append(names, known(e.Name))
		}
	}
	return after(", with ", listed("and", names))
}

// measuredWith names the two that stand around the gateway.
func measuredWith(t bench.Tools) string {
	switch {
	case t.Load == nil && t.Upstream == nil:
		return "armrepro's load generator and upstream"
	case t.Load == nil:
		return "armrepro's load generator and " + program(t.Upstream)
	case t.Upstream == nil:
		return program(t.Load) + " and armrepro's upstream"
	}
	return program(t.Load) + " and " + program(t.Upstream)
}

// crossGrid sets the averages of s beside its cross-check, which belongs to the first
// of several starts.
func crossGrid(r bench.Result, s bench.ScenarioResult) grid {
	check, name := s.CrossCheck, "cross-check"
	if r.Tools.CrossCheck != nil {
		name = known(r.Tools.CrossCheck.Name)
	}
	runs := s.Runs
	if len(r.Starts) > 0 {
		runs = startRuns(s, 1)
	}
	g := newGrid(r, s, "")
	title, _, _ := strings.Cut(g.title, ": ")
	g.title = title + ", cross-check with " + name
	g.header = append(g.header, "armrepro", name, "Ratio")
	theirs := []bench.Run{check.Run}
	g.groups = []group{
		{"", []row{
			{"Requests/sec", []string{figure(bench.Mean(runs, (*bench.Run).Throughput), rate), rate(check.Run.QPS), ratioCell(check.QPSRatio)}},
			{"Avg latency", []string{figure(bench.Mean(runs, (*bench.Run).AverageLatency), microseconds), figure(check.Run.AverageLatency(), microseconds), ratioCell(check.LatencyRatio)}},
		}},
		{cpuTitle, beside(cpuRows(runs), cpuRows(theirs))},
		{"CPU per request", perRequestRows(runs, check)},
	}
	// Why the result does not count is above.
	g.marks = nil
	switch {
	case check.Run.Cut:
		g.notes = []string{"n/a: the cross-check was cut after " + fixed(check.Run.Seconds, 1) + " s."}
	case !counts(r):
		g.notes = []string{"n/a: this result does not count."}
	case check.QPSRatio == nil:
		g.notes = []string{"n/a: the cross-check does not count (see the warnings)."}
	}
	return g
}

func ratioCell(v *float64) string {
	if v == nil {
		return "n/a"
	}
	return fixed(*v, 2) + "×"
}

// beside are rows with the averages of two tables.
func beside(ours, theirs []row) []row {
	var rows []row
	for i, r := range ours {
		last := func(r row) string { return r.cells[len(r.cells)-1] }
		rows = append(rows, row{r.label, []string{last(r), last(theirs[i])}})
	}
	return rows
}

// perRequestRows is what a request costs each part. It compares even where the
// throughputs differ.
func perRequestRows(runs []bench.Run, check *bench.CrossCheck) []row {
	var rows []row
	for _, part := range []struct {
		label string
		cores func(*bench.Run) *float64
	}{
		{"gateway", func(run *bench.Run) *float64 { return run.CPU.Gateway }},
		{"upstream", func(run *bench.Run) *float64 { return run.CPU.Upstream }},
		{"load", func(run *bench.Run) *float64 { return run.CPU.Load }},
	} {
		cost := func(run *bench.Run) *float64 {
			cores := part.cores(run)
			if cores == nil || run.QPS == 0 {
				return nil
			}
			return new(1e6 * *cores / run.QPS)
		}
		ours, theirs := bench.Mean(runs, cost), cost(&check.Run)
		var ratio *float64
		if check.QPSRatio != nil && ours != nil && theirs != nil && *theirs > 0 {
			ratio = new(*ours / *theirs)
		}
		cell := func(us float64) string { return fixed(us, 2) + " µs" }
		rows = append(rows, row{part.label, []string{figure(ours, cell), figure(theirs, cell), ratioCell(ratio)}})
	}
	return rows
}
