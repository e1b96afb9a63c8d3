package load

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// modeConfig is a short run of url.
func modeConfig(url string) Config {
	return Config{URL: url, Connections: 4, Threads: 2, Duration: 300 * time.Millisecond, Timeout: time.Second}
}

// httpServer is a well-kept server to check the modes with.
func httpServer(t *testing.T, start func(*httptest.Server), handler http.HandlerFunc) (url string, served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s.URL + "/hello", served
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1234567890") }

// measure runs cfg and checks that nothing went wrong.
func measure(t *testing.T, cfg Config) *Measurement {
	t.Helper()
	r, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.errors != (Errors{}) || m.requests == 0 {
		t.Errorf("%d requests, errors %+v", m.requests, m.errors)
	}
	return m
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	url, served := httpServer(t, (*httptest.Server).StartTLS, hello)
	cfg := modeConfig(url)
	cfg.Requests, cfg.Duration = 2000, 20*time.Second
	m := measure(t, cfg)
	if n := uint64(served.Load()); n < m.requests || n > m.requests+uint64(cfg.Connections) {
		t.Errorf("%d requests served, %d answers counted", n, m.requests)
	}
	if m.raw.count != m.requests {
		t.Errorf("%d latencies of %d requests", m.raw.count, m.requests)
	}
}

func TestHTTPSErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		check   func(m *Measurement) bool
	}{
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
			func(m *Measurement) bool { return m.errors == Errors{Status: m.requests} && m.requests > 0 }},
		{"closes", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
			func(m *Measurement) bool { return m.errors == Errors{} && m.reopened == m.requests && m.requests > 0 }},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		}, func(m *Measurement) bool { return m.errors.Read > 0 && m.requests == 0 }},
		{"is silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(m *Measurement) bool { return m.errors.Timeout > 0 && m.requests == 0 && m.errors.Read == 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, _ := httpServer(t, (*httptest.Server).StartTLS, tt.handler)
			cfg := modeConfig(url)
			if tt.name == "is silent" {
				cfg.Timeout = 300 * time.Millisecond
			}
			cfg.Duration = 2 * time.Second
			r, err := New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			m, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !tt.check(m) {
				t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	_, served := httpServer(t, func(s *httptest.Server) {
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s.Listener.Close()
		s.Listener = ln
		s.Start()
	}, hello)
	cfg := modeConfig("http://example.org/hello")
	cfg.UnixSocket = path
	m := measure(t, cfg)
	if n := uint64(served.Load()); n < m.requests {
		t.Errorf("%d requests served, %d answers counted", n, m.requests)
	}
	cfg.UnixSocket += ".none"
	if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), cfg.UnixSocket) {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func TestMethodAndBody(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("x"), 300<<10) // More than a socket takes at once.
	var wrong atomic.Int64
	url, _ := httpServer(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, body) || r.Method != http.MethodPut {
			wrong.Add(1)
		}
	})
	cfg := modeConfig(url)
	cfg.Method, cfg.Body = http.MethodPut, body
	measure(t, cfg)
	// What was cut off at the end is in flight, not wrong.
	if n := wrong.Load(); n > int64(cfg.Connections) {
		t.Errorf("%d requests arrived wrong", n)
	}
	cfg.Method = "GET /x"
	if err := cfg.Check(); err == nil {
		t.Error("a method with a space is accepted")
	}
}

// TestHead has answers that announce a body and have none.
func TestHead(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).Start, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
	})
	for _, rate := range []float64{0, 500} {
		cfg := modeConfig(url)
		cfg.Method, cfg.Rate = http.MethodHead, rate
		measure(t, cfg)
	}
}

func TestUntilRequests(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		for _, n := range []int{1, 7, 1000} {
			url, _ := httpServer(t, start, hello)
			cfg := modeConfig(url)
			cfg.Requests, cfg.Duration = n, 20*time.Second
			if m := measure(t, cfg); m.requests != uint64(n) || m.raw.count != uint64(n) || m.elapsed > 10*time.Second {
				t.Errorf("%s: %d answers after %v, want %d", name, m.requests, m.elapsed, n)
			}
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, served := httpServer(t, start, hello)
			cfg := modeConfig(url)
			cfg.Rate, cfg.Duration = 400, time.Second
			m := measure(t, cfg)
			// Whatever was due is answered, in flight or counted as unsent.
			due := uint64(cfg.Rate)
			if got := m.requests + m.unsent; got > due+2 || got+uint64(cfg.Connections)+due/10 < due {
				t.Errorf("%d answers and %d unsent of %d that were due", m.requests, m.unsent, due)
			}
			if n := uint64(served.Load()); n > due+uint64(cfg.Connections) {
				t.Errorf("%d requests served of %d that were due", n, due)
			}
			if m.service.count != m.requests || m.raw.mean() < m.service.mean() {
				t.Errorf("service time %v µs of %d, latency %v µs of %d: none is longer than the other",
					m.service.mean(), m.service.count, m.raw.mean(), m.raw.count)
			}
		})
	}
}

// TestRateShowsStall stops the server for a while: at a fixed rate the requests
// that were due meanwhile count their wait, which a closed loop never sent.
// TestUntilRequestsOfAllThreads gets all answers that were asked for, although one thread's
// connection gets none, and counts the time until the last.
func TestUntilRequestsOfAllThreads(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	server := serve(t, func(c *session) {
		// The first connection only tries whether somebody listens.
		silent := connections.Add(1) == 2
		for c.request() && (silent || c.answer(okAnswer)) {
		}
	})
	cfg := modeConfig(server.url)
	cfg.Connections, cfg.Requests, cfg.Duration, cfg.Timeout = 2, 1000, 20*time.Second, 30*time.Second
	m := measure(t, cfg)
	if m.requests != 1000 || m.raw.count != 1000 {
		t.Errorf("%d requests, %d latencies", m.requests, m.raw.count)
	}
	if m.elapsed > cfg.Duration/2 {
		t.Errorf("took %v", m.elapsed)
	}
}

// TestUntilFewRequests ends within less than a tick.
func TestUntilFewRequests(t *testing.T) {
	t.Parallel()
	server := serve(t, func(c *session) {
		for c.request() && c.answer(okAnswer) {
		}
	})
	cfg := modeConfig(server.url)
	cfg.Requests, cfg.Duration = 3, 20*time.Second
	if m := measure(t, cfg); m.requests != 3 || m.elapsed >= tick && m.elapsed > time.Duration(m.raw.max)*time.Microsecond*2 {
		t.Errorf("%d requests in %v", m.requests, m.elapsed)
	}
}

// TestTinyRate has its first request due at once and its second after centuries.
func TestTinyRate(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).Start, hello)
	cfg := modeConfig(url)
	cfg.Rate = 1e-10
	if m := measure(t, cfg); m.requests != 1 || m.unsent != 0 {
		t.Errorf("%d requests, %d unsent", m.requests, m.unsent)
	}
}

func TestRateShowsStall(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	for name, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			url, _ := httpServer(t, start, func(w http.ResponseWriter, r *http.Request) {
				if at := time.Since(begin); at > stall && at < 2*stall {
					time.Sleep(2*stall - at) // What a stall is.
				}
				hello(w, r)
			})
			cfg := modeConfig(url)
			cfg.Rate, cfg.Duration = 500, 4*stall
			m := measure(t, cfg)
			// About a quarter of all was due during the stall, so the upper
			// tenth waited for more than half of it.
			if got := time.Duration(m.raw.percentile(95)) * time.Microsecond; got < stall/2 {
				t.Errorf("95 %% of the latencies are below %v, with a stall of %v", got, stall)
			}
			if got := time.Duration(m.service.percentile(95)) * time.Microsecond; got > stall/2 {
				t.Errorf("the service time has %v in its 95th percentile: few requests were sent into the stall", got)
			}
		})
	}
}

// TestRateTooHigh asks for more than the server can do: the queue shows.
func TestRateTooHigh(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(10 * time.Millisecond) // 4 connections: 400 a second.
		hello(w, r)
	})
	cfg := modeConfig(url)
	cfg.Rate, cfg.Duration = 4000, 500*time.Millisecond
	m := measure(t, cfg)
	if m.unsent < 1000 || m.requests > 250 {
		t.Errorf("%d answers, %d unsent; of 2000 about 200 can be answered", m.requests, m.unsent)
	}
	if m.raw.mean() < 5*m.service.mean() {
		t.Errorf("latency %v µs, service time %v µs: the queue is missing", m.raw.mean(), m.service.mean())
	}
}

// TestRateIdleClosed has a server that closes connections which wait for a
// request.
func TestRateIdleClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *session) {
		for range 3 {
			if !c.request() {
				return
			}
			c.answer(okAnswer)
		}
	})
	cfg := modeConfig(s.url)
	cfg.Rate, cfg.Duration = 200, 500*time.Millisecond
	m := measure(t, cfg)
	if m.reopened == 0 {
		t.Error("no connection was opened again")
	}
}

func TestWriteHDR(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).Start, hello)
	m := measure(t, modeConfig(url))
	var log bytes.Buffer
	if err := m.WriteHDR(&log); err != nil {
		t.Fatal(err)
	}
	h, err := hdrhistogram.NewHistogramLogReader(&log).NextIntervalHistogram()
	if err != nil || h == nil {
		t.Fatalf("read it back: %v", err)
	}
	if n := uint64(h.TotalCount()); n != m.requests {
		t.Errorf("%d values of %d requests", n, m.requests)
	}
	// HdrHistogram's rank is a nearest one, wrk's may be one higher.
	low := float64(m.raw.percentile(50-100/float64(m.requests))) * 1000
	high := float64(m.raw.percentile(50)) * 1000
	if got := float64(h.ValueAtQuantile(50)); got < low*0.99-1000 || got > high*1.01+1000 {
		t.Errorf("median %v ns, want %v to %v", got, low, high)
	}
	if start, end := h.StartTimeMs(), h.EndTimeMs(); end-start < 250 || end-start > 5000 {
		t.Errorf("an interval of %d ms", end-start)
	}
}

func TestWriteWrkRate(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).Start, hello)
	cfg := modeConfig(url)
	cfg.Rate = 100
	var out strings.Builder
	if err := measure(t, cfg).WriteWrk(&out, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"    Latency ", "    Service ", "  Target rate: 100.00 requests/sec, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
