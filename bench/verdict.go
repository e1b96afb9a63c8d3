package bench

import (
	"fmt"
	"slices"

	"armrepro/bench/fitness"
)

// The codes of the warnings that come from the measurement itself. Those about
// the machine are in package machine, those about the gateway in proxycheck.
const (
	WorkersUnseen    = "workers-unseen"    // the gateway's workers are in another pid namespace
	WorkerCount      = "worker-count"      // not the required number of workers; invalid
	GatewayRestarted = "gateway-restarted" // the workers changed during a run; invalid
	NothingMeasured  = "nothing-measured"  // a run has no complete answer; invalid
	RunErrors        = "run-errors"        // invalid
	FewRequests      = "few-requests"      // a run has too few answers for any statistics
	UpstreamUnseen   = "upstream-unseen"   // something else answered for the upstream; invalid
	UpstreamShared   = "upstream-shared"   // somebody else uses the upstream
	GatewayIdle      = "gateway-idle"      // something else was the limit; invalid
	GatewayDisturbed = "gateway-disturbed" // other processes took the workers' cores; disturbed
	GatewayStarved   = "gateway-starved"   // the workers waited for cores
	UnevenWorkers    = "uneven-workers"    // some workers had far less to do than others
	GeneratorBusy    = "generator-busy"    // the load generator nears its own maximum
	UpstreamCeiling  = "upstream-ceiling"  // the upstream is not much faster than the gateway
	NoCeiling        = "no-ceiling"        // the run without the gateway is missing
	LittlesLaw       = "littles-law"       // QPS and latency contradict each other
	RateMissed       = "rate-missed"       // fewer requests were sent than required
	ShortRun         = "short-run"         // below invalidSeconds invalid
	OneRun           = "one-run"           // one run shows no spread
	StartDisturbed   = "start-disturbed"   // a start does not count
	PrecisionMissed  = "precision-missed"  // the intervals are wider than was asked for
	FewRestarts      = "few-restarts"      // fewer starts count than were asked for
	RunsDiffer       = "spread"            // the runs differ; with two far apart disturbed
	MetricMissed     = "metric-missed"     // the gateway's metric counted fewer requests; invalid
	ManyReconnects   = "many-reconnects"   // far more than nginx makes necessary
	CrossChecked     = "cross-check"       // the run with the other generator is not comparable
	KeepalivePool    = "keepalive-pool"    // more connections than the gateway keeps to an upstream
)

// The limits behind the warnings.
const (
	// idleLimit is the share of a core below which a worker waited for
	// something else. APISIX's worker was measured at 0.93 to 0.99, an
	// empty nginx at 0.88.
	idleLimit = 0.75
	// unevenLimit is the share of the busiest worker's CPU time that the idlest
	// has to have.
	unevenLimit = 0.7
	// disturbedLimit is the share of the time for which a worker may wait for
	// a core that other processes have.
	disturbedLimit = 0.05
	// starvedLimit is the same for any wait. On two cores that it shares with
	// upstream and generator some wait is normal.
	starvedLimit = 0.20
	// busyLimit is the share of the time from which on a loop of the
	// generator that never waits may have slowed the load down. A loop is
	// busy while it connects, so runs below busySeconds say nothing.
	busyLimit, busySeconds = 0.90, 0.5
	// ceilingLimit is how far below the upstream the gateway has to stay.
	ceilingLimit = 0.75
	// littleLimit is how far QPS × latency may be from the number of
	// connections. What is missing is time spent in the generator between
	// an answer and the next request.
	littleLimit = 0.10
	// Below littleRounds answers a connection, those that are cut off at the
	// ends of a run are more than that; below littleSeconds, connecting is.
	littleRounds, littleSeconds = 20, 2
	// otherUse is the share of a run's requests that the upstream may answer
	// beyond what the generator can have caused.
	otherUse = 0.01
	// rateLimit is the share of a fixed rate that has to be answered.
	rateLimit = 0.99
	// fewRequests is how many answers a run needs for any statistics: with fewer,
	// each one is over a tenth of the figure.
	fewRequests = 10
	// spreadLimit is how far runs may differ, relative to their mean. Latency
	// gets more: one stall moves wrk's mean, which counts it for every
	// request that it kept from being sent.
	spreadLimit, latencySpreadLimit = 0.05, 0.10
	// twoRunsFactor times these limits, two runs don't tell which one was
	// disturbed.
	twoRunsFactor = 2
	// In a run below shortSeconds, the pause of a second is more than the
	// spread that is allowed; below invalidSeconds, starting is.
	shortSeconds, invalidSeconds = 10, 1
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

// unchecked notes why the check behind a code could not be made.
func (r *Result) unchecked(code, why string) {
	if !slices.ContainsFunc(r.Unchecked, func(have fitness.Unchecked) bool { return have.Code == code }) {
		r.Unchecked = append(r.Unchecked, fitness.Unchecked{Code: code, Why: why})
	}
}

// Judge adds the warnings that follow from the figures and sets the verdict.
// scenarios is how many were to be measured.
func (r *Result) Judge(scenarios int) {
	whole := r.whole(scenarios)
	if len(r.Starts) > 0 {
		whole = r.judgeStarts()
	} else {
		r.judgeSettings()
		for i := range r.Scenarios {
			r.judgeScenario(&r.Scenarios[i])
		}
	}
	switch {
	case r.Control != nil && !r.Control.Cut:
		// Its generator may be busy all the time: the ceiling is that of
		// generator and upstream together, and is shown with the CPU of both.
		r.newJudge("", "the run without the gateway").judgeRun(r.Control)
	case whole:
		r.Warn(Warning{
			Code: NoCeiling,
			Text: "the run without the gateway did not finish, so the ceiling is unknown",
			Hint: "let the measurement run to its end",
		})
	}
	r.Verdict = Valid
	if !whole {
		r.Verdict = Interrupted
	}
	r.Verdict = r.Standing()
	for i := range r.Scenarios {
		r.compareCrossCheck(&r.Scenarios[i])
	}
	r.Verdict = r.Standing()
}

// whole says whether every run of so many scenarios is complete.
func (r *Result) whole(scenarios int) bool {
	return len(r.Scenarios) >= scenarios && len(r.Scaling) >= len(r.Settings.Scaling) && !slices.ContainsFunc(r.Scenarios, func(s ScenarioResult) bool {
		return !s.whole(r.Settings) || r.Tools.CrossCheck != nil && (s.CrossCheck == nil || s.CrossCheck.Run.Cut)
	})
}

// whole says whether every run that the settings ask for is complete.
func (s *ScenarioResult) whole(settings Settings) bool {
	return len(Complete(s.Runs)) >= settings.Runs && len(s.Sweep) >= len(settings.Sweep) &&
		len(s.Concurrency) >= len(settings.Concurrency) &&
		!slices.ContainsFunc(s.Sweep, func(point SweepRun) bool { return point.Run.Cut }) &&
		!slices.ContainsFunc(s.Concurrency, func(point ConcurrencyRun) bool { return point.Run.Cut })
}

// judgeSettings looks at what was asked for.
func (r *Result) judgeSettings() {
	s := r.Settings
	most := slices.Max(append([]int{s.Connections}, s.Concurrency...))
	if pool := keepalivePool * s.Workers; most > pool {
		r.Warn(Warning{
			Code: KeepalivePool,
			Text: fmt.Sprintf("the gateway keeps %d connections to its upstream open, fewer than the %d of the load", pool, most),
			Hint: "use fewer --connections: opening connections is part of the figure",
		})
	}
	if s.DurationS < shortSeconds {
		r.Warn(Warning{
			Code: ShortRun, Invalid: s.DurationS < invalidSeconds,
			Text: fmt.Sprintf("runs of %g s after %g s of warm-up are too short for a steady figure", s.DurationS, s.WarmupS),
			Hint: fmt.Sprintf("use --duration %ds or longer", shortSeconds),
		})
	}
	if s.Runs == 1 && s.Restarts < 2 {
		r.Warn(Warning{Code: OneRun, Text: "one run does not show how far runs differ", Hint: "use --runs 2 or more"})
	}
}

func (r *Result) judgeScenario(s *ScenarioResult) {
	j := r.newJudge(s.Name, "")
	look := func(run *Run, name string, of func(judge, *Run)) {
		if j.name = s.Name + name; !run.Cut {
			of(j, run)
		}
	}
	for n := range s.Runs {
		look(&s.Runs[n], fmt.Sprintf(", run %d", n+1), judge.judgeClosed)
	}
	if s.Maximum != nil {
		look(s.Maximum, ", closed-loop maximum", judge.judgeClosed)
	}
	for n := range s.Sweep {
		look(&s.Sweep[n].Run, fmt.Sprintf(" at %.0f %%", 100*s.Sweep[n].Share), judge.judgeOpen)
	}
	for n := range s.Concurrency {
		// On few connections the gateway is meant to have time left.
		j.connections = s.Concurrency[n].Connections
		look(&s.Concurrency[n].Run, fmt.Sprintf(" on %d connections", j.connections), judge.judgeOpen)
	}
	j.name, j.connections = s.Name, r.Settings.Connections
	j.judgeSpread(s.Runs)
}

// judgeSpread looks at how far the runs of a scenario agree.
func (j judge) judgeSpread(runs []Run) {
	if slices.ContainsFunc(Complete(runs), func(run Run) bool { return run.Requests < fewRequests }) {
		return // Each run has its warning.
	}
	qps, latency := known(Spread(runs, (*Run).Throughput)), known(Spread(runs, (*Run).AverageLatency))
	worst := max(qps/spreadLimit, latency/latencySpreadLimit)
	if worst > 1 {
		j.warn(Warning{
			Code: RunsDiffer, Disturbed: worst > twoRunsFactor && len(Complete(runs)) == 2,
			Hint: "measure longer (--duration) or more often (--runs), and on a quiet machine",
		}, "the runs differ by %.1f %% in requests/sec and by %.1f %% in average latency", 100*qps, 100*latency)
	}
}
