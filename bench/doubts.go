package bench

import (
	"fmt"
	"math"
	"slices"
)

// judge looks at runs and warns once of each code, with the name of the run. The
// runs are those of a scenario, or of none.
type judge struct {
	*Result
	scenario string
	name     string
	// connections are those of the runs.
	connections int
	seen        map[string]bool
}

func (r *Result) newJudge(scenario, name string) judge {
	return judge{r, scenario, name, r.Settings.Connections, map[string]bool{}}
}

// warn adds w with its text.
func (j judge) warn(w Warning, format string, args ...any) {
	if !j.seen[w.Code] {
		j.seen[w.Code] = true
		w.Scenario, w.Text = j.scenario, j.name+": "+fmt.Sprintf(format, args...)
		j.Warnings = append(j.Warnings, w)
	}
}

// DoubtRun is what the figures of a run on so many connections tell against
// themselves, whatever was loaded.
func DoubtRun(run *Run, connections int) []Warning {
	r := &Result{Settings: Settings{Connections: connections}}
	j := r.newJudge("", "the run")
	j.judgeBusy(run)
	j.judgeReconnects(run)
	j.judgeLoad(run)
	return r.Warnings
}

// judgeClosed looks at a run whose limit has to be the gateway.
func (j judge) judgeClosed(run *Run) {
	j.judgeOpen(run)
	// At a fixed rate the gateway is meant to have time left.
	if run.Rate == 0 && run.Requests > 0 {
		j.judgeIdle(run)
		j.judgeWorkers(run)
		j.judgeCeiling(run)
	}
}

// judgeOpen looks at any run through the gateway.
func (j judge) judgeOpen(run *Run) {
	j.judgeRun(run)
	j.judgeBusy(run)
	j.judgeWait(run)
}

// judgeRun looks at any run, also one without the gateway.
func (j judge) judgeRun(run *Run) {
	if run.Requests == 0 {
		j.warn(Warning{Code: NothingMeasured, Invalid: true, Hint: "check the errors of the run and the gateway's logs"},
			"no complete answer arrived")
		return
	}
	if e := run.Errors; e.Total() > 0 {
		j.warn(Warning{Code: RunErrors, Invalid: true, Hint: "check the gateway's logs/error.log and access.log"},
			"errors: connect %d, read %d, write %d, timeout %d, status above 399 %d",
			e.Connect, e.Read, e.Write, e.Timeout, e.Status)
	}
	if run.Requests < fewRequests {
		j.warn(Warning{Code: FewRequests, Hint: "use a longer --duration or a higher --rate"},
			"%d answers are too few to judge the figures", run.Requests)
	}
	j.judgeUpstream(run)
	j.judgeReconnects(run)
	j.judgeLoad(run)
}

// judgeUpstream looks at whether the upstream gave the answers that were counted.
func (j judge) judgeUpstream(run *Run) {
	if run.UpstreamAnswers == nil {
		j.unchecked(UpstreamUnseen, "the upstream's count of answers is unknown")
		return
	}
	given, good := *run.UpstreamAnswers, run.Requests-min(run.Requests, run.Errors.Status)
	if given < good {
		j.warn(Warning{
			Code: UpstreamUnseen, Invalid: true,
			Hint: "look for a cache, a second process that listens on the upstream's port, or another gateway in between",
		}, "armrepro's upstream gave only %d of %d answers", given, good)
	}
	// Requests under way at the end, and those that were sent again.
	most := run.Requests + uint64(j.connections) + known(run.Reconnects) + run.Errors.Total()
	if float64(given) > (1+otherUse)*float64(most) {
		j.warn(Warning{Code: UpstreamShared, Hint: "stop whatever else sends requests to the upstream's port, such as a mirroring plugin"},
			"the upstream gave %d answers to %d requests, so something else sends it requests", given, run.Requests)
	}
}

func (j judge) judgeReconnects(run *Run) {
	if run.Reconnects == nil {
		j.unchecked(ManyReconnects, "the load generator does not count its reconnects")
		return
	}
	if float64(*run.Reconnects) > reconnectLimit*float64(run.Requests) {
		j.warn(Warning{Code: ManyReconnects, Hint: "raise keepalive_requests in the gateway's nginx.conf: opening connections is part of the figure"},
			"the server closed %d connections in %d requests", *run.Reconnects, run.Requests)
	}
}

// judgeBusy looks for a generator that measured itself.
func (j judge) judgeBusy(run *Run) {
	busy := run.Busy
	if busy == nil && run.CPU.Load != nil && j.Settings.Threads > 0 {
		// It does not say, but a thread that never waits uses a core.
		busy = new(*run.CPU.Load / float64(j.Settings.Threads))
	}
	if busy != nil && *busy > busyLimit && run.Seconds >= busySeconds {
		j.warn(Warning{Code: GeneratorBusy, Hint: "use more --threads: the generator may limit the figures"},
			"a thread of the load generator was busy for %.0f %% of the time", 100**busy)
	}
}

// judgeLoad looks at whether a fixed rate was kept up or, in a closed loop, whether
// the generator's figures fit together.
func (j judge) judgeLoad(run *Run) {
	if run.Rate > 0 {
		// Nobody misses what was not due yet while connections were opened.
		if float64(run.Unsent) > (1-rateLimit)*run.Rate*run.Seconds {
			j.warn(Warning{Code: RateMissed, Hint: "use a lower --rate or more --connections: the latencies are those of a growing queue"},
				"the generator reached %s of %s requests/s and never sent %d requests", RoundRate(run.QPS), RoundRate(run.Rate), run.Unsent)
		}
		return
	}
	n := float64(j.connections)
	if run.Latency.Mean == nil {
		j.unchecked(LittlesLaw, "the load generator tells no uncorrected mean")
	}
	if run.Latency.Mean == nil || run.Seconds < littleSeconds || float64(run.Requests) < littleRounds*n {
		return
	}
	if q := run.QPS * *run.Latency.Mean / 1e6; math.Abs(q-n) > littleLimit*n {
		j.warn(Warning{Code: LittlesLaw, Hint: "look for reconnects, or a generator short of CPU: latency does not include that time"},
			"QPS times mean latency gives %.1f requests in flight on %.0f connections", q, n)
	}
}

// judgeCeiling looks for an upstream that was part of the limit.
func (j judge) judgeCeiling(run *Run) {
	if c := j.Control; c != nil && !c.Cut && c.QPS > 0 && run.QPS > ceilingLimit*c.QPS {
		j.warn(Warning{Code: UpstreamCeiling, Hint: "use a machine with more cores: upstream and generator may limit the figure"},
			"the gateway reached %.0f %% of the upstream's rate without it", 100*run.QPS/c.QPS)
	}
}

// workers is how many workers are known to run; 0 if unknown.
func (r *Result) workers() float64 { return float64(known(r.Gateway.Workers)) }

// known is *v, or 0 if that is unknown.
func known[T int | uint64 | float64](v *T) T {
	if v == nil {
		return 0
	}
	return *v
}

// judgeIdle looks for workers that had too little to do.
func (j judge) judgeIdle(run *Run) {
	n := j.workers()
	if run.CPU.Gateway == nil || n == 0 {
		return
	}
	if used := *run.CPU.Gateway + known(run.CPU.GatewayWait); used/n < idleLimit {
		j.warn(Warning{Code: GatewayIdle, Invalid: true, Hint: "use more --connections, or look for a slow generator or upstream in the CPU figures"},
			"the gateway's workers were idle for %.0f %% of the time, so something else was the limit", 100*(1-used/n))
	}
}

// judgeWorkers looks for workers that got far fewer connections than others: the
// kernel deals them out by chance to sockets that share a port.
func (j judge) judgeWorkers(run *Run) {
	if len(run.CPU.Workers) < 2 {
		return
	}
	least, most := slices.Min(run.CPU.Workers), slices.Max(run.CPU.Workers)
	if least < unevenLimit*most {
		j.warn(Warning{Code: UnevenWorkers, Hint: "use more --connections: with few, some workers get none"},
			"the gateway's workers were used unevenly, from %.0f %% to %.0f %% of a core", 100*least, 100*most)
	}
}

// judgeWait tells whom the workers waited for. Others make the figure that of a
// disturbed machine; the run's own processes make it that of a small one.
func (j judge) judgeWait(run *Run) {
	n := j.workers()
	if n == 0 || run.CPU.GatewayWait == nil || run.CPU.Others == nil {
		j.unchecked(GatewayDisturbed, "the workers' wait for a core, or the CPU time of other processes, is unknown")
	} else if share := j.othersPart(run) / n; share > disturbedLimit {
		j.warn(Warning{Code: GatewayDisturbed, Disturbed: true, Hint: "stop the other programs on this machine, and measure again"},
			"other processes kept the gateway's workers waiting for %.0f %% of the time and used %.2f cores in all", 100*share, *run.CPU.Others)
		return
	}
	if n > 0 && run.Rate == 0 && run.CPU.GatewayWait != nil && *run.CPU.GatewayWait/n > starvedLimit {
		j.warn(Warning{Code: GatewayStarved, Hint: "use a machine with four or more cores, where the gateway has its own"},
			"the gateway's workers were ready but waited for a core for %.0f %% of the time", 100**run.CPU.GatewayWait/n)
	}
}

// othersPart is how long the workers waited because of other processes, in cores:
// no longer than those ran, and no more than their share of what competes for the
// workers' cores. Pinned workers don't share them with the run's own processes.
func (j judge) othersPart(run *Run) float64 {
	n, others := j.workers(), *run.CPU.Others
	if others <= 0 {
		return 0
	}
	competing := others + known(run.CPU.Gateway)*(n-1)/n
	if p := j.Settings.Pins; p == nil || p.Gateway == "" {
		competing += known(run.CPU.Upstream) + known(run.CPU.Load) + known(run.CPU.Etcd)
	}
	return min(others, *run.CPU.GatewayWait*others/competing)
}
