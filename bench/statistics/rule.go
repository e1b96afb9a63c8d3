package statistics

import (
	"math"
	"sort"
)

// Least is how many starts a Rule takes at least. Of a gateway that compiles to
// slower code in three starts of ten, twelve show one with a probability of 99%; five
// would miss it in every sixth session, with a spread that looks small.
const Least = 12

// most bounds the numbers of starts that are looked for.
const most = 10000

// Rule ends a session once its means are known precisely enough, which may be looked
// at after every start.
//
// Stopping when the 95% interval is narrow stops where the spread happens to look
// small, and so under-covers (Anscombe, Sequential estimation, J. R. Stat. Soc. B 15,
// 1953; Chow and Robbins, On the asymptotic theory of fixed-width sequential confidence
// intervals for the mean, Ann. Math. Stat. 36, 1965): it misses the truth in up to 7%
// of sessions where starts are normal, and in up to 17% where they have two humps. So
// a Rule looks at, and reports, intervals of a nominal 99%, and not before Least starts.
type Rule struct {
	// Precision is half the width of the 95% interval as a share of the mean: 0.03
	// for 3%. It is 0 without a rule.
	Precision float64
}

// Interval is the mean and its 95% interval under the rule: that which Done looks at,
// and which still covers the truth in 95% of sessions after it. Without a rule it's
// the package's Interval.
func (r Rule) Interval(values []float64) Estimate {
	if r.Precision > 0 {
		return interval(values, ruleLevel)
	}
	return Interval(values)
}

// Done says whether every sample, one a scenario, is as precise as asked.
func (r Rule) Done(samples ...[]float64) bool {
	for _, values := range samples {
		// NaN, where there is no interval, isn't less than anything.
		if len(values) < Least || !(r.Interval(values).Relative() <= r.Precision) {
			return false
		}
	}
	return len(samples) > 0
}

// Remaining is how many more starts are expected to be needed, if the spread stays
// what it is: 0 once Done.
func (r Rule) Remaining(samples ...[]float64) int {
	remaining := 0
	for _, values := range samples {
		more := max(Least-len(values), 0)
		if spread := variation(values); !math.IsNaN(spread) && !r.Done(values) {
			need := sort.Search(most, func(n int) bool {
				return n >= Least && quantile(ruleLevel, n-1)*spread/math.Sqrt(float64(n)) <= r.Precision
			})
			more = max(need-len(values), 1)
		}
		remaining = max(remaining, more)
	}
	return remaining
}
