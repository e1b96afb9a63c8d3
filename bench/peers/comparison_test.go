package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"armrepro/bench/load"
)

// fakeSide records its runs in calls and measures what it is told to.
func fakeSide(name string, calls *[]string, rates ...float64) side {
	return func(_ context.Context, d time.Duration) (sample, error) {
		*calls = append(*calls, name+" "+d.String())
		rate := rates[0]
		// The warm-up uses none.
		if d > warmUp {
			rates = append(rates[1:], rate)
		}
		return sample{output: output{requests: 100, qps: rate}}, nil
	}
}

func newComparison(calls *[]string, b bound) comparison {
	return comparison{
		section: "cost", title: "generator", pairs: 3, duration: 2 * time.Second,
		peer:    fakeSide("peer", calls, 100, 200, 400),
		own:     fakeSide("own", calls, 90, 240, 400),
		figures: []figure{requestRate(b)},
	}
}

func TestComparison(t *testing.T) {
	t.Parallel()
	var (
		calls    []string
		progress bytes.Buffer
	)
	s := &session{opts: options{slack: 1, control: true}, stderr: &progress}
	c := newComparison(&calls, atLeast(1))
	if err := s.compare(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(
		[]string{"peer 1s", "own 1s"}, slices.Repeat([]string{"peer 2s", "own 2s"}, 3),
		[]string{"peer 1s", "peer 1s"}, slices.Repeat([]string{"peer 2s", "peer 2s"}, 3),
	)
	if !slices.Equal(calls, want) {
		t.Errorf("runs %q, want %q", calls, want)
	}
	if len(s.rows) != 2 {
		t.Fatalf("%d rows", len(s.rows))
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
	if !strings.Contains(progress.String(), "cost, generator: pair 2 of 3: requests/s 1.200") {
		t.Errorf("progress:\n%s", progress.String())
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	timeouts := load.Errors{Timeout: 2}
	for name, test := range map[string]struct {
		bound     bound
		slack     float64
		peer, own load.Errors
		want      verdict
		note      string
	}{
		"held":        {bound: atLeast(1), slack: 1, want: held},
		"missed":      {bound: atLeast(1.1), slack: 1, want: missed},
		"slack":       {bound: atLeast(1.1), slack: 1.5, want: held},
		"shown":       {slack: 1, want: shown},
		"peer errors": {bound: atLeast(1), slack: 1, peer: timeouts, want: held, note: "on the left: timeout 6; on the right: none"},
		"own errors":  {bound: atLeast(1), slack: 1, own: load.Errors{Read: 1, Status: 4}, want: failing, note: "on the left: none; on the right: read 3, status 12"},
		"both":        {bound: atLeast(1.1), slack: 1, peer: timeouts, own: timeouts, want: missed, note: "on the left: timeout 6"},
	} {
		var calls []string
		c := newComparison(&calls, test.bound)
		peer := sample{output: output{requests: 1, qps: 100, errors: test.peer}}
		own := sample{output: output{requests: 1, qps: 100, errors: test.own}}
		rows, err := c.rows(slices.Repeat([]sample{peer}, 3), slices.Repeat([]sample{own}, 3), test.slack)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rows[0].verdict != test.want || !strings.Contains(rows[0].note, test.note) || (rows[0].note == "") != (test.note == "") {
			t.Errorf("%s: %q with note %q, want %q with %q", name, rows[0].verdict, rows[0].note, test.want, test.note)
		}
	}
}

func TestComparisonFails(t *testing.T) {
	t.Parallel()
	var calls []string
	s := &session{opts: options{slack: 1}, stderr: &bytes.Buffer{}}
	c := newComparison(&calls, atLeast(1))
	c.own = fakeSide("own", &calls, 0)
	c.peer = fakeSide("peer", &calls, 0)
	if err := s.compare(t.Context(), c); err == nil || !strings.Contains(err.Error(), "cost, generator: requests/s") {
		t.Errorf("nothing measured: %v", err)
	}
	broken := errors.New("broken")
	c.own = func(context.Context, time.Duration) (sample, error) { return sample{}, broken }
	if err := s.compare(t.Context(), c); !errors.Is(err, broken) {
		t.Errorf("a run failed: %v", err)
	}
	if len(s.rows) != 0 {
		t.Errorf("rows: %+v", s.rows)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := sample{
		output:       output{requests: 1000, qps: 500, mean: 1234},
		counts:       exact{Requests: 10, Bytes: 1765},
		generatorCPU: 8 * time.Millisecond, upstreamCPU: 7 * time.Millisecond, proxyCPU: time.Second,
	}
	for _, test := range []struct {
		figure figure
		value  float64
		text   string
	}{
		{requestRate(bound{}), 500, "500"},
		{meanLatency(bound{}), 1234, "1.234 ms"},
		{generatorCost(bound{}), 8, "8.00 µs"},
		{upstreamCost(bound{}), 7, "7.00 µs"},
		// 1000 requests at 500/s are two seconds.
		{proxyBusy(), 0.5, "50%"},
		{answerSize(bound{}), 176.5, "176.5 B"},
	} {
		value := test.figure.of(s)
		if value != test.value || test.figure.format(value) != test.text {
			t.Errorf("%s: %v as %q, want %v as %q", test.figure.name, value, test.figure.format(value), test.value, test.text)
		}
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

func TestIdleProxy(t *testing.T) {
	t.Parallel()
	// A second of 100 requests in which the proxy used so much.
	busy := func(share float64) []sample {
		return []sample{{output: output{requests: 100, qps: 100}, proxyCPU: time.Duration(share * float64(time.Second))}}
	}
	if note := idleProxy(busy(0.95), busy(0.97)); note != "" {
		t.Errorf("a busy proxy: %q", note)
	}
	for _, sides := range [][2]float64{{0.95, 0.8}, {0.8, 0.95}} {
		if note := idleProxy(busy(sides[0]), busy(sides[1])); !strings.Contains(note, "only 80% busy") {
			t.Errorf("%v: %q", sides, note)
		}
	}
	var calls []string
	c := newComparison(&calls, atLeast(1))
	c.remark = idleProxy
	rows, err := c.rows(
		[]sample{{output: output{requests: 1, qps: 1, errors: load.Errors{Read: 1}}}},
		[]sample{{output: output{requests: 1, qps: 1}}}, 1)
	if err != nil || rows[0].note != "errors on the left: read 1; on the right: none; "+idleProxy(busy(0), busy(0)) {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestOutOfReach(t *testing.T) {
	t.Parallel()
	s := &session{openFiles: 10100, ephemeral: portRange{32768, 60999}}
	if why := s.outOfReach(10000); why != "" {
		t.Errorf("10000 connections: %s", why)
	}
	if why := s.outOfReach(10001); !strings.Contains(why, "open files is 10100") {
		t.Errorf("too many for the limit: %q", why)
	}
	s.ephemeral.high = s.ephemeral.low + 999
	if why := s.outOfReach(1000); !strings.Contains(why, "only 1000 ports") {
		t.Errorf("too many for the ports: %q", why)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	s := &session{stderr: &bytes.Buffer{}}
	s.rows = []row{
		{
			section: "cost", name: "generator: CPU per request", format: formatMicroseconds, bound: atMost(0.85),
			ratios: ratios{0.79, 0.771, 0.8123, 8.91, 7.02}, verdict: held,
		},
		{
			section: "cost", name: "generator (control): CPU per request", format: formatMicroseconds,
			ratios: ratios{1.01, 0.99, 1.03, 8.91, 8.95},
		},
		{
			section: "pinned", name: "both: mean latency", format: formatMicroseconds, bound: within(0.95, 1.05),
			ratios: ratios{1.0512, 0.98, 1.1, 998.2, 1049}, verdict: missed, note: "errors on the left: read 1; on the right: none",
		},
	}
	s.rows = append(s.rows, row{
		section: "pinned", name: "both: proxy busy", format: formatShare,
		ratios: ratios{1, 0.9, 1.1, 0.97, 0.98}, note: s.rows[2].note,
	})
	s.skip("straight", "-t1 -c10000", "the limit on open files is 1024 (ulimit -n)")
	s.rows = append(s.rows, row{
		section: "bytes", name: "generator: bytes per request", format: formatBytes, bound: exactly(),
		ratios: ratios{1, 1, 1, 176, 176}, verdict: held,
	})
	var out bytes.Buffer
	if err := writeTable(&out, s.rows); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", out.String())
}
