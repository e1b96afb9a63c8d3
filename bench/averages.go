package bench

import (
	"fmt"
	"slices"
)

// Complete are the runs that lasted their whole time.
func Complete(runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run Run) bool { return run.Cut })
}

// Spread is how far a figure of the complete runs differs: (max - min) / mean. It
// is nil for fewer than two runs, and where one has no such figure.
func Spread(runs []Run, figure func(*Run) *float64) *float64 {
	list := figures(runs, figure)
	if m := Mean(runs, figure); len(list) > 1 && *m > 0 {
		return new((slices.Max(list) - slices.Min(list)) / *m)
	}
	return nil
}

// Mean is that of a figure of the complete runs. It is nil without a run, and where
// one has no such figure: a mean over the others would pass for one over all.
func Mean(runs []Run, figure func(*Run) *float64) *float64 { return mean(figures(runs, figure)) }

// mean is nil without a value.
func mean(list []float64) *float64 {
	if len(list) == 0 {
		return nil
	}
	var mean float64
	for _, v := range list {
		mean += v / float64(len(list))
	}
	return &mean
}

// figures are a figure of each complete run; none where one has no such figure.
func figures(runs []Run, figure func(*Run) *float64) []float64 {
	var list []float64
	for _, run := range Complete(runs) {
		v := figure(&run)
		if v == nil {
			return nil
		}
		list = append(list, *v)
	}
	return list
}

// RoundRate prints requests per second without decimals, or with two digits where
// that would be none.
func RoundRate(qps float64) string {
	const few = 10
	if qps < few {
		return fmt.Sprintf("%.2g", qps)
	}
	return fmt.Sprintf("%.0f", qps)
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
