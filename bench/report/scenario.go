package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"armrepro/bench"
	"armrepro/bench/load"
)

// scenarioGrid is the table of one scenario: a column for each run and their
// average, as in the published tables.
func scenarioGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := newGrid(r, s, runsMark(r, s))
	g.groups = []group{{rows: averageRows(s)}}
	if len(s.Runs) > 0 {
		// The mean is there already, as the average.
		g.groups[0].rows = slices.Concat(g.groups[0].rows, latencyRows(s.Runs, fromDue)[1:], errorRows(s.Runs))
		if s.Runs[0].Service != nil {
			g.groups = append(g.groups, group{"Latency, from when sent", latencyRows(s.Runs, fromSent)})
		}
		g.groups = append(g.groups, group{cpuTitle, cpuRows(s.Runs)}, group{"Peak memory", memoryRows(s.Runs)})
		g.notes = []string{spreadLine(s.Runs)}
	}
	if s.Maximum != nil {
		g.notes = append(g.notes, "Closed-loop maximum (100 %): "+rate(s.Maximum.QPS)+" requests/sec")
	}
	for i, run := range s.Runs {
		g.header = append(g.header, column(humanize.Ordinal(i+1), run))
	}
	g.header = append(g.header, "Average")
	return g
}

const cpuTitle = "CPU, % of one core"

// column heads the column of a run.
func column(name string, run bench.Run) string {
	if run.Cut {
		name += ", cut"
	}
	return name
}

// newGrid is a table of s without its columns and rows. missing says what of them
// was not measured.
func newGrid(r bench.Result, s bench.ScenarioResult, missing string) grid {
	name := scenarioName(s)
	return grid{
		title:     join(": ", strings.ToUpper(name[:1])+name[1:], s.Title),
		gateway:   gatewayName(r.Gateway),
		notAPISIX: isBuiltin(r.Gateway),
		setup:     setup(r),
		marks:     marks(r, s, missing),
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
		plural(s.Connections, "connection"), seconds(s.DurationS)) + externals(r.Tools)
}

// marks say why the figures of s do not count, or not in full. missing says what of
// them was not measured.
func marks(r bench.Result, s bench.ScenarioResult, missing string) []string {
	var m []string
	if missing != "" && r.Verdict == bench.Interrupted {
		m = append(m, "INTERRUPTED: "+missing)
	} else if missing != "" {
		m = append(m, "INCOMPLETE: "+missing)
	}
	if !counts(r) && r.Verdict != bench.Interrupted {
		m = append(m, disqualified(r, cmp.Or(reasons(r, s.Name), "see the warnings below")))
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
	for _, run := range s.Runs {
		if run.Cut {
			text += fmt.Sprintf(", one cut after %s of %s (not in the average)", fixed(run.Seconds, 1), seconds(r.Settings.DurationS))
		}
	}
	return text
}

// newRow is a row with one cell a run, and with their average where there is one.
func newRow(label string, runs []bench.Run, cell func(*bench.Run) string, average ...string) row {
	var cells []string
	for i := range runs {
		cells = append(cells, cell(&runs[i]))
	}
	return row{label, append(cells, average...)}
}

// figureRows are a row for each label, of the figures that of lists for a run.
func figureRows[T any](runs []bench.Run, of func(*bench.Run) []*T, format func(T) string, labels ...string) []row {
	var rows []row
	for i, label := range labels {
		rows = append(rows, newRow(label, runs, func(run *bench.Run) string { return figure(of(run)[i], format) }))
	}
	return rows
}

// averageRows are the two rows of the published tables, below the rate if that was
// fixed, and above the plain mean if that tells something else.
func averageRows(s bench.ScenarioResult) []row {
	var rows []row
	if len(s.Runs) > 0 && s.Runs[0].Rate > 0 {
		rows = append(rows, rateRow(s.Runs))
	}
	rows = append(rows,
		newRow("Requests/sec", s.Runs, throughput, figure(s.QPS, rate)),
		newRow("Avg latency", s.Runs, func(run *bench.Run) string {
			return figure(run.AverageLatency(), microseconds)
		}, figure(s.LatencyMs, milliseconds)),
	)
	if slices.ContainsFunc(s.Runs, meansDiffer) {
		rows = append(rows, newRow("plain mean", s.Runs, func(run *bench.Run) string {
			return figure(run.Latency.Mean, microseconds)
		}, figure(bench.Mean(s.Runs, func(run *bench.Run) *float64 { return run.Latency.Mean }), microseconds)))
	}
	return rows
}

func throughput(run *bench.Run) string { return rate(run.QPS) }

func rateRow(runs []bench.Run) row {
	return newRow("Fixed rate", runs, func(run *bench.Run) string { return rate(run.Rate) })
}

// meansDiffer reports whether wrk's mean of a run is more than a tenth off the
// plain one: a few stalls are most of it, then.
func meansDiffer(run bench.Run) bool {
	const tenth = 0.1
	plain, wrk := run.Latency.Mean, run.Latency.MeanWrk
	return plain != nil && wrk != nil && math.Abs(*wrk-*plain) > tenth**plain
}

// sweepGrid is the table of a scenario's latency at shares of its maximum: a
// column for each share. There is no average over different rates.
func sweepGrid(r bench.Result, s bench.ScenarioResult) grid {
	var runs []bench.Run
	var header []string
	for _, point := range s.Sweep {
		header = append(header, column(shortest(100*point.Share)+" %", point.Run))
		runs = append(runs, point.Run)
	}
	var missing string
	if whole := len(bench.Complete(runs)); whole < len(r.Settings.Sweep) {
		missing = fmt.Sprintf("%d of %s measured", whole, plural(len(r.Settings.Sweep), "share"))
	}
	g := newGrid(r, s, missing)
	g.title += ", at shares of its maximum"
	g.header = append(g.header, header...)
	g.groups = []group{
		{"", []row{
			rateRow(runs),
			newRow("Requests/sec", runs, throughput),
			newRow("never sent", runs, func(run *bench.Run) string { return count(run.Unsent) }),
		}},
		{"Latency, from when due", latencyRows(runs, fromDue)},
		{"Latency, from when sent", latencyRows(runs, fromSent)},
		{cpuTitle, figureRows(runs, cpu, percent, "gateway")},
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
	return figureRows(runs, func(run *bench.Run) []*float64 {
		l := cmp.Or(of(run), &load.Latency{})
		return []*float64{l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max}
	}, microseconds, "mean", "p50", "p90", "p99", "p99.9", "max")
}

// errorRows are the kinds of errors that occurred in any run.
func errorRows(runs []bench.Run) []row {
	var rows []row
	for i, label := range []string{"Connect errors", "Read errors", "Write errors", "Timeouts", "Status above 399"} {
		if slices.ContainsFunc(runs, func(run bench.Run) bool { return failures(&run)[i] > 0 }) {
			rows = append(rows, newRow(label, runs, func(run *bench.Run) string { return count(failures(run)[i]) }))
		}
	}
	return rows
}

func failures(run *bench.Run) []uint64 {
	e := run.Errors
	return []uint64{e.Connect, e.Read, e.Write, e.Timeout, e.Status}
}

func cpuRows(runs []bench.Run) []row {
	rows := figureRows(runs, cpu, percent,
		"gateway", "waits for a core", "upstream", "load", "etcd + armrepro", "other processes", "steal")
	for i := range rows {
		mean := bench.Mean(runs, func(run *bench.Run) *float64 { return cpu(run)[i] })
		rows[i].cells = append(rows[i].cells, figure(mean, percent))
	}
	return rows
}

func cpu(run *bench.Run) []*float64 {
	c := run.CPU
	return []*float64{c.Gateway, c.GatewayWait, c.Upstream, c.Load, c.Etcd, otherProcesses(c), c.Steal}
}

// otherProcesses is what the others used. Steal has a row of its own, and is
// counted more finely.
func otherProcesses(c bench.CPU) *float64 {
	if c.Others == nil || c.Steal == nil {
		return c.Others
	}
	return new(max(0, *c.Others-*c.Steal))
}

// memoryRows have no average: each figure is the peak since the process
// started.
func memoryRows(runs []bench.Run) []row {
	return figureRows(runs, memory, size, "gateway", "upstream", "load", "etcd + armrepro")
}

func memory(run *bench.Run) []*uint64 {
	m := run.RSS
	return []*uint64{m.Gateway, m.Upstream, m.Load, m.Etcd}
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
