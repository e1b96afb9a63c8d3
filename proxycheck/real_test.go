package proxycheck

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"armrepro/proxycheck/process"

	"github.com/rs/zerolog"
)

// realInstall is the APISIX of this machine, or the one that PATH leads to. The
// tests that use it need one, so they run only where they are asked for.
func realInstall(t *testing.T) *Install {
	t.Helper()
	if os.Getenv("ARMREPRO_REAL_APISIX") == "" {
		t.Skip("set ARMREPRO_REAL_APISIX=1 to drive the APISIX of this machine")
	}
	inst, err := Find(t.Context(), FindConfig{})
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Hint(err))
	}
	t.Logf("found %+v", *inst)
	return inst
}

func TestRealNative(t *testing.T) {
	inst := realInstall(t)
	before := checksums(t, inst.Home)
	cfg := Config{
		Install: inst, RunDir: shortTempDir(t), Etcd: etcdAt(startEtcd(t)), Ports: freePorts(t),
		Logger: zerolog.New(zerolog.NewTestWriter(t)),
	}
	began := time.Now()
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Hint(err))
	}
	defer gw.Close()
	t.Logf("started in %s, %d plugins", time.Since(began), len(gw.Info().Plugins))
	applyAll(t, gw)
	pids, err := gw.Workers()
	if err != nil || len(pids) != 1 {
		t.Fatalf("workers: %v, %v", pids, err)
	}
	began = time.Now()
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %s", time.Since(began))
	if running(pids[0]) {
		t.Errorf("worker %d lives on after Close", pids[0])
	}
	leavesNothing(t, cfg.RunDir)
	sameChecksums(t, before, checksums(t, inst.Home))
}

// applyAll makes both scenarios' routes live, and the first again.
func applyAll(t *testing.T, gw Gateway) {
	t.Helper()
	upstream := startUpstream(t)
	for _, r := range []Route{plainRoute(upstream), pluginRoute(upstream), plainRoute(upstream)} {
		began := time.Now()
		if err := gw.Apply(t.Context(), r); err != nil {
			t.Fatalf("%v\n%s", err, process.Hint(err))
		}
		t.Logf("applied a route in %s", time.Since(began))
	}
	began := time.Now()
	if err := gw.Counted(t.Context(), statusMetric, 1); err != nil {
		t.Errorf("%v\n%s", err, process.Hint(err))
	}
	t.Logf("the metric counted after %s", time.Since(began))
}

func TestRealFailures(t *testing.T) {
	inst := realInstall(t)
	before := checksums(t, inst.Home)
	for name, change := range map[string]func(cfg *Config){
		"no etcd":   func(cfg *Config) { cfg.Etcd = etcdAt(baseURL(freePort(t))) },
		"port held": func(cfg *Config) { shareAdminPort(t, cfg) },
	} {
		cfg := Config{Install: inst, RunDir: shortTempDir(t), Etcd: etcdAt(startEtcd(t)), Ports: freePorts(t)}
		change(&cfg)
		began := time.Now()
		gw, err := StartNative(t.Context(), cfg)
		if err == nil {
			gw.Close()
			t.Errorf("%s: it started", name)
		}
		t.Logf("%s, after %s: %v\nhint: %s", name, time.Since(began), err, process.Hint(err))
		leavesNothing(t, cfg.RunDir)
	}
	sameChecksums(t, before, checksums(t, inst.Home))
}

func TestRealKill(t *testing.T) {
	inst := realInstall(t)
	before := checksums(t, inst.Home)
	cfg := conductorConfig{
		Kind: "native", Install: inst, RunDir: shortTempDir(t),
		Ports: freePorts(t), Etcd: etcdAt(startEtcd(t)), Upstream: startUpstream(t),
	}
	conductor, report := startConductor(t, cfg)
	killAndWait(t, conductor)
	began := time.Now()
	if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
		t.Error(err)
	}
	t.Logf("swept in %s", time.Since(began))
	leavesNothing(t, cfg.RunDir)
	waitGone(t, report.Workers[0])
	gw, err := StartNative(t.Context(), Config{Install: inst, RunDir: cfg.RunDir, Ports: cfg.Ports, Etcd: cfg.Etcd})
	if err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	sameChecksums(t, before, checksums(t, inst.Home))
}

// startProduction starts the install by its own command, as somebody's
// production, with one route of his.
func startProduction(t *testing.T, inst *Install, etcd string) (*runningAPISIX, Route) {
	t.Helper()
	h, err := newHome(shortTempDir(t), inst)
	if err != nil {
		t.Fatal(err)
	}
	r := &runningAPISIX{home: h.dir, ports: freePorts(t), key: "production", etcd: etcd, prefix: "/production-" + randomHex(4)}
	plugins, err := inst.plugins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Install: inst, Ports: r.ports, Workers: 1, Etcd: etcdAt(etcd), EtcdPrefix: r.prefix, AdminKey: r.key}
	config, err := cfg.configYAML(h.dir, plugins)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.write("conf/config.yaml", config); err != nil {
		t.Fatal(err)
	}
	cli := func(command string) {
		cmd := exec.Command(inst.LuaJIT, cliLua, command)
		cmd.Dir, cmd.Env = h.dir, inst.environ(h.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("apisix %s: %v\n%s", command, err, out)
		}
	}
	cli("start")
	t.Cleanup(func() {
		cli("stop")
		for _, pid := range processesIn(h.dir) {
			waitGone(t, pid)
		}
		h.Remove()
	})
	r.config(t) // waits until it answers
	theirs := Route{Path: "/theirs", WantBody: upstreamBody}
	body := []byte(`{"uri":"/theirs","upstream":{"type":"roundrobin","nodes":{"` + startUpstream(t) + `":1}}}`)
	if err := r.admin().put(t.Context(), "1", body); err != nil {
		t.Fatal(err)
	}
	return r, theirs
}

// Neither a native run beside somebody's production nor one attached to it may
// change what his users get.
func TestRealProduction(t *testing.T) {
	inst, etcd := realInstall(t), startEtcd(t)
	production, theirs := startProduction(t, inst, etcd)
	user := prover{url: baseURL(production.ports.Data), server: "APISIX/" + inst.Version.String()}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := user.route(ctx, theirs, 1); err != nil {
		t.Fatal(err)
	}
	stop, answered := useGateway(t, &user, theirs)

	beside, err := StartNative(ctx, Config{Install: inst, RunDir: shortTempDir(t), Etcd: etcdAt(etcd), Ports: freePorts(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, beside)
	if err := beside.Close(); err != nil {
		t.Error(err)
	}

	cfg := production.config(t)
	gw, err := Attach(ctx, cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Hint(err))
	}
	defer gw.Close()
	if pids, err := gw.Workers(); err != nil || len(pids) != 1 {
		t.Errorf("workers: %v, %v", pids, err)
	}
	t.Logf("attached to %s %s with %d plugins", gw.Info().Name, gw.Info().Version, len(gw.Info().Plugins))
	applyAll(t, gw)
	if err := gw.Apply(ctx, Route{Path: "/theirs", Body: []byte(`{"uri":"/theirs"}`)}); err == nil {
		t.Error("it took an existing route's path")
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	stop()
	t.Logf("the user got %d answers meanwhile", answered.Load())
	if ids := production.routeIDs(t); !slices.Equal(ids, []string{"1"}) {
		t.Errorf("routes: %v", ids)
	}
	cfg.AdminKey = "wrong"
	_, err = Attach(ctx, cfg)
	if adminStatus(err) != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %v", err)
	}
	t.Logf("with a wrong key: %v\nhint: %s", err, process.Hint(err))
}

// useGateway requests the route all the time, as a user would, and reports any
// answer that isn't right.
func useGateway(t *testing.T, user *prover, r Route) (stop func(), answered *atomic.Int64) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	answered = new(atomic.Int64)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := user.once(ctx, r); err == nil {
				answered.Add(1)
			} else if ctx.Err() == nil {
				t.Errorf("a user of the production got: %v", err)
				return
			}
		}
	}()
	return func() { cancel(); <-done }, answered
}
