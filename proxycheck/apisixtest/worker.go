package apisixtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"armrepro/proxycheck/gateway"
)

// runWorker is a worker process from its first line to its exit code. It
// accepts from the sockets that the master opened and hands the requests to a
// built-in gateway, giving the answers APISIX's name.
func runWorker() int {
	home := os.Getenv(homeEnv)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	conf, err := readConfig(home)
	if err != nil {
		logTo(home, "error", "read the configuration: %v", err)
		return 2
	}
	faults, err := readFaults(os.Getenv(rootEnv))
	if err != nil {
		logTo(home, "error", "read the faults: %v", err)
		return 2
	}
	server, err := startGateway(ctx, home, conf, faults)
	if err != nil {
		logTo(home, "error", "%v", err)
		return 2
	}
	defer server.Close()
	if err := relayAll(home, conf, faults, server); err != nil {
		logTo(home, "error", "%v", err)
		return 2
	}
	crash := make(<-chan time.Time)
	if faults.CrashEvery > 0 {
		crash = time.After(faults.CrashEvery)
	}
	select {
	case <-ctx.Done():
		return 0
	case <-server.Err():
	case <-crash:
	}
	return 139
}

// startGateway waits for etcd, as APISIX's workers do.
func startGateway(ctx context.Context, home string, conf *config, faults Faults) (*gateway.Server, error) {
	f, err := gateway.ParseFaults(faults.Gateway)
	if err != nil {
		return nil, err
	}
	cfg := gateway.Config{
		Listen:           "127.0.0.1:0",
		AdminListen:      "127.0.0.1:0",
		PrometheusListen: "127.0.0.1:0",
		Etcd:             conf.etcd,
		Prefix:           conf.prefix,
		AdminKey:         conf.key,
		Dialect:          gateway.V2,
		Version:          conf.version,
		Faults:           f,
	}
	if isV3(conf.version) {
		cfg.Dialect = gateway.V3
	}
	if conf.admin == conf.data {
		cfg.AdminListen = ""
	}
	for {
		server, err := gateway.Start(ctx, cfg)
		if err == nil || ctx.Err() != nil {
			return server, err
		}
		logTo(home, "error", "[lua] config_etcd.lua:574: failed to fetch data from etcd: %v", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// relayAll serves the sockets 3, 4, … that the master passed, in the order of
// config.listens. The control port and TLS only have to be held open.
func relayAll(home string, conf *config, faults Faults, server *gateway.Server) error {
	metrics, err := url.Parse(server.MetricsURL())
	if err != nil {
		return err
	}
	accessLog, err := os.OpenFile(filepath.Join(home, "logs/access.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	targets := map[string]http.Handler{
		conf.data:    logged(accessLog, relay(server.URL(), "APISIX/"+conf.version)),
		conf.metrics: cached(faults.MetricsEvery, relay(metrics.Scheme+"://"+metrics.Host, "openresty")),
	}
	if conf.admin != conf.data {
		targets[conf.admin] = relay(server.AdminURL(), "APISIX/"+conf.version)
	}
	// A worker of root's runs as nobody and reads the configuration again.
	if info, err := os.Stat(filepath.Join(home, "conf/config.yaml")); err != nil || os.Geteuid() == 0 && info.Mode()&0o004 == 0 {
		logTo(home, "error", "*1 lua entry thread aborted: runtime error: apisix/init.lua:844: attempt to index field 'router_http' (a nil value)")
		targets[conf.data] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Server", "APISIX/"+conf.version)
			w.WriteHeader(http.StatusInternalServerError)
		})
	}
	for i, addr := range conf.listens() {
		l, err := net.FileListener(os.NewFile(uintptr(3+i), addr))
		if err != nil {
			return fmt.Errorf("listen on %s: %w", addr, err)
		}
		if h := targets[addr]; h != nil {
			go http.Serve(l, h)
		}
	}
	return nil
}

// relay hands requests to the gateway and renames the answers.
func relay(target, name string) http.Handler {
	u, err := url.Parse(target)
	if err != nil {
		panic(err) // the gateway's own URL
	}
	return &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = r.In.Host },
		ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Set("Server", name)
			return nil
		},
	}
}

// logged writes an access log line for each request.
func logged(w io.Writer, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		fmt.Fprintf(w, "%s - - %q\n", r.RemoteAddr, r.Method+" "+r.URL.Path)
	})
}

// cached answers with what was so at the last multiple of every, as APISIX from
// 3.14 does for its metrics. Zero means always anew.
func cached(every time.Duration, h http.Handler) http.Handler {
	if every == 0 {
		return h
	}
	var mu sync.Mutex
	var last *recorder
	var taken time.Time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(taken) >= every {
			last, taken = &recorder{header: http.Header{}}, time.Now()
			h.ServeHTTP(last, r)
		}
		for name, values := range last.header {
			w.Header()[name] = values
		}
		w.WriteHeader(last.status)
		w.Write(last.body)
	})
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.body = append(r.body, b...)
	return len(b), nil
}
