package statistics

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// Outliers are the indices of the values that lie too far from the others to belong
// to one normal distribution, in ascending order, by the generalized extreme
// Studentized deviate test at 1% for up to a quarter of the values (Rosner, Percentage
// points for a generalized ESD many-outlier procedure, Technometrics 25, 1983; NIST
// handbook 1.3.5.17.3). They are to be named, not dropped: a start that went wrong is
// one of the gateway's. With fewer than five values none can be told.
func Outliers(values []float64) []int {
	if len(values) < 5 || !Interval(values).Bounded() {
		return nil
	}
	rest := make([]int, len(values))
	for i := range rest {
		rest[i] = i
	}
	var removed []int
	found := 0
	for range max(len(values)/4, 1) {
		at, deviate := extreme(values, rest)
		n := float64(len(rest))
		t := quantile(1-0.01/n, len(rest)-2)
		removed, rest = append(removed, rest[at]), slices.Delete(rest, at, at+1)
		if deviate > (n-1)*t/math.Sqrt((n-2+t*t)*n) {
			found = len(removed)
		}
	}
	return slices.Sorted(slices.Values(removed[:found]))
}

// extreme finds which of the values at the indices is furthest from their mean, and
// how many standard deviations.
func extreme(values []float64, indices []int) (at int, deviate float64) {
	var those []float64
	for _, i := range indices {
		those = append(those, values[i])
	}
	mean, s := stats.Mean(those), stats.StdDev(those)
	for i, v := range those {
		if d := math.Abs(v-mean) / s; d > deviate {
			at, deviate = i, d
		}
	}
	return at, deviate
}

// TwoHumped says whether the values fall into two groups of at least two, as those of
// a gateway whose LuaJIT compiles now one way, now another. A mean then describes no
// single start. Of all ways to cut the sorted values in two, the one with the least
// sum of squares within groups is compared with that of a normal sample: the logarithm
// of total by within is there about normal, with mean -ln(1-2/π) + 2.4/(n-2) and
// variance 1/(n-2) (Engelman and Hartigan, Percentage points of a test for clusters,
// J. Am. Stat. Assoc. 64, 1969). The line is drawn three deviations above: with few
// values the upper tail is heavier than normal, and past it lie 2% of normal samples
// of eight, 1% of ten. With fewer than eight it can't be told.
func TwoHumped(values []float64) bool {
	n := len(values)
	if n < 8 || !Interval(values).Bounded() {
		return false
	}
	sorted := slices.Sorted(slices.Values(values))
	total, within := squares(sorted), math.Inf(1)
	for cut := 2; cut <= n-2; cut++ {
		within = min(within, squares(sorted[:cut])+squares(sorted[cut:]))
	}
	free := float64(n - 2)
	return math.Log(total/within) > -math.Log(1-2/math.Pi)+2.4/free+3/math.Sqrt(free)
}

// squares is the sum of squared deviations from the mean.
func squares(values []float64) float64 {
	return stats.Variance(values) * float64(len(values)-1)
}
