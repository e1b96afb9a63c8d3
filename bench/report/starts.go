package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"armrepro/bench"
	"armrepro/bench/statistics"
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
	g.notes = startNotes(r, s)
	return g
}

// startNotes say how well the means are known, and what is odd about the starts.
func startNotes(r bench.Result, s bench.ScenarioResult) []string {
	qps := r.StartMeans(s, (*bench.Run).Throughput)
	notes := []string{
		"95 % interval of the mean over starts: requests/sec " + estimate(r, s, (*bench.Run).Throughput).text(rate) +
			", avg latency " + estimate(r, s, (*bench.Run).AverageLatency).text(microseconds) + ".",
	}
	if provable := provable(qps); provable != "" {
		notes = append(notes, provable)
	}
	if odd := statistics.Outliers(qps); len(odd) > 0 {
		notes = append(notes, "Far from the others, and counted all the same: "+strings.Join(each(odd, func(i int) string {
			return rate(qps[i])
		}), ", ")+" requests/sec.")
	}
	if statistics.TwoHumped(qps) {
		notes = append(notes, "The starts fall into two groups: the gateway compiles differently from start to start.")
	}
	return notes
}

// estimated is the mean over starts of a figure.
type estimated struct{ statistics.Estimate }

func estimate(r bench.Result, s bench.ScenarioResult, of func(*bench.Run) *float64) estimated {
	rule := statistics.Rule{Precision: r.Settings.Precision}
	return estimated{rule.Interval(r.StartMeans(s, of))}
}

// text is the interval with half its width.
func (e estimated) text(format func(float64) string) string {
	if !e.Bounded() {
		return missing
	}
	return format(e.Low) + " to " + format(e.High) + " (± " + percent(e.Relative()) + ")"
}

// halfWidth is relative to the mean; nil without an interval.
func (e estimated) halfWidth() *float64 {
	if !e.Bounded() {
		return nil
	}
	return new(e.Relative())
}

// provable says how many starts it takes to show differences to a machine with the
// same spread.
func provable(values []float64) string {
	var texts []string
	for _, difference := range []float64{0.02, 0.05, 0.1} {
		n := statistics.Needed(values, values, difference)
		if n == 0 {
			return ""
		}
		texts = append(texts, fmt.Sprintf("%d (%.0f %%)", n, 100*difference))
	}
	return "Starts of each machine that would show a difference: " + strings.Join(texts, ", ") + "."
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
