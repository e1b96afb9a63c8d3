package bench

import (
	"slices"
	"strings"
	"testing"

	"armrepro/bench/load"
)

// goodResult is one that nothing speaks against.
func goodResult() *Result {
	workers := 1
	r := &Result{
		Settings: Settings{Connections: 16, Threads: 2, Runs: 2, Workers: 1},
		Gateway:  GatewayInfo{Workers: &workers},
	}
	s := ScenarioResult{Name: "one"}
	for range 2 {
		run := testRun(1000)
		run.Busy = ptr(0.3)
		run.CPU.Gateway, run.CPU.GatewayWait = ptr(0.95), ptr(0.02)
		s.add(run)
	}
	r.Scenarios = append(r.Scenarios, s)
	control := testRun(4000)
	r.Control = &control
	return r
}

func ptr[T any](v T) *T { return &v }

func TestJudge(t *testing.T) {
	t.Parallel()
	run := func(r *Result) *Run { return &r.Scenarios[0].Runs[0] }
	for _, tt := range []struct {
		name    string
		change  func(r *Result)
		code    string
		verdict Verdict
	}{
		{"nothing", func(*Result) {}, "", Valid},
		{"status errors", func(r *Result) { run(r).Errors.Status = 1 }, RunErrors, Invalid},
		{"timeouts", func(r *Result) { run(r).Errors.Timeout = 1 }, RunErrors, Invalid},
		{"read errors in the control", func(r *Result) { r.Control.Errors.Read = 1 }, RunErrors, Invalid},
		{"no answer", func(r *Result) { *run(r) = Run{Result: load.Result{Seconds: 1}} }, NothingMeasured + " " + Spread, Invalid},
		{"an idle worker", func(r *Result) { run(r).CPU.Gateway = ptr(0.5) }, GatewayIdle, Invalid},
		{"a worker idle beside its wait", func(r *Result) {
			run(r).CPU.Gateway, run(r).CPU.GatewayWait = ptr(0.5), ptr(0.1)
		}, GatewayIdle, Invalid},
		{"a worker that waits for a core", func(r *Result) {
			run(r).CPU.Gateway, run(r).CPU.GatewayWait = ptr(0.6), ptr(0.38)
		}, GatewayStarved, ValidWithWarnings},
		{"two workers of which one is idle", func(r *Result) {
			r.Gateway.Workers, r.Settings.Workers = ptr(2), 2
		}, GatewayIdle, Invalid},
		{"no CPU figures", func(r *Result) {
			run(r).CPU = CPU{}
			r.Scenarios[0].Runs[1].CPU = CPU{}
		}, "", Valid},
		{"a busy generator", func(r *Result) { run(r).Busy = ptr(0.95) }, GeneratorBusy, ValidWithWarnings},
		{"an upstream that is hardly faster", func(r *Result) { *r.Control = testRun(1200) }, UpstreamCeiling, ValidWithWarnings},
		{"latency that contradicts QPS", func(r *Result) { run(r).Latency.Mean, run(r).Seconds = ptr(12000.0), 10 }, LittlesLaw, ValidWithWarnings},
		{"latency that contradicts QPS, in too short a run", func(r *Result) {
			run(r).Latency.Mean, run(r).Seconds = ptr(12000.0), 1
		}, "", Valid},
		{"a generator that was busy for a moment", func(r *Result) { run(r).Busy, run(r).Seconds = ptr(0.95), 0.1 }, "", Valid},
		{"a rate that was reached as soon as all connections were open", func(r *Result) {
			run(r).Rate, run(r).Latency.MeanWrk = run(r).QPS*1.04, nil
		}, "", Valid},
		{"a rate that was not reached", func(r *Result) {
			run(r).Rate, run(r).Unsent = run(r).QPS*1.04, uint64(run(r).QPS*run(r).Seconds/20)
		}, RateMissed, ValidWithWarnings},
		{"many reconnects", func(r *Result) { run(r).Reconnects = 11 }, ManyReconnects, ValidWithWarnings},
		{"nginx's own reconnects", func(r *Result) { run(r).Reconnects = 2 }, "", Valid},
		{"runs that differ", func(r *Result) {
			s := ScenarioResult{Name: "one"}
			for _, qps := range []float64{1000, 1100} {
				next := testRun(qps)
				next.CPU.Gateway = ptr(0.95)
				s.add(next)
			}
			r.Scenarios[0] = s
		}, Spread, ValidWithWarnings},
		{"a run with a stall", func(r *Result) { run(r).Latency.MeanWrk = ptr(20000.0) }, Spread, ValidWithWarnings},
		{"more connections than the pool", func(r *Result) {
			r.Settings.Connections = 400
			for i := range r.Scenarios[0].Runs {
				r.Scenarios[0].Runs[i].Latency.Mean = ptr(400000.0)
			}
			r.Control.Latency.Mean = ptr(100000.0)
		}, KeepalivePool, ValidWithWarnings},
		{"a busy generator in the sweep", func(r *Result) {
			busy := r.Scenarios[0].Runs[0]
			busy.Busy = ptr(0.95)
			r.Scenarios[0].Sweep = []SweepRun{{Share: 0.5, Run: busy}}
		}, GeneratorBusy, ValidWithWarnings},
		{"a busy generator in the control", func(r *Result) { r.Control.Busy = ptr(1.0) }, "", Valid},
		{"one run, no control", func(r *Result) {
			r.Scenarios[0].Runs = r.Scenarios[0].Runs[:1]
			r.Control = nil
		}, "", Valid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := goodResult()
			tt.change(r)
			r.Judge(false)
			var codes []string
			for _, w := range r.Warnings {
				codes = append(codes, w.Code)
				if w.Text == "" || w.Hint == "" {
					t.Errorf("%s has no text or no hint", w.Code)
				}
			}
			if got := strings.Join(codes, " "); got != tt.code {
				t.Errorf("warnings %q, want %q", got, tt.code)
			}
			if r.Verdict != tt.verdict {
				t.Errorf("verdict %s, want %s", r.Verdict, tt.verdict)
			}
		})
	}
}

func TestJudgeInterrupted(t *testing.T) {
	t.Parallel()
	r := goodResult()
	r.Control = nil
	r.Judge(true)
	if r.Verdict != Interrupted {
		t.Errorf("verdict %s, want %s", r.Verdict, Interrupted)
	}
	r.Warn(Warning{Code: "x", Invalid: true})
	r.Judge(true)
	if r.Verdict != Invalid {
		t.Errorf("verdict %s, want %s: errors stay errors", r.Verdict, Invalid)
	}
}

func TestAverages(t *testing.T) {
	t.Parallel()
	// The published table of the OCI post: 15640.38 and 15550.03 average to
	// 15595.205, 1.02 ms and 1.03 ms to 1.025 ms.
	var s ScenarioResult
	for _, v := range [][2]float64{{15640.38, 1020}, {15550.03, 1030}} {
		run := testRun(v[0])
		run.Latency.MeanWrk = &v[1]
		s.add(run)
	}
	if *s.QPS != 15595.205 || *s.LatencyMs != 1.025 {
		t.Errorf("averages %v and %v, want 15595.205 and 1.025", *s.QPS, *s.LatencyMs)
	}
	s.add(Run{})
	if s.LatencyMs != nil {
		t.Error("a run without a latency has one in the average")
	}
}

func TestWarnOnce(t *testing.T) {
	t.Parallel()
	r := &Result{}
	r.Warn(Warning{Code: "a", Text: "first"})
	r.Warn(Warning{Code: "a", Text: "second"})
	if !slices.Equal(r.Warnings, []Warning{{Code: "a", Text: "first"}}) {
		t.Errorf("warnings %v", r.Warnings)
	}
}
