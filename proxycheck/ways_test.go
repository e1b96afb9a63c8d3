package proxycheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/process"
)

// way is a way in which APISIX is installed below root. It returns the folder
// to be found, and the path by which.
type way struct {
	name    string
	install func(t *testing.T, root string) (home, path string)
}

// move moves the install's home to name, and takes its commands away.
func move(t *testing.T, root, name string) (home string) {
	t.Helper()
	remove(t, root, "usr/bin/apisix")
	home = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "usr/local/apisix"), home); err != nil {
		t.Fatal(err)
	}
	return home
}

const luajitPath = "usr/local/openresty/luajit/bin/luajit"

var ways = []way{
	{"package", func(t *testing.T, root string) (string, string) {
		return filepath.Join(root, "usr/local/apisix"), filepath.Join(root, "usr/bin")
	}},
	{"image, its command not on the path", func(t *testing.T, root string) (string, string) {
		remove(t, root, "usr/bin/apisix")
		return filepath.Join(root, "usr/local/apisix"), "/nowhere"
	}},
	{"source checkout", func(t *testing.T, root string) (string, string) {
		home := move(t, root, "src/apisix")
		remove(t, home, "bin/apisix")
		writeScript(t, filepath.Join(home, "bin/apisix"), "exec luajit ./apisix/cli/apisix.lua $*")
		return home, filepath.Join(home, "bin")
	}},
	{"script with a fixed path", func(t *testing.T, root string) (string, string) {
		home := move(t, root, "opt/apisix")
		text := "APISIX_LUA=" + home + "/apisix/cli/apisix.lua\necho \"x $APISIX_LUA\"\nexec " + filepath.Join(root, luajitPath) + " $APISIX_LUA $*"
		remove(t, home, "bin/apisix")
		writeScript(t, filepath.Join(home, "bin/apisix"), text)
		writeScript(t, filepath.Join(root, "usr/bin/apisix"), text)
		return home, filepath.Join(root, "usr/bin")
	}},
	{"wrapper", func(t *testing.T, root string) (string, string) {
		home := move(t, root, "opt/apisix")
		writeScript(t, filepath.Join(root, "home/bin/apisix"), "cd '"+home+"' && exec ./bin/apisix \"$@\"")
		return home, filepath.Join(root, "home/bin")
	}},
	{"luarocks", func(t *testing.T, root string) (string, string) {
		home := filepath.Join(root, "usr/local/share/lua/5.1")
		if err := os.MkdirAll(home, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(root, "usr/local/apisix/apisix"), filepath.Join(home, "apisix")); err != nil {
			t.Fatal(err)
		}
		remove(t, root, "usr/bin/apisix")
		writeScript(t, filepath.Join(root, "usr/local/bin/apisix"), "exec luajit /usr/local/share/lua/5.1/apisix/cli/apisix.lua $*")
		return home, filepath.Join(root, "usr/local/bin")
	}},
	{"other prefix", func(t *testing.T, root string) (string, string) {
		home := move(t, root, "opt/local/apisix")
		writeScript(t, filepath.Join(root, "opt/bin/apisix"), "exec luajit /usr/local/apisix/apisix/cli/apisix.lua $*")
		return home, filepath.Join(root, "opt/bin")
	}},
}

// Whatever the command of an install does, nothing in the install may change.
func TestWaysOfInstalling(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for _, version := range []string{"2.15.0", "3.18.0"} {
			t.Run(w.name+" "+version, func(t *testing.T) {
				t.Parallel()
				root := apisixtest.Install(t, version, "")
				home, path := w.install(t, root)
				before := checksums(t, root)
				inst, err := Find(t.Context(), FindConfig{Root: root, Path: path})
				if err != nil {
					t.Fatalf("%v\n%s", err, process.Hint(err))
				}
				if inst.Home != home {
					t.Fatalf("found %s, not %s", inst.Home, home)
				}
				gw, err := StartNative(t.Context(), Config{Install: inst, Etcd: etcdAt(startEtcd(t)), Ports: freePorts(t)})
				if err != nil {
					t.Fatalf("%v\n%s", err, process.Hint(err))
				}
				if err := gw.Close(); err != nil {
					t.Error(err)
				}
				sameChecksums(t, before, checksums(t, root))
			})
		}
	}
}

// An APISIX whose own code names a folder can't be given another.
func TestNativeFixedHome(t *testing.T) {
	t.Parallel()
	cfg := nativeIn(t, "3.18.0", "")
	cfg.Etcd = etcdAt(startEtcd(t))
	cli := filepath.Join(cfg.Install.Home, cliLua)
	if err := os.WriteFile(cli, []byte("-- home: "+cfg.Install.Home+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := checksums(t, cfg.Install.Home)
	gw, err := StartNative(t.Context(), cfg)
	if err == nil {
		gw.Close()
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "it would write to") || !strings.Contains(process.Hint(err), "--gateway attach") {
		t.Errorf("%v\n%s", err, process.Hint(err))
	}
	leavesNothing(t, cfg.RunDir)
	sameChecksums(t, before, checksums(t, cfg.Install.Home))
}

// The first command on the path decides; the others are named. Each install
// runs on the OpenResty beside it, not on the one on the path.
func TestFindSeveral(t *testing.T) {
	t.Parallel()
	older, newer := apisixtest.Install(t, "2.15.0", ""), apisixtest.Install(t, "3.18.0", "")
	path := filepath.Join(newer, "usr/bin") + ":" + apisixtest.Path(older)
	inst, err := Find(t.Context(), FindConfig{Root: older, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if inst.Version != (Version{3, 18, 0}) || inst.OpenResty.Version != "1.27.1.2" ||
		inst.Home != filepath.Join(newer, "usr/local/apisix") {
		t.Errorf("%+v, %+v", inst, inst.OpenResty)
	}
	want := []Installed{{inst.Home, "3.18.0"}, {filepath.Join(older, "usr/local/apisix"), "2.15.0"}}
	if got := Installs(FindConfig{Root: older, Path: path}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	slices.Reverse(want)
	if got := Installs(FindConfig{Root: older, Path: path, Home: want[0].Home}); !slices.Equal(got, want) {
		t.Errorf("with a home: %v, want %v", got, want)
	}
	// Beside the newer one is none any more, and the older's is too old.
	remove(t, newer, "usr/local/openresty/bin/openresty")
	if inst, err = Find(t.Context(), FindConfig{Root: older, Path: path}); err == nil || !strings.Contains(err.Error(), "OpenResty 1.21.4.1") {
		t.Errorf("%+v, %v", inst, err)
	}
}

func TestOpenRestyWarning(t *testing.T) {
	t.Parallel()
	root := apisixtest.Install(t, "2.15.0", "")
	apisixtest.SetOpenResty(t, root, "1.27.1.2")
	inst, err := Find(t.Context(), FindConfig{Root: root, Path: apisixtest.Path(root)})
	if err != nil {
		t.Fatal(err)
	}
	gw, err := StartNative(t.Context(), Config{Install: inst, RunDir: shortTempDir(t), Etcd: etcdAt(startEtcd(t)), Ports: freePorts(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	or := gw.Info().OpenResty
	if or == nil || or.Version != "1.27.1.2" || or.LuaJIT == "" || !slices.Contains(or.Modules, "ngx_lua-0.10.26") {
		t.Errorf("%+v", or)
	}
	warnings := gw.Warnings()
	if !slices.ContainsFunc(warnings, func(w Warning) bool {
		return w.Code == "openresty" && strings.Contains(w.Text, "APISIX 2.15.0 runs on OpenResty 1.27.1.2") && strings.Contains(w.Hint, root)
	}) {
		t.Errorf("%+v", warnings)
	}
}

func TestParseOpenResty(t *testing.T) {
	t.Parallel()
	const said = `nginx version: openresty/1.27.1.2
built by gcc 12.2.0 (Debian 12.2.0-14+deb12u1)
built with OpenSSL 3.0.22 25 Aug 2026
TLS SNI support enabled
configure arguments: --prefix=/opt/or/nginx --with-cc-opt='-O2 -DAPISIX_RUNTIME_VER=1.3.16' --add-module=../ngx_lua-0.10.28 --add-module=/b/apisix-nginx-module-1.19.8 --with-http_v2_module --with-stream --without-mail_pop3_module
`
	or, prefix, err := parseOpenResty(said)
	if err != nil || prefix != "/opt/or" || or.Version != "1.27.1.2" || or.number() != (Version{1, 27, 1}) ||
		!slices.Equal(or.Modules, []string{"ngx_lua-0.10.28", "apisix-nginx-module-1.19.8", "http_v2_module"}) || !or.has("apisix-nginx-module") {
		t.Errorf("%+v, %q, %v", or, prefix, err)
	}
	for _, said := range []string{"", "nginx version: angie/1.2", "nginx version: openresty/x"} {
		if or, _, err := parseOpenResty(said); err == nil {
			t.Errorf("%q is %+v", said, or)
		}
	}
}

func FuzzParseOpenResty(f *testing.F) {
	f.Add("nginx version: openresty/1.27.1.2\nconfigure arguments: --prefix=/x/nginx --add-module=../a\n")
	f.Add("nginx version: nginx/1.2.3")
	f.Fuzz(func(t *testing.T, said string) {
		or, _, err := parseOpenResty(said)
		if err == nil && (or.Version == "" || or.number() == Version{}) && !strings.Contains(said, "/0.0.0") {
			t.Errorf("%q is %+v", said, or)
		}
	})
}
