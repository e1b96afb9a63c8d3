package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"armrepro/bench"
	"armrepro/proxycheck"
)

// gatewayPlan says which gateway to measure. It is decided before anything is
// started.
type gatewayPlan struct {
	kind    string
	install *proxycheck.Install
}

// planGateway chooses the gateway: the kind in the config, otherwise an installed
// APISIX, otherwise one that is already running.
func (c *conductor) planGateway(ctx context.Context) (*gatewayPlan, error) {
	kind := c.cfg.Gateway
	if kind == Attach || kind == Builtin {
		return &gatewayPlan{kind: kind}, nil
	}
	find := proxycheck.FindConfig{Home: c.cfg.APISIXHome}
	install, err := proxycheck.Find(ctx, find)
	if err == nil {
		c.log.Info().Str("version", install.Version.String()).Str("home", install.Home).
			Str("openresty", install.OpenResty.Version).Str("at", install.OpenResty.Path).Msg("found APISIX")
		for _, other := range proxycheck.Installs(find)[1:] {
			c.log.Info().Str("version", other.Version).Str("home", other.Home).Msg("found another APISIX; --apisix-home chooses one")
		}
		return &gatewayPlan{kind: Native, install: install}, nil
	}
	if kind == Auto && c.cfg.APISIXHome == "" && errors.Is(err, proxycheck.ErrNotInstalled) && proxycheck.AnswersAsAPISIX(ctx, c.gatewayAddress()) {
		c.log.Info().Str("url", c.gatewayAddress()).Msg("APISIX is not installed; attaching to the running gateway")
		return &gatewayPlan{kind: Attach}, nil
	}
	return nil, err
}

// needsEtcd says whether the gateway needs an etcd from this run.
func (p *gatewayPlan) needsEtcd() bool { return p.kind != Attach }

// ports lists the ports that the gateway will listen on.
func (plan *gatewayPlan) ports(p Ports) []proxycheck.Port {
	all := []proxycheck.Port{
		{Name: "gateway", Number: p.Gateway, Flag: "--gateway-port"},
		{Name: "gateway's Admin API", Number: p.Admin, Flag: "--admin-port"},
		{Name: "gateway's metrics", Number: p.Prometheus, Flag: "--prometheus-port"},
		{Name: "gateway's control API", Number: p.Control, Flag: "--control-port"},
		{Name: "gateway's TLS", Number: p.TLS, Flag: "--tls-port"},
	}
	switch plan.kind {
	case Builtin:
		return all[:3]
	case Native:
		if plan.install.Version.Major < 3 {
			// Its Admin API is on the data plane's port.
			return slices.Delete(all, 1, 2)
		}
		return all
	}
	return nil
}

// startGateway starts the gateway, or attaches to it.
func (c *conductor) startGateway(ctx context.Context, plan *gatewayPlan) error {
	ports := c.cfg.Ports
	cfg := proxycheck.Config{
		Install: plan.install, Workers: c.cfg.Settings.Workers, Load: c.cfg.loaded(),
		Ports: proxycheck.Ports{
			Data: ports.Gateway, Admin: ports.Admin, Control: ports.Control, Prometheus: ports.Prometheus, TLS: ports.TLS,
		},
		Etcd: c.etcdConfig, EtcdPrefix: c.cfg.EtcdPrefix, EtcdEnds: c.etcd != nil, AdminKey: c.cfg.AdminKey, Logger: c.log,
	}
	var err error
	switch plan.kind {
	case Native:
		c.gateway, err = proxycheck.StartNative(ctx, cfg)
	case Attach:
		cfg.GatewayURL, cfg.AdminURL = c.gatewayAddress(), c.cfg.AdminURL
		c.gateway, err = proxycheck.Attach(ctx, cfg)
	case Builtin:
		c.gateway, err = proxycheck.StartBuiltin(ctx, cfg)
	}
	if err != nil {
		return err
	}
	info := c.gateway.Info()
	c.result.Gateway = bench.GatewayInfo{
		Kind: info.Kind, Name: info.Name, Version: info.Version, Plugins: info.Plugins,
	}
	if or := info.OpenResty; or != nil {
		c.result.Gateway.OpenResty = &bench.OpenRestyInfo{Version: or.Version, Path: or.Path, LuaJIT: or.LuaJIT, Modules: or.Modules}
	}
	c.log.Info().Str("name", info.Name).Str("version", info.Version).Str("url", c.gateway.URL()).Msg("gateway ready")
	return nil
}

// closeGateway closes the gateway, if one is up, and adds its warnings to the
// result.
func (c *conductor) closeGateway() error {
	if c.gateway == nil {
		return nil
	}
	err := c.gateway.Close()
	for _, w := range c.gateway.Warnings() {
		c.result.Warn(bench.Warning{Code: w.Code, Text: w.Text, Hint: w.Hint})
	}
	c.gateway = nil
	return err
}

// benchGateway adapts the gateway to package bench.
type benchGateway struct {
	proxycheck.Gateway
	nodes []string
}

// Apply makes the scenario's route live.
func (g benchGateway) Apply(ctx context.Context, s bench.Scenario) error {
	body, err := s.RouteBody(g.nodes)
	if err != nil {
		return err
	}
	return g.Gateway.Apply(ctx, proxycheck.Route{
		Path:           s.Path,
		Body:           body,
		WantBody:       s.Expect.Body,
		WantHeaders:    s.Expect.Headers,
		WithoutHeaders: s.Expect.AbsentHeaders,
	})
}

// gatewayAddress is the URL of the data plane to attach to.
func (c *conductor) gatewayAddress() string {
	if c.cfg.GatewayURL != "" {
		return strings.TrimSuffix(c.cfg.GatewayURL, "/")
	}
	return "http://" + loopback(c.cfg.Ports.Gateway)
}

// loaded is how long one scenario loads the gateway.
func (c Config) loaded() time.Duration {
	s := c.Settings
	runs := s.Runs
	if c.CrossCheck {
		runs++
	}
	return time.Duration((s.WarmupS + float64(runs)*s.DurationS) * float64(time.Second))
}
