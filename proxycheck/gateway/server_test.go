package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"armrepro/embed"
)

func TestEtcdLossAndReturn(t *testing.T) {
	t.Parallel()
	e, err := embed.Start(t.Context(), embed.Config{Listen: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	// The first endpoint never answers, so the second is asked.
	cfg.Etcd.Endpoints = []string{"http://127.0.0.1:1", e.Endpoint()}
	s := startTest(t, cfg)
	upstream := startUpstream(t)
	mustPut(t, s, "1", plainBody("/hello", upstream))
	awaitStatus(t, s, "/hello", http.StatusOK)
	if v := metric(t, s, "apisix_etcd_reachable"); v != 1 {
		t.Errorf("etcd_reachable is %v", v)
	}

	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	a := put(t, s, "2", plainBody("/other", upstream))
	if want := `{"error_msg":"has no healthy etcd endpoint available"}`; a.status != 503 || strings.TrimSpace(a.body) != want {
		t.Errorf("without etcd PUT answered %d %s", a.status, a.body)
	}
	await(t, "the gateway to notice", func() bool { return metric(t, s, "apisix_etcd_reachable") == 0 })
	if a := do(t, http.MethodGet, s.URL+"/hello", nil, ""); a.status != http.StatusOK {
		t.Errorf("without etcd the route answered %d", a.status)
	}

	// It comes back empty.
	address := strings.TrimPrefix(e.Endpoint(), "http://")
	e, err = embed.Start(t.Context(), embed.Config{Listen: address, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	awaitStatus(t, s, "/hello", http.StatusNotFound)
	if a := put(t, s, "1", plainBody("/hello", upstream)); a.status != http.StatusCreated {
		t.Errorf("with etcd back PUT answered %d %s", a.status, a.body)
	}
	awaitStatus(t, s, "/hello", http.StatusOK)
	if v := metric(t, s, "apisix_etcd_reachable"); v != 1 {
		t.Errorf("etcd_reachable is %v", v)
	}
}

// TestFindsWhatIsThere starts on a prefix that APISIX has used: it holds routes,
// and placeholders that are none.
func TestFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	first := startTest(t, cfg)
	mustPut(t, first, "1", plainBody("/hello", startUpstream(t)))
	for _, key := range []string{"/routes/", "/routes/broken", "/upstreams/"} {
		body := fmt.Sprintf(`{"key":%q,"value":%q}`,
			base64.StdEncoding.EncodeToString([]byte(cfg.Prefix+key)),
			base64.StdEncoding.EncodeToString([]byte("init_dir")))
		if a := do(t, http.MethodPost, cfg.Etcd.Endpoints[0]+"/v3/kv/put", nil, body); a.status != 200 {
			t.Fatal(a)
		}
	}
	second := startTest(t, cfg)
	if a := do(t, http.MethodGet, second.URL+"/hello", nil, ""); a.status != http.StatusOK {
		t.Errorf("the route answered %d", a.status)
	}
	a := do(t, http.MethodGet, second.AdminURL+"/apisix/admin/routes", map[string]string{"X-API-KEY": testKey}, "")
	if !strings.Contains(a.body, `"total":1}`) {
		t.Errorf("the list is %s", a.body)
	}
	// A change made through one reaches the other.
	mustPut(t, second, "2", plainBody("/second", startUpstream(t)))
	awaitStatus(t, first, "/second", http.StatusOK)
}

func TestAdminRefuses(t *testing.T) {
	t.Parallel()
	s := startTest(t, testConfig(t))
	body := plainBody("/hello", "127.0.0.1:1")
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"another id inside", http.MethodPut, "routes/1", `{"id":"2",` + body[1:], 400, "wrong route id"},
		{"no id", http.MethodPut, "routes", body, 400, "missing route id"},
		{"too long", http.MethodPut, "routes/1", `{"desc":"` + strings.Repeat("x", maxBody) + `"}`, 400, "too large"},
		{"a list", http.MethodPut, "routes/1", `[]`, 400, "expected object, got array"},
		{"wrong type", http.MethodPut, "routes/1", `{"uri":"/","upstream":{"nodes":{"a":"1"}}}`, 400, "expected integer, got string"},
		{"another resource", http.MethodPut, "services/1", body, 404, "Unsupported resource type: services"},
		{"another method", http.MethodPatch, "routes/1", body, 404, "not found"},
		{"bad id to delete", http.MethodDelete, "routes/a%20b", "", 404, "Key not found"},
	} {
		a := do(t, test.method, s.AdminURL+adminPath+test.path, map[string]string{"X-API-KEY": testKey}, test.body)
		if a.status != test.status || !strings.Contains(a.body, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.name, a.status, a.body, test.status, test.want)
		}
	}
}

// TestAdminIsForThisMachine: allow_admin is the loopback network.
func TestAdminIsForThisMachine(t *testing.T) {
	t.Parallel()
	s := startTest(t, testConfig(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.admin, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return withConn(ctx, &clientConn{Conn: c, ip: "192.0.2.1"})
	}}
	t.Cleanup(func() { server.Close() })
	go server.Serve(l)
	a := do(t, http.MethodGet, "http://"+l.Addr().String()+"/apisix/admin/routes", map[string]string{"X-API-KEY": testKey}, "")
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "403 Forbidden") {
		t.Errorf("answered %d %s", a.status, a.body)
	}
}

// TestKeepaliveRequests counts the requests of one connection.
func TestKeepaliveRequests(t *testing.T) {
	t.Parallel()
	s := startTest(t, testConfig(t))
	mustPut(t, s, "1", plainBody("/hello", startUpstream(t)))
	awaitStatus(t, s, "/hello", http.StatusOK)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for i := 1; i <= maxRequests; i++ {
		req, err := http.NewRequest(http.MethodGet, s.URL+"/hello", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := exchange(conn, r, req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		want := "keep-alive"
		if i == maxRequests {
			want = "close"
		}
		if got := a.header.Get("Connection"); got != want || a.body != helloTen {
			t.Fatalf("request %d: Connection %q, want %q, body %q", i, got, want, a.body)
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, want the end", err)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startTest(t, testConfig(t))
	mustPut(t, s, "r1", pluginBody("/hello", 3, startUpstream(t)))
	awaitStatus(t, s, "/hello", http.StatusOK) // the first of three
	sent := do(t, http.MethodGet, s.URL+"/hello", nil, "")
	do(t, http.MethodGet, s.URL+"/hello", nil, "")
	if a := do(t, http.MethodGet, s.URL+"/hello", nil, ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("the fourth request was answered %d", a.status)
	}
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"apisix_http_status", []string{`code="200"`, `route="r1"`, `matched_uri="/hello"`, `node="127.0.0.1"`}, 3},
		{"apisix_http_status", []string{`code="503"`, `route="r1"`, `node=""`}, 1},
		{"apisix_http_latency_count", []string{`type="request"`, `node="127.0.0.1"`}, 3},
		{"apisix_http_latency_count", []string{`type="apisix"`, `node="127.0.0.1"`}, 3},
		{"apisix_http_latency_count", []string{`type="upstream"`, `node="127.0.0.1"`}, 3},
	} {
		await(t, fmt.Sprint(test), func() bool { return metric(t, s, test.name, test.labels...) == test.want })
	}
	// Each answer differs from another only in Remaining, of one digit.
	size := float64(answerBytes(sent))
	await(t, "the bytes to be counted", func() bool {
		return metric(t, s, "apisix_bandwidth", `type="egress"`, `node="127.0.0.1"`) == 3*size
	})
	if v := metric(t, s, "apisix_bandwidth", `type="ingress"`, `node="127.0.0.1"`); v <= 0 {
		t.Errorf("ingress is %v", v)
	}
}

// answerBytes is the length of an answer of one chunk as it was sent.
func answerBytes(a answer) int {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	for name, values := range a.header {
		for _, value := range values {
			fmt.Fprintf(&head, "%s: %s\r\n", name, value)
		}
	}
	return head.Len() + len(fmt.Sprintf("\r\n%x\r\n%s\r\n0\r\n\r\n", len(a.body), a.body))
}

// TestConcurrentLoad changes the route under load.
func TestConcurrentLoad(t *testing.T) {
	t.Parallel()
	const clients, requests = 16, 100
	s := startTest(t, testConfig(t))
	upstream := startUpstream(t)
	bodies := []string{plainBody("/hello", upstream), pluginBody("/hello", 2e12, upstream)}
	mustPut(t, s, "1", bodies[1])
	awaitStatus(t, s, "/hello", http.StatusOK)
	var load sync.WaitGroup
	done := make(chan struct{})
	for range clients {
		load.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for range requests {
				resp, err := client.Get(s.URL + "/hello")
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || string(text) != helloTen {
					t.Errorf("answered %d %q %v", resp.StatusCode, text, err)
				}
			}
		})
	}
	go func() { load.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
		default:
			mustPut(t, s, "1", bodies[i%2])
			continue
		}
		break
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, test := range []struct {
		name   string
		change func(*Config)
		is     error
		want   string
	}{
		{"no etcd", func(c *Config) { c.Etcd.Endpoints = []string{"http://127.0.0.1:1"} }, ErrEtcd, "refused"},
		{"data port taken", func(c *Config) { c.Listen = taken.Addr().String() }, syscall.EADDRINUSE, taken.Addr().String()},
		{"admin port taken", func(c *Config) { c.AdminListen = taken.Addr().String() }, syscall.EADDRINUSE, taken.Addr().String()},
		{"metrics port taken", func(c *Config) { c.PrometheusListen = taken.Addr().String() }, syscall.EADDRINUSE, taken.Addr().String()},
		{"bad address", func(c *Config) { c.Listen = "127.0.0.1" }, nil, "missing port"},
		{"no key", func(c *Config) { c.AdminKey = "" }, nil, "admin key is empty"},
		{"no endpoint", func(c *Config) { c.Etcd.Endpoints = nil }, nil, "no etcd endpoint"},
		{"bad endpoint", func(c *Config) { c.Etcd.Endpoints = []string{"127.0.0.1:2379"} }, nil, `"127.0.0.1:2379" is not a URL`},
		{"bad prefix", func(c *Config) { c.Prefix = "apisix/" }, nil, `"apisix/"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			test.change(&cfg)
			s, err := Start(t.Context(), cfg)
			if err == nil {
				s.Close()
				t.Fatal("Start succeeded")
			}
			if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q in it", err, test.want)
			}
		})
	}
}

func TestCanceledStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := Start(ctx, testConfig(t))
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// TestLeaksNoGoroutine does not run beside other tests.
func TestLeaksNoGoroutine(t *testing.T) {
	upstream := startUpstream(t)
	run := func() {
		s, err := Start(t.Context(), testConfig(t))
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, s, "1", pluginBody("/hello", 5, upstream))
		awaitStatus(t, s, "/hello", http.StatusOK)
		// One connection stays open.
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	run() // what is started once for the process
	before := runtime.NumGoroutine()
	for range 3 {
		run()
	}
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond)
	}
}

func BenchmarkProxy(b *testing.B) {
	for name, body := range map[string]func(string) string{
		"plain":   func(u string) string { return plainBody("/hello", u) },
		"plugins": func(u string) string { return pluginBody("/hello", 2e12, u) },
	} {
		b.Run(name, func(b *testing.B) {
			s := startTest(b, testConfig(b))
			mustPut(b, s, "1", body(startUpstream(b)))
			awaitStatus(b, s, "/hello", http.StatusOK)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Get(s.URL + "/hello")
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
