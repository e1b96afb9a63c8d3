// Package gateway is a small gateway for machines that have no APISIX. It does
// what the two scenarios need in the way APISIX 3.x does it: the Admin API,
// routes kept in etcd and followed through its HTTP/JSON gateway, the plugins
// limit-count and prometheus, and nginx's handling of connections. What it does
// not know it refuses. It is not APISIX and names itself on every answer.
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

// ErrEtcd is an etcd that cannot be reached.
var ErrEtcd = errors.New("no etcd answers")

// Config says how the gateway runs. Every port may be 0 for any free one.
type Config struct {
	// Listen, AdminListen and PrometheusListen are the addresses of the
	// routes, of the Admin API and of the metrics.
	Listen, AdminListen, PrometheusListen string
	// Etcd is where the routes are kept.
	Etcd etcdhttp.Config
	// Prefix is what the keys in etcd begin with.
	Prefix string
	// AdminKey is the key that the Admin API wants, never empty.
	AdminKey string
	// Version follows Name in the header Server.
	Version string
	// Logger receives what happens. The zero Logger is silent.
	Logger zerolog.Logger
}

// Server is a running gateway.
type Server struct {
	// URL is the base of the data plane, such as http://127.0.0.1:9080, and
	// AdminURL that of the Admin API, without /apisix/admin. MetricsURL is
	// where the metrics are.
	URL, AdminURL, MetricsURL string

	cfg       Config
	routes    *routes
	data      *dataPlane
	admin     *admin
	servers   []*http.Server
	errs      chan error
	cancel    context.CancelFunc
	following sync.WaitGroup
	once      sync.Once
}

// Start starts the gateway and returns once all its ports answer, the Admin
// API's last. ErrEtcd is in the error if no etcd answers, and the system's
// error if a port is taken.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := newServer(cfg)
	if err == nil {
		if err = s.start(ctx); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Close())
	}
	return nil, fmt.Errorf("start the gateway: %w", err)
}

func newServer(cfg Config) (*Server, error) {
	switch {
	case !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/"):
		return nil, fmt.Errorf("etcd prefix %q must begin with a slash and not end with one", cfg.Prefix)
	case cfg.AdminKey == "":
		return nil, errors.New("the admin key is empty")
	}
	client, err := etcdhttp.New(cfg.Etcd)
	if err != nil {
		return nil, err
	}
	rs := &routes{store: &store{client, cfg.Prefix + "/routes/"}, log: cfg.Logger, metrics: newMetrics()}
	header := []string{Name + "/" + cfg.Version}
	return &Server{
		cfg:    cfg,
		routes: rs,
		data:   &dataPlane{routes: rs, server: header, transport: newTransport()},
		admin:  &admin{store: rs.store, key: cfg.AdminKey, server: header, log: cfg.Logger},
		errs:   make(chan error, 1),
		cancel: func() {},
	}, nil
}

func (s *Server) start(ctx context.Context) error {
	revision, err := s.routes.load(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEtcd, err)
	}
	if s.URL, err = s.listen(ctx, s.cfg.Listen, s.data); err != nil {
		return err
	}
	if s.MetricsURL, err = s.listen(ctx, s.cfg.PrometheusListen, s.routes.metrics.handler(s.data.server)); err != nil {
		return err
	}
	s.MetricsURL += metricsPath
	if s.AdminURL, err = s.listen(ctx, s.cfg.AdminListen, s.admin); err != nil {
		return err
	}
	following, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.following.Go(func() { s.routes.follow(following, revision) })
	return nil
}

// listen opens a port and answers there until the gateway is closed.
func (s *Server) listen(ctx context.Context, address string, h http.Handler) (url string, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       time.Minute,
		ConnContext:       withConn,
		ConnState:         settleWhenIdle,
		ErrorLog:          stdlog.New(debugWriter{s.cfg.Logger}, "", 0),
	}
	s.servers = append(s.servers, server)
	s.following.Go(func() {
		if err := server.Serve(clientListener{l}); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.errs <- fmt.Errorf("serve %s: %w", l.Addr(), err):
			default:
			}
		}
	})
	return "http://" + l.Addr().String(), nil
}

// debugWriter logs what net/http has to say about its clients.
type debugWriter struct{ zerolog.Logger }

func (w debugWriter) Write(b []byte) (int, error) {
	w.Debug().Msg(strings.TrimSpace(string(b)))
	return len(b), nil
}

// Err delivers at most one error: the gateway has ended by itself. It is never
// closed.
func (s *Server) Err() <-chan error { return s.errs }

// Close cuts every connection, stops the gateway and waits for what it has
// started. The routes stay in etcd. A second call does nothing.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.cancel()
		for _, server := range s.servers {
			// The listener's error says that it was closed before.
			_ = server.Close()
		}
		s.following.Wait()
		s.data.transport.CloseIdleConnections()
		s.routes.store.Close()
	})
	return nil
}
