package load

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEarlyAnswer has a server that refuses a request before its end, which is
// never sent: the connection cannot be used again.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n"
	overBoth(t, func(t *testing.T, over transport) {
		for name, end := range map[string]func(*session){
			"reads no more": func(c *session) { <-c.server.closing },
			// Which may destroy the answer; over https it comes with an end.
			"closes": func(c *session) {},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, func(c *session) {
					if _, err := c.reader.Peek(1); err == nil && c.answer(answer) {
						end(c)
					}
				})
				cfg := testConfig(s.url)
				cfg.Header = map[string][]string{"X": {strings.Repeat("x", 16<<20)}}
				m := runUntil(t, cfg, func() bool { return s.answers.Load() > 20 })
				lost := m.Errors.Read + m.Errors.Write
				if m.Requests == 0 || m.Errors.Status != m.Requests || m.Reconnects != m.Requests || m.Errors.Total() != m.Requests+lost {
					t.Errorf("%d requests, errors %+v, %d reconnects", m.Requests, m.Errors, m.Reconnects)
				}
				if name == "reads no more" && lost > 0 {
					t.Errorf("%d answers lost", lost)
				}
			})
		}
	})
}

// TestRefused begins when New has found the server, which is gone by then.
func TestRefused(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		s := over.listen(t, "127.0.0.1:0", -1, behave)
		cfg := testConfig(s.url)
		cfg.Connections = 3
		r, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		l := stepRunner(t, r)
		for range 3 {
			l.until("refusal", l.all(closed))
			l.pass(tick)
		}
		want := []string{"connect: connection refused"}
		if l.Errors != (Errors{Connect: 3}) || l.Requests != 0 || l.Reconnects != 0 || !slices.Equal(l.words(), want) {
			t.Errorf("errors %+v of %q, %d requests, %d reconnects", l.Errors, l.words(), l.Requests, l.Reconnects)
		}
		if _, err := New(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "unable to connect to 127.0.0.1:") {
			t.Errorf("New without a server: %v", err)
		}
	})
}

// TestNoHandshake has a server that speaks no TLS, or none in time: as with wrk,
// nothing connects.
func TestNoHandshake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handle func(*session)
		cause  string
	}{
		"speaks http": {func(c *session) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n"); c.drain() },
			"connect: tls: first record does not look like a TLS handshake"},
		"says nothing": {(*session).drain, "connect: no connection within the timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.handle)
			cfg := testConfig(strings.Replace(s.url, "http:", "https:", 1))
			l := step(t, cfg)
			for n := range int64(3) {
				l.until("handshake", func() bool { return s.accepted.Load() == 2*(n+1) && !l.all(connecting)() })
				l.pass(cfg.Timeout + time.Second)
			}
			if want := []string{tt.cause}; l.Errors != (Errors{Connect: 2}) || l.Requests != 0 || !slices.Equal(l.words(), want) {
				t.Errorf("errors %+v of %q, want %q", l.Errors, l.words(), want)
			}
		})
	}
}

// TestOutage takes the server away until connections are refused, and brings it
// back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const connections = 4
	overBoth(t, func(t *testing.T, over transport) {
		leave := make(chan struct{})
		before := over.listen(t, "127.0.0.1:0", -1, func(c *session) {
			if c.request() && c.answer(okAnswer) {
				<-leave
			}
		})
		cfg := testConfig(before.url)
		cfg.Connections = connections
		l := step(t, cfg)
		l.until("an answer each", func() bool { return l.Requests == connections })
		before.listener.Close()
		<-before.stopped
		close(leave)
		l.until("outage", l.all(closed))
		before.close()
		after := over.listen(t, before.listener.Addr().String(), 0, behave)
		t.Cleanup(after.close)
		l.pass(tick)
		l.until("more answers", func() bool { return l.Requests > 100 && after.accepted.Load() == connections })
		if want := (Errors{Connect: connections}); l.Errors != want || l.Reconnects != connections {
			t.Errorf("errors %+v, want %+v; %d reconnects, want %d", l.Errors, want, l.Reconnects, connections)
		}
	})
}

// TestSilent has servers whose answers never end: each is one timeout, and its
// connection is opened again after twice that.
func TestSilent(t *testing.T) {
	t.Parallel()
	const connections = 3
	overBoth(t, func(t *testing.T, over transport) {
		for name, handle := range map[string]func(*session){
			"never answers": (*session).drain,
			"never reads":   func(c *session) { <-c.server.closing },
			"half an answer": func(c *session) {
				c.send(okAnswer[:len(okAnswer)/2])
				c.drain()
			},
			"endless body": func(c *session) {
				if c.request() {
					c.endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1<<16))
				}
			},
			"endless interim answers": func(c *session) {
				if c.request() {
					c.endless("", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100))
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, handle)
				cfg := testConfig(s.url)
				cfg.Connections, cfg.Timeout = connections, 5*time.Minute
				l := step(t, cfg)
				for n := range uint64(2) {
					l.until("requests", l.all(waiting))
					l.pass(cfg.Timeout + time.Minute)
					l.pass(time.Minute)
					if want := (Errors{Timeout: connections * (n + 1)}); l.Errors != want {
						t.Errorf("after the timeout: errors %+v, want %+v", l.Errors, want)
					}
					l.pass(cfg.Timeout)
					l.until("connections", func() bool { return s.accepted.Load() == connections*(int64(n)+2) })
				}
				want := []string{"timeout: no response within the timeout"}
				if l.Requests != 0 || l.Reconnects != 0 || !slices.Equal(l.words(), want) {
					t.Errorf("%d requests, %d reconnects, causes %q", l.Requests, l.Reconnects, l.words())
				}
			})
		}
	})
}

// TestFlood has one connection that sends as fast as it can: the others of its
// loop have their turn.
func TestFlood(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		s := over.serve(t, first(1, func(c *session) {
			if c.request() {
				c.endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 4<<20))
			}
		}))
		cfg := testConfig(s.url)
		cfg.Timeout = MaxTimeout // The flood never ends.
		m := runUntil(t, cfg, func() bool { return s.answers.Load() > 100 })
		if m.Requests < 50 || m.Errors != (Errors{}) {
			t.Errorf("%d requests, errors %+v", m.Requests, m.Errors)
		}
	})
}

// TestLate has answers that come after the timeout but before their connection
// is given up: each is a request and one timeout, as in wrk.
func TestLate(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		answer := make(chan struct{})
		s := over.serve(t, func(c *session) {
			for c.request() {
				select {
				case <-answer:
					c.answer(okAnswer)
				case <-c.server.closing:
				}
			}
		})
		cfg := testConfig(s.url)
		cfg.Connections, cfg.Timeout = 1, 5*time.Minute
		l := step(t, cfg)
		// Found out by the tick, or by the answer itself.
		for n, late := range []func(){
			func() { l.pass(6 * time.Minute) },
			func() { l.started = l.started.Add(-6 * time.Minute) },
		} {
			l.until("request", func() bool { return s.requests.Load() == int64(n+1) })
			late()
			answer <- struct{}{}
			l.until("answer", func() bool { return l.Requests == uint64(n+1) })
			if want := (Errors{Timeout: uint64(n + 1)}); l.Errors != want {
				t.Errorf("errors %+v, want %+v", l.Errors, want)
			}
		}
		m := Measurement{cfg: cfg, elapsed: l.now(), counters: l.counters}
		result, err := m.Result()
		if err != nil {
			t.Fatal(err)
		}
		if least := float64((6 * time.Minute).Microseconds()); result.Latency.P50 == nil || *result.Latency.P50 < least {
			t.Errorf("median is %v, want %v or more", result.Latency.P50, least)
		}
		// wrk counts no latency above the timeout.
		if result.Latency.MeanWrk != nil {
			t.Errorf("wrk's mean of nothing is %v", *result.Latency.MeanWrk)
		}
	})
}

// TestSlowConnect has a server whose kernel takes no more connections.
func TestSlowConnect(t *testing.T) {
	t.Parallel()
	address, free := fullListener(t)
	defer free()
	cfg := testConfig("http://" + address + "/")
	r := &Runner{cfg: cfg, target: &target{address: netip.MustParseAddrPort(address), request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")}}
	l := stepRunner(t, r)
	for range 3 {
		l.pass(cfg.Timeout + time.Second)
	}
	want := []string{"connect: no connection within the timeout"}
	if l.Errors != (Errors{Connect: 2}) || l.Requests != 0 || !slices.Equal(l.words(), want) {
		t.Errorf("errors %+v of %q", l.Errors, l.words())
	}
}
