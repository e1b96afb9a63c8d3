package proxycheck

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/process"
)

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

// core is what all kinds of gateway have in common: the route, from the Admin
// API to its proof.
type core struct {
	info    Info
	admin   *admin
	prove   prover
	routeID string
	cfg     Config
	log     zerolog.Logger
	// store names what keeps the route if that outlives this run, so that a
	// route of ours could be left in it; empty where it doesn't.
	store string
	// removal is the command by which a person removes a left route from the
	// store.
	removal func(routeID string) string
	// metricOptional makes a metric that can't be seen a warning: a gateway
	// that somebody else configured may export its metrics anywhere.
	metricOptional bool
	// expected is how many workers answer requests; at least 1.
	expected int
	// child is the gateway's process where it was started here.
	child *process.Process
	// keys are those in etcd that have to be removed again, or nil.
	keys *ownKeys
	// home is the gateway's folder that has to be removed again, or nil.
	home *home
	// done is closed when the gateway has ended by itself, closed by Close.
	done, closed chan struct{}
	// ended says how it ended. It may be called once done is closed.
	ended func() error

	closeOnce sync.Once
	closeErr  error

	mu sync.Mutex
	// mark is the route's, once one may be left in the store.
	mark     *process.Folder
	warnings []Warning
}

// newCore is the core of a gateway that cfg describes.
func newCore(cfg Config, info Info, ended func() error) core {
	return core{
		cfg: cfg, log: cfg.Logger, info: info, routeID: newRouteID(), expected: 1,
		done: make(chan struct{}), closed: make(chan struct{}), ended: ended,
	}
}

// reach says where a gateway that is started here answers, and makes up what cfg
// leaves to it.
func (c *core) reach(adminPort int) (err error) {
	p := c.cfg.Ports
	c.cfg.AdminKey = cmp.Or(c.cfg.AdminKey, randomHex(16))
	c.admin = &admin{base: baseURL(adminPort), key: c.cfg.AdminKey}
	c.prove = prover{url: baseURL(p.Data), metrics: baseURL(p.Prometheus) + metricsPath}
	if c.cfg.Etcd, err = c.cfg.Etcd.Normalize(); err == nil {
		c.keepInEtcd()
	}
	return err
}

// metricsPath is where APISIX has its metrics.
const metricsPath = "/apisix/prometheus/metrics"

// listenIP is the only address a gateway of ours listens on.
const listenIP = "127.0.0.1"

func hostPort(port int) string { return net.JoinHostPort(listenIP, strconv.Itoa(port)) }

func baseURL(port int) string { return "http://" + hostPort(port) }

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
	text = process.Clean(text)
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
	err := c.makeLive(ctx, r)
	if isClosed(c.done) {
		err = c.ended()
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
	routeCtx, cancelRoute := context.WithTimeout(ctx, c.cfg.Timeouts.Route)
	defer cancelRoute()
	if err := c.prove.route(routeCtx, r, c.expected); err != nil {
		return err
	}
	c.log.Debug().Str("path", r.Path).Str("route", c.routeID).Msg("route is live")
	return nil
}

// put puts the route. From the first time on there may be one to remove.
func (c *core) put(ctx context.Context, r Route) error {
	if c.store != "" && c.mark == nil {
		mark, err := newMark(c.cfg.RunDir, routeKind, c.noteOn(c.routeID), c.leftRoute(c.routeID))
		if err != nil {
			return fmt.Errorf("mark the route %s as ours: %w", c.routeID, err)
		}
		c.mu.Lock()
		c.mark = mark
		c.mu.Unlock()
	}
	if err := c.admin.put(ctx, c.routeID, r.Body); err != nil {
		return fmt.Errorf("put the route %s: %w", r.Path, err)
	}
	return nil
}

// Counted waits until the metric has counted the requests. It belongs after the
// load: from 3.14 APISIX recomputes its metrics only every 15 s.
func (c *core) Counted(ctx context.Context, metric string, requests uint64) error {
	if isClosed(c.done) {
		return c.ended()
	}
	ctx, cancel := c.whileAlive(ctx)
	defer cancel()
	ctx, cancelMetric := context.WithTimeout(ctx, c.cfg.Timeouts.Metric)
	defer cancelMetric()
	c.log.Info().Str("metric", metric).Uint64("requests", requests).Msg("waiting for the metric to count the requests")
	err := c.prove.counted(ctx, metric, c.routeID, requests)
	if err == nil || !c.metricOptional || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	c.warn("metric-unproven", err.Error(), "see that the gateway exports its metrics on "+c.prove.metrics)
	return nil
}

// keepClear refuses a path that another route of the gateway takes already:
// putting ours beside it would change what that one's users get.
func (c *core) keepClear(ctx context.Context, path string) error {
	routes, err := c.admin.routes(ctx)
	if err != nil {
		return fmt.Errorf("list the gateway's routes: %w", err)
	}
	if c.store != "" {
		if routes, err = c.removeLeftRoutes(ctx, routes); err != nil {
			return err
		}
	}
	host := ""
	if u, err := url.Parse(c.prove.url); err == nil {
		host = u.Hostname()
	}
	for _, r := range routes {
		if r.id != c.routeID && r.takes(path, host) {
			return process.Hintf(c.takenHint(r.id),
				"use %s on this gateway: its route %s takes it already (%s)", path, r.id, r.pattern())
		}
	}
	return nil
}

// routeIDPattern is what newRouteID makes.
var routeIDPattern = regexp.MustCompile(`^armrepro-[0-9a-f]{8}$`)

func (c *core) takenHint(id string) string {
	if routeIDPattern.MatchString(id) {
		return "another armrepro measures this gateway, or one on another machine was killed: once that is sure, remove its route with " + c.admin.curlDelete(id)
	}
	return "an existing route is never touched: use a gateway without this one, or a scenario with another path"
}

// removeLeftRoutes removes the routes that killed runs of this user have left in
// the gateway, and returns those that remain.
func (c *core) removeLeftRoutes(ctx context.Context, routes []existingRoute) ([]existingRoute, error) {
	marks, err := takeOverMarks(c.cfg.RunDir, routeKind)
	if err != nil {
		return nil, fmt.Errorf("look for routes of killed runs: %w", err)
	}
	var errs []error
	for _, mark := range marks {
		id := path.Base(mark.Note)
		at := slices.IndexFunc(routes, func(r existingRoute) bool { return r.id == id })
		if at < 0 && mark.Note != c.noteOn(id) {
			errs = append(errs, mark.Leave()) // in another store
			continue
		}
		if at >= 0 {
			if err := c.admin.delete(ctx, id); err != nil {
				errs = append(errs, c.leftRoute(id).Because(err), mark.Leave())
				continue
			}
			c.log.Info().Str("route", id).Msg("removed a route that a killed run had left")
			routes = slices.Delete(routes, at, at+1)
		}
		errs = append(errs, mark.Remove())
	}
	return routes, errors.Join(errs...)
}

// noteOn is what the mark of a route notes.
func (c *core) noteOn(id string) string { return c.store + "/routes/" + id }

func (c *core) leftRoute(id string) process.Left {
	return process.Left{What: "route " + id + " from " + c.store, How: c.removal(id)}
}

// start starts the gateway's process, and closes done if it ends before Close.
func (c *core) start(cfg process.Config) (err error) {
	if c.child, err = process.Start(cfg); err != nil {
		return err
	}
	go func() {
		<-c.child.Done()
		if !isClosed(c.closed) {
			close(c.done)
		}
	}()
	return nil
}

// Close removes the route, stops what was started, and removes its keys from etcd and
// its home from the disk.
func (c *core) Close() error {
	c.closeOnce.Do(func() {
		close(c.closed)
		errs := []error{c.removeRoute()}
		if c.child != nil {
			errs = append(errs, c.child.Stop(syscall.SIGTERM, c.cfg.Timeouts.Stop))
		}
		errs = append(errs, c.keys.remove())
		if c.home != nil {
			if !exists(c.home.dir) {
				c.warn("gateway-folder", "the gateway's folder "+c.home.dir+" was removed during the run", removedHint)
			}
			errs = append(errs, c.home.Remove())
		}
		if err := errors.Join(errs...); err != nil {
			c.closeErr = fmt.Errorf("stop measuring %s: %w", cmp.Or(c.info.Name, "the gateway"), err)
		}
	})
	return c.closeErr
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

// removeRoute removes the route if one may be left behind. It takes no context: it
// belongs to closing, which has to happen after the run's context has ended.
func (c *core) removeRoute() error {
	c.mu.Lock()
	mark := c.mark
	c.mark = nil
	c.mu.Unlock()
	if mark == nil {
		return nil // there is none, or it goes with its gateway
	}
	err := errGone
	if !isClosed(c.done) {
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		defer cancel()
		err = c.admin.delete(ctx, c.routeID)
	}
	if err != nil {
		// The mark stays beside the route for the next run to find.
		return errors.Join(c.leftRoute(c.routeID).Because(err), mark.Leave())
	}
	return mark.Remove()
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
