package load

import (
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
)

// soon repeats what a busy machine may delay.
func soon(t *testing.T, what string, try func() (took, most time.Duration)) {
	t.Helper()
	const tries = 10
	var took, most time.Duration
	for range tries {
		if took, most = try(); took <= most {
			return
		}
	}
	t.Errorf("%s: %v in the last of %d tries, want %v", what, took, tries, most)
}

// TestHTTPSUntilRequestsEndsAtOnce measures a short time, so it is not parallel.
func TestHTTPSUntilRequestsEndsAtOnce(t *testing.T) {
	url, _ := httpServer(t, (*httptest.Server).StartTLS, hello)
	soon(t, "10 requests", func() (took, most time.Duration) {
		cfg := modeConfig(url)
		cfg.Requests, cfg.Duration = 10, 20*time.Second
		begin := time.Now()
		m := measure(t, cfg)
		if m.requests != 10 {
			t.Errorf("%d requests", m.requests)
		}
		return max(m.elapsed, time.Since(begin)), tick / 2
	})
}

// TestHTTPSRatePrecise wants requests to be sent when they are due, not when Go's
// timers are. It needs the processors, so it is not parallel.
func TestHTTPSRatePrecise(t *testing.T) {
	url, _ := httpServer(t, (*httptest.Server).StartTLS, hello)
	soon(t, "latency above the service time", func() (took, most time.Duration) {
		cfg := modeConfig(url)
		cfg.Rate = 500
		m := measure(t, cfg)
		late := m.raw.percentile(50) - m.service.percentile(50)
		return time.Duration(late) * time.Microsecond, 250 * time.Microsecond
	})
}

// TestHTTPSInterrupted ends at once, whatever connections wait for.
func TestHTTPSInterrupted(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]float64{"waits for answers": 0, "waits for turns": 0.01} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, (*session).drain)
			cfg := testConfig(s.url)
			cfg.Connections, cfg.Rate = 20, rate
			var interrupted time.Time
			m := runUntil(t, cfg, func() bool {
				interrupted = time.Now()
				return s.accepted.Load() == 20
			})
			if late := time.Since(interrupted); late > 2*time.Second {
				t.Errorf("ended after %v", late)
			}
			if m.errors != (Errors{}) {
				t.Errorf("errors %+v", m.errors)
			}
		})
	}
}

func TestSecure(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"http://x/": false, "https://x/": true, "HTTPS://x/": true} {
		if got := (Config{URL: url}).Secure(); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

// TestHTTPSNoLeaks measures the whole process, so it is not parallel.
func TestHTTPSNoLeaks(t *testing.T) {
	round := func(rate float64) {
		for _, handle := range []func(*session){behave, func(c *session) { c.request() }, (*session).cutReset, (*session).drain} {
			s := listenTLS(t, "127.0.0.1:0", -1, handle)
			cfg := testConfig(s.url)
			cfg.Duration, cfg.Rate = 50*time.Millisecond, rate
			run(t, cfg)
			s.close()
		}
	}
	round(0)
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	round(0)
	round(1000)
	poll(t, "descriptors", func() bool { return openFiles(t) <= files })
	poll(t, "goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// poll waits until enough is true.
func poll(t *testing.T, what string, enough func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !enough(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s are left", what)
			return
		}
	}
}

// TestHTTPSFurtherRecord has a server that answers twice, each time in a record
// of its own, and one that announces the end of the stream after an answer.
func TestHTTPSFurtherRecord(t *testing.T) {
	t.Parallel()
	twice := serveTLS(t, func(c *session) {
		for c.request() && c.answer(okAnswer) && c.send(okAnswer) {
		}
	})
	m := runUntil(t, testConfig(twice.url), func() bool { return twice.answers.Load() > 1000 })
	if m.errors.Read == 0 {
		t.Errorf("%d requests and no read error, of %d answers to requests", m.requests, twice.answers.Load())
	}
	once := serveTLS(t, func(c *session) {
		if c.request() {
			c.answer(okAnswer)
		}
	})
	m = runUntil(t, testConfig(once.url), func() bool { return once.answers.Load() > 200 })
	if m.reopened == 0 {
		t.Errorf("%d requests, errors %+v and no reconnect", m.requests, m.errors)
	}
}
