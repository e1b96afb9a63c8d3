package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// Check does everything that Run does except the load. The findings are there even
// with an error; they are nil if there are none.
func Check(ctx context.Context, cfg Config) (*Findings, error) {
	c := newConductor(cfg)
	err := c.setUp(ctx)
	if err == nil {
		err = c.proveRoutes(ctx)
	}
	if c.fit == nil {
		return nil, errors.Join(err, c.tearDown())
	}
	if !c.fit.looked && ctx.Err() == nil {
		c.fit.begin(c, nil)
	}
	err = errors.Join(err, c.tearDown())
	return c.findings(), err
}

// proveRoutes makes the test route and then each scenario's route live.
func (c *conductor) proveRoutes(ctx context.Context) error {
	gateway := benchGateway{c.gateway, c.nodes()}
	if err := c.proveTestRoute(ctx, gateway); err != nil {
		return err
	}
	for _, s := range c.cfg.Scenarios {
		if err := gateway.Apply(ctx, s); err != nil {
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		if metric := s.Expect.Metric; metric != "" {
			if err := gateway.Counted(ctx, metric, 1); err != nil {
				return fmt.Errorf("scenario %s: %w", s.Name, err)
			}
		}
		c.routes = append(c.routes, s.Name)
		c.log.Info().Str("scenario", s.Name).Msg("route is live")
	}
	pids, err := c.gateway.Workers()
	if err != nil {
		c.log.Warn().Err(err).Msg("could not see the gateway's workers")
		return nil
	}
	workers := len(pids)
	c.result.Gateway.Workers = &workers
	if workers != c.cfg.Settings.Workers {
		return process.Hintf(fmt.Sprintf("set worker_processes in the gateway's configuration, or use --workers %d", workers),
			"the gateway runs %d workers, not %d", workers, c.cfg.Settings.Workers)
	}
	return nil
}

// testPath is the path of the test route, as in the published benchmarks.
const testPath = "/anything/das"

// proveTestRoute sends a request through the gateway to armrepro's upstream, which echoes
// it.
func (c *conductor) proveTestRoute(ctx context.Context, gateway benchGateway) error {
	err := gateway.Apply(ctx, bench.Scenario{
		Name: "test", Path: testPath, Route: map[string]any{"uri": "/anything/*"},
	})
	if err != nil {
		return fmt.Errorf("test route: %w", err)
	}
	body, err := process.Fetch(ctx, http.MethodGet, c.gateway.URL()+testPath, "")
	if err != nil {
		return fmt.Errorf("test route: %w", err)
	}
	var echo struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(body), &echo); err != nil || !strings.HasSuffix(echo.URL, testPath) {
		return errors.New("test route: the response is not from armrepro's upstream")
	}
	c.routes = append(c.routes, testPath)
	c.log.Info().Str("path", testPath).Msg("test route reaches armrepro's upstream")
	return nil
}

// Findings is what Check found.
type Findings struct {
	Machine machine.Machine   `json:"machine"`
	Gateway bench.GatewayInfo `json:"gateway"`
	// Installs are the APISIX installs of the machine, the one that is used first.
	Installs []proxycheck.Installed `json:"installs"`
	Etcd     bench.EtcdInfo         `json:"etcd"`
	Tools    bench.Tools            `json:"tools,omitzero"`
	// Routes are those that were verified.
	Routes []string `json:"routes"`
	// Pins is null where the kernel places the processes.
	Pins     *bench.Pins     `json:"pins"`
	Warnings []bench.Warning `json:"warnings"`
	// Checks are the codes of the machine checks that were done; Unchecked
	// those that could not be.
	Checks    []string            `json:"checks"`
	Unchecked []fitness.Unchecked `json:"unchecked"`
}

func (c *conductor) findings() *Findings {
	r := c.result
	f := &Findings{
		Machine: r.Machine, Gateway: r.Gateway, Etcd: r.Etcd, Tools: r.Tools, Routes: append([]string{}, c.routes...), Pins: r.Settings.Pins, Warnings: r.Warnings,
		Checks: fitness.FindingCodes(), Unchecked: append([]fitness.Unchecked{}, r.Unchecked...),
		Installs: append([]proxycheck.Installed{}, proxycheck.Installs(proxycheck.FindConfig{Home: c.cfg.APISIXHome})...),
	}
	for _, u := range r.Unchecked {
		f.Checks = slices.DeleteFunc(f.Checks, func(code string) bool { return code == u.Code })
	}
	return f
}
