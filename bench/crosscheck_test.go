package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"armrepro/bench/load"
)

// otherGenerator answers always alike.
type otherGenerator struct {
	log *[]string
	run Run
	err error
}

func (g otherGenerator) Load(_ context.Context, cfg load.Config, on Observer) (Run, error) {
	*g.log = append(*g.log, "other "+cfg.URL+" for "+cfg.Duration.String())
	on.Started()
	// Some CPU time has to pass for the clocks to show.
	for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
	}
	on.Ended()
	return g.run, g.err
}

// crossChecked is a measurement in which the other generator does that.
func crossChecked(t *testing.T, run Run, err error) (*Result, []string, error) {
	var log []string
	cfg, _, _ := testConfig(&log)
	cfg.Settings.Sweep = []float64{0.5}
	cfg.CrossCheck = otherGenerator{&log, run, err}
	result := &Result{Settings: cfg.Settings, Tools: Tools{CrossCheck: &External{Name: "wrk"}}}
	err = Measure(t.Context(), cfg, result)
	return result, log, err
}

// TestCrossCheck measures with the other generator after the runs of each scenario,
// before the sweep, and keeps that out of the averages.
func TestCrossCheck(t *testing.T) {
	t.Parallel()
	result, log, err := crossChecked(t, testRun(800), nil)
	if err != nil {
		t.Fatal(err)
	}
	const own, other = "load http://127.0.0.1:9080/hello for 1m0s", "other http://127.0.0.1:9080/hello for 1m0s"
	if !slices.Equal(log[2:6], []string{own, own, other, own + " at 500/s"}) {
		t.Errorf("did\n%s", strings.Join(log, "\n"))
	}
	for _, s := range result.Scenarios {
		if s.CrossCheck == nil || s.CrossCheck.Run.QPS != 800 || len(s.Runs) != 2 || *s.QPS != 1000 || *s.LatencyMs != 16.5 {
			t.Errorf("%+v", s)
		}
	}
	if gateway := result.Scenarios[0].CrossCheck.Run.CPU.Gateway; gateway == nil || *gateway <= 0 {
		t.Error("the gateway's CPU time in the cross-check is missing")
	}
}

func TestCrossCheckCut(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	result, _, err := crossChecked(t, testRun(500), boom)
	if s := result.Scenarios[0]; !errors.Is(err, boom) || s.CrossCheck == nil || !s.CrossCheck.Run.Cut || *s.QPS != 1000 {
		t.Errorf("%v, %+v", err, s)
	}
	if result.Judge(1); result.Verdict != Interrupted || result.Scenarios[0].CrossCheck.QPSRatio != nil {
		t.Errorf("%s, ratio %v", result.Verdict, result.Scenarios[0].CrossCheck.QPSRatio)
	}
}

// TestJudgeCrossCheck has something speak against the cross-check, or against the
// result.
func TestJudgeCrossCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		change   func(r *Result, check *Run)
		codes    string
		verdict  Verdict
		compared bool
	}{
		{"nothing", func(*Result, *Run) {}, "", Valid, true},
		{"errors", func(_ *Result, check *Run) { check.Errors.Read = 1 }, CrossChecked, ValidWithWarnings, false},
		{"other processes", func(_ *Result, check *Run) {
			check.CPU.GatewayWait, check.CPU.Others = ptr(0.3), ptr(0.5)
		}, CrossChecked, ValidWithWarnings, false},
		{"no answer", func(_ *Result, check *Run) { check.Requests, check.QPS = 0, 0 }, CrossChecked, ValidWithWarnings, false},
		{"a busy generator", func(_ *Result, check *Run) { check.CPU.Load = ptr(1.95) }, "", Valid, true},
		{"an invalid result", func(r *Result, _ *Run) { r.Scenarios[0].Runs[0].Errors.Status = 1 }, RunErrors, Invalid, false},
		{"none, though one was asked for", func(r *Result, _ *Run) { r.Scenarios[0].CrossCheck = nil }, "", Interrupted, false},
	} {
		r := goodResult()
		run := r.Scenarios[0].Runs[0]
		run.QPS, run.Latency.Mean, run.Latency.MeanWrk = 800, nil, ptr(15000.0)
		run.Reconnects, run.Busy = nil, nil
		check := &CrossCheck{Run: run}
		r.Tools.CrossCheck = &External{Name: "wrk"}
		r.Scenarios[0].CrossCheck = check
		tt.change(r, &check.Run)
		r.Judge(1)
		var codes []string
		for _, w := range r.Warnings {
			codes = append(codes, w.Code)
			if w.Code == CrossChecked && (w.Invalid || w.Disturbed || !strings.HasPrefix(w.Text, "one, cross-check: ")) {
				t.Errorf("%s: %+v", tt.name, w)
			}
		}
		if got := strings.Join(codes, " "); got != tt.codes || r.Verdict != tt.verdict {
			t.Errorf("%s: %q and %s, want %q and %s", tt.name, got, r.Verdict, tt.codes, tt.verdict)
		}
		if (check.QPSRatio != nil) != tt.compared || (check.LatencyRatio != nil) != tt.compared {
			t.Errorf("%s: ratios %v and %v", tt.name, check.QPSRatio, check.LatencyRatio)
		}
		if tt.compared && (*check.QPSRatio != 1.25 || *check.LatencyRatio != 1.1) {
			t.Errorf("%s: ratios %v and %v, want 1.25 and 1.1", tt.name, *check.QPSRatio, *check.LatencyRatio)
		}
	}
}

// TestCrossCheckOfStarts compares the cross-check with the runs of its own start.
func TestCrossCheckOfStarts(t *testing.T) {
	t.Parallel()
	whole := &Result{Settings: goodResult().Settings, Gateway: goodResult().Gateway, Control: goodResult().Control}
	whole.Settings.Restarts = 2
	for _, qps := range []float64{1000, 1500} {
		session := goodResult()
		rerun(session, qps, qps)
		if len(whole.Starts) == 0 {
			session.Tools.CrossCheck = &External{Name: "wrk"}
			check := session.Scenarios[0].Runs[0]
			check.QPS = 800
			session.Scenarios[0].CrossCheck = &CrossCheck{Run: check}
		}
		session.Judge(1)
		whole.AddStart(session)
	}
	whole.Judge(1)
	s := whole.Scenarios[0]
	if *s.QPS != 1250 || s.CrossCheck == nil || s.CrossCheck.QPSRatio == nil || *s.CrossCheck.QPSRatio != 1.25 {
		t.Errorf("%v requests/s, %+v", *s.QPS, s.CrossCheck)
	}
}

// TestWithoutFigures judges runs of a generator that tells less.
func TestWithoutFigures(t *testing.T) {
	t.Parallel()
	r := goodResult()
	for i := range r.Scenarios[0].Runs {
		run := &r.Scenarios[0].Runs[i]
		run.Reconnects, run.Busy, run.Latency.Mean = nil, nil, nil
	}
	r.Judge(1)
	var codes []string
	for _, u := range r.Unchecked {
		codes = append(codes, u.Code)
	}
	if r.Verdict != Valid || !slices.Contains(codes, ManyReconnects) || !slices.Contains(codes, LittlesLaw) {
		t.Errorf("%s, not checked: %q", r.Verdict, codes)
	}
	// Its two threads had nothing left of two cores.
	r.Scenarios[0].Runs[0].CPU.Load = ptr(1.9)
	if r.Judge(1); len(r.Warnings) != 1 || r.Warnings[0].Code != GeneratorBusy {
		t.Errorf("%+v", r.Warnings)
	}
}
