package bench

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"armrepro/bench/load"
)

// Gateway is what a run needs of the gateway under test.
type Gateway interface {
	// URL is the base of its data plane.
	URL() string
	// Apply makes a scenario's route live and proves it.
	Apply(ctx context.Context, s Scenario) error
	// Counted waits until the metric shows at least so many requests of the
	// routes applied.
	Counted(ctx context.Context, metric string, requests uint64) error
	// Workers lists the pids of its workers, sorted; an error where they
	// cannot be seen.
	Workers() ([]int, error)
}

// Generator loads a URL from a process of its own.
type Generator interface {
	// Load returns what was measured, with its own CPU and memory in it.
	// When ctx ends early it returns what was measured until then together
	// with an error.
	Load(ctx context.Context, cfg load.Config, on Observer) (Run, error)
}

// Observer is called back during a load. Started and Ended enclose the measured
// window; Progress is called in between, with the responses so far.
type Observer struct {
	Started  func()
	Ended    func()
	Progress func(completed uint64)
}

// Progress is told how far a run is.
type Progress interface {
	// Begin says what begins and how long it takes.
	Begin(phase string, lasts time.Duration)
	// Update says how many responses have completed in this phase.
	Update(completed uint64)
	// End says that the phase is over. run is nil for a warm-up.
	End(run *Run)
}

// Config is everything that a run needs. Nothing in it is started by the run.
type Config struct {
	Settings  Settings
	Scenarios []Scenario
	Gateway   Gateway
	Generator Generator
	// CrossCheck measures once more after the runs of each scenario; nil for none.
	CrossCheck Generator
	// UpstreamURL is what the control loads; empty for none.
	UpstreamURL string
	// UpstreamPIDs are the processes that answer as the upstream; none if they
	// cannot be watched. Etcd is this process unless it is somebody else's.
	UpstreamPIDs []int
	EtcdEmbedded bool
	// Answered is how many answers the upstream has given so far; nil where
	// that is unknown.
	Answered func() (uint64, error)
	// CPUs are those that the run may use.
	CPUs     []int
	Progress Progress
	// Root is the root of the file system, for what /proc tells.
	Root fs.FS
}

// controlLimit bounds the run without the gateway, in seconds: the ceiling that it shows is
// far off, and needs no more precision.
const controlLimit = 10

// Measure runs every scenario and then the control, and fills in result as it
// goes: what is in it when an error is returned was measured. The gateway's
// metrics come last, since they lag.
func Measure(ctx context.Context, cfg Config, result *Result) error {
	r := &runner{Config: cfg, result: result, counts: map[string]uint64{}}
	err := r.loads(ctx)
	if err == nil {
		err = r.checkCounts(ctx)
	}
	if err != nil && len(r.counts) > 0 {
		result.unchecked(MetricMissed, "the measurement ended before it read the gateway's metrics")
	}
	return err
}

// loads runs every scenario and then the control.
func (r *runner) loads(ctx context.Context) error {
	for _, s := range r.Scenarios {
		if err := r.scenario(ctx, s); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
	}
	return r.control(ctx)
}

// runner is one Measure.
type runner struct {
	Config
	result *Result
	// metric is what has to count the requests of the scenario that is being
	// measured; counts holds how many each has to have counted.
	metric string
	counts map[string]uint64
}

// scenario applies a scenario, warms up and measures.
func (r *runner) scenario(ctx context.Context, s Scenario) error {
	if err := r.Gateway.Apply(ctx, s); err != nil {
		return err
	}
	r.metric = s.Expect.Metric
	m := &measuring{runner: r, title: s.Title, target: r.Gateway.URL() + s.Path, workers: r.countWorkers()}
	if r.result.Memory.Idle == nil {
		r.result.Memory.Idle = WorkersMemory(r.Root, m.workers)
	}
	if warmup := r.Settings.WarmupS; warmup > 0 {
		if _, err := r.load(ctx, s.Title+", warm-up", r.Settings.Load(m.target, warmup, r.Settings.Rate), nil); err != nil {
			return err
		}
	}
	r.result.Scenarios = append(r.result.Scenarios, ScenarioResult{Name: s.Name, Title: s.Title, Runs: []Run{}})
	m.into = &r.result.Scenarios[len(r.result.Scenarios)-1]
	rate := r.Settings.Rate
	if share := r.Settings.RateShare; share > 0 {
		if err := m.maximum(ctx); err != nil {
			return err
		}
		rate = share * m.into.Maximum.QPS
	}
	for i := range r.Settings.Runs {
		if err := m.run(ctx, fmt.Sprintf("run %d of %d", i+1, r.Settings.Runs), rate, m.into.add); err != nil {
			return err
		}
	}
	for _, more := range []func(context.Context) error{m.crossCheck, m.sweep, m.concurrency} {
		if err := more(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measuring is the measurement of one scenario.
type measuring struct {
	*runner
	title   string
	target  string
	workers []int
	into    *ScenarioResult
}

// run measures once, as the settings say, with a closed loop if rate is 0. keep gets
// what was measured, also when it was interrupted.
func (m *measuring) run(ctx context.Context, what string, rate float64, keep func(Run)) error {
	return m.measure(ctx, what, m.Settings.Load(m.target, m.Settings.DurationS, rate), keep)
}

func (m *measuring) measure(ctx context.Context, what string, cfg load.Config, keep func(Run)) error {
	run, err := m.load(ctx, m.title+", "+what, cfg, m.workers)
	m.checkWorkers(m.workers)
	if now := WorkersMemory(m.Root, m.workers); now != nil && known(m.result.Memory.Loaded) < *now {
		m.result.Memory.Loaded = now
	}
	if run != nil {
		keep(*run)
	}
	return err
}

// control loads the upstream directly, if it is to.
func (r *runner) control(ctx context.Context) error {
	if r.UpstreamURL == "" {
		return nil
	}
	r.metric = ""
	cfg := r.Settings.Load(r.UpstreamURL, min(r.Settings.DurationS, controlLimit), 0)
	var err error
	if r.result.Control, err = r.load(ctx, "without the gateway", cfg, []int{}); err == nil && slices.Contains(r.Settings.Concurrency, 1) {
		cfg.Connections, cfg.Threads = 1, 1
		r.result.ControlOne, err = r.load(ctx, "without the gateway, one connection", cfg, []int{})
	}
	if err != nil {
		return fmt.Errorf("load the upstream without the gateway: %w", err)
	}
	return nil
}

// checkCounts makes sure that the gateway has counted what the scenarios required
// it to: the plugin that counts ran for every request of theirs.
func (r *runner) checkCounts(ctx context.Context) error {
	for _, metric := range slices.Sorted(maps.Keys(r.counts)) {
		err := r.Gateway.Counted(ctx, metric, r.counts[metric])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.result.Warn(Warning{
				Code: MetricMissed, Invalid: true, Text: err.Error(),
				Hint: "see the gateway's logs/error.log: the prometheus plugin did not run for every request",
			})
		}
	}
	return nil
}

// load loads once and returns what it measured, also when it was interrupted;
// nil if there is nothing. No workers are those of no gateway, nil ones unseen.
func (r *runner) load(ctx context.Context, phase string, cfg load.Config, workers []int) (*Run, error) {
	var before, after usage
	pids := processes{workers: workers, upstream: r.UpstreamPIDs, self: os.Getpid(), cpus: r.CPUs}
	r.Progress.Begin(phase, cfg.Duration)
	answered := r.answered()
	run, err := r.Generator.Load(ctx, cfg, Observer{
		Started:  func() { before = pids.usage(r.Root) },
		Ended:    func() { after = pids.usage(r.Root) },
		Progress: r.Progress.Update,
	})
	if err != nil && run.Seconds == 0 {
		r.Progress.End(nil)
		return nil, cause(ctx, err)
	}
	if r.metric != "" {
		r.counts[r.metric] += run.Requests
	}
	run.Cut = err != nil && run.Seconds < cfg.Duration.Seconds()
	run.UpstreamAnswers = difference(answered, r.answered())
	after.since(before, workers, &run)
	pids.peakRSS(r.Root, &run)
	if !r.EtcdEmbedded {
		run.CPU.Etcd, run.RSS.Etcd = nil, nil
	}
	r.Progress.End(&run)
	return &run, cause(ctx, err)
}

// answered is the upstream's count of answers, or nil.
func (r *runner) answered() *uint64 {
	if r.Answered == nil {
		return nil
	}
	n, err := r.Answered()
	if err != nil {
		return nil
	}
	return &n
}

// cause prefers the reason why ctx ended to the error that came of it.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// countWorkers notes how many workers run and whether that is as many as there
// should be.
func (r *runner) countWorkers() []int {
	pids, err := r.Gateway.Workers()
	if err != nil {
		r.result.Warn(Warning{
			Code: WorkersUnseen,
			Text: fmt.Sprintf("could not see the gateway's workers, so their number and CPU time are unknown: %v", err),
			Hint: "run armrepro where it sees the gateway's processes, such as in the same pid namespace",
		})
		return nil
	}
	n := len(pids)
	r.result.Gateway.Workers = &n
	if n != r.Settings.Workers {
		r.result.Warn(Warning{
			Code:    WorkerCount,
			Text:    fmt.Sprintf("running gateway workers: %d; required: %d", n, r.Settings.Workers),
			Hint:    fmt.Sprintf("set worker_processes in the gateway's configuration, or use --workers %d", n),
			Invalid: true,
		})
	}
	return pids
}

// checkWorkers makes sure that the same workers still run.
func (r *runner) checkWorkers(before []int) {
	if before == nil {
		return
	}
	if after, err := r.Gateway.Workers(); err != nil || !slices.Equal(before, after) {
		r.result.Warn(Warning{
			Code:    GatewayRestarted,
			Text:    fmt.Sprintf("the gateway's workers changed during the run: pids %v, then %v", before, after),
			Hint:    "look in the gateway's logs/error.log for a crash or a reload, and run again",
			Invalid: true,
		})
	}
}
