package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"armrepro/bench/load"
	"armrepro/bench/machine"
)

func TestRatios(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 100, 1, 2}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
	// The machine halves its speed between the pairs: the ratios of pairs
	// don't care, and their median isn't the ratio of the medians.
	got, err := compare([]float64{100, 50, 40}, []float64{90, 50, 20})
	if want := (ratios{median: 0.9, low: 0.5, high: 1, peer: 50, own: 50}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []struct {
		peer, own []float64
		want      string
	}{
		{[]float64{1, 0}, []float64{1, 0}, "pair 2: 0 against 0"},
		{[]float64{0}, []float64{1}, "pair 1: 1 against 0"},
		{[]float64{1}, []float64{math.NaN()}, "pair 1: NaN against 1"},
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
		{exactly, 1, "equal", []ratios{{1, 1, 1, 5, 5}}, []ratios{{1, 1, 1.001, 5, 5}, {1, 0.999, 1, 5, 5}}},
		{exactly, 9, "equal", []ratios{{1, 1, 1, 5, 5}}, []ratios{{1, 1, 1.001, 5, 5}}},
		{unbound, 3, "", []ratios{at(0), at(9)}, nil},
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

// fakeSide records its runs in calls and measures the rates in turn.
func fakeSide(name string, calls *[]string, rates ...float64) side {
	return func(_ context.Context, d time.Duration) (sample, error) {
		*calls = append(*calls, name+" "+d.String())
		rate := rates[0]
		// The warm-up uses none.
		if d > warmUp {
			rates = append(rates[1:], rate)
		}
		return sample{Result: load.Result{Requests: 100, QPS: rate}}, nil
	}
}

func TestComparison(t *testing.T) {
	t.Parallel()
	var (
		calls    []string
		progress bytes.Buffer
	)
	s := &session{opts: options{slack: 1, control: true, duration: 2 * time.Second}, stderr: &progress}
	c := comparison{
		"generator", fakeSide("peer", &calls, 100, 200, 400), fakeSide("own", &calls, 90, 240, 400),
		[]figure{requestRate.in(atLeast(1))},
	}
	if err := s.compare(t.Context(), "cost", 3, c); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(
		[]string{"peer 1s", "own 1s"}, slices.Repeat([]string{"peer 2s", "own 2s"}, 3),
		[]string{"peer 1s", "peer 1s"}, slices.Repeat([]string{"peer 2s", "peer 2s"}, 3),
	)
	if !slices.Equal(calls, want) {
		t.Errorf("runs %q, want %q", calls, want)
	}
	first, control := s.rows[0], s.rows[1]
	if want := (ratios{median: 1, low: 0.9, high: 1.2, peer: 200, own: 240}); first.ratios != want || first.verdict != held {
		t.Errorf("%+v is %q, want %+v", first.ratios, first.verdict, want)
	}
	if control.verdict != shown || control.name != "generator (control): requests/s" || control.ratios.peer == 240 {
		t.Errorf("control: %+v", control)
	}
	if c.figures[0].bound != atLeast(1) {
		t.Error("the control took the bound away from the comparison itself")
	}
	if !strings.Contains(progress.String(), "cost, generator: pair 2 of 3") {
		t.Errorf("progress:\n%s", progress.String())
	}

	s.rows = nil
	c.peer, c.own = fakeSide("peer", &calls, 0), fakeSide("own", &calls, 0)
	if err := s.compare(t.Context(), "cost", 1, c); err == nil || !strings.Contains(err.Error(), "generator: requests/s") {
		t.Errorf("nothing measured: %v", err)
	}
	broken := errors.New("broken")
	c.own = func(context.Context, time.Duration) (sample, error) { return sample{}, broken }
	if err := s.compare(t.Context(), "cost", 1, c); !errors.Is(err, broken) || len(s.rows) > 0 {
		t.Errorf("a run failed: %v, %+v", err, s.rows)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	timeouts := load.Errors{Timeout: 2}
	for name, test := range map[string]struct {
		bound     bound
		slack     float64
		peer, own load.Errors
		busy      float64
		want      verdict
		note      string
	}{
		"held":        {bound: atLeast(1), slack: 1, busy: 0.95, want: held},
		"missed":      {bound: atLeast(1.1), slack: 1, busy: 0.95, want: missed},
		"slack":       {bound: atLeast(1.1), slack: 1.5, busy: 0.95, want: held},
		"shown":       {bound: unbound, slack: 1.5, busy: 0.95, want: shown},
		"idle":        {bound: atLeast(1), slack: 1, busy: 0.8, want: held, note: "the proxy was only 80 % busy"},
		"peer errors": {bound: atLeast(1), slack: 1, busy: 0.95, peer: timeouts, want: held, note: "errors of the peer: {Connect:0 Read:0 Write:0 Timeout:6 Status:0}"},
		"own errors":  {bound: atLeast(1), slack: 1, busy: 0.95, own: load.Errors{Read: 1, Status: 4}, want: failing, note: "of armrepro: {Connect:0 Read:3 Write:0 Timeout:0 Status:12}"},
		"both":        {bound: atLeast(1.1), slack: 1, busy: 0.95, peer: timeouts, own: timeouts, want: missed, note: "Timeout:6"},
	} {
		c := comparison{"both", nil, nil, []figure{requestRate.in(test.bound), proxyBusy}}
		of := func(e load.Errors) []sample {
			proxy := time.Duration(test.busy * float64(time.Second))
			return slices.Repeat([]sample{{Result: load.Result{Requests: 100, QPS: 100, Errors: e}, proxyCPU: proxy}}, 3)
		}
		rows, err := c.rows("pinned", of(test.peer), of(test.own), test.slack)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rows[0].verdict != test.want || !strings.Contains(rows[0].note, test.note) || (rows[0].note == "") != (test.note == "") {
			t.Errorf("%s: %q with note %q, want %q with %q", name, rows[0].verdict, rows[0].note, test.want, test.note)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := sample{
		Result:       load.Result{Requests: 1000, QPS: 500, Bytes: 176500, Latency: load.Latency{MeanWrk: new(1234.0)}},
		generatorCPU: 8 * time.Millisecond, upstreamCPU: 7 * time.Millisecond, proxyCPU: time.Second,
	}
	for name, test := range map[string]struct {
		figure figure
		want   float64
	}{
		"rate": {requestRate, 500}, "mean": {meanLatency, 1234}, "generator": {generatorCost, 8}, "upstream": {upstreamCost, 7},
		// 1000 requests at 500/s are two seconds.
		"busy": {proxyBusy, 50}, "proxy": {proxyCost, 1000}, "bytes": {answerSize, 176.5},
	} {
		if got := test.figure.of(s); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if got := p99.of(s); !math.IsNaN(got) {
		t.Errorf("a percentile that was not measured is %v", got)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verdicts []verdict
		want     string
	}{
		{[]verdict{held, shown, skipped}, ""},
		{[]verdict{held, missed, failing}, "bounds missed: 2"},
		{[]verdict{skipped, skipped}, "nothing could be measured"},
		{nil, "nothing could be measured"},
	} {
		var rows []row
		for _, v := range test.verdicts {
			rows = append(rows, row{verdict: v})
		}
		err := judge(rows)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.verdicts, err, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	s := &session{stderr: &bytes.Buffer{}}
	add := func(section, title string, f figure, r ratios, v verdict, note string) {
		s.rows = append(s.rows, row{section, title + ": " + f.name, r, f.format, f.bound, v, note})
	}
	const note = "errors on one side"
	add("cost", "generator", generatorCost.in(atMost(0.85)), ratios{0.79, 0.771, 0.8123, 8.91, 7.02}, held, "")
	add("cost", "generator (control)", generatorCost, ratios{1.01, 0.99, 1.03, 8.91, 8.95}, shown, "")
	add("pinned", "both", meanLatency.in(within(0.95, 1.05)), ratios{1.0512, 0.98, 1.1, 998.2, 1049}, missed, note)
	add("pinned", "both", proxyBusy, ratios{1, 0.9, 1.1, 97, 98}, shown, note)
	s.skip("straight", "-t1 -c10000", "the limit on open files is 1024 (ulimit -n)")
	add("bytes", "generator", answerSize, ratios{1, 1, 1, 176, 176}, held, "")
	var out bytes.Buffer
	if err := writeTable(&out, s.rows); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", out.String())
}

func TestPickTwo(t *testing.T) {
	t.Parallel()
	cpu := func(id int, siblings ...int) machine.LogicalCPU {
		return machine.LogicalCPU{ID: id, Siblings: siblings}
	}
	for name, test := range map[string]struct {
		cpus []machine.LogicalCPU
		want []int
	}{
		"one":                {[]machine.LogicalCPU{cpu(0, 0)}, nil},
		"two cores":          {[]machine.LogicalCPU{cpu(0, 0), cpu(1, 1)}, []int{0, 1}},
		"two threads":        {[]machine.LogicalCPU{cpu(0, 0, 1), cpu(1, 0, 1)}, []int{0, 1}},
		"neighbours":         {[]machine.LogicalCPU{cpu(0, 0, 1), cpu(1, 0, 1), cpu(2, 2, 3), cpu(3, 2, 3)}, []int{0, 2}},
		"a part of the CPUs": {[]machine.LogicalCPU{cpu(5, 1, 5), cpu(7, 3, 7)}, []int{5, 7}},
	} {
		if got := pickTwo(test.cpus); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestRoundsFor(t *testing.T) {
	t.Parallel()
	const µs = time.Microsecond
	for _, test := range []struct {
		want, bare, probed time.Duration
		rounds             int
	}{
		{30 * µs, 15 * µs, 30 * µs, 100},
		{30 * µs, 15 * µs, 25 * µs, 150},
		{30 * µs, 30 * µs, 45 * µs, 0},
		{30 * µs, 40 * µs, 90 * µs, 0},
	} {
		rounds, err := roundsFor(test.want, test.bare, test.probed)
		if err != nil || rounds != test.rounds {
			t.Errorf("%+v: %d rounds, %v", test, rounds, err)
		}
	}
	if _, err := roundsFor(30*µs, 15*µs, 15*µs); err == nil {
		t.Error("no error where the work costs nothing")
	}
}
