package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"armrepro/bench"
	"armrepro/proxycheck"
)

// The kinds of gateway, as --gateway names them.
const (
	kindAuto    = "auto"
	kindNative  = "native"
	kindAttach  = "attach"
	kindBuiltin = "builtin"
)

func gatewayKinds() []string { return []string{kindAuto, kindNative, kindAttach, kindBuiltin} }

// gatewayPlan is which gateway is going to be measured, decided before anything
// is started.
type gatewayPlan struct {
	kind    string
	install *proxycheck.Install
}

// planGateway decides on the gateway: what was asked for, or else an installed
// APISIX, or else one that already answers.
func (c *conductor) planGateway(ctx context.Context) (*gatewayPlan, error) {
	kind := c.opts.gateway
	if kind == kindAttach || kind == kindBuiltin {
		return &gatewayPlan{kind: kind}, nil
	}
	install, err := proxycheck.Find(ctx, proxycheck.FindConfig{Home: c.opts.apisixHome})
	if err == nil {
		c.log.Info().Str("version", install.Version.String()).Str("home", install.Home).Msg("found APISIX")
		return &gatewayPlan{kind: kindNative, install: install}, nil
	}
	if kind == kindAuto && c.opts.apisixHome == "" && errors.Is(err, proxycheck.ErrNotInstalled) && c.gatewayAnswers(ctx) {
		c.log.Info().Str("url", c.opts.gatewayAddress()).Msg("no APISIX is installed, but a gateway answers")
		return &gatewayPlan{kind: kindAttach}, nil
	}
	return nil, err
}

// gatewayAnswers says whether an APISIX answers where one would be attached to.
func (c *conductor) gatewayAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.opts.gatewayAddress(), nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return strings.HasPrefix(resp.Header.Get("Server"), "APISIX")
}

// needsEtcd says whether the gateway is one that brings no etcd.
func (p *gatewayPlan) needsEtcd() bool { return p.kind != kindAttach }

// ports lists the ports that the gateway is going to listen on.
func (p *gatewayPlan) ports(o *runOptions) []proxycheck.Port {
	all := []proxycheck.Port{
		{Name: "gateway", Number: o.gatewayPort, Flag: "--gateway-port"},
		{Name: "gateway's Admin API", Number: o.adminPort, Flag: "--admin-port"},
		{Name: "gateway's metrics", Number: o.prometheusPort, Flag: "--prometheus-port"},
		{Name: "gateway's control API", Number: o.controlPort, Flag: "--control-port"},
		{Name: "gateway's TLS", Number: o.tlsPort, Flag: "--tls-port"},
	}
	switch p.kind {
	case kindBuiltin:
		return all[:3]
	case kindNative:
		if p.install.Version.Major < 3 {
			// Its Admin API is on the data plane's port.
			return slices.Delete(all, 1, 2)
		}
		return all
	}
	return nil
}

// startGateway starts the gateway, or attaches to it.
func (c *conductor) startGateway(ctx context.Context, plan *gatewayPlan) error {
	var err error
	o := c.opts
	switch plan.kind {
	case kindNative:
		c.gateway, err = proxycheck.StartNative(ctx, proxycheck.NativeConfig{
			Install: plan.install,
			Workers: o.workers,
			Ports: proxycheck.NativePorts{
				Data: o.gatewayPort, Admin: o.adminPort, Control: o.controlPort,
				Prometheus: o.prometheusPort, TLS: o.tlsPort,
			},
			Etcd: c.etcdConfig, EtcdPrefix: o.etcdPrefix, AdminKey: o.adminKey,
			Load:   o.warmup + time.Duration(o.runs)*o.load.Duration,
			Logger: c.log,
		})
	case kindAttach:
		c.gateway, err = proxycheck.Attach(ctx, proxycheck.AttachConfig{
			GatewayURL: o.gatewayAddress(), AdminURL: o.adminURL, AdminKey: o.adminKey, Logger: c.log,
		})
	case kindBuiltin:
		c.gateway, err = proxycheck.StartBuiltin(ctx, proxycheck.BuiltinConfig{
			Port: o.gatewayPort, AdminPort: o.adminPort, PrometheusPort: o.prometheusPort,
			Etcd: c.etcdConfig, EtcdPrefix: o.etcdPrefix, AdminKey: o.adminKey, Logger: c.log,
		})
	}
	if err != nil {
		return err
	}
	info := c.gateway.Info()
	c.result.Gateway = bench.GatewayInfo{
		Kind: info.Kind, Name: info.Name, Version: info.Version, Plugins: info.Plugins,
	}
	c.log.Info().Str("name", info.Name).Str("version", info.Version).Str("url", c.gateway.URL()).Msg("gateway ready")
	return nil
}

// benchGateway is the gateway as package bench needs it.
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
		Metric:         s.Expect.Metric,
	})
}

// addEtcdFlags adds the flags that say how to reach an etcd.
func addEtcdFlags(fs *pflag.FlagSet, cfg *proxycheck.Etcd, endpoints []string, usage string) {
	fs.StringSliceVar(&cfg.Endpoints, "etcd", endpoints, usage)
	fs.StringVar(&cfg.User, "etcd-user", "", "user of etcd; its password is in $"+proxycheck.EtcdPasswordEnv)
	fs.StringVar(&cfg.CACert, "etcd-cacert", "", "PEM file of the authority that signed etcd's certificate (default: the system's)")
	fs.StringVar(&cfg.Cert, "etcd-cert", "", "PEM file of a client certificate for etcd")
	fs.StringVar(&cfg.Key, "etcd-key", "", "PEM file of that certificate's key")
}

// completeEtcd takes the password from the environment and checks the flags.
func completeEtcd(cfg *proxycheck.Etcd) error {
	if len(cfg.Endpoints) == 0 {
		if cfg.User+cfg.CACert+cfg.Cert+cfg.Key != "" {
			return usagef("--etcd-user, --etcd-cacert, --etcd-cert and --etcd-key need --etcd")
		}
		return nil
	}
	cfg.Password = os.Getenv(proxycheck.EtcdPasswordEnv)
	var err error
	if *cfg, err = cfg.Normalize(); err != nil {
		return usagef("--etcd: %v; %s", err, proxycheck.Hint(err))
	}
	return nil
}
