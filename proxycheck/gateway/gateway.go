// Package gateway is a small gateway for machines that have no APISIX, and for
// tests. It does what the two scenarios need in the way APISIX does it: the
// Admin API in the dialects of 2.x and 3.x, routes kept in etcd and followed
// through its HTTP/JSON gateway, the plugins limit-count and prometheus, and
// nginx's handling of connections. What it does not know it refuses. It is not
// APISIX and names itself on every answer.
package gateway

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/etcdhttp"
)

// Name is what the gateway calls itself in the header Server.
const Name = "armrepro-builtin"

// The addresses of APISIX 3.x, and its key prefix in etcd.
const (
	DefaultListen           = "127.0.0.1:9080"
	DefaultAdminListen      = "127.0.0.1:9180"
	DefaultPrometheusListen = "127.0.0.1:9091"
	DefaultPrefix           = "/apisix"
)

var (
	// ErrEtcd is an etcd that cannot be reached.
	ErrEtcd = errors.New("no etcd answers")
	// ErrDied is the end of a worker by one of the faults.
	ErrDied = errors.New("worker died, as asked for by a fault")
)

// Config says how the gateway runs. Every port may be 0 for any free one.
type Config struct {
	// Listen is the address of the data plane.
	Listen string
	// AdminListen is the address of the Admin API. Empty means that it is
	// on the data plane's, where APISIX 2.x has it.
	AdminListen string
	// PrometheusListen is the address of the metrics; none if empty.
	PrometheusListen string
	// Etcd is where the routes are kept.
	Etcd etcdhttp.Config
	// Prefix is what the keys in etcd begin with, DefaultPrefix if empty.
	Prefix string
	// AdminKey is the key that the Admin API wants, never empty.
	AdminKey string
	// Dialect is the Admin API's, V3 if zero.
	Dialect Dialect
	// Version follows Name in the header Server.
	Version string
	// Logger receives what happens. The zero Logger is silent.
	Logger zerolog.Logger
	// Faults make it fail on demand.
	Faults Faults
}

// Server is a running gateway.
type Server struct {
	cfg       Config
	routes    *routes
	data      *dataPlane
	admin     *admin
	servers   []*http.Server
	dataURL   string
	adminURL  string
	promURL   string
	errs      chan error
	cancel    context.CancelFunc
	following sync.WaitGroup
	once      sync.Once
}

// Start starts the gateway and returns once all its ports answer, the Admin
// API's last. ErrEtcd is in the error if no etcd answers, and the system's
// error if a port is taken.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	client, err := etcdhttp.New(cfg.Etcd)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	s := newServer(cfg, client)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the gateway: %w", err), s.Close())
	}
	return s, nil
}

// check fills the defaults in and looks for what cannot work.
func (cfg *Config) check() error {
	if cfg.Prefix == "" {
		cfg.Prefix = DefaultPrefix
	}
	if cfg.Dialect == 0 {
		cfg.Dialect = V3
	}
	if !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/") {
		return fmt.Errorf("etcd prefix %q does not begin, or does end, with a slash", cfg.Prefix)
	}
	if cfg.AdminKey == "" {
		return errors.New("the admin key is empty")
	}
	return nil
}

func newServer(cfg Config, client *etcdhttp.Client) *Server {
	e := &etcd{client}
	keys := cfg.Prefix + "/routes/"
	header := []string{Name + "/" + cfg.Version}
	conns := &connCounts{}
	s := &Server{
		cfg: cfg,
		routes: &routes{
			etcd: e, prefix: keys, dialect: cfg.Dialect, log: cfg.Logger, hide: cfg.Faults.NotFoundFor,
		},
		admin: &admin{
			etcd: e, prefix: keys, dialect: cfg.Dialect, key: cfg.AdminKey,
			server: header, log: cfg.Logger, forced: cfg.Faults.AdminStatus,
		},
		errs:   make(chan error, 1),
		cancel: func() {},
	}
	s.data = &dataPlane{
		routes:    s.routes,
		metrics:   newMetrics(conns, s.routes.reachable.Load),
		conns:     conns,
		dialect:   cfg.Dialect,
		server:    header,
		transport: newTransport(),
		dieAfter:  cfg.Faults.DieAfterRequests,
		die:       s.die,
	}
	return s
}

func (s *Server) start(ctx context.Context) error {
	revision, err := s.routes.load(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEtcd, err)
	}
	if s.cfg.Faults.SlowStart > 0 {
		sleep(ctx, s.cfg.Faults.SlowStart)
	}
	if err := s.listenAll(ctx); err != nil {
		return err
	}
	following, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.following.Go(func() { s.routes.follow(following, revision) })
	if after := s.cfg.Faults.DieAfter; after > 0 {
		s.following.Go(func() {
			if sleep(following, after); following.Err() == nil {
				s.die()
			}
		})
	}
	return nil
}

// listenAll opens every port, and serves none before all are open.
func (s *Server) listenAll(ctx context.Context) error {
	if s.cfg.Faults.PortHeld {
		holder, err := listen(ctx, s.cfg.Listen)
		if err != nil {
			return err
		}
		defer holder.Close()
		s.cfg.Listen = holder.Addr().String()
	}
	var opened []net.Listener
	for _, address := range []string{s.cfg.Listen, s.cfg.PrometheusListen, s.cfg.AdminListen} {
		var l net.Listener
		if address != "" {
			var err error
			if l, err = listen(ctx, address); err != nil {
				closeAll(opened)
				return err
			}
		}
		opened = append(opened, l)
	}
	data, prometheus, admin := opened[0], opened[1], opened[2]

	s.dataURL = "http://" + data.Addr().String()
	s.data.port = []string{portOf(data.Addr())}
	if admin == nil {
		s.data.admin = s.admin
		s.adminURL = s.dataURL
	}
	s.serve(data, s.data)
	if prometheus != nil {
		s.promURL = "http://" + prometheus.Addr().String() + metricsPath
		s.serve(prometheus, s.data.metrics.handler(s.data.server))
	}
	if admin != nil {
		s.adminURL = "http://" + admin.Addr().String()
		s.serve(admin, s.admin)
	}
	return nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if l != nil {
			l.Close()
		}
	}
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var cfg net.ListenConfig
	l, err := cfg.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return clientListener{l}, nil
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// serve answers on l until the gateway is closed.
func (s *Server) serve(l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       time.Minute,
		ConnContext:       withConn,
		ConnState:         s.data.conns.change,
		ErrorLog:          stdlog.New(debugWriter{s.cfg.Logger}, "", 0),
	}
	s.servers = append(s.servers, server)
	s.following.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve %s: %w", l.Addr(), err))
		}
	})
}

// debugWriter logs what net/http has to say about its clients.
type debugWriter struct{ zerolog.Logger }

func (w debugWriter) Write(b []byte) (int, error) {
	w.Debug().Msg(strings.TrimSpace(string(b)))
	return len(b), nil
}

// URL is the base of the data plane, such as http://127.0.0.1:9080.
func (s *Server) URL() string { return s.dataURL }

// AdminURL is the base of the Admin API, without /apisix/admin.
func (s *Server) AdminURL() string { return s.adminURL }

// MetricsURL is where the metrics are, empty if nowhere.
func (s *Server) MetricsURL() string { return s.promURL }

// Err delivers at most one error: the gateway has ended by itself. It is never
// closed.
func (s *Server) Err() <-chan error { return s.errs }

func (s *Server) fail(err error) {
	select {
	case s.errs <- err:
	default:
	}
}

// die cuts every connection, as the death of a worker does.
func (s *Server) die() {
	s.fail(ErrDied)
	s.closePorts()
}

func (s *Server) closePorts() {
	for _, server := range s.servers {
		// The listener's error says that it was closed before.
		_ = server.Close()
	}
}

// Close cuts every connection, stops the gateway and waits for what it has
// started. The routes stay in etcd. A second call does nothing.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.closePorts()
		s.following.Wait()
		s.data.transport.CloseIdleConnections()
		s.routes.etcd.client.Close()
	})
	return nil
}
