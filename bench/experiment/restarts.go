package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"armrepro/bench"
)

// repeat measures the scenarios on one start of the gateway after the other.
func (c *conductor) repeat(ctx context.Context) error {
	repeats := &repeats{settings: c.cfg.Settings, begun: time.Now()}
	for repeats.more(c.result) {
		began := time.Now()
		err := c.oneStart(ctx, repeats.made)
		repeats.made, repeats.lasted = repeats.made+1, time.Since(began)
		if err != nil {
			return fmt.Errorf("start %d: %w", repeats.made, err)
		}
		c.log.Info().Int("start", repeats.made).Int("counted", c.result.CountedStarts()).Msg("measured on a start of the gateway")
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
	begun    time.Time
	// made is the number of starts so far, lasted how long the last one took.
	made   int
	lasted time.Duration
}

// more says whether another start is to be made. Disturbed ones are made again, but
// not for ever.
func (r *repeats) more(result *bench.Result) bool {
	const patience = 2
	s := r.settings
	return r.made == 0 || result.CountedStarts() < s.Restarts && r.made < patience*s.Restarts
}
