package report

import (
	"fmt"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/load"
)

// scenarioGrid is the table of one scenario: a column for each run and their
// average, as in the published tables.
func scenarioGrid(r bench.Result, s bench.ScenarioResult) grid {
	name := scenarioName(s)
	g := grid{
		title:     join(": ", strings.ToUpper(name[:1])+name[1:], s.Title),
		gateway:   gatewayName(r.Gateway),
		notAPISIX: isBuiltin(r.Gateway),
		setup:     setup(r),
		marks:     marks(r, s),
		header:    []string{""},
		words:     1,
	}
	if len(s.Runs) == 0 {
		g.header = append(g.header, "Average")
		g.groups = []group{{rows: averageRows(s)}}
		return g
	}
	// The mean is there already, as the average.
	g.groups = []group{{rows: slices.Concat(averageRows(s), latencyRows(s.Runs, fromDue)[1:], errorRows(s.Runs))}}
	if s.Runs[0].Service != nil {
		g.groups = append(g.groups, group{title: "Latency, from when sent", rows: latencyRows(s.Runs, fromSent)})
	}
	g.groups = append(g.groups,
		group{title: "CPU, % of one core", rows: cpuRows(s.Runs)},
		group{title: "Peak memory", rows: memoryRows(s.Runs)},
	)
	g.notes = []string{spreadLine(s.Runs)}
	if s.Maximum != nil {
		g.notes = append(g.notes, "Closed-loop maximum (100 %): "+rate(s.Maximum.QPS)+" requests/sec"+cutMark(*s.Maximum))
	}
	for i, run := range s.Runs {
		g.header = append(g.header, ordinal(i+1)+cutMark(run))
	}
	g.header = append(g.header, "Average")
	return g
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

// marks say why the figures of s do not count, or not in full.
func marks(r bench.Result, s bench.ScenarioResult) []string {
	var m []string
	if !s.Whole(r.Settings) {
		parts := []string{fmt.Sprintf("%d of %s measured", len(bench.Complete(s.Runs)), plural(r.Settings.Runs, "run"))}
		for i, run := range s.Runs {
			if run.Cut {
				parts = append(parts, "the "+ordinal(i+1)+" was cut at "+cutAt(run, r.Settings))
			}
		}
		m = append(m, "INTERRUPTED: "+strings.Join(parts, ", "))
	}
	switch standing(r) {
	case bench.Invalid:
		m = append(m, "INVALID: "+reasons(r, func(w bench.Warning) bool { return w.Invalid }))
	case bench.Disturbed:
		m = append(m, "DISTURBED: "+reasons(r, func(w bench.Warning) bool { return w.Disturbed }))
	}
	return m
}

// cutAt says how much of its time a run had, such as "2 of 4 s".
func cutAt(run bench.Run, s bench.Settings) string {
	return strings.TrimSuffix(fixed(run.Seconds, 1), ".0") + " of " + seconds(s.DurationS)
}

// cutMark is put behind the name of a run that was cut.
func cutMark(run bench.Run) string {
	if run.Cut {
		return " (cut)"
	}
	return ""
}

// newRow is a row with one cell a run, and the average last.
func newRow(label string, runs []bench.Run, cell func(bench.Run) string, average string) row {
	cells := make([]string, 0, len(runs)+1)
	for _, run := range runs {
		cells = append(cells, cell(run))
	}
	return row{label: label, cells: append(cells, average)}
}

// averageRows are the two rows of the published tables, below what was asked
// for if that was a fixed rate.
func averageRows(s bench.ScenarioResult) []row {
	average := figure(s.LatencyMs, func(ms float64) string { return milliseconds(ms * 1000) })
	return append(rateRows(s.Runs),
		newRow("Requests/sec", s.Runs, func(run bench.Run) string { return rate(run.QPS) }, figure(s.QPS, rate)),
		newRow("Avg latency", s.Runs, func(run bench.Run) string {
			return figure(run.AverageLatency(), milliseconds)
		}, average),
	)
}

// rateRows say what rate was asked for, if any was.
func rateRows(runs []bench.Run) []row {
	if len(runs) == 0 || runs[0].Rate == 0 {
		return nil
	}
	return []row{newRow("Asked for", runs, func(run bench.Run) string { return rate(run.Rate) }, "")}
}

// sweepGrid is the table of a scenario's latency at shares of its maximum: a
// column for each share.
func sweepGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := scenarioGrid(r, bench.ScenarioResult{Name: s.Name, Title: s.Title})
	g.title += ", at shares of its maximum"
	g.header = []string{""}
	g.marks = nil
	if !counts(r) {
		g.marks = []string{strings.ToUpper(string(standing(r))) + ": see the verdict"}
	}
	var runs []bench.Run
	for _, point := range s.Sweep {
		g.header = append(g.header, shortest(100*point.Share)+" %"+cutMark(point.Run))
		runs = append(runs, point.Run)
	}
	g.groups = []group{
		{rows: []row{
			sweepRow("Asked for", runs, func(run bench.Run) string { return rate(run.Rate) }),
			sweepRow("Requests/sec", runs, func(run bench.Run) string { return rate(run.QPS) }),
			sweepRow("never sent", runs, func(run bench.Run) string { return count(run.Unsent) }),
		}},
		{title: "Latency, from when due", rows: withoutAverage(latencyRows(runs, fromDue), len(runs))},
		{title: "Latency, from when sent", rows: withoutAverage(latencyRows(runs, fromSent), len(runs))},
		{title: "CPU, % of one core", rows: []row{
			sweepRow("gateway", runs, func(run bench.Run) string { return figure(run.CPU.Gateway, cores) }),
		}},
	}
	return g
}

// sweepRow is a row with one cell a run and no average.
func sweepRow(label string, runs []bench.Run, cell func(bench.Run) string) row {
	return withoutAverage([]row{newRow(label, runs, cell, "")}, len(runs))[0]
}

// withoutAverage cuts the last cell off rows of so many runs.
func withoutAverage(rows []row, runs int) []row {
	for i := range rows {
		rows[i].cells = rows[i].cells[:runs]
	}
	return rows
}

// fromDue and fromSent are the latencies of a run. In a closed loop a request is
// due when it is sent, and only fromDue is there.
func fromDue(run bench.Run) *load.Latency  { return &run.Latency }
func fromSent(run bench.Run) *load.Latency { return run.Service }

// latencyRows have no average: the mean of percentiles is the percentile of
// nothing.
func latencyRows(runs []bench.Run, of func(bench.Run) *load.Latency) []row {
	line := func(label string, get func(*load.Latency) *float64) row {
		return newRow(label, runs, func(run bench.Run) string {
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
		get   func(bench.Run) uint64
	}{
		{"Connect errors", func(run bench.Run) uint64 { return run.Errors.Connect }},
		{"Read errors", func(run bench.Run) uint64 { return run.Errors.Read }},
		{"Write errors", func(run bench.Run) uint64 { return run.Errors.Write }},
		{"Timeouts", func(run bench.Run) uint64 { return run.Errors.Timeout }},
		{"Status above 399", func(run bench.Run) uint64 { return run.Errors.Status }},
	}
	var rows []row
	for _, k := range kinds {
		if slices.ContainsFunc(runs, func(run bench.Run) bool { return k.get(run) > 0 }) {
			rows = append(rows, newRow(k.label, runs, func(run bench.Run) string { return count(k.get(run)) }, ""))
		}
	}
	return rows
}

func cpuRows(runs []bench.Run) []row {
	line := func(label string, get func(bench.CPU) *float64) row {
		return newRow(label, runs, func(run bench.Run) string { return figure(get(run.CPU), cores) },
			figure(bench.Mean(runs, func(run *bench.Run) *float64 { return get(run.CPU) }), cores))
	}
	return []row{
		line("gateway", func(c bench.CPU) *float64 { return c.Gateway }),
		line("gateway waiting", func(c bench.CPU) *float64 { return c.GatewayWait }),
		line("upstream", func(c bench.CPU) *float64 { return c.Upstream }),
		line("load", func(c bench.CPU) *float64 { return c.Load }),
		line("etcd + armrepro", func(c bench.CPU) *float64 { return c.Etcd }),
		line("other processes", func(c bench.CPU) *float64 { return c.Others }),
		line("steal", func(c bench.CPU) *float64 { return c.Steal }),
	}
}

// memoryRows have no average: each figure is the peak since the process
// started.
func memoryRows(runs []bench.Run) []row {
	line := func(label string, get func(bench.RSS) *uint64) row {
		return newRow(label, runs, func(run bench.Run) string { return figure(get(run.RSS), size) }, "")
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
