// Package proxycheck conducts the gateway under test: it finds one, gives it a
// private home, starts it, speaks its Admin API, proves that a route is live
// and takes it all down again.
package proxycheck

import (
	"context"

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
	// Workers lists the pids of its worker processes, sorted; an error where
	// they cannot be seen.
	Workers() ([]int, error)
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
	// Metric, if set, is a metric that has to appear on the gateway's
	// prometheus endpoint with this route's label.
	Metric string
}

// HintError is an error with a line for the user on what to do about it.
type HintError = process.HintError
