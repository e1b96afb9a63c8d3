package proxycheck

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/apisixtest"

	"armrepro/proxycheck/process"
)

// runningAPISIX is a fake APISIX that somebody else has started with `apisix
// start`, in its own folder and by its own configuration.
type runningAPISIX struct {
	root, home string
	ports      Ports
	key        string
	etcd       string
	prefix     string
}

// startAPISIX starts one. Old and new texts take turns in changes to its
// configuration.
func startAPISIX(t *testing.T, version, fault string, changes ...string) *runningAPISIX {
	t.Helper()
	r := &runningAPISIX{root: apisixtest.Install(t, version, fault), ports: freePorts(t), key: "production", etcd: startEtcd(t), prefix: "/apisix-" + randomHex(4)}
	r.home = filepath.Join(r.root, "usr/local/apisix")
	v, err := ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Install: &Install{Version: v}, Ports: r.ports, Workers: 2, Etcd: etcdAt(r.etcd), EtcdPrefix: r.prefix, AdminKey: r.key,
	}
	config, err := cfg.configYAML(r.home, apisixtest.Plugins)
	if err != nil {
		t.Fatal(err)
	}
	config = []byte(strings.NewReplacer(changes...).Replace(string(config)))
	if err := os.WriteFile(filepath.Join(r.home, "conf/config.yaml"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	r.cli(t, "start")
	t.Cleanup(func() { r.cli(t, "stop") })
	r.config(t) // waits until it answers
	return r
}

// cli runs the apisix command of the install.
func (r *runningAPISIX) cli(t *testing.T, command string) string {
	t.Helper()
	// Not t.Context, which has ended when the cleanup runs.
	cmd := exec.Command(filepath.Join(r.root, "usr/bin/apisix"), command)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "PATH="+apisixtest.Path(r.root), "PWD=/")
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 10 * time.Millisecond // the daemon keeps the pipe
	if err := cmd.Run(); err != nil && err != exec.ErrWaitDelay {
		t.Errorf("apisix %s: %v\n%s", command, err, out)
	}
	return out.String()
}

func (r *runningAPISIX) adminURL() string {
	if strings.HasPrefix(r.version(), "3.") {
		return baseURL(r.ports.Admin)
	}
	return baseURL(r.ports.Data)
}

func (r *runningAPISIX) version() string {
	file, _ := os.ReadFile(filepath.Join(r.home, versionLua))
	v, _ := parseVersionLua(file)
	return v.String()
}

// config is what attaches to it, once it answers.
func (r *runningAPISIX) config(t *testing.T) Config {
	t.Helper()
	cfg := Config{
		GatewayURL:    baseURL(r.ports.Data),
		AdminURL:      r.adminURL(),
		PrometheusURL: baseURL(r.ports.Prometheus),
		AdminKey:      r.key,
		RunDir:        shortTempDir(t),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p := prover{url: cfg.GatewayURL}
	err := process.Poll(ctx, pollEvery, func() error {
		_, err := p.serverHeader(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (r *runningAPISIX) admin() *admin {
	return &admin{base: r.adminURL(), key: r.key}
}

// rawRoutes is everything that the Admin API tells of the routes, revisions
// included.
func (r *runningAPISIX) rawRoutes(t *testing.T) string {
	t.Helper()
	ans, err := r.admin().do(t.Context(), http.MethodGet, "/routes", nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(ans.Body)
}

// routeIDs are the routes that it has.
func (r *runningAPISIX) routeIDs(t *testing.T) []string {
	t.Helper()
	routes, err := r.admin().routes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, route := range routes {
		ids = append(ids, route.id)
	}
	slices.Sort(ids)
	return ids
}

func TestAttach(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.15.0", "3.18.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			running := startAPISIX(t, version, "")
			upstream := startUpstream(t)
			existing := []byte(`{"uri":"/theirs/*","upstream":{"type":"roundrobin","nodes":{"` + upstream + `":1}}}`)
			if err := running.admin().put(t.Context(), "1", existing); err != nil {
				t.Fatal(err)
			}
			cfg := running.config(t)
			gw, err := Attach(t.Context(), cfg)
			if err != nil {
				t.Fatalf("%v\n%s", err, process.Hint(err))
			}
			defer gw.Close()
			if info := gw.Info(); info.Kind != "attach" || info.Name != "APISIX" || info.Version != version {
				t.Errorf("%+v", info)
			}
			if pids, err := gw.Workers(); err != nil || len(pids) != 2 {
				t.Errorf("workers: %v, %v", pids, err)
			}
			for _, r := range []Route{plainRoute(upstream), pluginRoute(upstream), plainRoute(upstream)} {
				if err := gw.Apply(t.Context(), r); err != nil {
					t.Fatalf("%v\n%s", err, process.Hint(err))
				}
			}
			if ids := running.routeIDs(t); len(ids) != 2 || ids[0] != "1" {
				t.Errorf("routes while attached: %v", ids)
			}
			want := map[string]string{"2.15.0": "plugins-unknown", "3.18.0": "costly-plugins"}[version]
			if w := gw.Warnings(); len(w) != 1 || w[0].Code != want || !strings.Contains(w[0].Text, "proxy-mirror and proxy-cache") || !strings.Contains(w[0].Text, "12 %") {
				t.Errorf("warnings: %v, want %s", w, want)
			}
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
			if ids := running.routeIDs(t); !slices.Equal(ids, []string{"1"}) {
				t.Errorf("routes after Close: %v", ids)
			}
			leavesNothing(t, cfg.RunDir)
		})
	}
}

func TestAttachFails(t *testing.T) {
	t.Parallel()
	healthy := map[string]*runningAPISIX{"2.15.0": startAPISIX(t, "2.15.0", ""), "3.18.0": startAPISIX(t, "3.18.0", "")}
	for _, tt := range []struct {
		name, version, fault string
		change               func(t *testing.T, cfg *Config)
		want, hint           string
	}{
		{name: "wrong key, 2.15", version: "2.15.0", change: func(_ *testing.T, cfg *Config) { cfg.AdminKey = "wrong" }, want: "status 401: failed to check token", hint: "the admin key is wrong"},
		{name: "wrong key, 3.18", version: "3.18.0", change: func(_ *testing.T, cfg *Config) { cfg.AdminKey = "wrong" }, want: "status 401", hint: "the admin key is wrong"},
		{name: "no key", version: "3.18.0", change: func(_ *testing.T, cfg *Config) { cfg.AdminKey = "" }, want: "status 401", hint: "no admin key was given"},
		{name: "not allowed", version: "3.18.0", fault: "admin-status=403", want: "status 403", hint: "allow_admin"},
		{name: "no etcd", version: "3.18.0", fault: "admin-status=503", want: "status 503", hint: "etcd"},
		{name: "Admin API elsewhere", version: "3.18.0", change: func(t *testing.T, cfg *Config) { cfg.AdminURL = baseURL(freePort(t)) }, want: "find its Admin API", hint: "--admin-url"},
		{name: "Admin API on the wrong port", version: "3.18.0", change: func(t *testing.T, cfg *Config) { cfg.AdminURL = cfg.GatewayURL }, want: "status 404", hint: "--admin-url"},
		{name: "nothing there", version: "3.18.0", change: func(t *testing.T, cfg *Config) { cfg.GatewayURL = baseURL(freePort(t)) }, want: "connection refused", hint: "--gateway-url"},
		{name: "no URL", version: "3.18.0", change: func(t *testing.T, cfg *Config) { cfg.GatewayURL = "localhost:9080" }, want: "want a scheme and a host", hint: "http://"},
		{name: "no admin URL", version: "3.18.0", change: func(t *testing.T, cfg *Config) { cfg.AdminURL = "ftp://x" }, want: "want a scheme and a host", hint: "http://"},
		{name: "not APISIX", version: "3.18.0", change: func(t *testing.T, cfg *Config) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "nginx/1.27") }))
			t.Cleanup(s.Close)
			cfg.GatewayURL = s.URL
		}, want: `it calls itself "nginx/1.27"`, hint: "--gateway-url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			running := healthy[tt.version]
			if tt.fault != "" {
				running = startAPISIX(t, tt.version, tt.fault)
			}
			cfg := running.config(t)
			if tt.change != nil {
				tt.change(t, &cfg)
			}
			gw, err := Attach(t.Context(), cfg)
			if err == nil {
				gw.Close()
				t.Fatal("it attached")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error lacks %q:\n%v", tt.want, err)
			}
			if got := process.Hint(err); !strings.Contains(got, tt.hint) {
				t.Errorf("the hint is %q, want %q in it", got, tt.hint)
			}
		})
	}
}

// The Admin API is looked for where 2.x has it when nothing answers on 9180.
func TestAttachFindsAdmin(t *testing.T) {
	t.Parallel()
	running := startAPISIX(t, "2.15.0", "")
	cfg := running.config(t)
	cfg.AdminURL = ""
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Hint(err))
	}
	defer gw.Close()
	if got := gw.(*attached).admin.base; got != cfg.GatewayURL {
		t.Errorf("the Admin API is said to be at %s, want %s", got, cfg.GatewayURL)
	}
}

func TestAttachNeverOverwrites(t *testing.T) {
	t.Parallel()
	for name, existing := range map[string]string{
		"same path": `{"uri":"/hello","upstream":{"type":"roundrobin","nodes":{"127.0.0.1:1":1}}}`,
		"prefix":    `{"uri":"/*","upstream":{"type":"roundrobin","nodes":{"127.0.0.1:1":1}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := startAPISIX(t, "3.18.0", "")
			if err := running.admin().put(t.Context(), "theirs", []byte(existing)); err != nil {
				t.Fatal(err)
			}
			before := running.rawRoutes(t)
			cfg := running.config(t)
			gw, err := Attach(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			err = gw.Apply(t.Context(), plainRoute(startUpstream(t)))
			if err == nil || !strings.Contains(err.Error(), "its route theirs takes it already") {
				t.Errorf("Apply: %v", err)
			}
			if !strings.Contains(process.Hint(err), "never touched") {
				t.Errorf("the hint is %q", process.Hint(err))
			}
			if err := gw.Close(); err != nil {
				t.Error(err)
			}
			if after := running.rawRoutes(t); after != before {
				t.Errorf("the routes changed from %s to %s", before, after)
			}
			leavesNothing(t, cfg.RunDir)
		})
	}
}

// A route that is put but doesn't work has to be removed all the same.
func TestAttachRemovesAfterFailure(t *testing.T) {
	t.Parallel()
	running := startAPISIX(t, "3.18.0", "")
	cfg := running.config(t)
	cfg.Timeouts.Route = 2 * time.Second
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := plainRoute("127.0.0.1:1")
	if err := gw.Apply(t.Context(), r); err == nil || !strings.Contains(err.Error(), "status 502") {
		t.Errorf("Apply: %v", err)
	}
	if ids := running.routeIDs(t); len(ids) != 1 {
		t.Errorf("routes before Close: %v", ids)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	if ids := running.routeIDs(t); len(ids) != 0 {
		t.Errorf("routes after Close: %v", ids)
	}
}

// Metrics that can't be seen are a warning: somebody else configured them.
func TestAttachWithoutMetrics(t *testing.T) {
	t.Parallel()
	cfg := startAPISIX(t, "3.18.0", "").config(t)
	cfg.PrometheusURL = baseURL(freePort(t))
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	if err := gw.Apply(t.Context(), pluginRoute(startUpstream(t))); err != nil {
		t.Fatal(err)
	}
	if err := gw.Counted(t.Context(), statusMetric, 1); err != nil {
		t.Fatal(err)
	}
	w := gw.Warnings()
	if len(w) != 2 || w[1].Code != "metric-unproven" || w[1].Hint == "" {
		t.Errorf("warnings: %v", w)
	}
}

func TestAttachNoticesEnd(t *testing.T) {
	t.Parallel()
	running := startAPISIX(t, "2.15.0", "")
	gw, err := Attach(t.Context(), running.config(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(gw.(*attached).master, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gw.Done():
	case <-time.After(2 * time.Minute):
		t.Error("its end went unnoticed")
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
}

// The built-in gateway can be attached to as well, and stays what it is.
func TestAttachBuiltin(t *testing.T) {
	t.Parallel()
	cfg := builtinConfig(t)
	cfg.AdminKey = "k"
	running, err := StartBuiltin(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	gw, err := Attach(t.Context(), Config{
		GatewayURL: baseURL(cfg.Ports.Data), AdminURL: baseURL(cfg.Ports.Admin), PrometheusURL: baseURL(cfg.Ports.Prometheus),
		AdminKey: "k", RunDir: shortTempDir(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	if gw.Info().Name != BuiltinName {
		t.Errorf("%+v", gw.Info())
	}
	want, _ := running.Workers()
	if got, err := gw.Workers(); err != nil || !slices.Equal(got, want) {
		t.Errorf("workers: %v, %v, want %v", got, err, want)
	}
	if err := gw.Apply(t.Context(), pluginRoute(startUpstream(t))); err != nil {
		t.Error(err)
	}
}

func TestAttachElsewhere(t *testing.T) {
	t.Parallel()
	a := &attached{}
	u, err := parseBase("http://192.0.2.1:9080")
	if err != nil {
		t.Fatal(err)
	}
	a.findMaster(u)
	if _, err := a.Workers(); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("Workers: %v", err)
	}
}

// asked is a stranger that counts the keys it is sent.
func asked(t *testing.T, server string, answer http.HandlerFunc) (url string, keys *atomic.Int64) {
	keys = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-KEY") != "" {
			keys.Add(1)
		}
		w.Header().Set("Server", server)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, keys
}

// The key is for an Admin API alone: not for a data plane, whose route for
// everything would hand it on, nor for whatever else listens.
func TestAttachTellsNoStranger(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":    func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"everything": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"list":"all"}`) },
		"its own key": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"Missing API key in request"}`, 401)
		},
		"its own list": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"Your IP address is not allowed"}`, 403)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", 503) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway, first := asked(t, "APISIX/3.18.0", answer)
			stranger, second := asked(t, "nginx", answer)
			u, err := parseBase(stranger)
			if err != nil {
				t.Fatal(err)
			}
			for _, cfg := range []Config{{Ports: Ports{Admin: portOf(u)}}, {AdminURL: stranger}, {AdminURL: gateway}} {
				cfg.GatewayURL, cfg.AdminKey, cfg.RunDir = gateway, "secret", shortTempDir(t)
				gw, err := Attach(t.Context(), cfg)
				if err == nil {
					gw.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "find its Admin API") || strings.Contains(err.Error(), "secret") {
					t.Errorf("%+v: %v", cfg, err)
				}
			}
			if n := first.Load() + second.Load(); n > 0 {
				t.Errorf("the key was sent %d times", n)
			}
		})
	}
}

// Nor is the key for an Admin API to which a route of the gateway leads.
func TestAttachTellsNoUpstream(t *testing.T) {
	t.Parallel()
	admins := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apisix/admin/") {
			http.Error(w, `{"error_msg":"failed to check token"}`, 401)
			return
		}
		io.WriteString(w, "taken by the route for everything")
	}
	for _, tt := range []struct{ version, want string }{
		{"2.15.0", "a route of the gateway takes every path"}, {"3.18.0", "has a port of its own"},
	} {
		gateway, keys := asked(t, "APISIX/"+tt.version, admins)
		for _, adminURL := range []string{"", gateway} {
			cfg := Config{
				GatewayURL: gateway, AdminURL: adminURL, Ports: Ports{Admin: freePort(t)}, AdminKey: "secret", RunDir: shortTempDir(t),
			}
			_, err := Attach(t.Context(), cfg)
			confirmed := tt.version == "2.15.0" && adminURL != ""
			if err == nil || !confirmed && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, --admin-url %q: %v", tt.version, adminURL, err)
			}
			if n := keys.Swap(0); n > 0 != confirmed {
				t.Errorf("%s, --admin-url %q: the key was sent %d times", tt.version, adminURL, n)
			}
		}
	}
}

// The Admin API of another gateway with the same key gets no route.
func TestAttachForeignAdmin(t *testing.T) {
	t.Parallel()
	ours, theirs := startAPISIX(t, "3.18.0", ""), startAPISIX(t, "3.18.0", "")
	older := startAPISIX(t, "3.9.1", "")
	for name, foreign := range map[string]*runningAPISIX{
		"process ":              theirs,
		`it calls itself "APIS`: older,
	} {
		cfg := ours.config(t)
		cfg.AdminURL, cfg.Ports.Admin = "", foreign.ports.Admin
		_, err := Attach(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), baseURL(foreign.ports.Admin)+" is another gateway's Admin API") || !strings.Contains(err.Error(), name) {
			t.Errorf("a foreign Admin API: %v", err)
		}
	}
	// An address that was given may be a control plane's: the route tells.
	cfg := ours.config(t)
	cfg.AdminURL = theirs.adminURL()
	cfg.Timeouts.Route = 300 * time.Millisecond
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()
	err = gw.Apply(t.Context(), plainRoute(startUpstream(t)))
	if err == nil || !strings.Contains(err.Error(), "the Admin API at "+theirs.adminURL()+" (APISIX/3.18.0, process ") || !strings.Contains(process.Hint(err), "two gateways") {
		t.Errorf("Apply: %v\n%s", err, process.Hint(err))
	}
	if ids := append(theirs.routeIDs(t), ours.routeIDs(t)...); len(ids) > 0 {
		t.Errorf("routes: %v", ids)
	}
	leavesNothing(t, cfg.RunDir)
}

// A gateway without etcd is named for what it is.
func TestAttachStandalone(t *testing.T) {
	t.Parallel()
	api := startAPISIX(t, "3.18.0", "", "config_provider: etcd", "config_provider: yaml")
	file := startAPISIX(t, "3.18.0", "", "role: traditional", "role: data_plane", "role_traditional:", "role_data_plane:", "config_provider: etcd", "config_provider: yaml")
	plane := startAPISIX(t, "3.18.0", "", "role: traditional", "role: data_plane", "role_traditional:", "role_data_plane:")
	for _, tt := range []struct {
		name       string
		running    *runningAPISIX
		adminPort  int
		want, hint string
	}{
		{"its Admin API", api, api.ports.Admin, "the gateway is standalone: its Admin API", "config_provider: etcd"},
		{"Admin API elsewhere", api, freePort(t), "the gateway is standalone: " + api.home, "config_provider: etcd"},
		{"from a file", file, freePort(t), "the gateway is standalone: " + file.home, "config_provider: etcd"},
		{"a data plane", plane, freePort(t), "role data_plane", "control plane"},
	} {
		cfg := tt.running.config(t)
		cfg.AdminURL, cfg.Ports.Admin = "", tt.adminPort
		_, err := Attach(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(process.Hint(err), tt.hint) {
			t.Errorf("%s: %v\n%s", tt.name, err, process.Hint(err))
		}
	}
}

// A route that can't be removed is said, with the way to remove it and without
// the key, and the next run that can removes it.
func TestAttachLeavesRoute(t *testing.T) {
	t.Parallel()
	running := startAPISIX(t, "3.18.0", "")
	cfg := running.config(t)
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	upstream := startUpstream(t)
	if err := gw.Apply(t.Context(), plainRoute(upstream)); err != nil {
		t.Fatal(err)
	}
	a := gw.(*attached)
	a.admin.key = "changed"
	left := process.AllLeft(gw.Close())
	want := `curl -X DELETE ` + cfg.AdminURL + `/apisix/admin/routes/` + a.routeID + ` -H "X-API-KEY: $ARMREPRO_ADMIN_KEY"`
	if len(left) != 1 || left[0].How != want || !strings.Contains(left[0].What, a.routeID) {
		t.Errorf("left: %+v, want %s", left, want)
	}

	next, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	elsewhere := plainRoute(upstream)
	elsewhere.Path, elsewhere.Body = "/other", []byte(strings.ReplaceAll(string(elsewhere.Body), "/hello", "/other"))
	if err := next.Apply(t.Context(), elsewhere); err != nil {
		t.Error(err)
	}
	if ids := running.routeIDs(t); len(ids) != 1 || ids[0] == a.routeID {
		t.Errorf("routes: %v", ids)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	leavesNothing(t, cfg.RunDir)
}

// A mark goes when its route is gone, and stays when it is another gateway's.
func TestAttachMarks(t *testing.T) {
	t.Parallel()
	cfg := startAPISIX(t, "3.18.0", "").config(t)
	gone, other := cfg.AdminURL+"/routes/armrepro-00000001", "http://192.0.2.1:9180/routes/armrepro-00000002"
	for _, note := range []string{gone, other} {
		mark, err := newMark(cfg.RunDir, routeKind, note, process.Left{What: note})
		if err == nil {
			err = mark.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gw, err := Attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Apply(t.Context(), plainRoute(startUpstream(t))); err != nil {
		t.Error(err)
	}
	if err := gw.Close(); err != nil {
		t.Error(err)
	}
	marks, err := takeOverMarks(cfg.RunDir, routeKind)
	if err != nil || len(marks) != 1 || marks[0].Note != other {
		t.Errorf("marks: %v, %v", marks, err)
	}
}

// The mark is found again whatever TMPDIR is.
func TestMarkDirs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dirs, err := markDirs("")
	if err != nil || dirs[0] != "/var/tmp" {
		t.Errorf("%v, %v", dirs, err)
	}
}
