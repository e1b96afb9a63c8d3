package etcdhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"armrepro/proxycheck/apisixtest"
	"armrepro/proxycheck/etcdhttp"
)

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// check fails the test unless err says want, its hint says hint, and neither
// says secret.
func check(t *testing.T, err error, want, hint string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("%v\n%s", err, hintOf(err))
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(hintOf(err), hint)) {
		t.Errorf("%v, want %q in it\nhint %q, want %q in it", err, want, hintOf(err), hint)
	}
	if all := fmt.Sprint(err, hintOf(err)); strings.Contains(all, "secret") || strings.Contains(all, "\n") {
		t.Errorf("a secret or a line break in %q", all)
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in, want etcdhttp.Config
		err      string
	}{
		"plain":             {in: etcdhttp.Config{Endpoints: []string{"http://a:1/"}}, want: etcdhttp.Config{Endpoints: []string{"http://a:1"}}},
		"user info":         {in: etcdhttp.Config{Endpoints: []string{"http://u:secret%40@a:1", "http://b:1"}}, want: etcdhttp.Config{Endpoints: []string{"http://a:1", "http://b:1"}, User: "u", Password: "secret@"}},
		"password apart":    {in: etcdhttp.Config{Endpoints: []string{"http://u@a:1"}, Password: "secret"}, want: etcdhttp.Config{Endpoints: []string{"http://a:1"}, User: "u", Password: "secret"}},
		"password unused":   {in: etcdhttp.Config{Endpoints: []string{"http://a:1"}, Password: "secret"}, want: etcdhttp.Config{Endpoints: []string{"http://a:1"}}},
		"none":              {err: "no etcd endpoint"},
		"no URL":            {in: etcdhttp.Config{Endpoints: []string{"u:secret//x@localhost"}}, err: "is not a URL"},
		"bad escape":        {in: etcdhttp.Config{Endpoints: []string{"http://u:secret%zz@a:1"}}, err: `"http://***@a:1" is not a URL`},
		"two users":         {in: etcdhttp.Config{Endpoints: []string{"http://u:secret@a:1", "http://v:secret@b:1"}}, err: "several users"},
		"two passwords":     {in: etcdhttp.Config{Endpoints: []string{"http://u:secret@a:1"}, Password: "secret2"}, err: "several users or passwords"},
		"no password":       {in: etcdhttp.Config{Endpoints: []string{"http://a:1"}, User: "u"}, err: "no password given"},
		"two schemes":       {in: etcdhttp.Config{Endpoints: []string{"http://a:1", "https://a:2"}}, err: "some endpoints are http and some https"},
		"no key":            {in: etcdhttp.Config{Endpoints: []string{"https://a:1"}, Cert: "x"}, err: "its certificate or its key is missing"},
		"certificate, http": {in: etcdhttp.Config{Endpoints: []string{"http://a:1"}, CACert: "x"}, err: "it is not https"},
	} {
		got, err := tt.in.Normalize()
		if check(t, err, tt.err, ""); err != nil {
			continue
		}
		// cmp.Diff would print through String.
		if got.User != tt.want.User || got.Password != tt.want.Password || cmp.Diff(tt.want.Endpoints, got.Endpoints) != "" {
			t.Errorf("%s: %s as %s", name, got, got.User)
		}
	}
}

func TestConfigHidesSecrets(t *testing.T) {
	t.Parallel()
	cfg := struct{ Etcd etcdhttp.Config }{etcdhttp.Config{Endpoints: []string{"http://u:secret@a:1"}, User: "u", Password: "secret"}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, cfg); strings.Contains(got, "secret") || !strings.Contains(got, "a:1") {
			t.Errorf("%s prints %s", format, got)
		}
	}
}

// What answers may be something else, or an etcd that APISIX can't use.
func TestCheckLookalikes(t *testing.T) {
	t.Parallel()
	const version = `{"etcdserver":"3.5.0","etcdcluster":"3.5.0"}`
	for name, tt := range map[string]struct {
		status        int
		version, v3   string
		want, hintHas string
	}{
		"not found":     {404, "404 page not found\n", "", "/version answers 404 Not Found", "client URLs"},
		"empty":         {200, "", "", "/version answers nothing", "client URLs"},
		"page":          {200, "<html>captive portal</html>", "", "/version answers an HTML page", "client URLs"},
		"other JSON":    {200, `{"version":"8"}`, "", `/version answers "{\"version\":\"8\"}"`, "client URLs"},
		"old":           {200, `{"etcdserver":"3.3.9","etcdcluster":"3.3.0"}`, "", "its version is 3.3.9 (cluster 3.3.0)", "3.4 or newer"},
		"wants a user":  {200, version, `{"error":"etcdserver: user name is empty","code":3,"message":"etcdserver: user name is empty"}`, "it wants a user and a password", "--etcd-user"},
		"no gateway":    {200, version, "404 page not found\n", "its HTTP gateway, which APISIX uses, is off", "--enable-grpc-gateway"},
		"https":         {400, "Client sent an HTTP request to an HTTPS server.\n", "", "it speaks https", "https://"},
		"out of action": {200, version, `{"error":"etcdserver: no leader","message":"etcdserver: no leader"}`, "no leader", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					w.WriteHeader(tt.status)
					io.WriteString(w, tt.version)
					return
				}
				status := http.StatusBadRequest
				if strings.HasPrefix(tt.v3, "404") {
					status = http.StatusNotFound
				}
				w.WriteHeader(status)
				io.WriteString(w, tt.v3)
			}))
			defer s.Close()
			_, err := checkEtcd(t, etcdhttp.Config{Endpoints: []string{s.URL}})
			check(t, err, tt.want, tt.hintHas)
		})
	}
}

func checkEtcd(t *testing.T, cfg etcdhttp.Config) (string, error) {
	t.Helper()
	client, err := etcdhttp.New(cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Check(t.Context(), "/armrepro-1")
}

func TestCheckUsers(t *testing.T) {
	t.Parallel()
	endpoint := apisixtest.SecureEtcd(t)
	for name, tt := range map[string]struct{ user, password, want, hint string }{
		"root":           {"root", apisixtest.EtcdPassword, "", ""},
		"limited":        {"limited", "limited", "", ""},
		"none given":     {"", "", "it wants a user and a password", "--etcd-user"},
		"wrong password": {"root", "secret", "wrong user or password", etcdhttp.PasswordEnv},
		"no such user":   {"nobody", "secret", "wrong user or password", etcdhttp.PasswordEnv},
		"no permission":  {"none", "none", "the user may not use these keys", "readwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkEtcd(t, etcdhttp.Config{Endpoints: []string{endpoint}, User: tt.user, Password: tt.password})
			check(t, err, tt.want, tt.hint)
		})
	}
}

func TestSeveralEndpoints(t *testing.T) {
	t.Parallel()
	good := apisixtest.SecureEtcd(t)
	const dead = "http://127.0.0.1:1"
	cfg := etcdhttp.Config{User: "limited", Password: "limited"}
	cfg.Endpoints = []string{dead, good, good}
	version, err := checkEtcd(t, cfg)
	if check(t, err, "", ""); version == "" {
		t.Error("no version")
	}
	cfg.Endpoints = []string{good, dead}
	_, err = checkEtcd(t, cfg)
	check(t, err, "1 of its 2 endpoints can't be used", "see that etcd runs")
	cfg.Password = "secret"
	cfg.Endpoints = []string{good, good, good}
	_, err = checkEtcd(t, cfg)
	check(t, err, "wrong user or password", "")
}

func TestCheckTLS(t *testing.T) {
	t.Parallel()
	plain := apisixtest.SecureEtcd(t)
	full := apisixtest.TLSInFront(t, plain)
	full.User, full.Password = "limited", "limited"
	address := strings.TrimPrefix(full.Endpoints[0], "https://localhost")
	for name, tt := range map[string]struct {
		change     func(cfg *etcdhttp.Config)
		want, hint string
	}{
		"all there":      {func(cfg *etcdhttp.Config) {}, "", ""},
		"no authority":   {func(cfg *etcdhttp.Config) { cfg.CACert = "" }, "certificate signed by unknown authority", "--etcd-cacert"},
		"no certificate": {func(cfg *etcdhttp.Config) { cfg.Cert, cfg.Key = "", "" }, "certificate required", "--etcd-cert"},
		"other name": {func(cfg *etcdhttp.Config) {
			cfg.Endpoints = []string{"https://127.0.0.1" + address}
		}, "cannot validate certificate for 127.0.0.1", "as its certificate does"},
		"http": {func(cfg *etcdhttp.Config) { *cfg = etcdhttp.Config{Endpoints: []string{"http://localhost" + address}} }, "it speaks https", "https://"},
		"https": {func(cfg *etcdhttp.Config) {
			cfg.Endpoints = []string{strings.Replace(plain, "http:", "https:", 1)}
		}, "ask etcd: Get", "http"},
		"no such file": {func(cfg *etcdhttp.Config) { cfg.CACert = "/nowhere" }, "read the authorities of etcd's certificate", ""},
		"no PEM":       {func(cfg *etcdhttp.Config) { cfg.CACert = "etcdhttp_test.go" }, "holds no PEM certificate", ""},
		"no end":       {func(cfg *etcdhttp.Config) { cfg.CACert = "/dev/zero" }, "not a regular file", ""},
		"key as cert":  {func(cfg *etcdhttp.Config) { cfg.Cert = cfg.Key }, "read the client certificate for etcd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := full
			tt.change(&cfg)
			_, err := checkEtcd(t, cfg)
			check(t, err, tt.want, tt.hint)
		})
	}
}
