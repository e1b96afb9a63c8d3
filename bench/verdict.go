package bench

import (
	"fmt"
	"math"
	"slices"
)

// The codes of the warnings that come from the measurement itself. Those about
// the machine are in package machine, those about the gateway in proxycheck.
const (
	// WorkersUnseen: the gateway's workers are in another pid namespace.
	WorkersUnseen = "workers-unseen"
	// WorkerCount: not as many workers run as the settings say. Invalid.
	WorkerCount = "worker-count"
	// GatewayRestarted: the workers changed during the run. Invalid.
	GatewayRestarted = "gateway-restarted"
	// NothingMeasured: a run has no complete answer. Invalid.
	NothingMeasured = "nothing-measured"
	// RunErrors: a run has errors. Invalid.
	RunErrors = "run-errors"
	// GatewayIdle: the gateway waited for something else. Invalid.
	GatewayIdle = "gateway-idle"
	// GatewayStarved: the gateway waited for a core.
	GatewayStarved = "gateway-starved"
	// GeneratorBusy: the load generator nears what it can do.
	GeneratorBusy = "generator-busy"
	// UpstreamCeiling: the upstream is not much faster than the gateway.
	UpstreamCeiling = "upstream-ceiling"
	// LittlesLaw: QPS and latency contradict each other.
	LittlesLaw = "littles-law"
	// RateMissed: fewer requests were answered than were asked for.
	RateMissed = "rate-missed"
	// Spread: the runs of a scenario differ.
	Spread = "spread"
	// ManyReconnects: the server closed connections far more often than
	// nginx does by itself.
	ManyReconnects = "many-reconnects"
	// KeepalivePool: more connections than the gateway keeps open to an
	// upstream.
	KeepalivePool = "keepalive-pool"
)

// The limits behind the warnings.
const (
	// idleLimit is the share of a core below which a worker waited for
	// something else. APISIX's worker was measured at 0.93 to 0.99, an
	// empty nginx at 0.88.
	idleLimit = 0.75
	// starvedLimit is the share of the time for which a worker may wait for a
	// core. On two cores that it shares with its peers some wait is normal.
	starvedLimit = 0.20
	// busyLimit is the share of the time from which on a loop of the
	// generator that never waits may have slowed the load down.
	busyLimit = 0.90
	// ceilingLimit is how far below the upstream the gateway has to stay.
	ceilingLimit = 0.75
	// littleLimit is how far QPS × latency may be from the number of
	// connections. What is missing is time spent in the generator between
	// an answer and the next request.
	littleLimit = 0.10
	// littleRounds is how many answers of each connection it takes for those
	// that the run cuts off at its ends to weigh less than that, and
	// littleSeconds how long a run is that opening connections weighs little
	// in.
	littleRounds  = 20
	littleSeconds = 2
	// busySeconds is how long a run is that says how busy a loop is.
	busySeconds = 0.5
	// rateLimit is the share of a fixed rate that has to be answered.
	rateLimit = 0.99
	// spreadLimit is how far runs may differ, relative to their mean.
	spreadLimit = 0.05
	// latencySpreadLimit is wider: one stall moves wrk's mean, which counts
	// it for every request that it kept from being sent.
	latencySpreadLimit = 0.10
	// reconnectLimit is the share of requests after which connections were
	// opened again. nginx closes one after 1000 requests.
	reconnectLimit = 0.01
	// keepalivePool is how many idle connections to an upstream APISIX
	// keeps in each worker.
	keepalivePool = 320
)

// Warn adds w unless there is a warning of its code already.
func (r *Result) Warn(w Warning) {
	if !slices.ContainsFunc(r.Warnings, func(have Warning) bool { return have.Code == w.Code }) {
		r.Warnings = append(r.Warnings, w)
	}
}

// judge looks at the runs of one scenario, or at the control run. It warns once
// of each code, beside what others warn of.
type judge struct {
	*Result
	seen map[string]bool
}

func (r *Result) newJudge() judge { return judge{r, map[string]bool{}} }

// Warn adds w unless this judge has warned of its code already.
func (j judge) Warn(w Warning) {
	if !j.seen[w.Code] {
		j.seen[w.Code] = true
		j.Warnings = append(j.Warnings, w)
	}
}

// Judge adds the warnings that follow from the figures and sets the verdict.
// interrupted says that not everything was measured.
func (r *Result) Judge(interrupted bool) {
	if n := r.Settings.Connections; n > keepalivePool*r.Settings.Workers {
		r.Warn(Warning{
			Code: KeepalivePool,
			Text: fmt.Sprintf("%d connections are more than the %d that the gateway keeps open to its upstream", n, keepalivePool*r.Settings.Workers),
			Hint: "the gateway opens connections all the time; use fewer with --connections",
		})
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		j := r.newJudge()
		for n := range s.Runs {
			j.judgeClosed(fmt.Sprintf("%s, run %d", s.Name, n+1), &s.Runs[n])
		}
		if s.Maximum != nil {
			j.judgeClosed(s.Name+", the run for the maximum", s.Maximum)
		}
		for n := range s.Sweep {
			name := fmt.Sprintf("%s at %.0f%%", s.Name, 100*s.Sweep[n].Share)
			j.judgeRun(name, &s.Sweep[n].Run)
			j.judgeBusy(name, &s.Sweep[n].Run)
		}
		j.judgeScenario(s)
	}
	if r.Control != nil {
		// Its generator may be busy all the time: the ceiling is that of
		// generator and upstream together, and is shown with the CPU of both.
		r.newJudge().judgeRun("the control run", r.Control)
	}
	switch {
	case slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Invalid }):
		r.Verdict = Invalid
	case interrupted:
		r.Verdict = Interrupted
	case len(r.Warnings) > 0:
		r.Verdict = ValidWithWarnings
	default:
		r.Verdict = Valid
	}
}

// judgeRun looks at what the generator says of a run.
func (r judge) judgeRun(name string, run *Run) {
	if run.Requests == 0 {
		r.Warn(Warning{
			Code: NothingMeasured, Invalid: true,
			Text: name + " has no complete answer",
			Hint: "see the errors of the run and the gateway's logs",
		})
		return
	}
	if e := run.Errors; e.Total() > 0 {
		r.Warn(Warning{
			Code: RunErrors, Invalid: true,
			Text: fmt.Sprintf("%s has errors: connect %d, read %d, write %d, timeout %d, status above 399 %d",
				name, e.Connect, e.Read, e.Write, e.Timeout, e.Status),
			Hint: "see the gateway's logs/error.log and access.log",
		})
	}
	r.judgeReconnects(name, run)
	r.judgeLoad(name, run)
}

// DoubtRun is what the figures of a run on so many connections tell against
// themselves, whatever it was that was loaded.
func DoubtRun(run *Run, connections int) []Warning {
	r := &Result{Settings: Settings{Connections: connections}}
	j := r.newJudge()
	j.judgeBusy("the run", run)
	j.judgeReconnects("the run", run)
	j.judgeLoad("the run", run)
	return r.Warnings
}

func (r judge) judgeReconnects(name string, run *Run) {
	if float64(run.Reconnects) > reconnectLimit*float64(run.Requests) {
		r.Warn(Warning{
			Code: ManyReconnects,
			Text: fmt.Sprintf("%s: the server closed %d connections in %d requests", name, run.Reconnects, run.Requests),
			Hint: "opening connections is part of the figure; see keepalive_requests in the gateway's nginx.conf",
		})
	}
}

// judgeClosed looks at a run that the gateway is to be the limit of.
func (r judge) judgeClosed(name string, run *Run) {
	r.judgeRun(name, run)
	r.judgeBusy(name, run)
	r.judgeGateway(name, run)
}

// judgeBusy looks for a generator that measured itself.
func (r judge) judgeBusy(name string, run *Run) {
	if run.Busy != nil && *run.Busy > busyLimit && run.Seconds >= busySeconds {
		r.Warn(Warning{
			Code: GeneratorBusy,
			Text: fmt.Sprintf("%s: a thread of the load generator was busy for %.0f%% of the time", name, 100**run.Busy),
			Hint: "the figures may be those of the generator; use more with --threads",
		})
	}
}

// judgeLoad looks at whether the generator's figures fit together.
func (r judge) judgeLoad(name string, run *Run) {
	if run.Rate > 0 {
		r.judgeRate(name, run)
		return
	}
	if run.Latency.Mean == nil || run.Seconds < littleSeconds || run.Requests < littleRounds*uint64(r.Settings.Connections) {
		return
	}
	inFlight := run.QPS * *run.Latency.Mean / 1e6
	if n := float64(r.Settings.Connections); math.Abs(inFlight-n) > littleLimit*n {
		r.Warn(Warning{
			Code: LittlesLaw,
			Text: fmt.Sprintf("%s: QPS times mean latency gives %.1f requests in flight, with %.0f connections", name, inFlight, n),
			Hint: "part of the time is in no latency: connections that were opened again, or a generator short of CPU",
		})
	}
}

// judgeRate looks at whether a fixed rate was kept up.
func (r judge) judgeRate(name string, run *Run) {
	// What was not due yet while connections were opened is missed by nobody.
	if float64(run.Unsent) > (1-rateLimit)*run.Rate*run.Seconds {
		r.Warn(Warning{
			Code: RateMissed,
			Text: fmt.Sprintf("%s: %.0f requests/s were answered of %.0f that were asked for, and %d were never sent", name, run.QPS, run.Rate, run.Unsent),
			Hint: "the gateway is beyond its maximum or has too few connections: the latencies are those of a growing queue",
		})
	}
}

// judgeGateway looks for a gateway that was not the limit.
func (r judge) judgeGateway(name string, run *Run) {
	if run.Rate > 0 {
		return // It is meant to have time left.
	}
	if run.CPU.Gateway != nil && r.Gateway.Workers != nil && *r.Gateway.Workers > 0 {
		r.judgeWorkers(name, run, float64(*r.Gateway.Workers))
	}
	if r.Control != nil && r.Control.QPS > 0 && run.QPS > ceilingLimit*r.Control.QPS {
		r.Warn(Warning{
			Code: UpstreamCeiling,
			Text: fmt.Sprintf("%s reached %.0f%% of what the upstream does without a gateway", name, 100*run.QPS/r.Control.QPS),
			Hint: "the upstream and the generator may have been part of the limit",
		})
	}
}

// judgeWorkers tells a worker that waited for work from one that waited for a
// core: the first makes the figure somebody else's, the second only lower.
func (r judge) judgeWorkers(name string, run *Run, workers float64) {
	busy := *run.CPU.Gateway / workers
	wait := 0.0
	if run.CPU.GatewayWait != nil {
		wait = *run.CPU.GatewayWait / workers
	}
	if busy+wait < idleLimit {
		r.Warn(Warning{
			Code: GatewayIdle, Invalid: true,
			Text: fmt.Sprintf("%s: a worker of the gateway had nothing to do for %.0f%% of the time: something else was the limit", name, 100*(1-busy-wait)),
			Hint: "compare the CPU figures: too few connections, or a slow generator or upstream",
		})
	}
	if wait > starvedLimit {
		r.Warn(Warning{
			Code: GatewayStarved,
			Text: fmt.Sprintf("%s: a worker of the gateway waited for a core for %.0f%% of the time", name, 100*wait),
			Hint: "other processes want its core; measure on a quiet machine or on one with more cores",
		})
	}
}

// judgeScenario looks at how far the runs of a scenario agree.
func (r judge) judgeScenario(s *ScenarioResult) {
	qps := spread(s.Runs, func(run *Run) *float64 { return &run.QPS })
	latency := spread(s.Runs, (*Run).AverageLatency)
	if qps > spreadLimit || latency > latencySpreadLimit {
		r.Warn(Warning{
			Code: Spread,
			Text: fmt.Sprintf("%s: the runs differ by %.1f%% in requests/sec and by %.1f%% in average latency", s.Name, 100*qps, 100*latency),
			Hint: "the machine is noisy; measure longer (--duration) or more often (--runs), and on a quiet machine",
		})
	}
}

// spread is how far a figure of the runs differs, relative to its mean. Runs
// without the figure are left out.
func spread(runs []Run, figure func(*Run) *float64) float64 {
	low, high, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for i := range runs {
		if v := figure(&runs[i]); v != nil {
			low, high, sum, n = min(low, *v), max(high, *v), sum+*v, n+1
		}
	}
	if sum == 0 {
		return 0
	}
	return (high - low) / (sum / n)
}

// add appends a run and renews the averages.
func (s *ScenarioResult) add(run Run) {
	s.Runs = append(s.Runs, run)
	s.QPS, s.LatencyMs = nil, nil
	var qps, latency float64
	for _, run := range s.Runs {
		qps += run.QPS / float64(len(s.Runs))
		if mean := run.AverageLatency(); mean != nil {
			latency += *mean / 1000 / float64(len(s.Runs))
		} else {
			latency = math.NaN()
		}
	}
	s.QPS = &qps
	if !math.IsNaN(latency) {
		s.LatencyMs = &latency
	}
}
