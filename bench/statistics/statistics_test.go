package statistics

import (
	"math"
	"slices"
	"strings"
	"testing"
)

var nan = math.NaN()

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || a == b || math.Abs(a-b) < 1e-4*math.Abs(b)
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []float64
		rule   Rule
		want   Estimate
	}{
		"none":          {nil, Rule{}, Estimate{0, nan, nan, nan}},
		"one":           {[]float64{7}, Rule{}, Estimate{1, 7, nan, nan}},
		"one by a rule": {[]float64{7}, Rule{0.03}, Estimate{1, 7, nan, nan}},
		"two":           {[]float64{1, 3}, Rule{}, Estimate{2, 2, 2 - 12.7062, 2 + 12.7062}},
		// 2.7764 is t with 4 degrees of freedom at 95%, 4.6041 at 99%.
		"five":           {[]float64{1, 2, 3, 4, 5}, Rule{}, Estimate{5, 3, 3 - 2.776445*math.Sqrt(0.5), 3 + 2.776445*math.Sqrt(0.5)}},
		"five by a rule": {[]float64{1, 2, 3, 4, 5}, Rule{0.03}, Estimate{5, 3, 3 - 4.604095*math.Sqrt(0.5), 3 + 4.604095*math.Sqrt(0.5)}},
		"equal":          {[]float64{4, 4, 4}, Rule{}, Estimate{3, 4, 4, 4}},
		"not a number":   {[]float64{4, nan, 4}, Rule{}, Estimate{3, nan, nan, nan}},
		"infinite":       {[]float64{4, math.Inf(1), 4}, Rule{}, Estimate{3, nan, nan, nan}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.rule.Interval(test.values)
			if got.N != test.want.N || !near(got.Low, test.want.Low) || !near(got.High, test.want.High) ||
				got.Bounded() && !near(got.Mean, test.want.Mean) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if got.Bounded() == math.IsNaN(test.want.Low) {
				t.Errorf("%+v is bounded: %t", got, got.Bounded())
			}
		})
	}
	if got := Interval([]float64{1, 2, 3, 4, 5}).Relative(); !near(got, 2.776445*math.Sqrt(0.5)/3) {
		t.Errorf("relative half-width %g", got)
	}
	if got := Interval([]float64{1}).Relative(); !math.IsNaN(got) {
		t.Errorf("relative half-width %g of no interval", got)
	}
}

// steps are n values about 1 that differ by a step.
func steps(n int, step float64) []float64 {
	var values []float64
	for i := range n {
		values = append(values, 1+step*(float64(i)-float64(n-1)/2))
	}
	return values
}

func TestRule(t *testing.T) {
	t.Parallel()
	rule := Rule{Precision: 0.03}
	tight, wide := steps(Least, 0.001), steps(Least, 0.05)
	for name, test := range map[string]struct {
		samples   [][]float64
		done      bool
		remaining int
	}{
		"nothing":         {nil, false, 0},
		"no starts":       {[][]float64{nil}, false, Least},
		"one start":       {[][]float64{{1}}, false, Least - 1},
		"too few":         {[][]float64{tight[1:]}, false, 1},
		"precise":         {[][]float64{tight}, true, 0},
		"all equal":       {[][]float64{steps(Least, 0)}, true, 0},
		"wide":            {[][]float64{wide}, false, 244 - Least},
		"only one of two": {[][]float64{tight, wide}, false, 244 - Least},
		"not a number":    {[][]float64{append([]float64{nan}, tight...)}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rule.Done(test.samples...); got != test.done {
				t.Errorf("done: %t", got)
			}
			if got := rule.Remaining(test.samples...); got != test.remaining {
				t.Errorf("remaining: %d, want %d", got, test.remaining)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	five := steps(5, 0.01)
	for name, test := range map[string]struct {
		a, b   []float64
		want   Comparison // without Low and High: whether they are is bounded
		bound  bool
		reason string
	}{
		"nothing":      {nil, nil, Comparison{Ratio: nan, P: 1}, false, "a single start"},
		"one start":    {five, []float64{2}, Comparison{Ratio: 2, P: 1}, false, "a single start"},
		"too few":      {five, []float64{2, 2, 2}, Comparison{Ratio: 2, P: 2. / 56}, true, "5 and 3 starts, and at least 4"},
		"the same":     {five, five, Comparison{Ratio: 1, P: 1}, true, "contains 1"},
		"all equal":    {steps(5, 0), steps(5, 0), Comparison{Ratio: 1, P: 1}, true, "contains 1"},
		"exact":        {steps(5, 0), scaled(steps(5, 0), 1.01), Comparison{Ratio: 1.01, P: 2. / 252, Differs: true}, true, ""},
		"twice":        {five, scaled(five, 2), Comparison{Ratio: 2, P: 2. / 252, Differs: true}, true, ""},
		"half":         {scaled(five, 2), five, Comparison{Ratio: 0.5, P: 2. / 252, Differs: true}, true, ""},
		"within":       {five, scaled(five, 1.005), Comparison{Ratio: 1.005, P: 0.6904762}, true, "contains 1"},
		"two starts":   {[]float64{1, 1.01}, []float64{1, 1}, Comparison{Ratio: 1 / 1.005, P: 1}, true, "2 and 2 starts"},
		"not a number": {five, append([]float64{nan}, five...), Comparison{Ratio: nan, P: 1}, false, "missing"},
		"infinite":     {five, append([]float64{math.Inf(1)}, five...), Comparison{Ratio: nan, P: 1}, false, "missing"},
		"zero":         {five, make([]float64, 5), Comparison{Ratio: 0, P: 1}, false, "missing or not positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(test.b)
			got := Compare(test.a, test.b)
			if !near(got.Ratio, test.want.Ratio) || !near(got.P, test.want.P) || got.Differs != test.want.Differs {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if bound := !math.IsNaN(got.Low) && !math.IsNaN(got.High); bound != test.bound || bound && !(got.Low <= got.Ratio && got.Ratio <= got.High) {
				t.Errorf("interval %g to %g", got.Low, got.High)
			}
			if !strings.Contains(got.Reason, test.reason) || (got.Reason == "") != got.Differs {
				t.Errorf("reason %q, want %q", got.Reason, test.reason)
			}
			if !slices.EqualFunc(before, test.b, near) {
				t.Error("changed what it was given")
			}
		})
	}
}

// TestCompareByHand has s/mean = 0.01·√2.5 on both sides, so that Welch's degrees of
// freedom are 8: t at 97.5% is 2.7515.
func TestCompareByHand(t *testing.T) {
	t.Parallel()
	got := Compare(steps(5, 0.01), scaled(steps(5, 0.01), 2))
	half := 2.751524 * math.Sqrt(2*0.01*0.01*2.5/5)
	if !near(got.Low, 2*math.Exp(-half)) || !near(got.High, 2*math.Exp(half)) {
		t.Errorf("got %g to %g, want 2 by or times %g", got.Low, got.High, math.Exp(half))
	}
}

// TestCompareRanks has one start so far off that the interval alone would not tell,
// and one side so even that it alone would.
func TestCompareRanks(t *testing.T) {
	t.Parallel()
	even := steps(12, 0.0001)
	humped := slices.Concat(steps(9, 0.0001), scaled(steps(7, 0.0001), 0.94))
	got := Compare(even, humped)
	if got.Differs || got.High >= 1 || !strings.Contains(got.Reason, "Mann-Whitney") {
		t.Errorf("a side that has not yet shown its second hump: %+v", got)
	}
}

func TestNeeded(t *testing.T) {
	t.Parallel()
	five := steps(5, 0.01) // a variation of 1.58%
	for name, test := range map[string]struct {
		a, b       []float64
		difference float64
		want       int
	}{
		"2%":            {five, five, 0.02, 18},
		"5%":            {five, five, 0.05, 5},
		"10%":           {five, five, 0.1, 5},
		"no spread":     {steps(5, 0), steps(5, 0), 0.02, 5},
		"unknown":       {five, []float64{1}, 0.02, 0},
		"none":          {nil, nil, 0.02, 0},
		"not a number":  {five, []float64{1, nan}, 0.02, 0},
		"no difference": {five, five, 0, 0},
		"too many":      {five, five, 1e-6, most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Needed(test.a, test.b, test.difference); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestOutliersAndHumps(t *testing.T) {
	t.Parallel()
	spread := []float64{1.01, 0.99, 1.005, 0.995, 1, 1.002, 0.992, 1.007}
	for name, test := range map[string]struct {
		values   []float64
		outliers []int
		humped   bool
	}{
		"none":              {nil, nil, false},
		"four":              {[]float64{1, 1.001, 0.999, 2}, nil, false},
		"even":              {spread, nil, false},
		"equal":             {steps(8, 0), nil, false},
		"one off":           {append([]float64{0.88}, spread...), []int{0}, false},
		"one of five":       {[]float64{1, 1.001, 0.999, 2, 1.0005}, []int{3}, false},
		"one off the equal": {append(steps(8, 0), 2), []int{8}, false},
		"one on either side": {slices.Concat([]float64{0.8}, spread, []float64{1.2}),
			[]int{0, 9}, false},
		"three of eleven slow": {slices.Concat(spread, []float64{0.93, 0.932, 0.928}), nil, true},
		"two values":           {slices.Concat(steps(5, 0), scaled(steps(5, 0), 2)), nil, true},
		"not a number":         {append([]float64{nan}, spread...), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(test.values)
			if got := Outliers(test.values); !slices.Equal(got, test.outliers) {
				t.Errorf("outliers %v, want %v", got, test.outliers)
			}
			if got := TwoHumped(test.values); got != test.humped {
				t.Errorf("two-humped: %t", got)
			}
			if !slices.EqualFunc(before, test.values, near) {
				t.Error("changed what it was given")
			}
		})
	}
}

// TestManyStarts has more than anyone makes: the quantiles are still found.
func TestManyStarts(t *testing.T) {
	t.Parallel()
	e := Interval(steps(100000, 1e-6))
	if want := 1.96 * 0.0288675 / math.Sqrt(100000); math.Abs(e.Relative()/want-1) > 0.01 {
		t.Errorf("relative half-width %g, want %g", e.Relative(), want)
	}
}
