package bench

import (
	"context"
	"errors"
	"fmt"
)

// crossCheck measures once with the other generator.
func (m *measuring) crossCheck(ctx context.Context) error {
	if m.CrossCheck == nil {
		return nil
	}
	other, check := *m, *m.runner
	check.Generator, other.runner = m.CrossCheck, &check
	return other.run(ctx, "cross-check with "+m.result.Tools.CrossCheck.Name, 0, func(run Run) {
		m.into.CrossCheck = &CrossCheck{Run: run}
	})
}

// maximum measures what a share of the maximum is a share of.
func (m *measuring) maximum(ctx context.Context) error {
	err := m.run(ctx, "for the maximum", 0, func(run Run) { m.into.Maximum = &run })
	if err == nil && m.into.Maximum.QPS == 0 {
		err = errNoMaximum
	}
	return err
}

// errNoMaximum: a share of nothing would be the rate 0, which is a closed loop.
var errNoMaximum = errors.New("nothing was answered, so there is no maximum to take shares of")

// sweep measures at every share of the maximum that was asked for.
func (m *measuring) sweep(ctx context.Context) error {
	if len(m.Settings.Sweep) == 0 {
		return nil
	}
	if m.into.Maximum == nil && m.Settings.Rate > 0 {
		if err := m.maximum(ctx); err != nil {
			return err
		}
	}
	maximum := *m.into.QPS
	if m.into.Maximum != nil {
		maximum = m.into.Maximum.QPS
	}
	if maximum == 0 {
		return errNoMaximum
	}
	for _, share := range m.Settings.Sweep {
		err := m.run(ctx, fmt.Sprintf("at %.0f %% of the maximum", 100*share), share*maximum, func(run Run) {
			m.into.Sweep = append(m.into.Sweep, SweepRun{Share: share, Run: run})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// concurrency measures on every other number of connections that was asked for.
func (m *measuring) concurrency(ctx context.Context) error {
	for _, n := range m.Settings.Concurrency {
		cfg := m.Settings.Load(m.target, m.Settings.DurationS, 0)
		cfg.Connections, cfg.Threads = n, min(n, m.Settings.Threads)
		err := m.measure(ctx, fmt.Sprintf("on %d connections", n), cfg, func(run Run) {
			m.into.Concurrency = append(m.into.Concurrency, ConcurrencyRun{Connections: n, Run: run})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
