package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/load"
)

// scenarioGrid is the table of one scenario: a column for each run and their
// average, as in the published tables.
func scenarioGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := newGrid(r, s)
	g.marks = marks(r, runsMark(r, s))
	g.groups = []group{{rows: averageRows(s)}}
	if len(s.Runs) > 0 {
		// The mean is there already, as the average.
		g.groups[0].rows = slices.Concat(g.groups[0].rows, latencyRows(s.Runs, fromDue)[1:], errorRows(s.Runs))
		if s.Runs[0].Service != nil {
			g.groups = append(g.groups, group{title: "Latency, from when sent", rows: latencyRows(s.Runs, fromSent)})
		}
		g.groups = append(g.groups,
			group{title: "CPU, % of one core", rows: cpuRows(s.Runs)},
			group{title: "Peak memory", rows: memoryRows(s.Runs)},
		)
		g.notes = []string{spreadLine(s.Runs)}
	}
	if s.Maximum != nil {
		g.notes = append(g.notes, "Closed-loop maximum (100 %): "+rate(s.Maximum.QPS)+" requests/sec")
	}
	for i, run := range s.Runs {
		name := ordinal(i + 1)
		if run.Cut {
			name += ", cut"
		}
		g.header = append(g.header, name)
	}
	g.header = append(g.header, "Average")
	return g
}

// newGrid is a table of s without its columns and rows.
func newGrid(r bench.Result, s bench.ScenarioResult) grid {
	name := scenarioName(s)
	return grid{
		title:     join(": ", strings.ToUpper(name[:1])+name[1:], s.Title),
		gateway:   gatewayName(r.Gateway),
		notAPISIX: isBuiltin(r.Gateway),
		setup:     setup(r),
		header:    []string{""},
		words:     1,
	}
}

// setup is how the published posts head their figures, with what they left
// out. Workers that were counted are meant rather than those asked for.
func setup(r bench.Result) string {
	s := r.Settings
	workers := s.Workers
	if r.Gateway.Workers != nil {
		workers = *r.Gateway.Workers
	}
	return fmt.Sprintf("%s + %s, %s, %s a run", plural(workers, "worker"), plural(s.Upstreams, "upstream"),
		plural(s.Connections, "connection"), seconds(s.DurationS))
}

// marks say why figures do not count, or not in full. missing says what of them
// was not measured.
func marks(r bench.Result, missing string) []string {
	var m []string
	if missing != "" && r.Verdict == bench.Interrupted {
		m = append(m, "INTERRUPTED: "+missing)
	} else if missing != "" {
		m = append(m, "INCOMPLETE: "+missing)
	}
	if !counts(r) && r.Verdict != bench.Interrupted {
		m = append(m, strings.ToUpper(string(standing(r)))+": "+reasons(r))
	}
	return m
}

// runsMark says which of the runs of s are missing; empty if none is.
func runsMark(r bench.Result, s bench.ScenarioResult) string {
	whole := len(bench.Complete(s.Runs))
	if whole >= r.Settings.Runs {
		return ""
	}
	text := fmt.Sprintf("%d of %s measured", whole, plural(r.Settings.Runs, "run"))
	for i := range s.Runs {
		text = join(", ", text, cut(&s.Runs[i], r.Settings.DurationS))
	}
	return text
}

// cut says how far a run came that was to last so many seconds; empty if it is
// whole.
func cut(run *bench.Run, lasts float64) string {
	if !run.Cut {
		return ""
	}
	return fmt.Sprintf("one cut after %s of %s and in no average", fixed(run.Seconds, 1), seconds(lasts))
}

// newRow is a row with one cell a run, and the average last.
func newRow(label string, runs []bench.Run, cell func(*bench.Run) string, average string) row {
	cells := make([]string, 0, len(runs)+1)
	for i := range runs {
		cells = append(cells, cell(&runs[i]))
	}
	return row{label: label, cells: append(cells, average)}
}

// averageRows are the two rows of the published tables, below the rate if that was
// fixed, and above the plain mean if that tells something else.
func averageRows(s bench.ScenarioResult) []row {
	rows := append(rateRows(s.Runs),
		newRow("Requests/sec", s.Runs, func(run *bench.Run) string { return rate(run.QPS) }, figure(s.QPS, rate)),
		newRow("Avg latency", s.Runs, func(run *bench.Run) string {
			return figure(run.AverageLatency(), milliseconds)
		}, figure(s.LatencyMs, func(ms float64) string { return milliseconds(ms * 1000) })),
	)
	if slices.ContainsFunc(s.Runs, meansDiffer) {
		rows = append(rows, newRow("plain mean", s.Runs, func(run *bench.Run) string {
			return figure(run.Latency.Mean, milliseconds)
		}, figure(bench.Mean(s.Runs, plainMean), milliseconds)))
	}
	return rows
}

func plainMean(run *bench.Run) *float64 { return run.Latency.Mean }

// meansDiffer reports whether wrk's mean of a run is more than a tenth off the
// plain one: a few stalls are most of it, then.
func meansDiffer(run bench.Run) bool {
	const tenth = 0.1
	plain, wrk := run.Latency.Mean, run.Latency.MeanWrk
	return plain != nil && wrk != nil && math.Abs(*wrk-*plain) > tenth**plain
}

// rateRows say what the fixed rate was, if there was one.
func rateRows(runs []bench.Run) []row {
	if len(runs) == 0 || runs[0].Rate == 0 {
		return nil
	}
	return []row{newRow("Fixed rate", runs, func(run *bench.Run) string { return rate(run.Rate) }, "")}
}

// sweepGrid is the table of a scenario's latency at shares of its maximum: a
// column for each share.
func sweepGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := newGrid(r, s)
	g.title += ", at shares of its maximum"
	var runs []bench.Run
	for _, point := range s.Sweep {
		name := shortest(100*point.Share) + " %"
		if point.Run.Cut {
			name += ", cut"
		}
		g.header = append(g.header, name)
		runs = append(runs, point.Run)
	}
	var missing string
	if whole := len(bench.Complete(runs)); whole < len(r.Settings.Sweep) {
		missing = fmt.Sprintf("%d of %s measured", whole, plural(len(r.Settings.Sweep), "share"))
	}
	g.marks = marks(r, missing)
	g.groups = []group{
		{rows: []row{
			newRow("Fixed rate", runs, func(run *bench.Run) string { return rate(run.Rate) }, ""),
			newRow("Requests/sec", runs, func(run *bench.Run) string { return rate(run.QPS) }, ""),
			newRow("never sent", runs, func(run *bench.Run) string { return count(run.Unsent) }, ""),
		}},
		{title: "Latency, from when due", rows: latencyRows(runs, fromDue)},
		{title: "Latency, from when sent", rows: latencyRows(runs, fromSent)},
		{title: "CPU, % of one core", rows: []row{
			newRow("gateway", runs, func(run *bench.Run) string { return figure(run.CPU.Gateway, percent) }, ""),
		}},
	}
	for _, group := range g.groups {
		for i := range group.rows {
			// There is no average over different rates.
			group.rows[i].cells = group.rows[i].cells[:len(runs)]
		}
	}
	return g
}

// fromDue and fromSent are the latencies of a run. In a closed loop a request is
// due when it is sent, and only fromDue is there.
func fromDue(run *bench.Run) *load.Latency  { return &run.Latency }
func fromSent(run *bench.Run) *load.Latency { return run.Service }

// latencyRows have no average: the mean of percentiles is the percentile of
// nothing.
func latencyRows(runs []bench.Run, of func(*bench.Run) *load.Latency) []row {
	line := func(label string, get func(*load.Latency) *float64) row {
		return newRow(label, runs, func(run *bench.Run) string {
			if l := of(run); l != nil {
				return figure(get(l), milliseconds)
			}
			return missing
		}, "")
	}
	return []row{
		line("mean", func(l *load.Latency) *float64 { return l.Mean }),
		line("p50", func(l *load.Latency) *float64 { return l.P50 }),
		line("p90", func(l *load.Latency) *float64 { return l.P90 }),
		line("p99", func(l *load.Latency) *float64 { return l.P99 }),
		line("p99.9", func(l *load.Latency) *float64 { return l.P999 }),
		line("max", func(l *load.Latency) *float64 { return l.Max }),
	}
}

// errorRows are the kinds of errors that occurred in any run.
func errorRows(runs []bench.Run) []row {
	kinds := []struct {
		label string
		get   func(*bench.Run) uint64
	}{
		{"Connect errors", func(run *bench.Run) uint64 { return run.Errors.Connect }},
		{"Read errors", func(run *bench.Run) uint64 { return run.Errors.Read }},
		{"Write errors", func(run *bench.Run) uint64 { return run.Errors.Write }},
		{"Timeouts", func(run *bench.Run) uint64 { return run.Errors.Timeout }},
		{"Status above 399", func(run *bench.Run) uint64 { return run.Errors.Status }},
	}
	var rows []row
	for _, k := range kinds {
		if slices.ContainsFunc(runs, func(run bench.Run) bool { return k.get(&run) > 0 }) {
			rows = append(rows, newRow(k.label, runs, func(run *bench.Run) string { return count(k.get(run)) }, ""))
		}
	}
	return rows
}

func cpuRows(runs []bench.Run) []row {
	line := func(label string, get func(bench.CPU) *float64) row {
		return newRow(label, runs, func(run *bench.Run) string { return figure(get(run.CPU), percent) },
			figure(bench.Mean(runs, func(run *bench.Run) *float64 { return get(run.CPU) }), percent))
	}
	return []row{
		line("gateway", func(c bench.CPU) *float64 { return c.Gateway }),
		line("waits for a core", func(c bench.CPU) *float64 { return c.GatewayWait }),
		line("upstream", func(c bench.CPU) *float64 { return c.Upstream }),
		line("load", func(c bench.CPU) *float64 { return c.Load }),
		line("etcd + armrepro", func(c bench.CPU) *float64 { return c.Etcd }),
		line("others and steal", func(c bench.CPU) *float64 { return c.Others }),
		line("steal", func(c bench.CPU) *float64 { return c.Steal }),
	}
}

// memoryRows have no average: each figure is the peak since the process
// started.
func memoryRows(runs []bench.Run) []row {
	line := func(label string, get func(bench.RSS) *uint64) row {
		return newRow(label, runs, func(run *bench.Run) string { return figure(get(run.RSS), size) }, "")
	}
	return []row{
		line("gateway", func(m bench.RSS) *uint64 { return m.Gateway }),
		line("upstream", func(m bench.RSS) *uint64 { return m.Upstream }),
		line("load", func(m bench.RSS) *uint64 { return m.Load }),
		line("etcd + armrepro", func(m bench.RSS) *uint64 { return m.Etcd }),
	}
}

// spreadLine says how far the runs were apart.
func spreadLine(runs []bench.Run) string {
	const label = "Spread between runs, (max − min) / mean: "
	if len(bench.Complete(runs)) < 2 {
		return label + missing + " (fewer than two runs)"
	}
	return label + "requests/sec " + figure(bench.Spread(runs, (*bench.Run).Throughput), percent) +
		", avg latency " + figure(bench.Spread(runs, (*bench.Run).AverageLatency), percent)
}
