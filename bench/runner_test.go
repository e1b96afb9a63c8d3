package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"armrepro/bench/fitness"
	"armrepro/bench/load"
	"armrepro/proxycheck/process"
)

// fakeGateway notes what is asked of it.
type fakeGateway struct {
	log        *[]string
	workers    [][]int // one answer after the other, the last one again
	workersErr error
	applyErr   error
	countedErr error
}

func (g *fakeGateway) URL() string { return "http://127.0.0.1:9080" }

func (g *fakeGateway) Apply(_ context.Context, s Scenario) error {
	*g.log = append(*g.log, "apply "+s.Name)
	return g.applyErr
}

func (g *fakeGateway) Counted(_ context.Context, metric string, requests uint64) error {
	*g.log = append(*g.log, fmt.Sprintf("%s counted %d", metric, requests))
	return g.countedErr
}

func (g *fakeGateway) Workers() ([]int, error) {
	pids := g.workers[0]
	if len(g.workers) > 1 {
		g.workers = g.workers[1:]
	}
	return pids, g.workersErr
}

// fakeGenerator answers with QPS 1000 and notes what it was asked for.
type fakeGenerator struct {
	log   *[]string
	calls int
	// failAt is the call that fails, counting from 1; partial is what it
	// measured until then.
	failAt  int
	err     error
	partial Run
	// silent has nothing answered.
	silent bool
}

func (g *fakeGenerator) Load(_ context.Context, cfg load.Config, on Observer) (Run, error) {
	g.calls++
	entry := fmt.Sprintf("load %s for %s", cfg.URL, cfg.Duration)
	if cfg.Rate > 0 {
		entry += fmt.Sprintf(" at %g/s", cfg.Rate)
	}
	*g.log = append(*g.log, entry)
	on.Started()
	on.Progress(1)
	// Some CPU time has to pass for the clocks to show.
	for begin := time.Now(); time.Since(begin) < 2*time.Millisecond; {
	}
	on.Ended()
	if g.calls == g.failAt {
		return g.partial, g.err
	}
	if g.silent {
		return Run{Result: load.Result{Seconds: 1}}, nil
	}
	run := testRun(1000)
	run.CPU.Load = ptr(0.0)
	return run, nil
}

func testRun(qps float64) Run {
	mean, wrk := 16000.0*1000/qps, 16500.0*1000/qps
	answers := uint64(qps)
	return Run{UpstreamAnswers: &answers, Result: load.Result{
		Requests: answers, Seconds: 1, QPS: qps, Reconnects: new(uint64),
		Latency: load.Latency{Mean: &mean, MeanWrk: &wrk},
	}}
}

type silent struct{}

func (silent) Begin(string, time.Duration) {}
func (silent) Update(uint64)               {}
func (silent) End(*Run)                    {}

func testConfig(log *[]string) (Config, *fakeGateway, *fakeGenerator) {
	gateway := &fakeGateway{log: log, workers: [][]int{{os.Getpid()}}}
	generator := &fakeGenerator{log: log}
	cpus, _ := process.AllowedCPUs(os.DirFS("/"))
	return Config{
		Settings:     Settings{DurationS: 60, WarmupS: 5, Connections: 16, Threads: 2, Runs: 2, Workers: 1, TimeoutS: 2},
		Scenarios:    []Scenario{{Name: "one", Title: "One", Path: "/hello"}, {Name: "two", Title: "Two", Path: "/hello"}},
		Gateway:      gateway,
		Generator:    generator,
		UpstreamURL:  "http://127.0.0.1:1980/hello",
		UpstreamPIDs: []int{os.Getpid()},
		EtcdEmbedded: true,
		Progress:     silent{},
		CPUs:         cpus,
		Root:         os.DirFS("/"),
	}, gateway, generator
}

func TestMeasureOrder(t *testing.T) {
	t.Parallel()
	var log []string
	cfg, _, _ := testConfig(&log)
	result := &Result{Settings: cfg.Settings}
	if err := Measure(t.Context(), cfg, result); err != nil {
		t.Fatal(err)
	}
	gateway, upstream := "load http://127.0.0.1:9080/hello for ", "load http://127.0.0.1:1980/hello for "
	want := []string{
		"apply one", gateway + "5s", gateway + "1m0s", gateway + "1m0s",
		"apply two", gateway + "5s", gateway + "1m0s", gateway + "1m0s",
		upstream + "10s",
	}
	if !slices.Equal(log, want) {
		t.Errorf("did\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
	if len(result.Scenarios) != 2 || len(result.Scenarios[0].Runs) != 2 || result.Control == nil {
		t.Fatalf("result %+v", result)
	}
	s := result.Scenarios[0]
	if *s.QPS != 1000 || *s.LatencyMs != 16.5 {
		t.Errorf("averages %v and %v, want 1000 and 16.5", *s.QPS, *s.LatencyMs)
	}
	run := s.Runs[0]
	for name, cores := range map[string]*float64{"gateway": run.CPU.Gateway, "upstream": run.CPU.Upstream, "etcd": run.CPU.Etcd} {
		if cores == nil || *cores <= 0 {
			t.Errorf("cpu of %s: %v, want more than 0", name, cores)
		}
	}
	if run.CPU.Steal == nil || run.CPU.GatewayWait == nil || run.CPU.Others == nil {
		t.Error("steal, the gateway's wait or the use of others is missing")
	}
	for name, rss := range map[string]*uint64{"gateway": run.RSS.Gateway, "upstream": run.RSS.Upstream, "etcd": run.RSS.Etcd} {
		if rss == nil || *rss == 0 {
			t.Errorf("memory of %s: %v, want more than 0", name, rss)
		}
	}
	if result.Control.CPU.Gateway != nil {
		t.Error("the control run has CPU of a gateway that it does not load")
	}
}

// TestMetric has the gateway count all requests of the scenarios that require it,
// the warm-up's too, and no others.
func TestMetric(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		countedErr error
		failAt     int
		want       string // the last entry
		verdict    Verdict
		unchecked  string
	}{
		{"counted", nil, 0, "apisix_http_status counted 3000", Valid, ""},
		{"missed", errors.New("it counted 2"), 0, "apisix_http_status counted 3000", Invalid, ""},
		{"ended early", nil, 7, "load http://127.0.0.1:1980/hello for 10s", Interrupted, MetricMissed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log []string
			cfg, gateway, generator := testConfig(&log)
			cfg.Scenarios[1].Expect.Metric = "apisix_http_status"
			gateway.countedErr = tt.countedErr
			generator.failAt, generator.err = tt.failAt, errors.New("it broke")
			result := &Result{Settings: cfg.Settings, Verdict: Valid}
			if err := Measure(t.Context(), cfg, result); (err != nil) != (tt.failAt > 0) {
				t.Errorf("error %v", err)
			}
			if last := log[len(log)-1]; last != tt.want {
				t.Errorf("it did %q last, want %q", last, tt.want)
			}
			if got := result.Standing(); tt.verdict != Interrupted && got != tt.verdict {
				t.Errorf("verdict %s, want %s", got, tt.verdict)
			}
			if found := slices.ContainsFunc(result.Unchecked, func(u fitness.Unchecked) bool { return u.Code == MetricMissed }); found != (tt.unchecked != "") {
				t.Errorf("unchecked: %v", result.Unchecked)
			}
		})
	}
}

// TestConcurrency measures on every other number of connections, once.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	var log []string
	cfg, _, _ := testConfig(&log)
	cfg.Scenarios = cfg.Scenarios[:1]
	cfg.Settings.Concurrency = []int{1, 64}
	result := &Result{Settings: cfg.Settings}
	if err := Measure(t.Context(), cfg, result); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, point := range result.Scenarios[0].Concurrency {
		got = append(got, point.Connections)
	}
	if !slices.Equal(got, cfg.Settings.Concurrency) || result.ControlOne == nil || len(result.Scenarios[0].Runs) != 2 {
		t.Errorf("measured on %v connections, control on one %v", got, result.ControlOne)
	}
	if m := result.Memory; m.Idle == nil || m.Loaded == nil || m.After != nil {
		t.Errorf("memory %+v", m)
	}
}

func TestMeasureWithoutWarmup(t *testing.T) {
	t.Parallel()
	var log []string
	cfg, _, _ := testConfig(&log)
	cfg.Settings.WarmupS = 0
	if err := Measure(t.Context(), cfg, &Result{Settings: cfg.Settings}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(log, "\n"), "for 0s") || len(log) != 7 {
		t.Errorf("did\n%s", strings.Join(log, "\n"))
	}
}

// TestRates has every load run at the rate that was asked for, or a share of what
// was measured.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings Settings
		silent   bool
		want     []string
		err      error
	}{
		{"fixed", Settings{Rate: 200}, false, []string{"5s at 200/s", "1m0s at 200/s"}, nil},
		{"share", Settings{RateShare: 0.5}, false, []string{"5s", "1m0s", "1m0s at 500/s"}, nil},
		{"sweep", Settings{Sweep: []float64{0.25, 0.5}}, false, []string{"5s", "1m0s", "1m0s at 250/s", "1m0s at 500/s"}, nil},
		{"fixed and sweep", Settings{Rate: 200, Sweep: []float64{0.25}}, false, []string{"5s at 200/s", "1m0s at 200/s", "1m0s", "1m0s at 250/s"}, nil},
		{"share of nothing", Settings{RateShare: 0.5}, true, []string{"5s", "1m0s"}, errNoMaximum},
		{"sweep of nothing", Settings{Sweep: []float64{0.25}}, true, []string{"5s", "1m0s"}, errNoMaximum},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log []string
			cfg, _, generator := testConfig(&log)
			generator.silent = tt.silent
			cfg.Scenarios = cfg.Scenarios[:1]
			cfg.Settings.Runs = 1
			cfg.Settings.Rate, cfg.Settings.RateShare, cfg.Settings.Sweep = tt.settings.Rate, tt.settings.RateShare, tt.settings.Sweep
			if err := Measure(t.Context(), cfg, &Result{Settings: cfg.Settings}); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			var got []string
			for _, entry := range log {
				if load, ok := strings.CutPrefix(entry, "load http://127.0.0.1:9080/hello for "); ok {
					got = append(got, load)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("loads %q, want %q", got, tt.want)
			}
		})
	}
}

// TestUpstreamAnswers counts what the upstream answered from before each load until
// after it.
func TestUpstreamAnswers(t *testing.T) {
	t.Parallel()
	var given uint64
	counting := func() (uint64, error) { given += 7; return given, nil }
	for _, tt := range []struct {
		name     string
		answered func() (uint64, error)
		want     *uint64
	}{
		{"counted", counting, ptr(uint64(7))},
		{"unknown", nil, nil},
		{"not answering", func() (uint64, error) { return 5, errors.New("gone") }, nil},
		{"another one by now", func() (uint64, error) { given--; return given, nil }, nil},
	} {
		var log []string
		cfg, _, _ := testConfig(&log)
		cfg.Answered = tt.answered
		result := &Result{Settings: cfg.Settings}
		if err := Measure(t.Context(), cfg, result); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, run := range append(result.Scenarios[1].Runs, *result.Control) {
			if got := run.UpstreamAnswers; (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("%s: %v answers, want %v", tt.name, got, tt.want)
			}
		}
	}
}

// TestOthers is what is left of the machine without the run's own processes.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		busy *float64
		own  []*float64
		want *float64
	}{
		{"some", ptr(2.0), []*float64{ptr(1.0), ptr(0.25)}, ptr(0.75)},
		{"none, by rounding", ptr(1.24), []*float64{ptr(1.0), ptr(0.25)}, ptr(0.0)},
		{"machine unknown", nil, []*float64{ptr(1.0)}, nil},
		{"a process unknown", ptr(2.0), []*float64{ptr(1.0), nil}, nil},
	} {
		if got := rest(tt.busy, tt.own); (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMeasureKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, tt := range []struct {
		name    string
		failAt  int
		partial Run
		runs    []int // of each scenario
	}{
		{"during the warm-up", 1, Run{}, nil},
		{"before the first run has figures", 2, Run{}, []int{0}},
		{"in the second run", 3, testRun(500), []int{2}},
		{"in the second scenario's warm-up", 4, testRun(500), []int{2}},
		{"in the control", 7, Run{}, []int{2, 2}},
	} {
		var log []string
		cfg, _, generator := testConfig(&log)
		generator.failAt, generator.err, generator.partial = tt.failAt, boom, tt.partial
		result := &Result{Settings: cfg.Settings}
		if err := Measure(t.Context(), cfg, result); !errors.Is(err, boom) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		var runs []int
		for _, s := range result.Scenarios {
			runs = append(runs, len(s.Runs))
		}
		if !slices.Equal(runs, tt.runs) {
			t.Errorf("%s: runs %v, want %v", tt.name, runs, tt.runs)
		}
		for _, s := range result.Scenarios {
			for _, run := range s.Runs {
				if run.Cut != (run.QPS == tt.partial.QPS) || s.QPS == nil || *s.QPS != 1000 {
					t.Errorf("%s: a run of %g is cut: %v; average %v", tt.name, run.QPS, run.Cut, s.QPS)
				}
			}
		}
	}
}

func TestMeasureWatchesWorkers(t *testing.T) {
	t.Parallel()
	pid := os.Getpid()
	for _, tt := range []struct {
		name    string
		workers [][]int
		err     error
		want    string
		invalid bool
	}{
		{"one", [][]int{{pid}}, nil, "", false},
		{"two instead of one", [][]int{{pid, pid}}, nil, WorkerCount, true},
		{"none", [][]int{{}}, nil, WorkerCount, true},
		{"another one later", [][]int{{pid}, {pid}, {pid + 1}}, nil, GatewayRestarted, true},
		{"not to be seen", [][]int{nil}, errors.New("hidden"), WorkersUnseen, false},
	} {
		var log []string
		cfg, gateway, _ := testConfig(&log)
		gateway.workers, gateway.workersErr = tt.workers, tt.err
		result := &Result{Settings: cfg.Settings}
		if err := Measure(t.Context(), cfg, result); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var codes []string
		for _, w := range result.Warnings {
			codes = append(codes, w.Code)
			if w.Invalid != tt.invalid {
				t.Errorf("%s: invalid is %v", tt.name, w.Invalid)
			}
		}
		if got := strings.Join(codes, " "); got != tt.want {
			t.Errorf("%s: warnings %q, want %q", tt.name, got, tt.want)
		}
		if tt.err != nil && (result.Gateway.Workers != nil || result.Scenarios[0].Runs[0].CPU.Gateway != nil) {
			t.Errorf("%s: there are figures of workers that nobody saw", tt.name)
		}
	}
}

func TestMeasureStopsWhereTheRouteDoes(t *testing.T) {
	t.Parallel()
	var log []string
	cfg, gateway, _ := testConfig(&log)
	gateway.applyErr = errors.New("404")
	result := &Result{}
	if err := Measure(t.Context(), cfg, result); err == nil || !strings.Contains(err.Error(), "scenario one: 404") {
		t.Errorf("error %v", err)
	}
	if len(log) != 1 || len(result.Scenarios) != 0 {
		t.Errorf("did %v", log)
	}
}
