package bench

import (
	"math"
	"slices"
)

// Complete are the runs that lasted their whole time.
func Complete(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run Run) bool { return run.Cut })
}

// Spread is how far a figure of the complete runs differs: (max - min) / mean. It
// is nil for fewer than two runs, and where one has no such figure.
func Spread(runs []Run, figure func(*Run) *float64) *float64 {
	runs = Complete(runs)
	m := Mean(runs, figure)
	if len(runs) < 2 || m == nil || *m <= 0 {
		return nil
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range runs {
		v := *figure(&runs[i])
		low, high = min(low, v), max(high, v)
	}
	s := (high - low) / *m
	return &s
}

// Mean is that of a figure of the complete runs. It is nil without a run, and where
// one has no such figure: a mean over the others would pass for one over all.
func Mean(runs []Run, figure func(*Run) *float64) *float64 {
	runs = Complete(runs)
	if len(runs) == 0 {
		return nil
	}
	var mean float64
	for i := range runs {
		v := figure(&runs[i])
		if v == nil {
			return nil
		}
		mean += *v / float64(len(runs))
	}
	return &mean
}

// Throughput is the run's QPS, as a figure of Mean and Spread.
func (r *Run) Throughput() *float64 { return &r.QPS }

// add appends a run and renews the averages.
func (s *ScenarioResult) add(run Run) {
	s.Runs = append(s.Runs, run)
	s.QPS = Mean(s.Runs, (*Run).Throughput)
	if s.LatencyMs = Mean(s.Runs, (*Run).AverageLatency); s.LatencyMs != nil {
		*s.LatencyMs /= 1000
	}
}
