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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// modeConfig is for a few requests to url.
func modeConfig(url string) Config {
	return Config{URL: url, Connections: 4, Threads: 2, Requests: 20, Duration: time.Hour, Timeout: MaxTimeout}
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
	if m.Errors != (Errors{}) || m.Requests == 0 {
		t.Errorf("%d requests, errors %+v", m.Requests, m.Errors)
	}
	return m
}

// TestServers has well-kept servers of the standard library.
func TestServers(t *testing.T) {
	t.Parallel()
	overServers(t, func(t *testing.T, start func(*httptest.Server)) {
		url, served := httpServer(t, start, hello)
		cfg := modeConfig(url)
		cfg.Requests = 1000
		m := measure(t, cfg)
		if n := uint64(served.Load()); m.Requests != 1000 || n < m.Requests || n > m.Requests+uint64(cfg.Connections) {
			t.Errorf("%d requests served, %d answers counted", n, m.Requests)
		}
		if m.raw.count != m.Requests {
			t.Errorf("%d latencies of %d requests", m.raw.count, m.Requests)
		}
	})
}

// overServers runs a test over the standard library's http and https.
func overServers(t *testing.T, test func(t *testing.T, start func(*httptest.Server))) {
	t.Helper()
	for name, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start)
		})
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	overServers(t, func(t *testing.T, start func(*httptest.Server)) {
		path := filepath.Join(t.TempDir(), "s")
		url, served := httpServer(t, func(s *httptest.Server) {
			ln, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			s.Listener.Close()
			s.Listener = ln
			start(s)
		}, hello)
		scheme, _, _ := strings.Cut(url, ":")
		cfg := modeConfig(scheme + "://example.org/hello")
		cfg.UnixSocket = path
		m := measure(t, cfg)
		if n := uint64(served.Load()); n < m.Requests {
			t.Errorf("%d requests served, %d answers counted", n, m.Requests)
		}
		cfg.UnixSocket += ".none"
		if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), cfg.UnixSocket) {
			t.Errorf("a socket that is not there: %v", err)
		}
	})
}

// TestMethodAndBody sends less than a TLS record, and more than a socket takes at
// once, with and without a rate.
func TestMethodAndBody(t *testing.T) {
	t.Parallel()
	overServers(t, func(t *testing.T, start func(*httptest.Server)) {
		for _, size := range []int{tlsRecord - 100, tlsRecord, 3 << 20} {
			for _, rate := range []float64{0, 200} {
				body := bytes.Repeat([]byte("x"), size)
				var wrong atomic.Int64
				url, _ := httpServer(t, start, func(w http.ResponseWriter, r *http.Request) {
					got, err := io.ReadAll(r.Body)
					if err != nil || !bytes.Equal(got, body) || r.Method != http.MethodPut {
						wrong.Add(1)
					}
				})
				cfg := modeConfig(url)
				cfg.Method, cfg.Body, cfg.Rate = http.MethodPut, body, rate
				if m := measure(t, cfg); m.Reconnects != 0 {
					t.Errorf("%d bytes: %d reconnects", size, m.Reconnects)
				}
				// What was cut off at the end is in flight, not wrong.
				if n := wrong.Load(); n > int64(cfg.Connections) {
					t.Errorf("%d requests arrived wrong", n)
				}
			}
		}
	})
	if err := (Config{URL: "http://x/", Method: "GET /x", Connections: 1, Threads: 1, Duration: 1, Timeout: time.Second}).Check(); err == nil {
		t.Error("a method with a space is accepted")
	}
}

// TestHead has answers that announce a body and have none.
func TestHead(t *testing.T) {
	t.Parallel()
	overServers(t, func(t *testing.T, start func(*httptest.Server)) {
		url, _ := httpServer(t, start, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
		})
		for _, rate := range []float64{0, 1e5} {
			cfg := modeConfig(url)
			cfg.Method, cfg.Rate = http.MethodHead, rate
			measure(t, cfg)
		}
	})
}

// TestUntilRequests gets all answers that were asked for, although one connection
// gets none. (TestClockStopsFirst has their time.)
func TestUntilRequests(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		for _, n := range []int{1, 3, 1000} {
			server := over.serve(t, func(c *session) {
				silent := c.number == 0
				for c.request() && (silent || c.answer(okAnswer)) {
				}
			})
			cfg := modeConfig(server.url)
			cfg.Connections, cfg.Requests = 2, n
			if m := measure(t, cfg); m.Requests != uint64(n) || m.raw.count != uint64(n) {
				t.Errorf("%d answers, %d latencies, want %d", m.Requests, m.raw.count, n)
			}
		}
	})
}

// TestRate never sends more than is due, and counts the time since it was. That
// takes longer than the service time.
func TestRate(t *testing.T) {
	t.Parallel()
	overServers(t, func(t *testing.T, start func(*httptest.Server)) {
		url, served := httpServer(t, start, hello)
		cfg := modeConfig(url)
		cfg.Rate, cfg.Requests = 400, 100
		m := measure(t, cfg)
		due := uint64(m.elapsed.Seconds()*cfg.Rate) + uint64(cfg.Threads)
		if n := uint64(served.Load()); m.Requests != 100 || n > due+uint64(cfg.Connections) {
			t.Errorf("%d answers, %d requests served of %d that were due", m.Requests, n, due)
		}
		if m.service.count != m.Requests || m.raw.mean() < m.service.mean() {
			t.Errorf("service time %v µs of %d, latency %v µs of %d: none is longer than the other",
				m.service.mean(), m.service.count, m.raw.mean(), m.raw.count)
		}
	})
}

// TestTinyRate has its first request due at once and its second after centuries.
func TestTinyRate(t *testing.T) {
	t.Parallel()
	s := serve(t, behave)
	cfg := modeConfig(s.url)
	cfg.Rate = 1e-10
	l := step(t, cfg)
	l.until("answer", func() bool { return l.Requests == 1 })
	l.pass(time.Hour)
	l.until("idle connections", l.all(idle))
	if unsent := l.schedule.overdue(l.now()); unsent != 0 || s.requests.Load() != 1 {
		t.Errorf("%d requests, %d unsent", s.requests.Load(), unsent)
	}
}

// TestRateShowsStall stops the server for a while: at a fixed rate the requests
// that were due meanwhile count their wait, which a closed loop never sent.
func TestRateShowsStall(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		const stall = 200 * time.Millisecond
		var once sync.Once
		resume := make(chan struct{})
		s := over.serve(t, func(c *session) {
			for c.request() {
				if c.server.requests.Load() > 20 {
					once.Do(func() { time.AfterFunc(stall, func() { close(resume) }) })
					<-resume
				}
				c.answer(okAnswer)
			}
		})
		cfg := modeConfig(s.url)
		cfg.Rate, cfg.Requests = 1000, 400
		m := measure(t, cfg)
		above := func(h *histogram) uint64 { return h.count - h.below(int((stall / 2).Microseconds())).count }
		// 100 were due in the first half of the stall, and 4 of them sent.
		if late, slow := above(m.raw), above(m.service); late < slow+50 {
			t.Errorf("%d latencies and %d service times are above %v", late, slow, stall/2)
		}
	})
}

// TestRateTooHigh asks for more than the server can do: the queue shows.
func TestRateTooHigh(t *testing.T) {
	t.Parallel()
	s := serve(t, paced(10*time.Millisecond)) // 4 connections: 400 a second.
	cfg := modeConfig(s.url)
	cfg.Rate, cfg.Requests = 4000, 100
	m := measure(t, cfg)
	// 100 answers take a quarter of a second at least.
	if m.Unsent < 800 {
		t.Errorf("%d answers, %d unsent of 1000 and more", m.Requests, m.Unsent)
	}
	if m.raw.mean() < 5*m.service.mean() {
		t.Errorf("latency %v µs, service time %v µs: the queue is missing", m.raw.mean(), m.service.mean())
	}
}

// TestRateIdleClosed has a server that closes connections which wait for a
// request.
func TestRateIdleClosed(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		s := over.serve(t, func(c *session) {
			for range 3 {
				if !c.request() {
					return
				}
				c.answer(okAnswer)
			}
		})
		cfg := modeConfig(s.url)
		cfg.Rate, cfg.Requests = 1000, 50
		if m := measure(t, cfg); m.Reconnects == 0 {
			t.Error("no connection was opened again")
		}
	})
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
	if n := uint64(h.TotalCount()); n != m.Requests {
		t.Errorf("%d values of %d requests", n, m.Requests)
	}
	// HdrHistogram's rank is a nearest one, wrk's may be one higher.
	low := float64(m.raw.percentile(50-100/float64(m.Requests))) * 1000
	high := float64(m.raw.percentile(50)) * 1000
	if got := float64(h.ValueAtQuantile(50)); got < low*0.99-1000 || got > high*1.01+1000 {
		t.Errorf("median %v ns, want %v to %v", got, low, high)
	}
	// The log has the times as floats of seconds, which the reader rounds down.
	if took := h.EndTimeMs() - h.StartTimeMs(); took < m.elapsed.Milliseconds()-1 || took > m.elapsed.Milliseconds()+1 {
		t.Errorf("an interval of %d ms, want %v", took, m.elapsed)
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
