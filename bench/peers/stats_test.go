package main

import (
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{4, 1}, 2.5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 100, 1, 2}, 3},
	} {
		before := append([]float64(nil), test.values...)
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
		for i := range before {
			if test.values[i] != before[i] {
				t.Fatalf("median changed its argument from %v to %v", before, test.values)
			}
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v", got)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	// The machine halves its speed between the pairs: the ratios of pairs
	// don't care, and their median isn't the ratio of the medians.
	got, err := compare([]float64{100, 50, 40}, []float64{90, 50, 20})
	if err != nil {
		t.Fatal(err)
	}
	if want := (ratios{median: 0.9, low: 0.5, high: 1, peer: 50, own: 50}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	nan := math.NaN()
	for _, bad := range []struct {
		peer, own []float64
		want      string
	}{
		{nil, nil, "0 values against 0"},
		{[]float64{1}, []float64{1, 2}, "2 values against 1"},
		{[]float64{1, 0}, []float64{1, 0}, "pair 2: 0 against 0"},
		{[]float64{0}, []float64{1}, "pair 1: 1 against 0"},
		{[]float64{1}, []float64{nan}, "pair 1: NaN against 1"},
	} {
		if _, err := compare(bad.peer, bad.own); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("compare %v with %v: %v, want %q", bad.peer, bad.own, err, bad.want)
		}
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	at := func(median float64) ratios { return ratios{median: median, low: median - 1, high: median + 1} }
	for _, test := range []struct {
		bound bound
		slack float64
		text  string
		in    []ratios
		out   []ratios
	}{
		{atMost(0.85), 1, "≤ 0.85", []ratios{at(0.85), at(0.1)}, []ratios{at(0.86)}},
		{atMost(0.8), 1.5, "≤ 1.2", []ratios{at(1.19)}, []ratios{at(1.21)}},
		{atLeast(1), 1, "≥ 1", []ratios{at(1), at(2)}, []ratios{at(0.99)}},
		{atLeast(1), 2, "≥ 0.5", []ratios{at(0.5)}, []ratios{at(0.49)}},
		{within(0.9, 1.05), 1, "0.90–1.05", []ratios{at(0.9), at(1.05)}, []ratios{at(0.89), at(1.06)}},
		{within(0.9, 1.05), 2, "0.80–1.10", []ratios{at(0.81), at(1.09)}, []ratios{at(0.79), at(1.11)}},
		{exactly(), 1, "equal", []ratios{{1, 1, 1, 5, 5}}, []ratios{{1, 1, 1.001, 5, 5}, {1, 0.999, 1, 5, 5}}},
		{exactly(), 9, "equal", []ratios{{1, 1, 1, 5, 5}}, []ratios{{1, 1, 1.001, 5, 5}}},
		{bound{}, 1, "", []ratios{at(0), at(9)}, nil},
	} {
		b := test.bound.widened(test.slack)
		if b.String() != test.text {
			t.Errorf("%+v with slack %v is %q, want %q", test.bound, test.slack, b, test.text)
		}
		for _, r := range test.in {
			if !b.holds(r) {
				t.Errorf("%q does not hold for %+v", b, r)
			}
		}
		for _, r := range test.out {
			if b.holds(r) {
				t.Errorf("%q holds for %+v", b, r)
			}
		}
	}
}
