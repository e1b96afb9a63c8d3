package statistics

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

const (
	// Fewest is how many starts of each side a difference can be proved with: of
	// three against three no order has a Mann-Whitney p below 0.1.
	Fewest = 4
	// alpha is the p up to which the orders of two samples differ, as benchstat has it.
	alpha = 0.05
	// power is the probability with which Needed starts prove a difference.
	power = 0.9
)

// Comparison is how a sample b stands to a sample a.
type Comparison struct {
	// Ratio is the mean of b by that of a, Low and High its 95% interval: NaN
	// where there is none.
	Ratio, Low, High float64
	// P is the Mann-Whitney p, as benchstat prints it; 1 where there is none.
	P float64
	// Differs says that a difference is proved: each side has Fewest starts, the
	// interval doesn't contain 1, and P is at most 0.05. Either alone calls equal
	// machines different in more than 5% of the pairs of sessions that a Rule
	// ended: it ends some before their second hump shows.
	Differs bool
	// Reason says why not; it's empty if it differs.
	Reason string
}

// Compare compares two samples. The ratio's interval is Welch's on the scale of
// logarithms, where the relative errors of both means add up,
//
//	ln(b/a) ± t·√(va+vb), v = (s/mean)²/n
//
// by the delta method, with the degrees of freedom of Welch (The generalization of
// "Student's" problem, Biometrika 34, 1947), rounded down, and a t of nominally 97.5%,
// of which 95% are left after a Rule, or 93% where starts have two humps. The p is
// that of Mann and Whitney (On a test of whether one of two random variables is
// stochastically larger than the other, Ann. Math. Stat. 18, 1947), exact up to 50
// starts.
func Compare(a, b []float64) Comparison {
	c := Comparison{Ratio: stats.Mean(b) / stats.Mean(a), Low: math.NaN(), High: math.NaN(), P: 1}
	va, vb := relativeVariance(a), relativeVariance(b)
	switch {
	case len(a) < 2 || len(b) < 2:
		c.Reason = "a single start shows no spread"
		return c
	case math.IsNaN(va+vb) || math.IsInf(va+vb, 0) || !(c.Ratio > 0):
		c.Reason = "a value is missing or not positive"
		return c
	}
	half := 0.0
	if va+vb > 0 {
		freedom := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
		// It is never below that of the smaller sample, whatever rounding says.
		half = quantile(compareLevel, max(int(freedom), min(len(a), len(b))-1)) * math.Sqrt(va+vb)
	}
	c.Low, c.High = c.Ratio*math.Exp(-half), c.Ratio*math.Exp(half)
	c.P = benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
	switch {
	case min(len(a), len(b)) < Fewest:
		c.Reason = fmt.Sprintf("%d and %d starts, and at least %d of each are needed", len(a), len(b), Fewest)
	case c.Low <= 1 && c.High >= 1:
		c.Reason = "the ratio's interval contains 1"
	case c.P > alpha:
		c.Reason = fmt.Sprintf("the starts of both overlap (Mann-Whitney p %.3f)", c.P)
	default:
		c.Differs = true
	}
	return c
}

// relativeVariance is the square of the mean's standard error as a share of the mean.
func relativeVariance(values []float64) float64 {
	v := variation(values)
	return v * v / float64(len(values))
}

// sample is what benchmath takes; it sorts what it's given.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: alpha})
}

// Needed is how many starts of each side would prove a difference (0.02 for 2%) in
// about nine sessions of ten, if the spread is what it was: the smallest n for which
//
//	(t₁+t₂)·√((va+vb)/n) ≤ ln(1+difference)
//
// with v the squared coefficients of variation, t₁ that of Compare's interval and t₂
// that of the power (Chow, Shao and Wang, Sample size calculations in clinical
// research, 3.2). It is 5 at least, since four that overlap at all prove nothing, 0 where
// the spread isn't known, and 10000 at most. Where starts have two humps a few more
// are needed. For one machine alone, b is a.
func Needed(a, b []float64, difference float64) int {
	va, vb := variation(a), variation(b)
	spread := math.Hypot(va, vb)
	if math.IsNaN(spread) || math.IsInf(spread, 0) || !(difference > 0) {
		return 0
	}
	return sort.Search(most, func(n int) bool {
		if n <= Fewest {
			return false
		}
		t := quantile(compareLevel, 2*n-2) + quantile(2*power-1, 2*n-2)
		return t*spread/math.Sqrt(float64(n)) <= math.Log1p(difference)
	})
}
