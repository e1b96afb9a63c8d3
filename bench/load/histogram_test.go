package load

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// measurement is what the set's samples would have been measured as.
func (s *sampleSet) measurement() *Measurement {
	m := &Measurement{
		cfg:      Config{Connections: s.connections, Timeout: time.Duration(s.timeout) * time.Microsecond},
		elapsed:  time.Duration(s.runtime) * time.Microsecond,
		counters: counters{Result: Result{Requests: uint64(s.n), Bytes: s.bytes, Errors: s.errors}},
	}
	m.raw, m.rates = s.histograms()
	return m
}

func (f *figures) check(t *testing.T, what string, h *histogram) {
	t.Helper()
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: %s is %.12g, wrk has %.12g", what, name, got, want)
		}
	}
	mean := h.mean()
	stdev := h.stdev(mean)
	near("count", float64(h.count), float64(f.count))
	near("minimum", float64(h.min), float64(f.min))
	near("maximum", float64(h.max), float64(f.max))
	near("mean", mean, f.mean)
	near("stdev", stdev, f.stdev)
	near("share within stdev", 100*h.within(mean, stdev), f.within)
	for i, p := range percentiles {
		want := f.percentiles[i]
		if want == 0 && f.min > 0 {
			// wrk loses the values below its minimum here and finds nothing.
			want = f.max
		}
		if got := h.percentile(p); got != want {
			t.Errorf("%s: percentile %v is %d, wrk has %d", what, p, got, want)
		}
	}
}

func TestHistogramAsWrk(t *testing.T) {
	t.Parallel()
	for _, s := range sampleSets {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := s.measurement()
			s.raw.check(t, "raw", m.raw.below(s.timeout+1))
			s.corrected.check(t, "corrected", m.corrected())
			result, err := m.Result()
			if err != nil {
				t.Fatal(err)
			}
			if got := *result.Latency.MeanWrk; math.Abs(got-s.corrected.mean) > 1e-9*got {
				t.Errorf("MeanWrk is %.12g, wrk has %.12g", got, s.corrected.mean)
			}
			if got, want := *result.Latency.Max, float64(m.raw.max); got != want {
				t.Errorf("Max is %v, want %v", got, want)
			}
		})
	}
}

// TestPercentileRank checks the rank against whole numbers: with n values 1…n,
// wrk's percentile p is value floor(p·n/100)+1, or the last.
func TestPercentileRank(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	for n := 1; n <= 3000; n++ {
		h.record(n, 1)
		for _, p := range []int{1, 7, 29, 50, 57, 75, 90, 95, 99, 100} {
			if got, want := h.percentile(float64(p)), min(p*n/100+1, n); got != want {
				t.Fatalf("percentile %d of 1…%d is %d, want %d", p, n, got, want)
			}
		}
		if got, want := h.percentile(99.9), min(999*n/1000+1, n); got != want {
			t.Fatalf("percentile 99.9 of 1…%d is %d, want %d", n, got, want)
		}
	}
}

// TestOpenHistogram compares a histogram that is not exact from a second on with
// one that is.
func TestOpenHistogram(t *testing.T) {
	t.Parallel()
	exact, open := newHistogram(), newHistogram()
	open.open = true
	for v := 1000; v < 60_000_000; v += 997 {
		exact.record(v, 2)
		open.record(v, 2)
	}
	if len(open.pages) > len(exact.pages)/10 {
		t.Errorf("%d pages, the exact one has %d", len(open.pages), len(exact.pages))
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > want/1000 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for _, p := range []float64{0.1, 1, 50, 90, 99.9, 100} {
		near(fmt.Sprintf("percentile %v", p), float64(open.percentile(p)), float64(exact.percentile(p)))
	}
	near("mean", open.mean(), exact.mean())
	near("stdev", open.stdev(open.mean()), exact.stdev(exact.mean()))
	if open.count != exact.count || open.min != exact.min || open.max != exact.max {
		t.Errorf("%d values from %d to %d, want %d from %d to %d", open.count, open.min, open.max, exact.count, exact.min, exact.max)
	}
	sum := &histogram{open: true, min: math.MaxInt}
	sum.add(open)
	sum.add(open)
	near("mean of the sum", sum.mean(), exact.mean())
	if sum.count != 2*exact.count {
		t.Errorf("%d values in the sum", sum.count)
	}
}

func TestHistogramEdges(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	if got := h.percentile(50); got != 0 {
		t.Errorf("percentile of nothing is %d", got)
	}
	if got := h.mean(); !math.IsNaN(got) {
		t.Errorf("mean of nothing is %v", got)
	}
	if got := h.stdev(0); got != 0 {
		t.Errorf("stdev of nothing is %v", got)
	}
	h.correct(1)
	h.record(-5, 1)
	h.record(maxValue+1000, 2)
	if h.min != 0 || h.max != maxValue || h.count != 3 {
		t.Errorf("min %d, max %d, count %d", h.min, h.max, h.count)
	}
	sum := newHistogram()
	sum.record(7, 1)
	sum.add(h)
	sum.add(newHistogram())
	if sum.count != 4 || sum.min != 0 || sum.percentile(50) != maxValue {
		t.Errorf("sum: count %d, min %d, median %d", sum.count, sum.min, sum.percentile(50))
	}
	if below := sum.below(7); below.count != 1 || below.max != 0 {
		t.Errorf("below 7: count %d, max %d", below.count, below.max)
	}
	before := *sum
	sum.correct(0)
	sum.correct(-1)
	if sum.count != before.count {
		t.Error("corrected by no interval")
	}
}

// TestRecordAllocates only when a range of values is first seen.
func TestRecordAllocates(t *testing.T) {
	h := newHistogram()
	g := generator(1)
	for i := range 10000 {
		h.record(g.sample(uniform, i), 1)
	}
	if allocs := testing.AllocsPerRun(1000, func() { h.record(g.sample(uniform, 0), 1) }); allocs != 0 {
		t.Errorf("%v allocations a value", allocs)
	}
}

// TestPayload decodes the HdrHistogram payload as another tool would.
func TestPayload(t *testing.T) {
	t.Parallel()
	for _, s := range sampleSets {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			latencies, _ := s.histograms()
			payload, err := latencies.encode()
			if err != nil {
				t.Fatal(err)
			}
			hdr, err := hdrhistogram.Decode([]byte(payload))
			if err != nil {
				t.Fatal(err)
			}
			if got := hdr.TotalCount(); got != int64(latencies.count) {
				t.Errorf("count is %d, want %d", got, latencies.count)
			}
			near := func(name string, got, want float64) {
				if math.Abs(got-want) > 0.001*want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			near("mean", hdr.Mean(), latencies.mean())
			near("maximum", float64(hdr.Max()), float64(latencies.max))
			for _, p := range []float64{50, 75, 90, 99, 99.9} {
				// HdrHistogram's rank is a nearest one, wrk's is one higher
				// where p·n/100 is whole: either value will do.
				got := float64(hdr.ValueAtQuantile(p))
				low := float64(latencies.percentile(p - 100/float64(latencies.count)))
				high := float64(latencies.percentile(p))
				if got < 0.999*low || got > 1.001*high {
					t.Errorf("percentile %v is %v, want %v to %v", p, got, low, high)
				}
			}
		})
	}
}

// FuzzPayload encodes any values.
func FuzzPayload(f *testing.F) {
	f.Add(0, 0, uint16(1))
	f.Add(1, maxValue, uint16(9))
	f.Add(-1, 1<<40, uint16(0xffff))
	f.Fuzz(func(t *testing.T, a, b int, n uint16) {
		h := newHistogram()
		h.record(a, uint64(n))
		h.record(b, 1)
		payload, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		hdr, err := hdrhistogram.Decode([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := hdr.TotalCount(), int64(n)+1; got != want {
			t.Errorf("count is %d, want %d", got, want)
		}
		if got, want := float64(hdr.Max()), float64(h.max); math.Abs(got-want) > 0.001*want {
			t.Errorf("maximum is %v, want %v", got, want)
		}
	})
}
