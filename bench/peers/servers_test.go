package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"armrepro/bench/load"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

func TestProxies(t *testing.T) {
	t.Parallel()
	golden(t, "proxy.conf", proxies(5, 45, proxy{"127.0.0.1:9080", "127.0.0.1:1980"}, proxy{"127.0.0.1:9081", "127.0.0.1:1981"}))
}

// TestBareServer answers on one connection, again and again, at any of its
// addresses.
func TestBareServer(t *testing.T) {
	t.Parallel()
	at, err := addresses(20)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(at[:9]) || len(slices.Compact(at)) != 20 || strings.HasPrefix(at[0], "127.0.0.1:") {
		t.Errorf("addresses %q", at)
	}
	s := &session{}
	bare, err := s.startBare(t.Context(), at...)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for range 100 {
		resp, err := client.Get(url(at[19]))
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 2*len(upstream.Body))
		n, _ := resp.Body.Read(body)
		if resp.Body.Close(); string(body[:n]) != upstream.Body {
			t.Fatalf("answer %q", body[:n])
		}
	}
	upstreams, proxy, err := s.serverCPU()
	if err != nil || upstreams <= 0 || proxy != 0 {
		t.Errorf("CPU time %s and %s, %v", upstreams, proxy, err)
	}
	if err := s.stopServers(); err != nil || bare.alive() == nil || len(s.servers) > 0 {
		t.Errorf("stopped: %v, %v", err, bare.alive())
	}
}

func TestServerFails(t *testing.T) {
	t.Parallel()
	s := &session{}
	defer func() {
		if err := s.stopServers(); err != nil {
			t.Error(err)
		}
	}()
	// It ends at once, saying why.
	_, err := s.start(t.Context(), "some server", []string{"127.0.0.1:1"}, process.Config{Path: process.Self, Args: []string{bareCommand, "nowhere"}})
	if err == nil || !strings.Contains(err.Error(), "some server has ended") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a server that ends: %v", err)
	}
	// Its address is taken by somebody who does not answer.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
			conn.Close()
		}
	}()
	if _, err := s.startBare(t.Context(), ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the address is taken: %v", err)
	}
	// It never answers where it is asked.
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err = s.start(ctx, "some server", []string{"127.0.0.1:1"}, process.Config{Path: "/bin/sleep", Args: []string{"60"}}); !errors.Is(err, stopped) {
		t.Errorf("a server that does not answer: %v", err)
	}
	if _, err := s.start(t.Context(), "none", nil, process.Config{Path: "/nonexistent"}); err == nil {
		t.Error("a program that isn't there was started")
	}
}

// TestSlow loads the slow server: a program as generator, and its latencies, of
// which any stretch has the distribution.
func TestSlow(t *testing.T) {
	t.Parallel()
	at, stop, err := startSlow()
	if err != nil {
		t.Fatal(err)
	}
	if body, err := process.Fetch(t.Context(), http.MethodGet, url(at), ""); err != nil || body != upstream.Body {
		t.Errorf("%q, %v", body, err)
	}
	stop()
	for begin := uint64(0); begin < 1e6; begin += 99999 {
		var latencies []time.Duration
		for n := range uint64(1000) {
			latencies = append(latencies, slowLatency(begin+n))
		}
		slices.Sort(latencies)
		for rank, want := range map[int]float64{500: 2, 900: 3.796, 990: 6.4} {
			if got := latencies[rank-1].Seconds() * 1000 / want; got < 0.97 || got > 1.03 {
				t.Errorf("rank %d from %d on is %s, want %v ms", rank, begin, latencies[rank-1], want)
			}
		}
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	sh := func(ctx context.Context, script string) ([]byte, time.Duration, error) {
		return execute(ctx, time.Minute, "/bin/sh", []string{"-c", script})
	}
	out, cpu, err := sh(t.Context(), "echo out; echo err >&2")
	if err != nil || string(out) != "out\n" || cpu <= 0 {
		t.Errorf("%q, %s, %v", out, cpu, err)
	}
	if _, _, err = sh(t.Context(), "echo why >&2; exit 2"); err == nil || !strings.Contains(err.Error(), "exit status 2: why") {
		t.Errorf("a run that fails: %v", err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, _, err := sh(ctx, "sleep 60"); !errors.Is(err, stopped) {
		t.Errorf("a run that is stopped: %v", err)
	}
}

// distribution is recorded: armrepro load on a fast server.
const distribution = `Running 3s test @ http://127.0.0.1:11991/
  2 threads and 10000 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   100.07ms   37.01ms 327.71ms   82.77%
    Req/Sec    48.76k    15.26k   68.46k    80.00%
  Latency Distribution
     50%  132.00us
     75%  101.67ms
     90%  150.53ms
     99%    1.25s
  264878 requests in 3.02s, 44.46MB read
Requests/sec:  87585.44
Transfer/sec:    14.70MB
`

func TestParsePercentiles(t *testing.T) {
	t.Parallel()
	r, err := parsePercentiles([]byte(distribution))
	if err != nil || *r.Latency.P50 != 132 || *r.Latency.P90 != 150530 || *r.Latency.P99 != 1.25e6 {
		t.Errorf("%+v, %v", r, err)
	}
	for name, text := range map[string]string{
		"nothing":  "",
		"no p99":   strings.Replace(distribution, "99%", "98%", 1),
		"no unit":  strings.Replace(distribution, "1.25s", "1.25", 1),
		"two runs": distribution + distribution,
	} {
		if r, err := parsePercentiles([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, r.Latency)
		}
	}
}

// TestWrk reads what the script makes wrk write.
func TestWrk(t *testing.T) {
	t.Parallel()
	found, err := wrk.Find(t.Context())
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	s := &session{dir: t.TempDir(), tools: tools{wrk: found}}
	s.tools.wrkScript = s.dir + "/done.lua"
	if err := os.WriteFile(s.tools.wrkScript, []byte(wrkScript), 0o600); err != nil {
		t.Fatal(err)
	}
	at, stop, err := startSlow()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	got, err := s.wrk(usual(at))(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l := got.Latency
	if got.Requests == 0 || got.Bytes < got.Requests*100 || got.QPS <= 0 || got.Errors != (load.Errors{}) || got.generatorCPU <= 0 {
		t.Errorf("%+v", got)
	}
	if l.P50 == nil || l.P90 == nil || l.P99 == nil || l.MeanWrk == nil || *l.P50 < 1000 || *l.P90 < *l.P50 || *l.P99 < *l.P90 {
		t.Errorf("%+v", l)
	}
	for _, bad := range []string{"", "{}x", "\n{\"requests\": -nan}"} {
		if r, err := parseResult([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}
