package proxycheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/etcdhttp"
	"armrepro/proxycheck/process"
)

// countKeys counts the keys under prefix, as root of an etcd that
// apisixtest.SecureEtcd started.
func countKeys(t *testing.T, endpoint, prefix string) int {
	t.Helper()
	client, err := etcdhttp.New(Etcd{Endpoints: []string{endpoint}, User: "root", Password: apisixtest.EtcdPassword})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var answer struct {
		Keys []struct{} `json:"kvs"`
	}
	if err := client.Call(t.Context(), "/v3/kv/range", etcdhttp.Under(prefix+"/"), &answer); err != nil {
		t.Fatal(err)
	}
	return len(answer.Keys)
}

// An etcd with users, with and without TLS, is used as its configuration says,
// and left without keys, also by a killed run.
func TestSecureEtcd(t *testing.T) {
	t.Parallel()
	endpoint := apisixtest.SecureEtcd(t)
	upstream := startUpstream(t)
	for name, etcd := range map[string]Etcd{
		"http":  etcdAt(endpoint),
		"https": apisixtest.TLSInFront(t, endpoint),
	} {
		etcd.User, etcd.Password = "limited", "limited"
		for _, kind := range []string{"2.15.0", "3.18.0"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				cfg := conductorConfig{
					Kind: "native", Install: fakeInstall(t, kind, ""), RunDir: shortTempDir(t), Ports: freePorts(t),
					Etcd: etcd, Upstream: upstream,
				}
				conductor, _ := startConductor(t, cfg)
				homes, _ := filepath.Glob(filepath.Join(cfg.RunDir, "armrepro-gateway-*"))
				prefix := configuredPrefix(t, homes[0])
				if n := countKeys(t, endpoint, prefix); n < 5 {
					t.Errorf("%d keys under %s", n, prefix)
				}
				killAndWait(t, conductor)
				if err := sweepAll(t.Context(), cfg.RunDir); err != nil {
					t.Error(err)
				}
				if n := countKeys(t, endpoint, prefix); n != 0 {
					t.Errorf("%d keys are left under %s", n, prefix)
				}
			})
		}
		t.Run("built-in "+name, func(t *testing.T) {
			t.Parallel()
			cfg := builtinConfig(t)
			cfg.Etcd = etcd
			gw, err := StartBuiltin(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer gw.Close()
			if err := gw.Apply(t.Context(), plainRoute(upstream)); err != nil {
				t.Error(err)
			}
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
			if n := countKeys(t, endpoint, gw.(*builtin).keys.Prefix); n != 0 {
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

// What APISIX can't do with an etcd is said before anything is made.
func TestNativeRefusesEtcd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		etcd       Etcd
		modules    []string
		want, hint string
	}{
		"none":           {Etcd{}, nil, "no etcd endpoint", ""},
		"https address":  {Etcd{Endpoints: []string{"https://127.0.0.1:1"}}, nil, "can't check a certificate against the address 127.0.0.1", "a name that its certificate holds"},
		"no TLS clients": {Etcd{Endpoints: []string{"https://localhost:1"}, Cert: "x", Key: "y"}, []string{"ngx_lua-0.10"}, "without apisix-nginx-module", "apisix-runtime"},
	} {
		cfg := Config{Install: &Install{Home: "/nowhere", OpenResty: &OpenResty{Modules: tt.modules}}, Etcd: tt.etcd, RunDir: shortTempDir(t)}
		_, err := StartNative(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(process.Hint(err), tt.hint) {
			t.Errorf("%s: %v\n%s", name, err, process.Hint(err))
		}
		leavesNothing(t, cfg.RunDir)
	}
}

// APISIX may print its whole configuration: keys and passwords in it never
// reach the user's terminal.
func TestNativeMasksSecrets(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Etcd = Etcd{Endpoints: []string{apisixtest.SecureEtcd(t)}, User: "root", Password: apisixtest.EtcdPassword}
	cfg.AdminKey = "the-admin-key"
	luajit := filepath.Join(t.TempDir(), "real/luajit")
	if err := os.MkdirAll(filepath.Dir(luajit), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(cfg.Install.LuaJIT, luajit); err != nil {
		t.Fatal(err)
	}
	writeScript(t, cfg.Install.LuaJIT, `case "$2" in init) tail -n 1 conf/config.yaml; grep -E 'key:|password:' conf/config.yaml; exit 1;; esac; exec `+luajit+` "$@"`)
	gw, err := StartNative(t.Context(), cfg)
	if err == nil {
		gw.Close()
		t.Fatal("it started")
	}
	text := fmt.Sprint(err)
	if !strings.Contains(text, "key: ***") || !strings.Contains(text, "password: '***'") || strings.Contains(text, "the-admin-key") || strings.Contains(text, `p@ss`) {
		t.Errorf("the error is %s", text)
	}
}
