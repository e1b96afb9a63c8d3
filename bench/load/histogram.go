package load

import (
	"math"
)

// histogram counts values exactly, one counter for each, as wrk's stats.c does:
// its correction and its percentiles cannot be had from wider buckets. Counters
// come in pages that are made when first needed.
type histogram struct {
	pages []*page
	// open says that values from 1<<exactBits on are counted to a thousandth:
	// at a fixed rate that is too high, latencies grow as long as the run lasts.
	open  bool
	count uint64
	min   int
	max   int
}

const (
	pageBits = 10
	pageSize = 1 << pageBits
	// maxValue is the highest value that is told from higher ones: as
	// microseconds 35 minutes, longer than a connection waits for a response.
	maxValue = 1<<31 - 1
	// exactBits is where an open histogram ceases to be exact: as microseconds
	// a second. Its exact values have exactPages.
	exactBits  = 20
	exactPages = 1 << (exactBits - pageBits)
)

type page [pageSize]uint64

func newHistogram() *histogram { return &histogram{min: math.MaxInt} }

// record counts v n times, v being from 0 to maxValue.
func (h *histogram) record(v int, n uint64) {
	v = max(0, min(v, maxValue))
	h.count += n
	h.min, h.max = min(h.min, v), max(h.max, v)
	slot := h.slot(v)
	i := slot >> pageBits
	if i >= len(h.pages) || h.pages[i] == nil {
		h.addPage(i)
	}
	h.pages[i][slot&(pageSize-1)] += n
}

// slot is the number of the counter of v.
func (h *histogram) slot(v int) int {
	if h.open && v >= 1<<exactBits {
		return exactPages<<pageBits + v>>pageBits
	}
	return v
}

// value is what the counter of that number counts. One that is not exact stands
// in the middle of where it may be.
func (h *histogram) value(slot int) int {
	if rest := slot - exactPages<<pageBits; h.open && rest >= 0 {
		return max(h.min, min(rest<<pageBits|pageSize/2, h.max))
	}
	return slot
}

// addPage makes page i.
func (h *histogram) addPage(i int) {
	if missing := i + 1 - len(h.pages); missing > 0 {
		h.pages = append(h.pages, make([]*page, missing)...)
	}
	h.pages[i] = new(page)
}

// each calls f for every value from min on that was counted, in ascending
// order, until f returns false. What f records below the current value is not
// visited.
func (h *histogram) each(f func(v int, n uint64) bool) {
	if h.count == 0 {
		return
	}
	first := h.slot(h.min)
	for i := first >> pageBits; i < len(h.pages); i++ {
		if h.pages[i] == nil {
			continue
		}
		for j, n := range h.pages[i] {
			if slot := i<<pageBits | j; n > 0 && slot >= first && !f(h.value(slot), n) {
				return
			}
		}
	}
}

// add counts everything that other counted.
func (h *histogram) add(other *histogram) {
	other.each(func(v int, n uint64) bool {
		h.record(v, n)
		return true
	})
}

// below returns a copy without the values of limit and above.
func (h *histogram) below(limit int) *histogram {
	c := newHistogram()
	h.each(func(v int, n uint64) bool {
		if v < limit {
			c.record(v, n)
		}
		return v < limit
	})
	return c
}

// correct adds the samples that a closed loop did not take while it waited for
// a slow response, exactly as stats_correct in wrk's stats.c does: a value v above
// twice the expected interval adds v-interval, v-2·interval, … down to the
// interval. As in wrk, min stays what was really measured, and added values
// below it only count: they are in no sum.
func (h *histogram) correct(interval int) {
	if interval <= 0 {
		return
	}
	defer func(measured int) { h.min = measured }(h.min)
	h.each(func(v int, n uint64) bool {
		if v >= 2*interval {
			for m := v - interval; m > interval; m -= interval {
				h.record(m, n)
			}
		}
		return true
	})
}

// mean is NaN without a value.
func (h *histogram) mean() float64 {
	var sum float64
	h.each(func(v int, n uint64) bool {
		sum += float64(v) * float64(n)
		return true
	})
	return sum / float64(h.count)
}

// stdev is the sample standard deviation around mean; 0 with fewer than two
// values.
func (h *histogram) stdev(mean float64) float64 {
	if h.count < 2 {
		return 0
	}
	var sum float64
	h.each(func(v int, n uint64) bool {
		d := float64(v) - mean
		sum += d * d * float64(n)
		return true
	})
	return math.Sqrt(sum / float64(h.count-1))
}

// within is the share of values at most one stdev from the mean: wrk's column
// "+/- Stdev". NaN without a value.
func (h *histogram) within(mean, stdev float64) float64 {
	var in uint64
	h.each(func(v int, n uint64) bool {
		if d := float64(v) - mean; d >= -stdev && d <= stdev {
			in += n
		}
		return true
	})
	return float64(in) / float64(h.count)
}

// percentile is the smallest value that at least p percent of the values do not
// exceed, with wrk's rounding of the rank; 0 without a value.
func (h *histogram) percentile(p float64) int {
	// Multiplied first, it is exact where wrk's long double is.
	rank := uint64(math.Round(p*float64(h.count)/100 + 0.5))
	// wrk's loop runs past its last value and prints 0 for p = 100.
	rank = min(rank, h.count)
	var (
		total  uint64
		result int
	)
	h.each(func(v int, n uint64) bool {
		total += n
		result = v
		return total < rank
	})
	return result
}
