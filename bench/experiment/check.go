package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/machine"
	"armrepro/proxycheck"
)

// Check does everything that Run does except the load.
func Check(ctx context.Context, cfg Config) (*Findings, error) {
	c := newConductor(cfg)
	err := c.setUp(ctx)
	if err == nil {
		err = c.proveRoutes(ctx)
	}
	if err = errors.Join(err, c.tearDown()); err != nil {
		return nil, err
	}
	return c.findings(), nil
}

// proveRoutes makes the smoke route and then each scenario's route live.
func (c *conductor) proveRoutes(ctx context.Context) error {
	gateway := benchGateway{c.gateway, c.nodes()}
	if err := c.smoke(ctx, gateway); err != nil {
		return err
	}
	for _, s := range c.cfg.Scenarios {
		if err := gateway.Apply(ctx, s); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		c.log.Info().Str("scenario", s.Name).Msg("route is live")
	}
	pids, err := c.gateway.Workers()
	if err != nil {
		c.log.Warn().Err(err).Msg("the gateway's workers cannot be seen")
		return nil
	}
	workers := len(pids)
	c.result.Gateway.Workers = &workers
	if workers != c.cfg.Settings.Workers {
		return &proxycheck.HintError{
			Err:  fmt.Errorf("the gateway runs %d workers, not %d", workers, c.cfg.Settings.Workers),
			Hint: fmt.Sprintf("Set worker_processes in the gateway's configuration, or say --workers %d.", workers),
		}
	}
	return nil
}

// smokePath is a path of the smoke route that the published benchmarks tried.
const smokePath = "/anything/das"

// smoke sends a request through the gateway to the own upstream, which echoes
// it.
func (c *conductor) smoke(ctx context.Context, gateway benchGateway) error {
	err := gateway.Apply(ctx, bench.Scenario{
		Name: "smoke", Path: smokePath, Route: map[string]any{"uri": "/anything/*"},
	})
	if err != nil {
		return fmt.Errorf("smoke route: %w", err)
	}
	body, err := get(ctx, c.gateway.URL()+smokePath)
	if err != nil {
		return fmt.Errorf("smoke route: %w", err)
	}
	var echo struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(body), &echo); err != nil || !strings.HasSuffix(echo.URL, smokePath) {
		return errors.New("smoke route: the answer is not from the own upstream")
	}
	c.log.Info().Str("path", smokePath).Msg("smoke route answers from the own upstream")
	return nil
}

// Findings is what Check found.
type Findings struct {
	Machine machine.Machine   `json:"machine"`
	Gateway bench.GatewayInfo `json:"gateway"`
	Etcd    bench.EtcdInfo    `json:"etcd"`
	// Routes are those that were proved live.
	Routes []string `json:"routes"`
	// Pins is null where the kernel places the processes.
	Pins     *bench.Pins     `json:"pins"`
	Warnings []bench.Warning `json:"warnings"`
	// Checks are the codes of the checks of the machine that were made;
	// Unchecked are those that could not be.
	Checks    []string            `json:"checks"`
	Unchecked []machine.Unchecked `json:"unchecked"`
}

func (c *conductor) findings() *Findings {
	r := c.result
	f := &Findings{
		Machine: r.Machine, Gateway: r.Gateway, Etcd: r.Etcd, Routes: []string{smokePath}, Pins: r.Settings.Pins, Warnings: r.Warnings,
		Checks: machine.FindingCodes(), Unchecked: append([]machine.Unchecked{}, r.Unchecked...),
	}
	for _, u := range r.Unchecked {
		f.Checks = slices.DeleteFunc(f.Checks, func(code string) bool { return code == u.Code })
	}
	for _, s := range c.cfg.Scenarios {
		f.Routes = append(f.Routes, s.Name)
	}
	return f
}
