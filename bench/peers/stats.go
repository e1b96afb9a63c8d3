package main

import (
	"fmt"
	"math"
	"slices"
)

// median is the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios is what the pairs of a comparison say: each ratio is between two runs
// that followed each other, so that a machine that slows down or speeds up in
// between weighs on both.
type ratios struct {
	// median, low and high are of the pairs' ratios, peer below.
	median, low, high float64
	// peer and own are the medians of either side.
	peer, own float64
}

// compare divides own by peer, pair by pair, of which there is at least one. A value
// that is missing, or a peer's that is zero, is an error.
func compare(peer, own []float64) (ratios, error) {
	var quotients []float64
	for i := range peer {
		q := own[i] / peer[i]
		if math.IsNaN(q) || math.IsInf(q, 0) {
			return ratios{}, fmt.Errorf("compare: pair %d: %v against %v", i+1, own[i], peer[i])
		}
		quotients = append(quotients, q)
	}
	return ratios{median(quotients), slices.Min(quotients), slices.Max(quotients), median(peer), median(own)}, nil
}

// bound is where a ratio has to lie, both limits included.
type bound struct{ low, high float64 }

var (
	// unbound holds always.
	unbound = atLeast(0)
	// exactly wants 1 in every pair, whatever the slack.
	exactly = within(1, 1)
)

func atMost(high float64) bound      { return bound{0, high} }
func atLeast(low float64) bound      { return bound{low, math.Inf(1)} }
func within(low, high float64) bound { return bound{low, high} }

// widened is the bound with slack, 1 leaving it as it is: slack multiplies a cost
// and divides a yield; of a bound on either side it multiplies the distances from 1.
func (b bound) widened(slack float64) bound {
	switch {
	case math.IsInf(b.high, 1):
		return atLeast(b.low / slack)
	case b.low == 0:
		return atMost(b.high * slack)
	}
	return within(1-(1-b.low)*slack, 1+(b.high-1)*slack)
}

// holds reports whether the median lies within the bound.
func (b bound) holds(r ratios) bool {
	if b == exactly {
		return r.low == 1 && r.high == 1
	}
	return r.median >= b.low && r.median <= b.high
}

func (b bound) String() string {
	switch {
	case b == unbound:
		return ""
	case b == exactly:
		return "equal"
	case math.IsInf(b.high, 1):
		return fmt.Sprintf("≥ %.3g", b.low)
	case b.low == 0:
		return fmt.Sprintf("≤ %.3g", b.high)
	}
	return fmt.Sprintf("%.2f–%.2f", b.low, b.high)
}
