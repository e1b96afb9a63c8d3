package bench

import (
	"fmt"
	"slices"
)

// Counts says whether figures with this verdict may be compared with others.
func (v Verdict) Counts() bool { return v == Valid || v == ValidWithWarnings }

// Standing is that of a start.
func (s *Start) Standing() Verdict { return standing(s.Verdict, s.Warnings) }

// AddStart adds what was measured, and judged, on one start of the gateway.
func (r *Result) AddStart(session *Result) {
	start := Start{Began: session.Started, Order: []string{}, Warnings: session.Warnings, Verdict: session.Verdict}
	for _, s := range session.Scenarios {
		start.Order = append(start.Order, s.Name)
	}
	r.Starts = append(r.Starts, start)
	for _, s := range session.Scenarios {
		at := slices.IndexFunc(r.Scenarios, func(have ScenarioResult) bool { return have.Name == s.Name })
		if at < 0 {
			at = len(r.Scenarios)
			r.Scenarios = append(r.Scenarios, s)
			r.Scenarios[at].Runs = nil
		}
		for _, run := range s.Runs {
			run.Start = len(r.Starts)
			r.Scenarios[at].Runs = append(r.Scenarios[at].Runs, run)
		}
		into := &r.Scenarios[at]
		into.QPS = mean(r.StartMeans(*into, (*Run).Throughput))
		if into.LatencyMs = mean(r.StartMeans(*into, (*Run).AverageLatency)); into.LatencyMs != nil {
			*into.LatencyMs /= 1000
		}
	}
}

// CountedStarts is how many starts have figures that count.
func (r *Result) CountedStarts() int {
	n := 0
	for i := range r.Starts {
		if r.Starts[i].Standing().Counts() {
			n++
		}
	}
	return n
}

// StartMeans are the means over the runs of each start that counts: the sample of
// a figure. A start without the figure is left out.
func (r *Result) StartMeans(s ScenarioResult, figure func(*Run) *float64) []float64 {
	var means []float64
	for i := range r.Starts {
		if !r.Starts[i].Standing().Counts() {
			continue
		}
		runs := slices.DeleteFunc(slices.Clone(s.Runs), func(run Run) bool { return run.Start != i+1 })
		if m := Mean(runs, figure); m != nil {
			means = append(means, *m)
		}
	}
	return means
}

// Samples are the requests/s of each start that counts, by scenario.
func (r *Result) Samples() [][]float64 {
	var samples [][]float64
	for _, s := range r.Scenarios {
		samples = append(samples, r.StartMeans(s, (*Run).Throughput))
	}
	return samples
}

// judgeStarts takes over what was found on each start, and says whether one counts.
// A disturbance of one that doesn't casts no doubt on the others.
func (r *Result) judgeStarts() bool {
	counted := r.CountedStarts()
	for i := range r.Starts {
		start := &r.Starts[i]
		for _, w := range start.Warnings {
			w.Text = fmt.Sprintf("start %d: %s", i+1, w.Text)
			w.Disturbed = w.Disturbed && counted == 0
			if start.Standing() == Interrupted {
				w.Invalid = false
			}
			r.Warn(w)
		}
		if start.Standing() == Disturbed {
			r.Warn(Warning{Code: StartDisturbed, Text: fmt.Sprintf("start %d was disturbed and does not count", i+1),
				Hint: "see the warnings of that start"})
		}
	}
	if counted < r.Settings.Restarts {
		r.Warn(Warning{Code: FewRestarts, Text: fmt.Sprintf("%d of %d starts count", counted, r.Settings.Restarts),
			Hint: "let the measurement run to its end on a quiet machine"})
	}
	return counted > 0 || slices.ContainsFunc(r.Starts, func(s Start) bool { return s.Standing() == Disturbed })
}
