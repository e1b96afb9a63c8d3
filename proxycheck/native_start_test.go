package proxycheck

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

// nativeIn is a configuration whose home is made in a folder of its own.
func nativeIn(t *testing.T, version, fault string) Config {
	t.Helper()
	return Config{
		Install: fakeInstall(t, version, fault),
		RunDir:  shortTempDir(t),
		Ports:   freePorts(t),
	}
}

// shortTempDir is a temporary folder whose path leaves room for sockets below
// it, which t.TempDir's, named after the test, may not.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pc-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// leavesNothing checks that no home and no process is left in runDir.
func leavesNothing(t *testing.T, runDir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(runDir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v %v", runDir, left, err)
	}
	if pids := processesIn(runDir); len(pids) > 0 {
		t.Errorf("processes %v still run in %s", pids, runDir)
	}
}

// startFailure is a way in which a start fails, and what has to be said of it.
type startFailure struct {
	name, version, fault string
	deadEtcd             bool
	timeouts             Timeouts
	prepare              func(t *testing.T, cfg *Config)
	want                 []string // in the error
	hint                 string
}

var startFailures = []startFailure{
	{
		name: "no etcd, 2.15", version: "2.15.0", deadEtcd: true,
		want: []string{"phase init_etcd", "exit status 1", "all etcd nodes are unavailable"}, hint: "/version",
	},
	{
		name: "no etcd, 3.18", version: "3.18.0", deadEtcd: true,
		want: []string{"phase init_etcd", "all etcd nodes are unavailable"}, hint: "/version",
	},
	{
		name: "init hangs", version: "3.18.0", fault: "hang-init", timeouts: Timeouts{Init: time.Second},
		want: []string{"phase init", "not in time", "still running"},
	},
	{
		name: "init_etcd hangs", version: "3.18.0", fault: "hang-init-etcd", timeouts: Timeouts{InitEtcd: time.Second},
		want: []string{"phase init_etcd", "not in time", "still running"}, hint: "etcd",
	},
	{
		name: "missing Lua module", version: "2.15.0", fault: "missing-module",
		want: []string{"APISIX has ended: exit status 1", "module 'resty.radixtree' not found"}, hint: "make deps",
	},
	{
		name: "too many workers", version: "3.18.0", fault: "workers=3",
		want: []string{"phase workers", "3 worker processes run and 1 are wanted"},
	},
	{
		name: "wrong key", version: "3.18.0", fault: "admin-status=401",
		want: []string{"phase admin", "status 401"}, hint: "--admin-key",
	},
	{
		name: "not allowed", version: "2.15.0", fault: "admin-status=403",
		want: []string{"phase admin", "status 403"}, hint: "allow_admin",
	},
	{
		name: "too slow", version: "3.18.0", fault: "slow-start=1m", timeouts: Timeouts{Start: time.Second},
		want: []string{"phase ports", "not in time", "nothing listens on port"},
	},
	{
		name: "port held", version: "3.18.0", fault: "bind-wait=10ms",
		prepare: func(t *testing.T, cfg *Config) {
			l, err := net.Listen("tcp4", hostPort(cfg.Ports.Control))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		},
		want: []string{"still could not bind()"}, hint: "was taken after it had been checked, by process",
	},
	{
		name: "port shared", version: "3.18.0",
		prepare: func(t *testing.T, cfg *Config) { shareAdminPort(t, cfg) },
		want:    []string{"would get a share of the requests"}, hint: "another port",
	},
	{
		name: "OpenResty without a module", version: "3.18.0",
		prepare: func(t *testing.T, cfg *Config) {
			if err := os.Remove(cfg.Install.OpenResty.Path); err != nil {
				t.Fatal(err)
			}
			writeScript(t, cfg.Install.OpenResty.Path, `echo 'nginx: [emerg] unknown directive "http3" in conf/nginx.conf:9'; exit 1`)
		},
		want: []string{`unknown directive "http3"`}, hint: "OpenResty 1.27.1.2 (",
	},
	{
		name: "no mime.types", version: "3.18.0",
		prepare: func(t *testing.T, cfg *Config) {
			if err := os.Remove(filepath.Join(cfg.Install.Home, "conf/mime.types")); err != nil {
				t.Fatal(err)
			}
		},
		want: []string{"phase home", "mime.types"}, hint: "reinstall",
	},
	{
		name: "install out of reach", version: "3.18.0",
		prepare: func(t *testing.T, cfg *Config) {
			if os.Geteuid() != 0 {
				t.Skip("only the workers of a master that runs as root run as nobody")
			}
			dir := filepath.Dir(cfg.Install.Home)
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		want: []string{"phase home", "nobody, who may not enter"}, hint: "let every user enter",
	},
	{
		name: "no default plugins", version: "2.15.0",
		prepare: func(t *testing.T, cfg *Config) {
			if err := os.WriteFile(filepath.Join(cfg.Install.Home, "conf/config-default.yaml"), []byte("apisix: {}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		want: []string{"read the default plugins", "the list is empty"},
	},
}

func TestNativeStartFails(t *testing.T) {
	t.Parallel()
	for _, tt := range startFailures {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := nativeIn(t, tt.version, tt.fault)
			cfg.Timeouts = tt.timeouts
			cfg.Etcd = etcdAt(fmt.Sprintf("http://127.0.0.1:%d", freePort(t)))
			if !tt.deadEtcd {
				cfg.Etcd = etcdAt(startEtcd(t))
			}
			if tt.prepare != nil {
				tt.prepare(t, &cfg)
			}
			before := checksums(t, cfg.Install.Home)
			gw, err := StartNative(t.Context(), cfg)
			if err == nil {
				gw.Close()
				t.Fatal("it started")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
			if got := process.Hint(err); (tt.hint == "") != (got == "") || !strings.Contains(got, tt.hint) {
				t.Errorf("the hint is %q, want %q in it", got, tt.hint)
			}
			leavesNothing(t, cfg.RunDir)
			sameChecksums(t, before, checksums(t, cfg.Install.Home))
		})
	}
}

// shareAdminPort listens on the Admin port beside the gateway, as a second
// APISIX would, without ever answering a request of its own: it hands
// connections back by closing them, so that some of ours succeed.
func shareAdminPort(t *testing.T, cfg *Config) {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, 15, 1) }) // SO_REUSEPORT
	}}
	l, err := lc.Listen(t.Context(), "tcp4", hostPort(cfg.Ports.Data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// A start that its caller gives up has to end soon and leave nothing.
func TestNativeStartCancelled(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "slow-start=1m")
	cfg.Etcd = etcdAt(startEtcd(t))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	if gw, err := StartNative(ctx, cfg); err == nil {
		gw.Close()
		t.Fatal("it started")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("giving up took %s", took)
	}
	leavesNothing(t, cfg.RunDir)
}

// What the environment says must not reach APISIX, which would prefer it to the
// configuration. (Not parallel: it sets the environment.)
func TestNativeIgnoresEnvironment(t *testing.T) {
	t.Setenv("APISIX_WORKER_PROCESSES", "3")
	t.Setenv("APISIX_DEPLOYMENT_ETCD_HOST", `["http://127.0.0.1:1"]`)
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	gw, err := StartNative(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
}
