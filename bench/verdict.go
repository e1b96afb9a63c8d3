package bench

import (
	"fmt"
	"slices"
)

// Verdict says whether the figures count.
type Verdict string

// The verdicts, best first.
const (
	// Valid figures have nothing against them.
	Valid Verdict = "valid"
	// ValidWithWarnings figures count, but the warnings limit how far.
	ValidWithWarnings Verdict = "valid-with-warnings"
	// Disturbed figures were measured right while something else took the
	// machine's time. They are compared with nothing.
	Disturbed Verdict = "disturbed"
	// Interrupted figures are those of a measurement that was stopped. They
	// are compared with nothing.
	Interrupted Verdict = "interrupted"
	// Invalid figures are compared with nothing.
	Invalid Verdict = "invalid"
)

// Standing is the verdict, or a worse one where the warnings ask for that.
// A verdict that is none is invalid.
func (r *Result) Standing() Verdict { return standing(r.Verdict, r.Warnings) }

// Standing is that of a part.
func (p *Part) Standing() Verdict { return standing(p.Verdict, p.Warnings) }

func standing(worst Verdict, warnings []Warning) Verdict {
	for _, w := range warnings {
		switch {
		case w.Invalid:
			return Invalid
		case w.Disturbed && worst != Interrupted && worst != Invalid:
			worst = Disturbed
		case worst == Valid:
			worst = ValidWithWarnings
		}
	}
	if !slices.Contains([]Verdict{Valid, ValidWithWarnings, Disturbed, Interrupted}, worst) {
		return Invalid
	}
	return worst
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
		// That of several starts was compared with the runs of its own one.
		if len(r.Starts) == 0 {
			r.compareCrossCheck(&r.Scenarios[i])
		}
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

// compareCrossCheck sets the ratios of s to its cross-check, if both count. What is
// wrong with the cross-check is a warning, and takes nothing from the result.
func (r *Result) compareCrossCheck(s *ScenarioResult) {
	check := s.CrossCheck
	if check == nil || check.Run.Cut {
		return
	}
	alone := &Result{Settings: r.Settings, Gateway: r.Gateway}
	alone.newJudge(s.Name, s.Name+", cross-check").judgeClosed(&check.Run)
	for _, w := range alone.Warnings {
		if w.Invalid || w.Disturbed {
			r.Warnings = append(r.Warnings, Warning{Code: CrossChecked, Scenario: w.Scenario, Text: w.Text, Hint: w.Hint})
			return
		}
	}
	if !r.Verdict.Counts() {
		return
	}
	if s.QPS != nil && check.Run.QPS > 0 {
		check.QPSRatio = new(*s.QPS / check.Run.QPS)
	}
	if theirs := check.Run.AverageLatency(); s.LatencyMs != nil && theirs != nil && *theirs > 0 {
		check.LatencyRatio = new(1000 * *s.LatencyMs / *theirs)
	}
}
