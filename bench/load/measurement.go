package load

import (
	"math"
	"time"
)

// Measurement is what one run measured, in full.
type Measurement struct {
	cfg     Config
	began   time.Time
	elapsed time.Duration
	// busiest is how long the loop that waited least had something to do.
	busiest time.Duration
	counters
}

// corrected is what wrk's statistics of the same samples hold: nothing above
// the timeout, and phantom samples for what a slow response kept from being sent.
func (m *Measurement) corrected() *histogram {
	h := m.raw.below(int(m.cfg.Timeout/time.Microsecond) + 1)
	if perConnection := m.Requests / uint64(m.cfg.Connections); perConnection > 0 {
		h.correct(int(uint64(m.elapsed.Microseconds()) / perConnection))
	}
	return h
}

// Result sums the measurement up.
func (m *Measurement) Result() (Result, error) {
	res := m.counters.Result
	res.Seconds = m.elapsed.Seconds()
	res.QPS = float64(m.Requests) / res.Seconds
	res.Busy = figure(m.busiest.Seconds() / res.Seconds)
	res.Rate = m.cfg.Rate
	res.Causes = m.words()
	res.Reconnects = &m.Reconnects
	if m.Requests == 0 {
		return res, nil
	}
	res.Latency = latencyOf(m.raw)
	if m.cfg.Rate > 0 {
		service := latencyOf(m.service)
		res.Service = &service
	} else {
		res.Latency.MeanWrk = figure(m.corrected().mean())
	}
	var err error
	res.Histogram, err = m.raw.encode()
	return res, err
}

// latencyOf sums up a histogram of microseconds.
func latencyOf(h *histogram) Latency {
	mean := h.mean()
	return Latency{
		Mean:  figure(mean),
		Stdev: figure(h.stdev(mean)),
		Max:   figure(float64(h.max)),
		P50:   figure(float64(h.percentile(50))),
		P90:   figure(float64(h.percentile(90))),
		P99:   figure(float64(h.percentile(99))),
		P999:  figure(float64(h.percentile(99.9))),
	}
}

// figure is a pointer to v, or nil where v could not be computed.
func figure(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
