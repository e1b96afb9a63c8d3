package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestRenderNginx(t *testing.T) {
	t.Parallel()
	upstream, err := renderNginx("upstream", nginxConfig{
		Modules: []string{"/usr/lib/nginx/modules/ngx_http_echo_module.so"}, Workers: 2, Connections: 20480,
		Pairs: []nginxPair{{Listen: "127.0.0.1:1980"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "upstream.conf", upstream)
	proxy, err := renderNginx("proxy", nginxConfig{
		Modules: []string{"/m/ndk_http_module.so", "/m/ngx_http_lua_module.so"}, Workers: 1, Connections: 1024,
		KeepaliveRequests: 5, Rounds: 45,
		Pairs: []nginxPair{{"127.0.0.1:9080", "127.0.0.1:1980"}, {"127.0.0.1:9081", "127.0.0.1:1981"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "proxy.conf", proxy)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const n = 20
	found, err := addresses(n)
	if err != nil {
		t.Fatal(err)
	}
	ephemeral, err := readPortRange()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(found); len(slices.Compact(found)) != n {
		t.Errorf("not %d different addresses: %q", n, found)
	}
	for _, address := range found {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil || !tcp.IP.IsLoopback() || tcp.Port < 1024 || tcp.Port >= ephemeral.low {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestSlowServer starts the slow server as its own process and checks that it
// answers no sooner than it should, and in its order.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	at, err := addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := startSlow(t.Context(), at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		if s.alive() == nil {
			t.Error("a stopped server passes for alive")
		}
	}()
	latencies := slowLatencies()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	// Being ready took the first of the latencies, and maybe more.
	for _, least := range latencies[1:50] {
		begin := time.Now()
		if err := get(t.Context(), client, url(at[0])); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < least {
			t.Errorf("answered in %s, sooner than %s", took, least)
		}
	}
	used, err := s.cpuTime()
	if err != nil || used <= 0 {
		t.Errorf("CPU time %s, %v", used, err)
	}
}

func TestSlowLatencies(t *testing.T) {
	t.Parallel()
	latencies := slowLatencies()
	if !slices.Equal(latencies, slowLatencies()) {
		t.Error("not the same every time")
	}
	// A tenth of them, wherever it begins, has about the same mean.
	sum := func(part []time.Duration) (s float64) {
		for _, l := range part {
			s += l.Seconds()
		}
		return s
	}
	mean := sum(latencies) / slowValues
	for i := 0; i < slowValues; i += 100 {
		if part := sum(latencies[i:i+100]) / 100; math.Abs(part/mean-1) > 0.2 {
			t.Errorf("mean from %d on is %v, of all %v", i, part, mean)
		}
	}
	slices.Sort(latencies)
	for p, want := range map[float64]time.Duration{0.5: 2 * time.Millisecond, 0.9: 3796 * time.Microsecond, 0.99: 6400 * time.Microsecond} {
		got := latencies[int(p*slowValues)-1]
		if math.Abs(got.Seconds()/want.Seconds()-1) > 0.02 {
			t.Errorf("p%v is %s, want %s", 100*p, got, want)
		}
	}
}

func TestServerFails(t *testing.T) {
	t.Parallel()
	at, err := addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// It ends at once, saying why.
	_, err = startServer(t.Context(), "some server", process.Config{Path: self, Args: []string{slowCommand, "nowhere"}}, at[0])
	if err == nil || !strings.Contains(err.Error(), "some server has ended: exit status 1") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a server that ends: %v", err)
	}
	// It never answers where it is asked.
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(stopped) })
	_, err = startServer(ctx, "some server", process.Config{Path: self, Args: []string{slowCommand, at[0]}}, "127.0.0.1:1")
	if !errors.Is(err, stopped) {
		t.Errorf("a server that does not answer: %v", err)
	}
	if _, err := startServer(t.Context(), "none", process.Config{Path: "/nonexistent"}); err == nil {
		t.Error("a program that isn't there was started")
	}
}

// TestServerTaken finds something else on the address than the server.
func TestServerTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answerBody)
	})}
	go func() { _ = other.Serve(ln) }()
	defer other.Close()
	if _, err := startSlow(t.Context(), ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the address is taken: %v", err)
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	sh := func(ctx context.Context, script string) (ended, error) {
		return execute(ctx, time.Minute, "/bin/sh", []string{"-c", script})
	}
	done, err := sh(t.Context(), "echo out; echo err >&2")
	if err != nil || done.stdout != "out\n" || done.stderr != "err\n" || done.cpu <= 0 {
		t.Errorf("%+v, %v", done, err)
	}
	_, err = sh(t.Context(), "echo why >&2; exit 2")
	if err == nil || !strings.Contains(err.Error(), "exit status 2: why") {
		t.Errorf("a run that fails: %v", err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := sh(ctx, "sleep 60"); !errors.Is(err, stopped) {
		t.Errorf("a run that is stopped: %v", err)
	}
}
