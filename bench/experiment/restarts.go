package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"armrepro/bench"
	"armrepro/bench/statistics"
)

// repeat measures the scenarios on one start of the gateway after the other.
func (c *conductor) repeat(ctx context.Context) error {
	settings := c.cfg.Settings
	repeats := &repeats{settings: settings, rule: statistics.Rule{Precision: settings.Precision}, begun: time.Now()}
	for repeats.more(c.result) {
		began := time.Now()
		err := c.oneStart(ctx, repeats.made)
		repeats.made, repeats.lasted = repeats.made+1, time.Since(began)
		if err != nil {
			return fmt.Errorf("start %d: %w", repeats.made, err)
		}
		c.log.Info().Int("start", repeats.made).Int("counted", c.result.CountedStarts()).Msg(repeats.reached(c.result))
	}
	if text := repeats.missed(c.result); text != "" {
		c.result.Warn(bench.Warning{Code: bench.PrecisionMissed, Text: text, Hint: "allow a longer --max-time, or use a quieter machine"})
	}
	return nil
}

// oneStart measures the scenarios on the gateway that is up the first time, then on
// one that is started anew. Every other time their order is reversed, so that a
// drift of the machine hits all alike.
func (c *conductor) oneStart(ctx context.Context, made int) error {
	settings, scenarios, start := c.cfg.Settings, slices.Clone(c.cfg.Scenarios), starter(nil)
	settings.Scaling = nil
	if made > 0 {
		settings.Concurrency, settings.Sweep, start = nil, nil, c.startGateway
		for i := range scenarios {
			// The first start proved it, which can take 15 s.
			scenarios[i].Expect.Metric = ""
		}
	}
	if made%2 == 1 {
		slices.Reverse(scenarios)
	}
	r, err := c.session(ctx, settings, scenarios, start)
	if len(r.Scenarios) == 0 {
		return err
	}
	c.result.AddStart(r)
	c.result.Gateway = r.Gateway
	if made == 0 {
		c.result.Control, c.result.ControlOne, c.result.Memory = r.Control, r.ControlOne, r.Memory
		c.result.Unchecked = append(c.result.Unchecked, r.Unchecked...)
	}
	return err
}

// repeats decides how often the gateway is started.
type repeats struct {
	settings bench.Settings
	rule     statistics.Rule
	begun    time.Time
	// made is the number of starts so far, lasted how long the last one took.
	made   int
	lasted time.Duration
}

// patience times the starts that are needed are made at most: disturbed ones are
// made again.
const patience = 2

// more says whether another start is to be made.
func (r *repeats) more(result *bench.Result) bool {
	s := r.settings
	switch {
	case r.made == 0:
		return true
	case s.Precision == 0:
		return result.CountedStarts() < s.Restarts && r.made < patience*s.Restarts
	case r.rule.Done(result.Samples()...) || r.made >= statistics.Least*patience && result.CountedStarts() < r.made/patience:
		return false
	}
	return s.MaxTimeS == 0 || (time.Since(r.begun)+r.lasted).Seconds() <= s.MaxTimeS
}

// reached says how far the starts have come.
func (r *repeats) reached(result *bench.Result) string {
	var texts []string
	if result.CountedStarts() == 0 {
		return "no start counts so far"
	}
	samples := result.Samples()
	for i, s := range result.Scenarios {
		texts = append(texts, s.Name+" "+interval(r.rule.Interval(samples[i])))
	}
	text := strings.Join(texts, ", ")
	if r.settings.Precision == 0 {
		return text
	}
	if left := r.rule.Remaining(samples...); left > 0 {
		text += fmt.Sprintf("; about %d more starts, %s", left, (time.Duration(left) * r.lasted).Round(time.Second))
	}
	return text
}

// interval prints requests/s with half the width of their 95 % interval.
func interval(e statistics.Estimate) string {
	if !e.Bounded() {
		return fmt.Sprintf("%.0f requests/s", e.Mean)
	}
	return fmt.Sprintf("%.0f requests/s ± %.1f %%", e.Mean, 100*e.Relative())
}

// missed says by how much the precision that was asked for was missed, or nothing.
func (r *repeats) missed(result *bench.Result) string {
	if r.settings.Precision == 0 || r.rule.Done(result.Samples()...) {
		return ""
	}
	return fmt.Sprintf("the intervals are wider than ± %g %% after %d starts that count: %s",
		100*r.settings.Precision, result.CountedStarts(), r.reached(result))
}
