// Package proxycheck conducts the gateway under test: it finds one, gives it a
// private home, starts it, speaks its Admin API, proves that a route is live
// and takes it all down again.
package proxycheck

import (
	"cmp"
	"context"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/process"
)

// Gateway is a running gateway under test. Close may be called twice.
type Gateway interface {
	// Info names it.
	Info() Info
	// URL is the base of its data plane, such as http://127.0.0.1:9080.
	URL() string
	// Apply makes the route live: it puts it by the Admin API and polls the
	// data plane until the route answers as it should several times in a
	// row.
	Apply(ctx context.Context, route Route) error
	// Counted waits until the gateway's prometheus endpoint shows that metric
	// has counted at least so many requests of the routes that were applied.
	Counted(ctx context.Context, metric string, requests uint64) error
	// Workers lists the pids of its worker processes, sorted; an error where
	// they cannot be seen.
	Workers() ([]int, error)
	// Warnings may grow until Close.
	Warnings() []Warning
	// Done is closed when the gateway has ended by itself.
	Done() <-chan struct{}
	// Err says how it ended. It may only be called once Done is closed.
	Err() error
	// Close removes the route, stops what was started and removes what was
	// created.
	Close() error
}

// Info names a gateway.
type Info struct {
	// Kind is native, attach or builtin.
	Kind string
	// Name is what it calls itself: APISIX or armrepro-builtin.
	Name    string
	Version string
	// OpenResty is what it runs on; nil if unknown or none.
	OpenResty *OpenResty
	// Plugins is the plugin list it was started with; nil if unknown.
	Plugins []string
}

// Route is what a scenario asks of the gateway.
type Route struct {
	// Path is what the load requests, such as /hello.
	Path string
	// Body is the Admin API's JSON for the route, upstream nodes included.
	Body []byte
	// WantBody is what the data plane has to answer on Path; empty for any.
	WantBody string
	// WantHeaders have to be present on the answer (X-RateLimit-Limit, …).
	WantHeaders []string
	// WithoutHeaders must be absent: left over from another scenario.
	WithoutHeaders []string
}

// Timeouts bound the phases of starting and stopping a gateway. Zero means the
// default of each.
type Timeouts struct {
	// Init bounds `apisix init`, which takes about 0.1 s; default 20 s.
	Init time.Duration
	// InitEtcd bounds `apisix init_etcd`, about 0.8 s; default 30 s.
	InitEtcd time.Duration
	// Start bounds the wait for the Admin API and the workers, about 1 s;
	// default 30 s.
	Start time.Duration
	// Route bounds the wait for a route to be live, about 40 ms; default
	// 15 s.
	Route time.Duration
	// Metric bounds the wait for a metric to count. From 3.14 APISIX
	// recomputes them every 15 s; default 40 s.
	Metric time.Duration
	// Stop bounds the wait for the gateway to end after SIGTERM, about
	// 1.5 s, before it is killed; default 8 s.
	Stop time.Duration
}

// timeUnit is that of the default timeouts. Tests have more patience: many of
// them share a machine that is busy with other things.
var timeUnit = time.Second

// Ports are the ports of a gateway. Zero means APISIX's default.
type Ports struct {
	// Data is the data plane's, 9080; on 2.x the Admin API's too.
	Data int
	// Admin is the Admin API's on 3.x, 9180.
	Admin int
	// Control is 9090, Prometheus 9091, TLS 9443.
	Control, Prometheus, TLS int
}

// Config says which gateway to measure.
type Config struct {
	// Install is what Find found, for StartNative.
	Install *Install
	// Workers is the number of APISIX's worker processes; zero means 1.
	Workers int
	// Load is how long one scenario keeps the gateway under load, for an
	// estimate of its access log; zero means that nothing is estimated.
	Load time.Duration
	// Path is the program with the gateway command, for StartBuiltin; empty
	// means this one.
	Path string
	// GatewayURL is the data plane to attach to, AdminURL its Admin API and
	// PrometheusURL its metrics. Where they are empty they are looked for on
	// Ports: the first on 127.0.0.1, the others on its host, and the Admin API
	// on the data plane's own port too.
	GatewayURL, AdminURL, PrometheusURL string

	Ports Ports
	// Etcd is where the gateway keeps its routes.
	Etcd Etcd
	// EtcdPrefix is the key prefix; empty means a new one, which is removed
	// again from etcd.
	EtcdPrefix string
	// EtcdEnds says that the etcd ends with this run, and its keys with it.
	EtcdEnds bool
	// AdminKey is the Admin API's key; empty means a random one. It is only
	// sent to an Admin API that has proved to be one.
	AdminKey string
	// RunDir is where runs leave things; empty means the first temporary
	// folder that will do.
	RunDir   string
	Logger   zerolog.Logger
	Timeouts Timeouts
}

// complete fills in the defaults.
func (cfg Config) complete() Config {
	cfg.Workers = cmp.Or(cfg.Workers, 1)
	cfg.Path = cmp.Or(cfg.Path, process.Self)
	p := &cfg.Ports
	p.Data, p.Admin = cmp.Or(p.Data, 9080), cmp.Or(p.Admin, 9180)
	p.Control, p.Prometheus, p.TLS = cmp.Or(p.Control, 9090), cmp.Or(p.Prometheus, 9091), cmp.Or(p.TLS, 9443)
	t := &cfg.Timeouts
	t.Init, t.InitEtcd, t.Start = cmp.Or(t.Init, 20*timeUnit), cmp.Or(t.InitEtcd, 30*timeUnit), cmp.Or(t.Start, 30*timeUnit)
	t.Route, t.Metric, t.Stop = cmp.Or(t.Route, 15*timeUnit), cmp.Or(t.Metric, 40*timeUnit), cmp.Or(t.Stop, 8*timeUnit)
	return cfg
}

// HintError is an error with a line for the user on what to do about it.
type HintError = process.HintError
