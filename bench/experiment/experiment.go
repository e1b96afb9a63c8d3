// Package experiment conducts a measurement: it brings up etcd, the upstream
// and the gateway, watches the machine, measures, and takes everything down
// again. It is the only package that knows them all.
package experiment

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"

	"armrepro/bench"
	"armrepro/proxycheck"
)

// The kinds of gateway, as Config.Gateway names them.
const (
	Auto    = "auto"
	Native  = "native"
	Attach  = "attach"
	Builtin = "builtin"
)

// Kinds lists the kinds of gateway, the default first.
func Kinds() []string { return []string{Auto, Native, Attach, Builtin} }

// Config says what to measure, and how.
type Config struct {
	// Tool names the program that measures.
	Tool bench.Tool
	// Label is the user's name for the machine; empty without one.
	Label string
	// Settings are the choices that affect the figures.
	Settings bench.Settings
	// ThreadPerWorker gives the load generator a thread for each worker where
	// Settings.Scaling changes their number.
	ThreadPerWorker bool
	Scenarios       []bench.Scenario
	// LoadTool and UpstreamTool are OwnTool, or WrkTool and NginxTool for an
	// installed wrk and nginx. CrossCheck measures each scenario once more with
	// wrk.
	LoadTool, UpstreamTool string
	CrossCheck             bool
	// EmptyProxy also measures a proxy of the same OpenResty that does nothing
	// else; Memory that of the workers after a minute without load.
	EmptyProxy, Memory bool
	// Pin is how processes are kept on CPUs, as fitness.PlanPins takes it.
	Pin string

	// Gateway is one of Kinds.
	Gateway string
	// APISIXHome is the folder of the installed APISIX; empty means the usual
	// places.
	APISIXHome string
	// GatewayURL is the data plane to attach to; empty means Ports.Gateway on
	// this machine. AdminURL is its Admin API; empty means to look for it.
	GatewayURL, AdminURL string
	// AdminKey is the Admin API's key; empty means a random one.
	AdminKey string
	// Etcd is an existing etcd; no endpoints mean the embedded one.
	Etcd       proxycheck.Etcd
	EtcdPrefix string

	Ports    Ports
	Logger   zerolog.Logger
	Progress bench.Progress
}

// Ports are the TCP ports that an experiment uses.
type Ports struct {
	Upstream, Gateway, Admin, Etcd, Control, Prometheus, TLS int
}

// DefaultPorts are those of the published benchmarks.
func DefaultPorts() Ports {
	return Ports{Upstream: 1980, Gateway: 9080, Admin: 9180, Etcd: 2379, Control: 9090, Prometheus: 9091, TLS: 9443}
}

// Port is one of Ports with its name, and the flag that chooses it.
type Port struct {
	Number     *int
	Name, Flag string
}

// All lists the ports.
func (p *Ports) All() []Port {
	return []Port{
		{&p.Upstream, "upstream", "upstream-port"},
		{&p.Gateway, "gateway", "gateway-port"},
		{&p.Admin, "Admin API", "admin-port"},
		{&p.Etcd, "embedded etcd", "etcd-port"},
		{&p.Control, "control API", "control-port"},
		{&p.Prometheus, "metrics", "prometheus-port"},
		{&p.TLS, "TLS listener", "tls-port"},
	}
}

// Run measures. A *process.LeftBehind in the error lists what could not be
// removed. The result holds what was measured even with an error; it is nil if
// nothing was.
func Run(ctx context.Context, cfg Config) (*bench.Result, error) {
	c := newConductor(cfg)
	err := c.setUp(ctx)
	if err == nil {
		err = c.measure(ctx)
	}
	err = errors.Join(err, c.tearDown())
	if len(c.result.Scenarios) == 0 {
		return nil, err
	}
	c.result.Judge(len(cfg.Scenarios))
	return c.result, err
}

func newConductor(cfg Config) *conductor {
	return &conductor{cfg: cfg, log: cfg.Logger, result: &bench.Result{
		Schema:    bench.Schema,
		Label:     cfg.Label,
		Tool:      cfg.Tool,
		Started:   time.Now().UTC().Truncate(time.Second),
		Settings:  cfg.Settings,
		Scenarios: []bench.ScenarioResult{},
		Warnings:  []bench.Warning{},
	}}
}

// measure measures the gateway that is up, and then what else was asked for.
func (c *conductor) measure(ctx context.Context) error {
	var err error
	if c.cfg.Settings.Repeated() {
		err = c.repeat(ctx)
	} else {
		err = c.measureWhileUp(ctx, c.benchConfig())
	}
	var workers []int
	if c.gateway != nil {
		workers, _ = c.gateway.Workers()
	}
	c.fit.end(c, workers)
	if err == nil && c.cfg.Memory {
		err = c.memoryAfter(ctx, workers)
	}
	if err == nil {
		err = c.scale(ctx)
	}
	if err == nil && c.cfg.EmptyProxy {
		err = c.emptyProxy(ctx)
	}
	return err
}

func (c *conductor) measureWhileUp(ctx context.Context, cfg bench.Config) error {
	ctx, stop := c.whileUp(ctx)
	defer stop()
	return bench.Measure(ctx, cfg, c.result)
}

// benchConfig describes the setup for package bench. The upstream is measured alone
// only once, and so is the cross-check.
func (c *conductor) benchConfig() bench.Config {
	var upstreamURL string
	var crossCheck bench.Generator
	if c.result.Control == nil {
		if c.cfg.CrossCheck {
			crossCheck = wrkGenerator{pinned{c.fit.pins.Load}, *c.tools.wrk}
		}
		upstreamURL = "http://" + c.nodes()[0] + c.cfg.Scenarios[0].Path
	}
	return bench.Config{
		UpstreamURL:  upstreamURL,
		Settings:     c.result.Settings,
		Scenarios:    c.cfg.Scenarios,
		Gateway:      benchGateway{c.gateway, c.nodes()},
		Generator:    c.generator(),
		CrossCheck:   crossCheck,
		UpstreamPIDs: c.upstream.pids,
		EtcdEmbedded: c.etcd != nil,
		Answered:     c.upstream.answered,
		CPUs:         c.fit.cpus,
		Progress:     c.cfg.Progress,
		Root:         os.DirFS("/"),
	}
}

// nodes are the addresses of the upstream.
func (c *conductor) nodes() []string {
	var nodes []string
	for i := range c.cfg.Settings.Upstreams {
		nodes = append(nodes, loopback(c.cfg.Ports.Upstream+i))
	}
	return nodes
}
