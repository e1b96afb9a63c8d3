package apisixtest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"armrepro/proxycheck/gateway"
)

// worker is a worker process. It accepts from the sockets that the master opened
// and hands the requests to a built-in gateway, giving the answers APISIX's name
// and ways.
type worker struct {
	home   string
	conf   *config
	faults Faults
	server *gateway.Server // nil without etcd
	opened []*http.Server
}

// runWorker is a worker process from its first line to its exit code.
func runWorker() int {
	w := &worker{home: os.Getenv(homeEnv)}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	var err error
	if w.conf, err = readConfig(w.home); err == nil {
		w.faults, err = readFaults(os.Getenv(rootEnv))
	}
	if err == nil && w.conf.standalone == "" {
		err = w.startGateway(ctx)
	}
	if err == nil {
		err = w.serveAll()
	}
	if err != nil {
		logTo(w.home, "error", "%v", err)
		return 2
	}
	crash := make(<-chan time.Time)
	if w.faults.CrashEvery > 0 {
		crash = time.After(w.faults.CrashEvery)
	}
	select {
	case <-ctx.Done():
		select {
		case <-quit:
			w.finish()
		default:
		}
		return 0
	case <-crash:
		return 139
	}
}

// finish waits, not for long, until the requests that have come are answered.
func (w *worker) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range w.opened {
			_ = s.Shutdown(ctx)
		}
	}()
	// Starting a child makes the sockets that it shares with this process block
	// (os.File.Fd), and then closing one waits for the next connection.
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// startGateway waits for etcd, as APISIX's workers do.
func (w *worker) startGateway(ctx context.Context) error {
	for {
		server, err := gateway.Start(ctx, gateway.Config{
			Listen:           "127.0.0.1:0",
			AdminListen:      "127.0.0.1:0",
			PrometheusListen: "127.0.0.1:0",
			Etcd:             w.conf.etcd,
			Prefix:           w.conf.prefix,
			AdminKey:         w.conf.key,
		})
		if err == nil || ctx.Err() != nil {
			w.server = server
			return err
		}
		logTo(w.home, "error", "[lua] config_etcd.lua:574: failed to fetch data from etcd: %v", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// serveAll serves the sockets 3, 4, … that the master passed, in the order of
// config.listens. The control port and TLS only have to be held open.
func (w *worker) serveAll() error {
	accessLog, err := os.OpenFile(filepath.Join(w.home, "logs/access.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	handlers := map[string]http.Handler{w.conf.data: w.dataHandler()}
	if w.server != nil {
		if handlers[w.conf.metrics], err = w.metricsHandler(); err != nil {
			return err
		}
	}
	if w.conf.admin != w.conf.data {
		handlers[w.conf.admin] = w.adminHandler()
	}
	if !workersRead(filepath.Join(w.home, "conf/config.yaml")) {
		logTo(w.home, "error", "*1 lua entry thread aborted: runtime error: apisix/init.lua:844: attempt to index field 'router_http' (a nil value)")
		handlers[w.conf.data] = w.named(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) })
	}
	handlers[w.conf.data] = logged(accessLog, handlers[w.conf.data])
	for i, l := range w.conf.listens() {
		listener, err := net.FileListener(os.NewFile(uintptr(3+i), l.address))
		if err != nil {
			return fmt.Errorf("listen on %s: %w", l.address, err)
		}
		if h := handlers[l.address]; h != nil {
			server := &http.Server{Handler: h}
			w.opened = append(w.opened, server)
			go server.Serve(listener)
		}
	}
	return nil
}

// workersRead says whether the workers can read the file, as they do again with
// the configuration. Those of root's master run as nobody.
func workersRead(file string) bool {
	nobody, err := user.Lookup("nobody")
	if err != nil || os.Geteuid() != 0 {
		return err == nil
	}
	need := fs.FileMode(0o4)
	for {
		info, err := os.Stat(file)
		if err != nil {
			return false
		}
		granted := info.Mode()
		if fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid) == nobody.Uid {
			granted >>= 6
		}
		if granted&need == 0 {
			return false
		}
		if file == filepath.Dir(file) {
			return true
		}
		file, need = filepath.Dir(file), 0o1
	}
}

// named answers in APISIX's name.
func (w *worker) named(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Server", "APISIX/"+w.conf.version)
		rw.Header().Set("Connection", "keep-alive")
		h(rw, r)
	})
}

// renamed relays to the built-in gateway, and lets change alter the answers.
func (w *worker) renamed(target string, change func(*http.Response) error) http.Handler {
	return relay(target, func(resp *http.Response) error {
		resp.Header.Set("Server", "APISIX/"+w.conf.version)
		resp.Header.Set("Connection", "keep-alive")
		return change(resp)
	})
}

// dataHandler serves the routes, and on 2.x the Admin API beside them.
func (w *worker) dataHandler() http.Handler {
	noRoute := w.named(func(rw http.ResponseWriter, _ *http.Request) {
		gateway.WriteJSON(rw, http.StatusNotFound, "text/plain; charset=utf-8", object{"error_msg": "404 Route Not Found"})
	})
	if w.server == nil {
		return noRoute
	}
	serve := w.renamed(w.server.URL, func(resp *http.Response) error {
		if !isV3(w.conf.version) {
			quotaV2(resp)
		}
		return nil
	})
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && asked.Add(1) <= int64(w.faults.NotFound) {
			noRoute.ServeHTTP(rw, r)
			return
		}
		serve.ServeHTTP(rw, r)
	})
	if w.conf.admin == w.conf.data {
		mux.Handle(adminPath, w.adminHandler())
	}
	return mux
}

// relay hands requests to the gateway, and lets change alter the answers.
func relay(target string, change func(*http.Response) error) http.Handler {
	u, err := url.Parse(target)
	if err != nil {
		panic(err) // the gateway's own URL
	}
	u.Path = ""
	return &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(u); r.Out.Host = r.In.Host },
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: change,
	}
}

// logged writes an access log line for each request.
func logged(w io.Writer, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		fmt.Fprintf(w, "%s - - %q\n", r.RemoteAddr, r.Method+" "+r.URL.Path)
	})
}
