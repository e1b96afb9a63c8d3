// Package statistics says what a few starts of a gateway prove. Its samples hold one
// value a start, the mean of the start's runs, in the order of the starts: two runs
// of one start agree better than two starts do, so only starts are independent.
//
// How well everything here holds is simulated in the tests, with the variances seen
// on real gateways.
package statistics

import (
	"math"
	"sync"

	"github.com/aclements/go-moremath/stats"
)

const (
	// plainLevel is that of the interval of a number of starts fixed beforehand.
	plainLevel = 0.95
	// ruleLevel is the nominal level of the intervals that a Rule looks at. Looking
	// after every start, and stopping where the spread happens to look small, costs
	// up to four of its points: what remains is 95%.
	ruleLevel = 0.99
	// compareLevel is the nominal level of a ratio's interval, for the same reason:
	// nothing says how its samples came to end.
	compareLevel = 0.975
)

// Estimate is the mean of a sample and its 95% interval. Low and High are NaN where
// there is none: with fewer than two starts, or with a value that isn't a number.
type Estimate struct {
	N               int
	Mean, Low, High float64
}

// Bounded says whether there is an interval.
func (e Estimate) Bounded() bool { return !math.IsNaN(e.Low) && !math.IsNaN(e.High) }

// Relative is half the interval's width as a share of the mean, NaN without interval.
func (e Estimate) Relative() float64 { return (e.High - e.Low) / 2 / math.Abs(e.Mean) }

// Interval is the mean and its 95% interval by Student's t, mean ± t·s/√n with n-1
// degrees of freedom ("Student", The probable error of a mean, Biometrika 6, 1908),
// for a number of starts that was fixed beforehand. For one that a Rule ended, see
// Rule.Interval.
func Interval(values []float64) Estimate { return interval(values, plainLevel) }

// interval is Student's t interval of a nominal level.
func interval(values []float64, level float64) Estimate {
	n := len(values)
	e := Estimate{N: n, Mean: stats.Mean(values), Low: math.NaN(), High: math.NaN()}
	s := stats.StdDev(values)
	if n < 2 || math.IsNaN(s) || math.IsInf(s, 0) {
		return e
	}
	half := quantile(level, n-1) * s / math.Sqrt(float64(n))
	e.Low, e.High = e.Mean-half, e.Mean+half
	return e
}

// variation is the coefficient of variation: the standard deviation as a share of
// the mean. It is NaN where there is none.
func variation(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	return stats.StdDev(values) / math.Abs(stats.Mean(values))
}

// quantiles keeps what quantile has found: finding one takes a quarter of a millisecond.
var quantiles sync.Map

// quantile is the t that a share level of Student's distribution lies within, on both
// sides of 0.
func quantile(level float64, freedom int) float64 {
	type key struct {
		level   float64
		freedom int
	}
	k := key{level, freedom}
	if t, ok := quantiles.Load(k); ok {
		return t.(float64)
	}
	t := stats.InvCDF(stats.TDist{V: float64(freedom)})((1 + level) / 2)
	quantiles.Store(k, t)
	return t
}
