package proxycheck

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/process"
)

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

func (t *Timeouts) setDefaults() {
	for _, f := range []struct {
		d       *time.Duration
		seconds time.Duration
	}{
		{&t.Init, 20}, {&t.InitEtcd, 30}, {&t.Start, 30},
		{&t.Route, 15}, {&t.Metric, 40}, {&t.Stop, 8},
	} {
		if *f.d == 0 {
			*f.d = f.seconds * time.Second
		}
	}
}

// pollEvery is the time between two looks at something awaited. It bounds how
// late an event is seen; most take 20 to 700 ms.
const pollEvery = 20 * time.Millisecond

// apisixName is what APISIX calls itself in its Server header.
const apisixName = "APISIX"

// Warning is something about a gateway that the reader of the figures or the
// user has to know. Code is stable.
type Warning struct {
	Code, Text, Hint string
}

// Warner is a Gateway that has warnings. They may grow with every Apply.
type Warner interface {
	Warnings() []Warning
}

// core is what all kinds of gateway have in common: the route, from the Admin
// API to its proof.
type core struct {
	info     Info
	admin    *admin
	prove    prover
	routeID  string
	timeouts Timeouts
	log      zerolog.Logger
	// runDir is where runs leave things.
	runDir string
	// shared says that the gateway or its etcd prefix outlives this run, so
	// that a route of ours could be left in it.
	shared bool
	// metricOptional makes a metric that can't be seen a warning: a gateway
	// that somebody else configured may export its metrics anywhere.
	metricOptional bool
	// expected is how many workers answer requests; at least 1.
	expected int
	// done is closed when the gateway has ended by itself.
	done chan struct{}
	// closing says that it is us who end it.
	closing atomic.Bool
	// ended says how it ended. It may be called once done is closed.
	ended func() error

	mu       sync.Mutex
	applied  bool
	claim    *os.File
	warnings []Warning
}

func (c *core) Info() Info            { return c.info }
func (c *core) URL() string           { return c.prove.url }
func (c *core) Done() <-chan struct{} { return c.done }
func (c *core) Err() error            { return c.ended() }

func (c *core) Warnings() []Warning {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.warnings)
}

func (c *core) warn(code, text, hint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.warnings, func(w Warning) bool { return w.Code == code }) {
		return
	}
	c.warnings = append(c.warnings, Warning{code, text, hint})
	c.log.Warn().Str("code", code).Str("hint", hint).Msg(text)
}

// apply makes the route live, or says why it isn't: that the gateway has ended
// says more than that it doesn't answer.
func (c *core) apply(ctx context.Context, r Route) error {
	if isClosed(c.done) {
		return c.ended()
	}
	err := c.makeLive(ctx, r)
	if err != nil && isClosed(c.done) {
		return c.ended()
	}
	return err
}

func (c *core) makeLive(ctx context.Context, r Route) error {
	ctx, cancel := c.whileAlive(ctx)
	defer cancel()
	if err := c.keepClear(ctx, r.Path); err != nil {
		return err
	}
	if err := c.put(ctx, r); err != nil {
		return err
	}
	routeCtx, cancelRoute := context.WithTimeout(ctx, c.timeouts.Route)
	defer cancelRoute()
	if err := c.prove.route(routeCtx, r, c.expected); err != nil {
		return err
	}
	c.log.Debug().Str("path", r.Path).Str("route", c.routeID).Msg("route is live")
	if r.Metric == "" {
		return nil
	}
	metricCtx, cancelMetric := context.WithTimeout(ctx, c.timeouts.Metric)
	defer cancelMetric()
	return c.proveMetric(metricCtx, r.Metric)
}

// put puts the route. From the first time on there may be one to remove.
func (c *core) put(ctx context.Context, r Route) error {
	c.mu.Lock()
	first := !c.applied
	c.applied = true
	c.mu.Unlock()
	if first && c.shared {
		mark, err := claim(c.runDir, c.routeID)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.claim = mark
		c.mu.Unlock()
	}
	if err := c.admin.put(ctx, c.routeID, r.Body); err != nil {
		return fmt.Errorf("put the route %s: %w", r.Path, err)
	}
	return nil
}

// proveMetric waits until the route's metric counts.
func (c *core) proveMetric(ctx context.Context, metric string) error {
	if v, err := ParseVersion(c.info.Version); err == nil && c.info.Name == apisixName && v.Compare(Version{3, 14, 0}) >= 0 {
		c.log.Info().Str("metric", metric).Msg("waiting for the route in the metrics, which this APISIX recomputes every 15 s")
	}
	err := c.prove.metric(ctx, metric, c.routeID)
	if err == nil || !c.metricOptional || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	c.warn("metric-unproven", err.Error(), "see that the gateway exports its metrics on "+c.prove.metrics)
	return nil
}

// keepClear refuses a path that another route of the gateway takes already:
// putting ours beside it would change what that one's users get. Routes that
// killed runs of this machine have left are removed.
func (c *core) keepClear(ctx context.Context, path string) error {
	routes, err := c.admin.routes(ctx)
	if err != nil {
		return fmt.Errorf("list the gateway's routes: %w", err)
	}
	host := ""
	if u, err := url.Parse(c.prove.url); err == nil {
		host = u.Hostname()
	}
	for _, r := range routes {
		if r.id == c.routeID || !r.takes(path, host) {
			continue
		}
		left, err := c.removeLeft(ctx, r.id)
		if err != nil {
			return err
		}
		if left {
			continue
		}
		return &HintError{
			Err:  fmt.Errorf("use %s on this gateway: its route %s takes it already (%s)", path, r.id, r.pattern()),
			Hint: takenHint(r.id),
		}
	}
	return nil
}

func takenHint(id string) string {
	if routeIDPattern.MatchString(id) {
		return "another armrepro measures this gateway, or one on another machine was killed and left its route: delete it by the Admin API once that is sure"
	}
	return "an existing route is never touched: use a gateway without this one, or a scenario with another path"
}

// removeLeft removes a route that a killed run of this machine has left.
func (c *core) removeLeft(ctx context.Context, id string) (bool, error) {
	mark, err := takeOver(c.runDir, id)
	if mark == nil || err != nil {
		return false, err
	}
	if err := c.admin.delete(ctx, id); err != nil {
		return false, errors.Join(fmt.Errorf("remove the route %s that a killed run has left: %w", id, err), mark.Close())
	}
	c.log.Info().Str("route", id).Msg("removed a route that a killed run had left")
	return true, unclaim(mark)
}

// watch closes done if the gateway's process ends before Close.
func (c *core) watch(p *process.Process) {
	<-p.Done()
	if !c.closing.Load() {
		close(c.done)
	}
}

// whileAlive is ctx until the gateway ends by itself.
func (c *core) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.done:
			cancel(c.ended())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// removeTimeout bounds the removal of a route or keys while closing.
const removeTimeout = 3 * time.Second

// removeRoute removes the route if there may be one. It takes no context: it
// belongs to closing, which has to happen after the run's context has ended.
func (c *core) removeRoute() error {
	c.mu.Lock()
	applied, mark := c.applied, c.claim
	c.applied, c.claim = false, nil
	c.mu.Unlock()
	if !applied {
		return nil
	}
	err := errGone
	if !isClosed(c.done) {
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		defer cancel()
		err = c.admin.delete(ctx, c.routeID)
	}
	if err == nil {
		return unclaim(mark)
	}
	if mark == nil {
		if err == errGone {
			return nil // it took its routes with it
		}
		return fmt.Errorf("remove the route %s: %w", c.routeID, err)
	}
	// The mark stays beside the route, unlocked, for the next run to find.
	return errors.Join(fmt.Errorf("remove the route %s: %w", c.routeID, err), mark.Close())
}

// errGone says that there is no gateway to ask any more.
var errGone = errors.New("the gateway has ended")

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// randomHex is n random bytes in hexadecimal. crypto/rand never fails.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// newRouteID is an id that no route of anybody else has.
func newRouteID() string { return "armrepro-" + randomHex(4) }
