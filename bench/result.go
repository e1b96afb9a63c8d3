// Package bench measures a gateway: which scenarios, how often, what counts.
package bench

import (
	"time"

	"armrepro/bench/fitness"
	"armrepro/bench/load"
	"armrepro/bench/machine"
)

// Schema is the version of the Result document.
const Schema = "armrepro/v1"

// Result is the whole of one measurement. Everything printed is printed from
// it. A figure that could not be measured is null, never zero.
type Result struct {
	Schema string `json:"schema"`
	// Label is the user's name for the machine; empty without one.
	Label string `json:"label,omitempty"`
	Tool  Tool   `json:"tool"`
	// Tools names the programs that took part in place of armrepro's own.
	Tools     Tools            `json:"tools,omitzero"`
	Started   time.Time        `json:"started"`
	Machine   machine.Machine  `json:"machine"`
	Gateway   GatewayInfo      `json:"gateway"`
	Etcd      EtcdInfo         `json:"etcd"`
	Settings  Settings         `json:"settings"`
	Scenarios []ScenarioResult `json:"scenarios"`
	// Starts are those of the gateway where it was started several times: they
	// are the sample. Run.Start counts them from 1.
	Starts []Start `json:"starts,omitempty"`
	// Scaling is what other numbers of workers reached.
	Scaling []Part `json:"scaling,omitempty"`
	// EmptyProxy is what a proxy of the same OpenResty reaches whose handlers do
	// nothing.
	EmptyProxy *Part `json:"empty_proxy,omitempty"`
	// Control is the same load straight to the upstream: the ceiling.
	Control *Run `json:"control"`
	// ControlOne is the same on one connection, where Settings.Concurrency has
	// one.
	ControlOne *Run `json:"control_one_connection,omitempty"`
	// Memory is that of the gateway's workers.
	Memory   Memory    `json:"workers_memory_bytes,omitzero"`
	Warnings []Warning `json:"warnings"`
	// Unchecked are the checks of the machine that could not be made.
	Unchecked []fitness.Unchecked `json:"unchecked,omitempty"`
	Verdict   Verdict             `json:"verdict"`
}

// Start is one start of the gateway, with a verdict on what was measured on it.
// One whose figures do not count is in no average.
type Start struct {
	Began time.Time `json:"began"`
	// Order is that of the scenarios, which alternates.
	Order    []string  `json:"order"`
	Warnings []Warning `json:"warnings"`
	Verdict  Verdict   `json:"verdict"`
}

// Part is what was measured on a gateway that was started anew, with a verdict of
// its own.
type Part struct {
	Workers   int              `json:"workers"`
	Threads   int              `json:"threads"`
	Pins      *Pins            `json:"pins"`
	Scenarios []ScenarioResult `json:"scenarios"`
	Warnings  []Warning        `json:"warnings"`
	Verdict   Verdict          `json:"verdict"`
}

// Memory is the resident memory of the gateway's workers in bytes (VmRSS): before
// the first request, at the end of the run that left them the largest, and after
// they were idle for a minute. A null means that it was not measured.
type Memory struct {
	Idle   *uint64 `json:"idle"`
	Loaded *uint64 `json:"loaded"`
	After  *uint64 `json:"after_a_minute"`
}

// Tool names what measured.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Tools are installed programs; one is nil where armrepro's own part ran instead.
type Tools struct {
	Load     *External `json:"load,omitempty"`
	Upstream *External `json:"upstream,omitempty"`
	// CrossCheck is the load generator that measured once more after the runs of
	// each scenario.
	CrossCheck *External `json:"cross_check,omitempty"`
}

// External names an installed program.
type External struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
}

// GatewayInfo names what was measured. Kind is native, attach or builtin.
type GatewayInfo struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Workers is the number of worker processes that were counted running;
	// null where they cannot be seen (a gateway in another pid namespace).
	Workers *int     `json:"workers"`
	Plugins []string `json:"plugins"`
	// OpenResty is null where it cannot be seen.
	OpenResty *OpenRestyInfo `json:"openresty,omitempty"`
}

// OpenRestyInfo names the OpenResty that an APISIX runs on.
type OpenRestyInfo struct {
	Version string   `json:"version"`
	Path    string   `json:"path"`
	LuaJIT  string   `json:"luajit"`
	Modules []string `json:"modules"`
}

// EtcdInfo names the configuration store the gateway used.
type EtcdInfo struct {
	Version  string `json:"version"`
	Embedded bool   `json:"embedded"`
}

// Settings are the choices that move the numbers.
type Settings struct {
	DurationS   float64 `json:"duration_s"`
	WarmupS     float64 `json:"warmup_s"`
	Connections int     `json:"connections"`
	Threads     int     `json:"threads"`
	Runs        int     `json:"runs"`
	Workers     int     `json:"workers"`
	Upstreams   int     `json:"upstreams"`
	TimeoutS    float64 `json:"timeout_s"`
	// Rate is the requests a second that the runs were asked for, RateShare
	// the share of each scenario's maximum; both are 0 in a closed loop.
	Rate      float64 `json:"rate,omitzero"`
	RateShare float64 `json:"rate_share,omitzero"`
	// Sweep holds the shares of each scenario's maximum that are also measured.
	Sweep []float64 `json:"sweep,omitempty"`
	// Concurrency holds the numbers of connections that are also measured,
	// Scaling those of workers.
	Concurrency []int `json:"concurrency,omitempty"`
	Scaling     []int `json:"scaling,omitempty"`
	// Restarts is how often the gateway was to be started, Precision the
	// relative half-width of the 95 % intervals that were to be reached, within
	// MaxTimeS; zero without.
	Restarts  int     `json:"restarts,omitempty"`
	Precision float64 `json:"precision,omitzero"`
	MaxTimeS  float64 `json:"max_time_s,omitzero"`
	// Pins is null where the processes ran wherever the kernel put them.
	Pins *Pins `json:"pins"`
}

// Load is a load on url for so many seconds, a closed loop if rate is 0.
func (s *Settings) Load(url string, lasts, rate float64) load.Config {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return load.Config{
		URL: url, Connections: s.Connections, Threads: s.Threads, Rate: rate,
		Duration: seconds(lasts), Timeout: seconds(s.TimeoutS),
	}
}

// Repeated says whether the gateway is started several times.
func (s *Settings) Repeated() bool { return s.Restarts > 1 || s.Precision > 0 }

// Pins are the CPUs that processes were kept on, in the kernel's format: 0-3,8.
// An empty one was not kept.
type Pins struct {
	Gateway  string `json:"gateway"`
	Upstream string `json:"upstream"`
	Load     string `json:"load"`
}

// ScenarioResult is one scenario's runs and the average of the complete ones.
// QPS and LatencyMs are null when no run completed.
type ScenarioResult struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Runs  []Run  `json:"runs"`
	// Maximum is the closed-loop run that Settings.RateShare is a share of.
	Maximum *Run `json:"maximum,omitempty"`
	// Sweep are runs at shares of the scenario's own maximum.
	Sweep []SweepRun `json:"sweep,omitempty"`
	// Concurrency are closed-loop runs on other numbers of connections.
	Concurrency []ConcurrencyRun `json:"concurrency,omitempty"`
	// CrossCheck is nil where none was asked for. It is in no average.
	CrossCheck *CrossCheck `json:"cross_check,omitempty"`
	// QPS is the mean of the complete runs' qps.
	QPS *float64 `json:"qps"`
	// LatencyMs is the mean of the complete runs' AverageLatency, in
	// milliseconds: in a closed loop the figure that the published tables show.
	LatencyMs *float64 `json:"latency_ms"`
}

// CrossCheck is a run with Tools.CrossCheck on the same gateway, right after the
// scenario's runs.
type CrossCheck struct {
	Run Run `json:"run"`
	// QPSRatio and LatencyRatio are the scenario's QPS and LatencyMs divided by
	// those of Run; nil where one is unknown or something speaks against either.
	QPSRatio     *float64 `json:"qps_ratio"`
	LatencyRatio *float64 `json:"latency_ratio"`
}

// SweepRun is a run at a fixed rate.
type SweepRun struct {
	// Share is that of the scenario's maximum: 0.25 is a quarter.
	Share float64 `json:"share"`
	Run   Run     `json:"run"`
}

// ConcurrencyRun is a run on another number of connections.
type ConcurrencyRun struct {
	Connections int `json:"connections"`
	Run         Run `json:"run"`
}

// Run is one measured load run with what the processes used meanwhile.
type Run struct {
	load.Result
	// Cut marks a run that was stopped before its time. Its figures cover
	// Seconds, and are in no average.
	Cut bool `json:"cut,omitempty"`
	// Start is the number of the gateway's start; 0 where it was started once.
	Start int `json:"start,omitempty"`
	// UpstreamAnswers is how many answers the upstream gave from before the
	// load until after it; null where that is unknown.
	UpstreamAnswers *uint64 `json:"upstream_answers"`
	// CPU is in cores: 1.0 is one core busy for the whole window.
	CPU CPU `json:"cpu"`
	// RSS is the peak resident memory of each process since it started.
	RSS RSS `json:"rss_bytes"`
}

// AverageLatency is the mean in microseconds that is set beside others: wrk's
// for a closed loop, the plain one at a fixed rate. It is nil if there is none.
func (r *Run) AverageLatency() *float64 {
	if r.Rate > 0 {
		return r.Latency.Mean
	}
	return r.Latency.MeanWrk
}

// CPU is the processor time used during a run, in cores. Gateway is the sum
// over its workers. Etcd is this process, which hosts it. A null means that it
// could not be measured.
type CPU struct {
	Gateway *float64 `json:"gateway"`
	// Workers is each worker's part of Gateway, in the order of their pids.
	Workers []float64 `json:"workers,omitempty"`
	// GatewayWait is how long the gateway's workers were ready but waited for
	// a core.
	GatewayWait *float64 `json:"gateway_wait"`
	Upstream    *float64 `json:"upstream"`
	Load        *float64 `json:"load"`
	Etcd        *float64 `json:"etcd"`
	// Others is what the CPUs that the run may use spent on processes other
	// than the run's, steal included and interrupts not.
	Others *float64 `json:"others"`
	// Steal is what the hypervisor withheld from the whole machine.
	Steal *float64 `json:"steal"`
}

// RSS is peak resident memory in bytes (VmHWM).
type RSS struct {
	Gateway  *uint64 `json:"gateway"`
	Upstream *uint64 `json:"upstream"`
	Load     *uint64 `json:"load"`
	Etcd     *uint64 `json:"etcd"`
}
