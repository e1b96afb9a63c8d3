package report

import (
	"fmt"
	"slices"
	"strconv"

	"armrepro/bench"
)

// startsGrid is the table of a scenario that was measured on several starts of the
// gateway: a row for each start.
func startsGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := newGrid(r, s, "")
	g.title += fmt.Sprintf(", %d starts", len(r.Starts))
	g.header = []string{"Start", "Requests/sec", "Avg latency", "p99", "CPU gateway", ""}
	var rows []row
	for i := range r.Starts {
		runs := startRuns(s, i+1)
		if len(runs) == 0 {
			continue
		}
		standing := ""
		if v := r.Starts[i].Standing(); !v.Counts() {
			standing = string(v)
		}
		rows = append(rows, row{strconv.Itoa(i + 1), []string{
			figure(bench.Mean(runs, (*bench.Run).Throughput), rate),
			figure(bench.Mean(runs, (*bench.Run).AverageLatency), microseconds),
			worstP99(runs),
			figure(bench.Mean(runs, func(run *bench.Run) *float64 { return run.CPU.Gateway }), percent),
			standing,
		}})
	}
	rows = append(rows, row{"Mean", []string{figure(s.QPS, rate), figure(s.LatencyMs, milliseconds)}})
	g.groups = []group{{rows: rows}}
	return g
}

// startRuns are the runs of the start with that number.
func startRuns(s bench.ScenarioResult, number int) []bench.Run {
	return slices.DeleteFunc(slices.Clone(s.Runs), func(run bench.Run) bool { return run.Start != number })
}

// worstP99 is the highest p99 of the runs: percentiles have no mean.
func worstP99(runs []bench.Run) string {
	var worst *float64
	for _, run := range bench.Complete(runs) {
		if p := run.Latency.P99; p != nil && (worst == nil || *p > *worst) {
			worst = p
		}
	}
	return figure(worst, microseconds)
}
