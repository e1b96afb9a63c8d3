package bench

import (
	"slices"

	"armrepro/bench/fitness"
)

// Warning is something that the reader of the figures has to know. Code is
// stable; Text names the finding; Hint says what to do about it. Scenario names
// the scenario that it is about, if it is about one. Disturbed and Invalid mark a
// warning that makes the whole result so.
type Warning struct {
	Code      string `json:"code"`
	Scenario  string `json:"scenario,omitempty"`
	Text      string `json:"text"`
	Hint      string `json:"hint,omitempty"`
	Disturbed bool   `json:"disturbed,omitempty"`
	Invalid   bool   `json:"invalid,omitempty"`
}

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
