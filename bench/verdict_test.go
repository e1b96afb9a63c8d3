package bench

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"armrepro/bench/load"
)

// goodResult is one that nothing speaks against.
func goodResult() *Result {
	workers := 1
	r := &Result{
		Settings: Settings{DurationS: 60, Connections: 16, Threads: 2, Runs: 2, Workers: 1},
		Gateway:  GatewayInfo{Workers: &workers},
	}
	s := ScenarioResult{Name: "one"}
	for range 2 {
		run := testRun(1000)
		run.Busy = ptr(0.3)
		run.CPU = CPU{Gateway: ptr(0.95), GatewayWait: ptr(0.02), Upstream: ptr(0.3), Load: ptr(0.3), Etcd: ptr(0.0), Others: ptr(0.01)}
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
		{"no answer", func(r *Result) { *run(r) = Run{Result: load.Result{Seconds: 1}} }, NothingMeasured, Invalid},
		{"runs of a few requests that differ", func(r *Result) {
			*run(r) = Run{Result: load.Result{Requests: 6, Seconds: 60, QPS: 0.1, Rate: 0.12}}
			r.Scenarios[0].Runs[1] = Run{Result: load.Result{Requests: 9, Seconds: 60, QPS: 0.15, Rate: 0.12}}
		}, FewRequests, ValidWithWarnings},
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
		{"two workers of which one has little to do", func(r *Result) {
			r.Gateway.Workers, r.Settings.Workers = ptr(2), 2
			for i := range r.Scenarios[0].Runs {
				r.Scenarios[0].Runs[i].CPU.Gateway = ptr(1.5)
			}
			run(r).CPU.Workers = []float64{0.95, 0.55}
		}, UnevenWorkers, ValidWithWarnings},
		{"further connections", func(r *Result) {
			// 1000 requests/s of 64 ms each.
			further := testRun(1000)
			further.Seconds, further.Requests, further.UpstreamAnswers = 10, 10000, ptr(uint64(10000))
			further.Latency.Mean = ptr(64e3)
			r.Scenarios[0].Concurrency = []ConcurrencyRun{{Connections: 64, Run: further}}
		}, "", Valid},
		{"further connections whose figures don't fit together", func(r *Result) {
			further := testRun(1000)
			further.Seconds, further.Requests, further.UpstreamAnswers = 10, 10000, ptr(uint64(10000))
			r.Scenarios[0].Concurrency = []ConcurrencyRun{{Connections: 64, Run: further}}
		}, LittlesLaw, ValidWithWarnings},
		{"further connections that are missing", func(r *Result) { r.Settings.Concurrency = []int{64} }, "", Interrupted},
		{"further workers that are missing", func(r *Result) { r.Settings.Scaling = []int{2} }, "", Interrupted},
		{"no CPU figures", func(r *Result) { run(r).CPU, r.Scenarios[0].Runs[1].CPU = CPU{}, CPU{} }, "", Valid},
		{"a wait for others on shared cores", func(r *Result) {
			run(r).CPU.Gateway, run(r).CPU.GatewayWait, run(r).CPU.Others = ptr(0.8), ptr(0.15), ptr(0.5)
		}, GatewayDisturbed, Disturbed},
		{"a wait for the run's own upstream and generator", func(r *Result) {
			run(r).CPU.Gateway, run(r).CPU.GatewayWait, run(r).CPU.Others = ptr(0.8), ptr(0.15), ptr(0.05)
		}, "", Valid},
		{"a wait for others on a core of its own", func(r *Result) {
			r.Settings.Pins = &Pins{Gateway: "3"}
			run(r).CPU.GatewayWait, run(r).CPU.Others = ptr(0.06), ptr(0.07)
		}, GatewayDisturbed, Disturbed},
		{"a wait longer than others ran", func(r *Result) {
			r.Settings.Pins = &Pins{Gateway: "3"}
			run(r).CPU.GatewayWait, run(r).CPU.Others = ptr(0.06), ptr(0.04)
		}, "", Valid},
		{"a wait for others at a fixed rate", func(r *Result) {
			run(r).Rate, run(r).CPU.GatewayWait, run(r).CPU.Others = 1000, ptr(0.15), ptr(0.5)
		}, GatewayDisturbed, Disturbed},
		{"a wait for others in the sweep", func(r *Result) {
			point := *run(r)
			point.CPU.GatewayWait, point.CPU.Others = ptr(0.15), ptr(0.5)
			r.Scenarios[0].Sweep = []SweepRun{{Share: 0.5, Run: point}}
		}, GatewayDisturbed, Disturbed},
		{"a wait for whom nobody knows", func(r *Result) {
			run(r).CPU.Gateway, run(r).CPU.GatewayWait, run(r).CPU.Others = ptr(0.8), ptr(0.15), nil
		}, "", Valid},
		{"a worker of two that wait for each other", func(r *Result) {
			r.Gateway.Workers, r.Settings.Workers = ptr(2), 2
			for i := range r.Scenarios[0].Runs {
				cpu := &r.Scenarios[0].Runs[i].CPU
				cpu.Gateway, cpu.GatewayWait, cpu.Others = ptr(1.4), ptr(0.5), ptr(0.1)
			}
		}, GatewayStarved, ValidWithWarnings},
		{"an upstream that answered less than came back", func(r *Result) { run(r).UpstreamAnswers = ptr(uint64(999)) }, UpstreamUnseen, Invalid},
		{"an upstream that answered nothing of the straight run", func(r *Result) { r.Control.UpstreamAnswers = ptr(uint64(0)) }, UpstreamUnseen, Invalid},
		{"errors that the gateway gave itself", func(r *Result) {
			run(r).Errors.Status, run(r).UpstreamAnswers = 400, ptr(uint64(600))
		}, RunErrors, Invalid},
		{"answers under way at the end", func(r *Result) { run(r).UpstreamAnswers = ptr(uint64(1016)) }, "", Valid},
		{"an upstream that somebody else uses", func(r *Result) { run(r).UpstreamAnswers = ptr(uint64(1100)) }, UpstreamShared, ValidWithWarnings},
		{"answers to requests that were sent again", func(r *Result) {
			run(r).Reconnects, run(r).UpstreamAnswers = ptr(uint64(100)), ptr(uint64(1110))
		}, ManyReconnects, ValidWithWarnings},
		{"an upstream that doesn't count", func(r *Result) { run(r).UpstreamAnswers, r.Control.UpstreamAnswers = nil, nil }, "", Valid},
		{"a short run", func(r *Result) { r.Settings.DurationS = 1 }, ShortRun, ValidWithWarnings},
		{"a run of no length", func(r *Result) { r.Settings.DurationS = 0.1 }, ShortRun, Invalid},
		{"a run that was cut short", func(r *Result) { cut(r, 500) }, "", Interrupted},
		{"no run without the gateway", func(r *Result) { r.Control = nil }, NoCeiling, ValidWithWarnings},
		{"a run without the gateway that was cut short", func(r *Result) {
			r.Control.Cut, r.Control.QPS, r.Control.Requests = true, 10, 0
		}, NoCeiling, ValidWithWarnings},
		{"a sweep that was cut short", func(r *Result) { r.Settings.Sweep = []float64{0.5} }, "", Interrupted},
		{"one scenario of two", func(r *Result) { r.Scenarios = r.Scenarios[:0] }, "", Interrupted},
		{"one scenario of two, with errors in the other", func(r *Result) {
			r.Settings.Runs, run(r).Errors.Status = 3, 1
		}, RunErrors, Invalid},
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
		{"many reconnects", func(r *Result) { run(r).Reconnects = ptr(uint64(11)) }, ManyReconnects, ValidWithWarnings},
		{"nginx's own reconnects", func(r *Result) { run(r).Reconnects = ptr(uint64(2)) }, "", Valid},
		{"two runs that differ", func(r *Result) { rerun(r, 1000, 1090) }, RunsDiffer, ValidWithWarnings},
		{"two runs that differ by more than can be told apart", func(r *Result) { rerun(r, 1000, 1110) }, RunsDiffer, Disturbed},
		{"three runs of which one differs", func(r *Result) { r.Settings.Runs = 3; rerun(r, 1000, 1010, 1310) }, RunsDiffer, ValidWithWarnings},
		{"two runs of three that differ", func(r *Result) { r.Settings.Runs = 3; rerun(r, 1000, 1310) }, RunsDiffer, Interrupted},
		{"a run with a stall", func(r *Result) { run(r).Latency.MeanWrk = ptr(20000.0) }, RunsDiffer, ValidWithWarnings},
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
		{"one run", func(r *Result) {
			r.Settings.Runs, r.Scenarios[0].Runs = 1, r.Scenarios[0].Runs[:1]
		}, OneRun, ValidWithWarnings},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := goodResult()
			tt.change(r)
			r.Judge(1)
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

// cut adds a run that was stopped.
func cut(r *Result, qps float64) {
	run := testRun(qps)
	run.Cut, run.Errors.Read = true, 3
	s := &r.Scenarios[0]
	s.Runs = s.Runs[:1]
	s.add(run)
}

// rerun replaces the runs by ones that only differ in QPS.
func rerun(r *Result, qps ...float64) {
	s := ScenarioResult{Name: "one"}
	for _, v := range qps {
		next := testRun(v)
		next.CPU = r.Scenarios[0].Runs[0].CPU
		s.add(next)
	}
	r.Scenarios[0] = s
}

// TestUnchecked says what could not be judged.
func TestUnchecked(t *testing.T) {
	t.Parallel()
	r := goodResult()
	for i := range r.Scenarios[0].Runs {
		run := &r.Scenarios[0].Runs[i]
		run.CPU.Others, run.UpstreamAnswers = nil, nil
	}
	r.Judge(1)
	var codes []string
	for _, u := range r.Unchecked {
		codes = append(codes, u.Code)
	}
	if want := []string{UpstreamUnseen, GatewayDisturbed}; !slices.Equal(codes, want) {
		t.Errorf("unchecked %q, want %q", codes, want)
	}
}

// TestStatistics leaves out what was cut.
func TestStatistics(t *testing.T) {
	t.Parallel()
	run := func(qps float64, cut bool) Run {
		r := testRun(qps)
		r.Cut = cut
		return r
	}
	silent := Run{Result: load.Result{Seconds: 1}}
	for _, tt := range []struct {
		name        string
		runs        []Run
		qps, spread *float64
		latency     bool
	}{
		{"none", nil, nil, nil, false},
		{"only one that was cut", []Run{run(5, true)}, nil, nil, false},
		{"one", []Run{run(100, false)}, ptr(100.0), nil, true},
		{"two", []Run{run(100, false), run(300, false)}, ptr(200.0), ptr(1.0), true},
		{"two and one that was cut", []Run{run(100, false), run(300, false), run(5, true)}, ptr(200.0), ptr(1.0), true},
		{"one without a latency", []Run{run(100, false), silent}, ptr(50.0), ptr(2.0), false},
	} {
		var s ScenarioResult
		for _, r := range tt.runs {
			s.add(r)
		}
		if !reflect.DeepEqual(s.QPS, tt.qps) || !reflect.DeepEqual(Spread(s.Runs, (*Run).Throughput), tt.spread) || (s.LatencyMs != nil) != tt.latency {
			t.Errorf("%s: QPS %v, spread %v, latency %v", tt.name, s.QPS, Spread(s.Runs, (*Run).Throughput), s.LatencyMs)
		}
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
