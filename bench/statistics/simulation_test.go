package statistics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/aclements/go-moremath/stats"
)

// gateways are what is simulated, as shares of the mean: the standard deviation
// between starts and that between the runs of a start, and how many of the starts
// are slower by how much.
var gateways = []gateway{
	{between: 0.01, within: 0.005},
	{between: 0.02, within: 0.007},
	{between: 0.03, within: 0.01},
	{between: 0.04, within: 0.01},
	{between: 0.01, within: 0.005, slowStarts: 0.3, slower: 0.06},
	{between: 0.02, within: 0.01, slowStarts: 0.3, slower: 0.06},
}

const (
	sessions    = 2000
	runsAStart  = 2
	covered     = 0.94 // of sessions, at least
	falseAlarms = 0.05 // of pairs of equal machines, at most
	proved      = 0.9  // of pairs that differ, at least
)

func init() {
	// The exact distribution of two samples of 50 takes 20 ms to find, too long for
	// thousands of them. The approximation beyond differs in the third digit.
	stats.MannWhitneyExactLimit = 12
}

type gateway struct{ between, within, slowStarts, slower float64 }

func (g gateway) String() string {
	return fmt.Sprintf("%.1f+%.1f,%.0fslow", 100*g.between, 100*g.within, 100*g.slowStarts)
}

func (g gateway) mean() float64 { return 1 - g.slowStarts*g.slower }

// start is the mean of the runs of a new start.
func (g gateway) start(r *rand.Rand) float64 {
	level := 1 + g.between*r.NormFloat64()
	if r.Float64() < g.slowStarts {
		level -= g.slower
	}
	mean := 0.0
	for range runsAStart {
		mean += (level + g.within*r.NormFloat64()) / runsAStart
	}
	return mean
}

func (g gateway) starts(r *rand.Rand, n int) []float64 {
	var values []float64
	for range n {
		values = append(values, g.start(r))
	}
	return values
}

// session goes on until done.
func (g gateway) session(r *rand.Rand, done func([]float64) bool) []float64 {
	var values []float64
	for !done(values) {
		values = append(values, g.start(r))
	}
	return values
}

func (g gateway) covered(e Estimate) bool { return e.Low <= g.mean() && g.mean() <= e.High }

// share counts how often something was so.
type share struct{ yes, all float64 }

func (s *share) add(yes bool) {
	s.all++
	if yes {
		s.yes++
	}
}

func (s *share) atLeast(t *testing.T, what string, limit float64) {
	t.Helper()
	t.Logf("%s: %.1f%%", what, 100*s.yes/s.all)
	if !(s.yes/s.all >= limit) {
		t.Errorf("%s: %.1f%%, want at least %g%%", what, 100*s.yes/s.all, 100*limit)
	}
}

func (s *share) atMost(t *testing.T, what string, limit float64) {
	t.Helper()
	t.Logf("%s: %.1f%%", what, 100*s.yes/s.all)
	if !(s.yes/s.all <= limit) {
		t.Errorf("%s: %.1f%%, want at most %g%%", what, 100*s.yes/s.all, 100*limit)
	}
}

// scaled is a machine that is faster by a factor.
func scaled(values []float64, factor float64) []float64 {
	var faster []float64
	for _, v := range values {
		faster = append(faster, v*factor)
	}
	return faster
}

func eachGateway(t *testing.T, check func(*testing.T, gateway, *rand.Rand)) {
	for _, g := range gateways {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			check(t, g, rand.New(rand.NewPCG(20, 26)))
		})
	}
}

// TestRuleSessions has pairs of equal machines, and of such that differ by 3%,
// measured until they are as precise as asked.
func TestRuleSessions(t *testing.T) {
	t.Parallel()
	for _, precision := range []float64{0.03, 0.015} {
		t.Run(fmt.Sprintf("%g", 100*precision), func(t *testing.T) {
			t.Parallel()
			eachGateway(t, func(t *testing.T, g gateway, r *rand.Rand) {
				rule := Rule{Precision: precision}
				done := func(values []float64) bool { return rule.Done(values) }
				var truth, ratio, equal, differing share
				starts := 0
				for range sessions {
					a, b := g.session(r, done), g.session(r, done)
					starts += len(a) + len(b)
					truth.add(g.covered(rule.Interval(a)))
					truth.add(g.covered(rule.Interval(b)))
					c := Compare(a, b)
					ratio.add(c.Low <= 1 && c.High >= 1)
					equal.add(c.Differs)
					if precision < 0.03 {
						c = Compare(a, scaled(b, 1.03))
						differing.add(c.Differs && c.Ratio > 1)
					}
				}
				t.Logf("%.1f starts a session", float64(starts)/2/sessions)
				truth.atLeast(t, "intervals that hold the mean", covered)
				equal.atMost(t, "equal machines called different", falseAlarms)
				if g.slowStarts > 0 {
					// A pair has two chances to end before it has seen a slow start.
					ratio.atLeast(t, "intervals that hold the ratio", 0.92)
				} else {
					ratio.atLeast(t, "intervals that hold the ratio", covered)
				}
				if precision < 0.03 {
					differing.atLeast(t, "3% found", proved)
				}
			})
		})
	}
}

// TestNaiveRule shows why a Rule isn't simpler: stopping at five starts, or whenever
// the 95% interval is narrow enough, misses the truth too often.
func TestNaiveRule(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	g := gateway{between: 0.01, within: 0.005, slowStarts: 0.3, slower: 0.06}
	var truth share
	for range sessions {
		values := g.session(r, func(values []float64) bool {
			return len(values) >= 5 && Interval(values).Relative() <= 0.015
		})
		truth.add(g.covered(Interval(values)))
	}
	truth.atMost(t, "naive intervals that hold the mean", 0.9)
}

// TestFixedSessions has a number of starts that was fixed beforehand.
func TestFixedSessions(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 4, 5, 8, 12, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			eachGateway(t, func(t *testing.T, g gateway, r *rand.Rand) {
				var truth, equal, ratio share
				for range sessions {
					a, b := g.starts(r, n), g.starts(r, n)
					truth.add(g.covered(Interval(a)))
					truth.add(g.covered(Interval(b)))
					c := Compare(a, b)
					equal.add(c.Differs)
					ratio.add(c.Low <= 1 && c.High >= 1)
				}
				equal.atMost(t, "equal machines called different", falseAlarms)
				ratio.atLeast(t, "intervals that hold the ratio", covered)
				if g.slowStarts == 0 {
					truth.atLeast(t, "intervals that hold the mean", covered)
				}
			})
		})
	}
}

// TestNeededProves has the machines measured that often, and finds the difference.
func TestNeededProves(t *testing.T) {
	t.Parallel()
	eachGateway(t, func(t *testing.T, g gateway, r *rand.Rand) {
		seen := g.starts(r, 1000)
		for _, difference := range []float64{0.02, 0.05, 0.1} {
			n := Needed(seen, seen, difference)
			var found share
			for range sessions / 4 {
				found.add(Compare(g.starts(r, n), scaled(g.starts(r, n), 1+difference)).Differs)
			}
			what := fmt.Sprintf("%g%% found by %d starts", 100*difference, n)
			if g.slowStarts > 0 {
				found.atLeast(t, what, 0.75)
			} else {
				found.atLeast(t, what, 0.85)
			}
			if n >= 20 {
				found.atMost(t, what, 0.95) // fewer find more than they need to
			}
		}
	})
}

// TestShapes has normal samples, which have neither outliers nor two humps, and such
// that have.
func TestShapes(t *testing.T) {
	t.Parallel()
	for n, least := range map[int]float64{8: 0.2, 10: 0.3, 12: 0.4, 20: 0.7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(5, uint64(n)))
			plain := gateway{between: 0.02, within: 0.01}
			humped := gateway{between: 0.01, within: 0.005, slowStarts: 0.3, slower: 0.06}
			var outliers, humps, found, named share
			for range sessions {
				values := plain.starts(r, n)
				outliers.add(len(Outliers(values)) > 0)
				humps.add(TwoHumped(values))
				found.add(TwoHumped(humped.starts(r, n)))
				values[3] -= 0.2
				at := Outliers(values)
				named.add(len(at) == 1 && at[0] == 3)
			}
			outliers.atMost(t, "normal samples with outliers", 0.02)
			humps.atMost(t, "normal samples with two humps", 0.02)
			found.atLeast(t, "two humps found", least)
			named.atLeast(t, "outliers named", 0.9)
		})
	}
}

// TestRemainingHolds compares what was expected at twelve starts with what it took.
func TestRemainingHolds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	g, rule := gateway{between: 0.03, within: 0.01}, Rule{Precision: 0.015}
	var expected, took float64
	for range 300 {
		values := g.starts(r, Least)
		expected += float64(rule.Remaining(values)) / 300
		for ; !rule.Done(values); took += 1.0 / 300 {
			values = append(values, g.start(r))
		}
	}
	if math.Abs(expected/took-1) > 0.15 {
		t.Errorf("expected %.1f more starts, and it took %.1f", expected, took)
	}
}
