package nginx

import (
	"context"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake puts a program nginx that prints text on PATH.
func fake(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	script := "#!/bin/sh\n[ \"$1\" = -V ] || exit 9\n/bin/cat >&2 <<'TEXT'\n" + text + "\nTEXT\n"
	if err := os.WriteFile(filepath.Join(dir, "nginx"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	for text, want := range map[string]Nginx{
		"nginx version: nginx/1.22.1\nconfigure arguments: --with-http_stub_status_module": {Version: "1.22.1"},
		"nginx version: openresty/1.21.4.1\nbuilt by gcc":                                  {Version: "1.21.4.1"},
		"nginx version: nginx/1.22.1 (Ubuntu)":                                             {Version: "1.22.1"},
	} {
		fake(t, text)
		n, err := Find(t.Context())
		if err != nil || n.Version != want.Version || filepath.Base(n.Path) != "nginx" || n.Counts() != strings.Contains(text, "stub_status") {
			t.Errorf("%q: %+v, %v", text, n, err)
		}
	}
	fake(t, "GNU sleep 9.1")
	if n, err := Find(t.Context()); err == nil {
		t.Errorf("another program is taken for %+v", n)
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"configure arguments: --prefix=/usr/share/nginx --modules-path=/usr/lib/nginx/modules --with-compat": "/usr/lib/nginx/modules",
		"configure arguments: --prefix=/usr/local/openresty/nginx --with-cc-opt=-O2":                         "/usr/local/openresty/nginx/modules",
		"--modules-path=lib --prefix=/opt": "/opt/lib",
		"":                                 "/usr/local/nginx/modules",
	} {
		if got := (&Nginx{build: text}).moduleDir(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	n := &Nginx{build: "--modules-path=" + dir}
	if files, err := n.Echo(); err == nil || !strings.Contains(err.Error(), "ngx_http_echo_module.so") {
		t.Errorf("%q, %v", files, err)
	}
	file := filepath.Join(dir, "ngx_http_echo_module.so")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := n.Echo(); err != nil || len(files) != 1 || files[0] != file {
		t.Errorf("%q, %v", files, err)
	}
	n.build = "--add-module=../echo-nginx-module-0.62"
	if files, err := n.Echo(); err != nil || len(files) > 0 {
		t.Errorf("built in: %q, %v", files, err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]*Nginx{
		"upstream.conf": {build: "--with-http_stub_status_module"},
		"small.conf":    {build: "--without-http_uwsgi_module --without-http_scgi_module"},
	} {
		got := n.Text(Config{
			Modules: []string{"/usr/lib/nginx/modules/ngx_http_echo_module.so"}, Workers: 2, Connections: 10620,
			HTTP: Upstream(n.Counts(), "127.0.0.1:1980", "127.0.0.1:1981"),
		})
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || got != string(want) {
			t.Errorf("%s: %v, got:\n%s\nwant:\n%s", name, err, got, want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	const body = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630948 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n"
	if n, err := ParseStatus(body); err != nil || n != 31070465 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "1234567890", strings.Replace(body, "31070465", "99999999999999999999", 1), strings.Replace(body, "31070465", "", 1)} {
		if n, err := ParseStatus(bad); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

// TestReal runs the installed nginx.
func TestReal(t *testing.T) {
	t.Parallel()
	n, err := Find(t.Context())
	var modules []string
	if err == nil {
		modules, err = n.Echo()
	}
	if err != nil {
		t.Skipf("SKIPPED, since nginx with its echo module is not installed: %v", err)
	}
	dir := t.TempDir()
	address := freeAddress(t)
	cfg, err := n.Process(dir, Config{Modules: modules, Workers: 2, Connections: 100, HTTP: Upstream(n.Counts(), address)})
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := child.Stop(syscall.SIGTERM, time.Minute); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	get := func(path string) string {
		body, err := process.Fetch(ctx, http.MethodGet, "http://"+address+path, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, child.Tail())
		}
		return body
	}
	err = process.Poll(ctx, time.Millisecond, func() error {
		_, err := process.Fetch(ctx, http.MethodGet, "http://"+address+"/", "")
		return err
	})
	if body := get("/hello"); err != nil || body != upstream.Body {
		t.Fatalf("%q, %v\n%s", body, err, child.Tail())
	}
	if body := get("/anything/das"); !strings.Contains(body, `"url": "http://`+address+`/anything/das"`) {
		t.Errorf("%q", body)
	}
	if !n.Counts() {
		t.Skip("SKIPPED in part: this nginx was built without stub_status")
	}
	before, err := ParseStatus(get(StatusPath))
	if err != nil {
		t.Fatal(err)
	}
	get("/hello")
	if after, err := ParseStatus(get(StatusPath)); err != nil || after != before+2 {
		t.Errorf("counted %d, then %d, %v", before, after, err)
	}
}

// freeAddress is an address of the loopback that connections do not leave from, so
// none of them takes it before the server does.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.77.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
