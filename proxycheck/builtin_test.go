package proxycheck

import (
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

func builtinConfig(t *testing.T) Config {
	t.Helper()
	p := freePorts(t)
	return Config{
		Ports: Ports{Data: p.Data, Admin: p.Admin, Prometheus: p.Prometheus},
		Etcd:  etcdAt(startEtcd(t)), RunDir: shortTempDir(t),
		Timeouts: Timeouts{Stop: 2 * time.Second}, // some pretenders ignore SIGTERM
	}
}

func TestBuiltin(t *testing.T) {
	t.Parallel()
	cfg := builtinConfig(t)
	gw, err := StartBuiltin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	info := gw.Info()
	if info.Kind != "builtin" || info.Name != BuiltinName || info.Version != "1.0.0" || len(info.Plugins) == 0 {
		t.Errorf("%+v", info)
	}
	upstream := startUpstream(t)
	for _, r := range []Route{plainRoute(upstream), pluginRoute(upstream), plainRoute(upstream)} {
		if err := gw.Apply(t.Context(), r); err != nil {
			t.Fatalf("%v\n%s", err, process.Hint(err))
		}
	}
	pids, err := gw.Workers()
	if err != nil || len(pids) != 1 {
		t.Fatalf("workers: %v, %v", pids, err)
	}
	prefix := gw.(*builtin).keys.Prefix
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	waitGone(t, pids[0])
	if got := keysUnder(t, cfg.Etcd.Endpoints[0], prefix); strings.Contains(got, "count") {
		t.Errorf("Close left %s", got)
	}
	leavesNothing(t, cfg.RunDir)
}

// pretender is the program that runGateway is under another name.
func pretender(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestBuiltinStartFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, cfg *Config)
		want    string
		hint    string
	}{
		{"no etcd given", func(t *testing.T, cfg *Config) { cfg.Etcd = Etcd{} }, "no etcd endpoint", ""},
		{"no etcd", func(t *testing.T, cfg *Config) {
			cfg.Etcd = etcdAt(fmt.Sprintf("http://127.0.0.1:%d", freePort(t)))
		}, "no etcd answers", ""},
		{"port held", func(t *testing.T, cfg *Config) {
			l, err := net.Listen("tcp4", hostPort(cfg.Ports.Data))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, "address already in use", ""},
		{"wrong key", func(t *testing.T, cfg *Config) { cfg.Path = pretender(t, "401") }, "status 401", "--admin-key"},
		{"not allowed", func(t *testing.T, cfg *Config) { cfg.Path = pretender(t, "403") }, "status 403", "allow_admin"},
		{"too slow", func(t *testing.T, cfg *Config) {
			cfg.Path, cfg.Timeouts.Start = pretender(t, "hangs"), 300*time.Millisecond
		}, "not in time", ""},
		{"no program", func(t *testing.T, cfg *Config) { cfg.Path = "/does/not/exist" }, "start /does/not/exist", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := builtinConfig(t)
			tt.prepare(t, &cfg)
			gw, err := StartBuiltin(t.Context(), cfg)
			if err == nil {
				gw.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error lacks %q:\n%v", tt.want, err)
			}
			if !strings.Contains(process.Hint(err), tt.hint) {
				t.Errorf("the hint is %q, want %q in it", process.Hint(err), tt.hint)
			}
		})
	}
}

func TestBuiltinDies(t *testing.T) {
	t.Parallel()
	cfg := builtinConfig(t)
	gw, err := StartBuiltin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	if err := syscall.Kill(gw.(*builtin).child.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gw.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("its end went unnoticed")
	}
	if _, err := gw.Workers(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("Workers after its end: %v", err)
	}
}
