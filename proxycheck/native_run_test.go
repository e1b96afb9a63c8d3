package proxycheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

func TestNativeRoutes(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t)
	for _, tt := range []struct {
		name, fault string
		route       func(Route) Route
		want, hint  string
	}{
		{name: "late", fault: "not-found=20"},
		{name: "never", fault: "not-found=1000000", want: "not in time: status 404: 404 Route Not Found", hint: "Lua library"},
		{name: "wrong body", route: func(r Route) Route { r.WantBody = "other"; return r }, want: `the body is "1234567890", not "other"`},
		{name: "missing header", route: func(r Route) Route { r.WantHeaders = []string{"X-None"}; return r }, want: "the header X-None is missing"},
		{name: "foreign header", route: func(r Route) Route { r.WithoutHeaders = []string{"Server"}; return r }, want: "the header Server is there"},
		{name: "refused", route: func(r Route) Route { r.Body = []byte(`{"uri":`); return r }, want: "status 400"},
		{
			name: "dead upstream", want: "not in time: status 502", hint: "upstream",
			route: func(r Route) Route {
				r.Body = []byte(`{"uri":"/hello","upstream":{"type":"roundrobin","nodes":{"127.0.0.1:1":1}}}`)
				return r
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := nativeIn(t, "3.18.0", tt.fault)
			cfg.Etcd = etcdAt(startEtcd(t))
			if tt.want != "" {
				cfg.Timeouts = Timeouts{Route: time.Second}
			}
			gw, err := StartNative(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := gw.Close(); err != nil {
					t.Error(err)
				}
				leavesNothing(t, cfg.RunDir)
			}()
			r := plainRoute(upstream)
			if tt.route != nil {
				r = tt.route(r)
			}
			err = gw.Apply(t.Context(), r)
			if tt.want == "" {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error lacks %q:\n%v", tt.want, err)
			}
			if !strings.Contains(process.Hint(err), tt.hint) {
				t.Errorf("the hint is %q, want %q in it", process.Hint(err), tt.hint)
			}
		})
	}
}

// The metrics of newer releases are recomputed now and then.
func TestNativeMetric(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, fault, metric string
		route               func(upstream string) Route
		requests            uint64
		want                string
	}{
		{"late", "metrics-every=700ms", statusMetric, pluginRoute, 5, ""},
		{"too few", "", statusMetric, pluginRoute, 1e6, "not 1000000"},
		{"no such metric", "", "apisix_nothing", pluginRoute, 1, "there is no metric apisix_nothing"},
		{"no plugin", "", statusMetric, plainRoute, 1, statusMetric},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := nativeIn(t, "3.18.0", tt.fault)
			cfg.Etcd = etcdAt(startEtcd(t))
			if tt.want != "" {
				cfg.Timeouts = Timeouts{Metric: time.Second}
			}
			gw, err := StartNative(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer gw.Close()
			if _, err := http.Get(baseURL(cfg.Ports.Prometheus) + "/apisix/prometheus/metrics"); err != nil {
				t.Fatal(err)
			}
			if err := gw.Apply(t.Context(), tt.route(startUpstream(t))); err != nil {
				t.Fatal(err)
			}
			err = gw.Counted(t.Context(), tt.metric, tt.requests)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestNativeWorkers(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "2.15.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	cfg.Workers = 3
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	if pids, err := gw.Workers(); err != nil || len(pids) != 3 {
		t.Errorf("workers: %v, %v", pids, err)
	}
	if err := gw.Apply(t.Context(), plainRoute(startUpstream(t))); err != nil {
		t.Error(err)
	}
}

// Workers that crash are replaced by nginx, so that the route may well answer:
// it has to be noticed by their pids.
func TestNativeCrashingWorkers(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "crash-every=1s")
	cfg.Etcd = etcdAt(startEtcd(t))
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	first := gw.(*native).workers
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = process.Poll(ctx, pollEvery, func() error {
		pids, err := gw.Workers()
		if err == nil && (len(pids) == 0 || slices.Equal(pids, first)) {
			err = errors.New("the worker is still the first one")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = gw.Apply(t.Context(), plainRoute(startUpstream(t)))
	if err == nil || !strings.Contains(err.Error(), "exited on signal 11") {
		t.Errorf("Apply: %v", err)
	}
}

// A long run's access log may be larger than the disk.
func TestNativeWarnsOfLogSpace(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "2.15.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	cfg.Load = 10000 * time.Hour
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	w := gw.Warnings()
	if len(w) != 1 || w[0].Code != "log-space" || !strings.Contains(w[0].Text, cfg.RunDir) {
		t.Errorf("warnings: %v", w)
	}
}

// The access log is on, since its cost is part of the figures, and emptied
// between scenarios.
func TestNativeAccessLog(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	upstream := startUpstream(t)
	size := func() int64 {
		info, err := os.Stat(gw.(*native).home.path("logs/access.log"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if err := gw.Apply(t.Context(), plainRoute(upstream)); err != nil {
		t.Fatal(err)
	}
	proof := size()
	if proof == 0 {
		t.Error("the requests of the proof are not in the log")
	}
	for range 100 {
		resp, err := http.Get(gw.URL() + "/hello")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	loaded := size()
	if err := gw.Apply(t.Context(), plainRoute(upstream)); err != nil {
		t.Fatal(err)
	}
	if after := size(); after >= loaded {
		t.Errorf("the log has %d bytes after the next scenario's proof, %d before", after, loaded)
	}
}

// The death of the master has to be noticed, and its workers must not live on.
func TestNativeMasterKilled(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := gw.Workers()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(gw.(*native).child.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gw.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("its end went unnoticed")
	}
	err = gw.Apply(t.Context(), plainRoute(startUpstream(t)))
	if err == nil || !strings.Contains(err.Error(), "APISIX has ended: signal: killed") {
		t.Errorf("Apply after its end: %v", err)
	}
	for _, pid := range workers {
		waitGone(t, pid)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	leavesNothing(t, cfg.RunDir)
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := process.Poll(ctx, pollEvery, func() error {
		if running(pid) {
			return fmt.Errorf("process %d is alive", pid)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNativeCloseOften(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "stop-delay=200ms")
	cfg.Etcd = etcdAt(startEtcd(t))
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	select {
	case <-gw.Done():
		t.Error("Done is closed, although it was Close that ended it")
	default:
	}
	leavesNothing(t, cfg.RunDir)
}

// A master that doesn't listen to SIGTERM is killed, and that is reported.
func TestNativeStubborn(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "stop-delay=1m")
	cfg.Etcd = etcdAt(startEtcd(t))
	cfg.Timeouts.Stop = 300 * time.Millisecond
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Close(); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("Close: %v", err)
	}
	leavesNothing(t, cfg.RunDir)
}

// keysUnder asks etcd for the number of keys that begin with prefix.
func keysUnder(t *testing.T, endpoint, prefix string) string {
	t.Helper()
	body := fmt.Appendf(nil, `{"key":%q,"range_end":%q,"count_only":true}`, base64Of(prefix+"/"), base64Of(prefix+"0"))
	resp, err := http.Post(endpoint+"/v3/kv/range", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNativeLeavesEtcdClean(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t)
	cfg := nativeIn(t, "2.15.0", "")
	cfg.Etcd = etcdAt(etcd)
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	prefix := gw.(*native).cfg.EtcdPrefix
	if got := keysUnder(t, etcd, prefix); !strings.Contains(got, `"count":"4"`) {
		t.Errorf("init_etcd left %s", got)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	if got := keysUnder(t, etcd, prefix); strings.Contains(got, "count") {
		t.Errorf("Close left %s", got)
	}
}

// A given prefix may be somebody's: its routes are neither touched nor removed.
func TestNativeSharedPrefix(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t)
	upstream := startUpstream(t)
	prefix := "/shared-" + randomHex(4)
	start := func() (*native, Config) {
		cfg := nativeIn(t, "3.18.0", "")
		cfg.Etcd, cfg.EtcdPrefix = etcdAt(etcd), prefix
		gw, err := StartNative(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return gw.(*native), cfg
	}
	a, aCfg := start()
	if err := a.Apply(t.Context(), plainRoute(upstream)); err != nil {
		t.Fatal(err)
	}
	b, bCfg := start()
	err := b.Apply(t.Context(), plainRoute(upstream))
	if err == nil || !strings.Contains(err.Error(), "takes it already") || !strings.Contains(process.Hint(err), "another armrepro") {
		t.Errorf("the second one: %v\n%s", err, process.Hint(err))
	}
	if err := errors.Join(b.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	leavesNothing(t, aCfg.RunDir)
	leavesNothing(t, bCfg.RunDir)
	if got := keysUnder(t, etcd, prefix); !strings.Contains(got, `"count":"4"`) {
		t.Errorf("they left %s", got)
	}
}
