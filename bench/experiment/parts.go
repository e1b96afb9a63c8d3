package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// checkParts makes sure that the gateway can be started again as often as the
// parts need it.
func (c *conductor) checkParts(plan *gatewayPlan) error {
	if s := c.cfg.Settings; plan.kind == Attach && (len(s.Scaling) > 0 || s.Repeated()) {
		return &proxycheck.HintError{
			Err:    errors.New("restart the gateway: armrepro did not start it (attach)"),
			Advice: "use --gateway native, or leave out --restarts, --precision and further numbers of --workers",
		}
	}
	if c.cfg.EmptyProxy && plan.install == nil {
		return &proxycheck.HintError{
			Err:    errors.New("measure an empty proxy: it needs an installed APISIX, whose OpenResty it runs on"),
			Advice: "use --gateway native, or leave out --empty-proxy",
		}
	}
	for _, workers := range c.cfg.Settings.Scaling {
		if _, err := fitness.PlanPins(machine.LogicalCPUs(os.DirFS("/"), c.fit.cpus), workers, c.cfg.Pin); err != nil {
			return &PinError{err}
		}
	}
	return nil
}

// idleMinute is how long the workers stay without load before their memory is
// read again.
const idleMinute = time.Minute

// memoryAfter waits for a minute without load and reads the workers' memory.
func (c *conductor) memoryAfter(ctx context.Context, workers []int) error {
	c.log.Info().Msg("reading the workers' memory after a minute without load")
	c.cfg.Progress.Begin("a minute without load", idleMinute)
	defer c.cfg.Progress.End(nil)
	select {
	case <-time.After(idleMinute):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.result.Memory.After = bench.WorkersMemory(os.DirFS("/"), workers)
	return nil
}

// scale measures the scenarios with every other number of workers.
func (c *conductor) scale(ctx context.Context) error {
	for _, workers := range c.cfg.Settings.Scaling {
		settings := c.cfg.Settings
		settings.Workers, settings.Scaling, settings.Concurrency, settings.Sweep = workers, nil, nil, nil
		if c.cfg.ThreadPerWorker {
			settings.Threads = min(workers, settings.Connections)
		}
		part, err := c.part(ctx, settings, c.cfg.Scenarios, c.startGateway)
		if part != nil {
			c.result.Scaling = append(c.result.Scaling, *part)
		}
		if err != nil {
			return fmt.Errorf("%d workers: %w", workers, err)
		}
	}
	return nil
}

// emptyProxy measures a proxy on the gateway's OpenResty that only passes requests
// on, in the gateway's place.
func (c *conductor) emptyProxy(ctx context.Context) error {
	settings := c.cfg.Settings
	settings.Scaling, settings.Concurrency, settings.Sweep = nil, nil, nil
	scenario := bench.Scenario{
		Name: "empty-proxy", Title: "empty proxy on the same OpenResty",
		Path: c.cfg.Scenarios[0].Path, Route: map[string]any{"uri": c.cfg.Scenarios[0].Path},
		Expect: bench.Expect{Body: c.cfg.Scenarios[0].Expect.Body},
	}
	part, err := c.part(ctx, settings, []bench.Scenario{scenario}, c.startEmptyProxy)
	c.result.EmptyProxy = part
	if err != nil {
		return fmt.Errorf("empty proxy: %w", err)
	}
	return nil
}

func (c *conductor) startEmptyProxy(ctx context.Context, plan *gatewayPlan) error {
	var upstreams []netip.AddrPort
	for _, node := range c.nodes() {
		upstreams = append(upstreams, netip.MustParseAddrPort(node))
	}
	var err error
	c.gateway, err = proxycheck.StartEmptyProxy(ctx, proxycheck.Config{
		Install: plan.install, Workers: c.cfg.Settings.Workers,
		Ports: proxycheck.Ports{Data: c.cfg.Ports.Gateway}, Logger: c.log,
	}, upstreams...)
	return err
}

// part measures a gateway that start starts in the place of the present one. It is
// nil if nothing was measured.
func (c *conductor) part(ctx context.Context, settings bench.Settings, scenarios []bench.Scenario, start starter) (*bench.Part, error) {
	r, err := c.session(ctx, settings, scenarios, start)
	if len(r.Scenarios) == 0 {
		return nil, err
	}
	return &bench.Part{
		Workers: settings.Workers, Threads: settings.Threads, Pins: r.Settings.Pins,
		Scenarios: r.Scenarios, Warnings: r.Warnings, Verdict: r.Verdict,
	}, err
}

// starter starts a gateway.
type starter func(context.Context, *gatewayPlan) error

// session measures a gateway into a result of its own, which is judged: one that
// start starts in the place of the present one, or that one without start.
func (c *conductor) session(ctx context.Context, settings bench.Settings, scenarios []bench.Scenario, start starter) (*bench.Result, error) {
	whole, cfg := c.result, c.cfg
	defer func() { c.result, c.cfg = whole, cfg }()
	var err error
	if start != nil {
		err = c.closeGateway()
	}
	c.cfg.Settings, c.cfg.Scenarios = settings, scenarios
	c.result = &bench.Result{
		Started: time.Now().UTC().Truncate(time.Second), Machine: whole.Machine, Gateway: whole.Gateway,
		Settings: settings, Control: whole.Control, Warnings: []bench.Warning{},
	}
	if start == nil {
		c.result.Settings.Pins, c.result.Tools = whole.Settings.Pins, whole.Tools
	}
	if err == nil && start != nil {
		err = c.startAnew(ctx, start)
	}
	if err == nil {
		err = c.measureWhileUp(ctx, c.benchConfig())
	}
	c.result.Judge(len(scenarios))
	return c.result, err
}

// startAnew starts a gateway with the settings' number of workers.
func (c *conductor) startAnew(ctx context.Context, start starter) error {
	var err error
	if c.fit.pins, err = fitness.PlanPins(machine.LogicalCPUs(os.DirFS("/"), c.fit.cpus), c.cfg.Settings.Workers, c.cfg.Pin); err != nil {
		return &PinError{err}
	}
	// The gateway inherits where this process may run.
	for _, pid := range append(c.upstream.all(), os.Getpid()) {
		if err := process.SetAffinity(pid, c.fit.cpus); err != nil {
			return fmt.Errorf("undo the pinning: %w", err)
		}
	}
	if err := start(ctx, c.plan); err != nil {
		return err
	}
	workers, _ := c.gateway.Workers()
	return c.pin(workers)
}
