package proxycheck

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"armrepro/proxycheck/process"
)

// startConductor starts a run in a process of its own, until its route is live.
func startConductor(t *testing.T, cfg conductorConfig) (*os.Process, conductorReport) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), conductorEnv+"="+string(text))
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	if cfg.User != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(cfg.User), Gid: uint32(cfg.User)}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var report conductorReport
	if err == nil {
		err = json.Unmarshal(line, &report)
	}
	if err != nil {
		cmd.Wait()
		t.Fatalf("%v: %s", err, stderr)
	}
	return cmd.Process, report
}

// killAndWait kills a run and waits until the kernel has closed what it had
// open.
func killAndWait(t *testing.T, conductor *os.Process) {
	t.Helper()
	if err := conductor.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := conductor.Wait(); err != nil {
		t.Fatal(err)
	}
}

// After kill -9 no process may live on, the install has to be as it was, and
// the next run must find its ports free and nothing in its way.
func TestKillNative(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.15.0", "3.18.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			etcd := startEtcd(t)
			cfg := conductorConfig{
				Kind:    "native",
				Install: fakeInstall(t, version, "stop-delay=200ms"), RunDir: shortTempDir(t),
				Ports: freePorts(t), Etcd: etcdAt(etcd), Upstream: startUpstream(t),
			}
			before := checksums(t, cfg.Install.Home)
			conductor, report := startConductor(t, cfg)
			if len(report.Workers) != 1 {
				t.Fatalf("workers: %v", report.Workers)
			}
			// Another run's sweep must leave a living home alone.
			if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
				t.Error(err)
			}
			homes, _ := filepath.Glob(filepath.Join(cfg.RunDir, "armrepro-gateway-*"))
			if len(homes) != 1 || !running(report.Workers[0]) {
				t.Fatalf("after the sweep of a living run: homes %v", homes)
			}
			prefix := configuredPrefix(t, homes[0])

			killAndWait(t, conductor)
			if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
				t.Error(err)
			}
			leavesNothing(t, cfg.RunDir)
			waitGone(t, report.Workers[0])
			sameChecksums(t, before, checksums(t, cfg.Install.Home))
			if got := keysUnder(t, etcd, prefix); strings.Contains(got, "count") {
				t.Errorf("left in etcd: %s", got)
			}
			p := cfg.Ports
			if err := CheckPorts(t.Context(), []Port{{"gateway", p.Data, "-"}, {"admin", p.Admin, "-"}, {"control", p.Control, "-"}, {"metrics", p.Prometheus, "-"}, {"tls", p.TLS, "-"}}); err != nil {
				t.Errorf("the next run's ports: %v", err)
			}
			gw, err := StartNative(t.Context(), Config{Install: cfg.Install, RunDir: cfg.RunDir, Ports: cfg.Ports, Etcd: cfg.Etcd})
			if err != nil {
				t.Fatalf("the next run: %v", err)
			}
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func configuredPrefix(t *testing.T, home string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(home, "conf/config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(ownEtcdPrefix + `[0-9a-f]{8}`).FindString(string(file))
}

// The master may be killed together with the run: its workers are then found by
// their working folder.
func TestKillNativeAndMaster(t *testing.T) {
	t.Parallel()
	cfg := conductorConfig{
		Kind:    "native",
		Install: fakeInstall(t, "3.18.0", "stop-delay=1m"), RunDir: shortTempDir(t),
		Ports: freePorts(t), Etcd: etcdAt(startEtcd(t)), Upstream: startUpstream(t),
	}
	conductor, report := startConductor(t, cfg)
	homes, _ := filepath.Glob(filepath.Join(cfg.RunDir, "armrepro-gateway-*"))
	pids := processesIn(homes[0])
	if len(pids) < 3 { // master, worker, privileged agent, cache manager
		t.Fatalf("processes in the home: %v", pids)
	}
	killAndWait(t, conductor)
	for _, pid := range pids {
		if pid != report.Workers[0] {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
		t.Error(err)
	}
	waitGone(t, report.Workers[0])
	leavesNothing(t, cfg.RunDir)
}

func TestKillBuiltin(t *testing.T) {
	t.Parallel()
	cfg := conductorConfig{
		Kind: "builtin", RunDir: shortTempDir(t),
		Ports: freePorts(t), Etcd: etcdAt(startEtcd(t)), Upstream: startUpstream(t),
	}
	conductor, report := startConductor(t, cfg)
	killAndWait(t, conductor)
	waitGone(t, report.Workers[0])
	if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
		t.Error(err)
	}
	leavesNothing(t, cfg.RunDir)
}

// An etcd that can't be reached when the next run begins is remembered until its
// keys are removed.
func TestKeysOfEtcdThatIsDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	deleted := make(chan string, 2)
	etcd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "no leader", http.StatusServiceUnavailable)
			return
		}
		deleted <- r.URL.Path
		io.WriteString(w, "{}")
	}))
	defer etcd.Close()
	dir := shortTempDir(t)
	keys, err := newOwnKeys(Config{RunDir: dir, Etcd: etcdAt(etcd.URL), EtcdPrefix: ownEtcdPrefix + "0a1b2c3d"})
	if err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	for _, remove := range []func() error{keys.remove, func() error { return SweepKeys(dir) }} {
		left := process.AllLeft(remove())
		if len(left) != 1 || !strings.Contains(left[0].How, "--prefix "+ownEtcdPrefix+"0a1b2c3d/") {
			t.Errorf("left behind: %+v", left)
		}
	}
	down.Store(false)
	if err := SweepKeys(dir); err != nil {
		t.Error(err)
	}
	if got := <-deleted; got != "/v3/kv/deleterange" {
		t.Errorf("etcd was asked for %s", got)
	}
	leavesNothing(t, dir)
}

// The route that a killed run left in somebody's gateway is removed by the next
// one, and only then.
func TestKillAttached(t *testing.T) {
	t.Parallel()
	running := startAPISIX(t, "3.18.0", "")
	attach := running.config(t)
	upstream := startUpstream(t)
	conductor, report := startConductor(t, conductorConfig{Kind: "attach", Attach: attach, Upstream: upstream})

	gw, err := Attach(t.Context(), attach)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	err = gw.Apply(t.Context(), plainRoute(upstream))
	if err == nil || !strings.Contains(err.Error(), report.RouteID) || !strings.Contains(process.Hint(err), "another armrepro measures") {
		t.Errorf("beside a living run: %v\n%s", err, process.Hint(err))
	}

	killAndWait(t, conductor)
	if err := sweepAll(t.Context(), attach.RunDir); err != nil {
		t.Error(err)
	}
	if err := gw.Apply(t.Context(), plainRoute(upstream)); err != nil {
		t.Errorf("after the other was killed: %v\n%s", err, process.Hint(err))
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	if ids := running.routeIDs(t); len(ids) != 0 {
		t.Errorf("routes left: %v", ids)
	}
	leavesNothing(t, attach.RunDir)
}
