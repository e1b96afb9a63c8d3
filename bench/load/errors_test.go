package load

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// broken are servers that break HTTP or a connection, each after reading a
// request. Every broken connection is one read error.
var broken = []struct {
	name      string
	misbehave func(*session)
}{
	{name: "closes without an answer", misbehave: func(c *session) {}},
	{name: "closes in the status line", misbehave: func(c *session) { c.send("HTTP/1.1 2") }},
	{name: "closes in the header", misbehave: func(c *session) { c.send("HTTP/1.1 200 OK\r\nContent-Le") }},
	{name: "closes in the body", misbehave: func(c *session) { c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345") }},
	{name: "closes in a chunk", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345")
	}},
	{name: "closes before the last chunk", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	}},
	{name: "closes after an interim answer", misbehave: func(c *session) { c.send("HTTP/1.1 100 Continue\r\n\r\n") }},
	{name: "resets without an answer", misbehave: (*session).reset},
	{name: "resets in the body", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
		c.reset()
	}},
	{name: "garbage", misbehave: func(c *session) {
		c.send("\x00\x01garbage\r\n\r\n")
		c.drain()
	}},
	{name: "HTTP/2 settings", misbehave: func(c *session) {
		c.send("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\n")
		c.drain()
	}},
	{name: "endless status line", misbehave: func(c *session) { c.endless("HTTP/1.1 200 ", strings.Repeat("x", 1000)) }},
	{name: "endless headers", misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\n", strings.Repeat("X: 1234567890\r\n", 100))
	}},
	{name: "endless chunk line", misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 1000))
	}},
	{name: "endless trailer", misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", strings.Repeat("X: 1234567890\r\n", 100))
	}},
	{name: "chunk size overflows", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\n")
		c.drain()
	}},
	{name: "length overflows", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551626\r\n\r\n1234567890")
		c.drain()
	}},
	{name: "two lengths", misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n1234567890")
		c.drain()
	}},
	{name: "longer body than announced", misbehave: func(c *session) {
		c.answer(okAnswer + "12345")
		c.drain()
	}},
	{name: "longer body, later", misbehave: func(c *session) {
		c.answer(okAnswer)
		if c.request() {
			c.send("12345\r\n")
			c.drain()
		}
	}},
	{name: "two answers at once", misbehave: func(c *session) {
		c.answer(okAnswer + okAnswer)
		c.drain()
	}},
	{name: "takes the second request and closes", misbehave: func(c *session) {
		c.answer(okAnswer)
		c.request()
	}},
	{name: "closes in the second answer", misbehave: func(c *session) {
		c.answer(okAnswer)
		if c.request() {
			c.send("HTTP/1.1 200 OK\r\n")
		}
	}},
	{name: "resets in the second answer", misbehave: func(c *session) {
		c.answer(okAnswer)
		if c.request() {
			c.send("H")
			c.reset()
		}
	}},
}

// endless sends begin and then more until the client goes.
func (c *session) endless(begin, more string) {
	c.send(begin)
	for c.send(more) {
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	const faults = 5
	for _, tt := range broken {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, first(faults, func(c *session) {
				if c.request() {
					tt.misbehave(c)
				}
			}))
			m := runUntil(t, testConfig(s.url), recovered(s, faults))
			if want := (Errors{Read: faults}); m.errors != want {
				t.Errorf("errors %+v, want %+v", m.errors, want)
			}
			if m.reopened != 0 {
				t.Errorf("%d reconnects, want none", m.reopened)
			}
			checkRecovered(t, s, m, faults)
		})
	}
}

// recovered says whether n connections have been broken and two went on.
func recovered(s *server, n int64) func() bool {
	return func() bool { return s.accepted.Load() >= n+2 && s.answers.Load() > n+100 }
}

// checkRecovered makes sure that after n broken connections two good ones went
// on.
func checkRecovered(t *testing.T, s *server, m *Measurement, n int64) {
	t.Helper()
	s.close()
	if got := s.accepted.Load(); got != n+2 {
		t.Errorf("%d connections, want %d", got, n+2)
	}
	served := s.answers.Load()
	if measured := int64(m.requests); measured == 0 || served < measured || served > measured+2 {
		t.Errorf("%d requests measured, %d served", measured, served)
	}
}

// TestBrokenOnConnect has servers that don't wait for a request.
func TestBrokenOnConnect(t *testing.T) {
	t.Parallel()
	const faults = 5
	for name, misbehave := range map[string]func(*session){
		"closes": func(c *session) {},
		"resets": (*session).reset,
		"speaks first": func(c *session) {
			c.send("220 mail.example ESMTP\r\n")
			c.drain()
		},
		"speaks first and closes": func(c *session) {
			c.send("SSH-2.0-OpenSSH_9.2\r\n")
			c.CloseWrite()
			c.drain()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, first(faults, misbehave))
			m := runUntil(t, testConfig(s.url), recovered(s, faults))
			// A reset may be found by writing or by reading.
			if e := m.errors; e.Read+e.Write != faults || e.Total() != faults || m.reopened != 0 {
				t.Errorf("errors %+v, %d reconnects; want %d read or write errors", e, m.reopened, faults)
			}
			checkRecovered(t, s, m, faults)
		})
	}
}

// TestEarlyAnswer has a server that refuses a request before its end, which is
// never sent: the connection cannot be used again.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n"
	s := serve(t, func(c *session) {
		if _, err := c.reader.Peek(1); err == nil && c.answer(answer) && c.number%2 == 0 {
			// Neither read nor closed: nothing more can be sent. The others
			// are reset at once.
			time.Sleep(20 * time.Millisecond)
		}
	})
	cfg := testConfig(s.url)
	cfg.Header = map[string][]string{"X": {strings.Repeat("x", 16<<20)}}
	m := runUntil(t, cfg, func() bool { return s.answers.Load() > 40 })
	if m.requests == 0 || m.errors != (Errors{Status: m.requests}) || m.reopened != m.requests {
		t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
	}
}

// TestRefused begins when New has found the server, which is gone by then.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := listen(t, "127.0.0.1:0", behave)
	cfg := testConfig(s.url)
	cfg.Connections = 3
	cfg.Duration = 350 * time.Millisecond
	runner, err := New(context.Background(), cfg)
	s.close()
	if err != nil {
		t.Fatal(err)
	}
	m, err := runner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Errors{Connect: 3}); m.errors != want || m.requests != 0 || m.reopened != 0 {
		t.Errorf("errors %+v, want %+v; %d requests, %d reconnects", m.errors, want, m.requests, m.reopened)
	}
	if _, err := New(context.Background(), cfg); err == nil || !strings.HasPrefix(err.Error(), "unable to connect to 127.0.0.1:") {
		t.Errorf("New without a server: %v", err)
	}
}

// TestOutage takes the server away for a while.
func TestOutage(t *testing.T) {
	t.Parallel()
	var leave atomic.Bool
	s := listen(t, "127.0.0.1:0", func(c *session) {
		for c.request() && c.answer(okAnswer) && !leave.Load() {
		}
	})
	address := s.listener.Addr().String()
	cfg := testConfig(s.url)
	cfg.Connections = 4
	cfg.Duration = time.Second
	runner, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	again := make(chan *server, 1)
	go func() {
		defer close(again)
		for deadline := time.Now().Add(5 * time.Second); runner.Completed() == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return
			}
		}
		s.listener.Close()
		<-s.stopped
		leave.Store(true)
		s.sessions.Wait()
		time.Sleep(250 * time.Millisecond) // The outage's length.
		again <- listenFor(t, address, 0, behave)
	}()
	m, err := runner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s2, ok := <-again
	if !ok {
		t.Fatal("no request completed before the outage")
	}
	s2.close()
	if want := (Errors{Connect: 4}); m.errors != want || m.reopened != 4 {
		t.Errorf("errors %+v, want %+v; %d reconnects, want 4", m.errors, want, m.reopened)
	}
	before, after := s.answers.Load(), s2.answers.Load()
	if served := before + after; int64(m.requests) > served || int64(m.requests) < served-4 || after == 0 {
		t.Errorf("%d requests, %d served before and %d after the outage", m.requests, before, after)
	}
}

// TestSilent has a server that takes connections and never answers.
func TestSilent(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*session){
		"never answers": func(c *session) {
			for c.request() {
			}
		},
		"never reads": func(c *session) { <-c.server.closing },
		"a byte now and then": func(c *session) {
			for i := 0; c.request(); i++ {
				for c.send(okAnswer[i%len(okAnswer) : i%len(okAnswer)+1]) {
					time.Sleep(20 * time.Millisecond)
					i++
				}
			}
		},
		"endless body": func(c *session) {
			if c.request() {
				c.endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1<<20))
			}
		},
		"endless interim answers": func(c *session) {
			if c.request() {
				c.endless("", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000))
			}
		},
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, handle)
			cfg := testConfig(s.url)
			cfg.Timeout = 100 * time.Millisecond
			cfg.Duration = time.Second
			m := run(t, cfg)
			connections := s.accepted.Load()
			// Each was given up after 200 to 300 ms, and counted before.
			if connections < 4 || connections > 10 {
				t.Errorf("%d connections, want 6 to 10", connections)
			}
			counted := int64(m.errors.Timeout)
			// The last two may have had no time yet, or not been accepted.
			if counted < connections-2 || counted > connections+2 {
				t.Errorf("%d timeouts over %d connections, want one each", counted, connections)
			}
			if m.errors.Total() != m.errors.Timeout || m.requests != 0 || m.reopened != 0 {
				t.Errorf("errors %+v, %d requests, %d reconnects", m.errors, m.requests, m.reopened)
			}
		})
	}
}

// TestFlood has one connection that sends as fast as it can: the others of its
// loop have their turn.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := serve(t, first(1, func(c *session) {
		if c.request() {
			c.endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 4<<20))
		}
	}))
	m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 100 })
	if m.requests < 50 || m.errors != (Errors{}) {
		t.Errorf("%d requests, errors %+v", m.requests, m.errors)
	}
}

// TestLate has answers that come after the timeout but before their connection
// is given up: each is a request and one timeout, as in wrk.
func TestLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ timeout, delay time.Duration }{
		// Found out by the tick, or by the answer itself.
		"by a tick or more": {400 * time.Millisecond, 520 * time.Millisecond},
		"by less":           {100 * time.Millisecond, 130 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(c *session) {
				for c.request() {
					time.Sleep(tt.delay)
					if !c.answer(okAnswer) {
						return
					}
				}
			})
			cfg := testConfig(s.url)
			cfg.Timeout = tt.timeout
			cfg.Duration = 1500 * time.Millisecond
			m := run(t, cfg)
			// On a busy machine some may be so late that they are given up.
			late := m.requests + uint64(s.accepted.Load()-2)
			if m.requests == 0 || m.errors.Timeout < late || m.errors.Timeout > late+2 {
				t.Errorf("%d timeouts of %d late answers", m.errors.Timeout, late)
			}
			if m.errors.Total() != m.errors.Timeout || m.reopened != 0 {
				t.Errorf("errors %+v, %d reconnects", m.errors, m.reopened)
			}
			result, err := m.Result()
			if err != nil {
				t.Fatal(err)
			}
			if least := float64(tt.delay.Microseconds()); result.Latency.P50 == nil || *result.Latency.P50 < least {
				t.Errorf("median is %v, want %v or more", result.Latency.P50, least)
			}
			// wrk counts no latency above the timeout.
			if result.Latency.MeanWrk != nil {
				t.Errorf("wrk's mean of nothing is %v", *result.Latency.MeanWrk)
			}
		})
	}
}

// TestSlowConnect has a server whose kernel takes no more connections.
func TestSlowConnect(t *testing.T) {
	t.Parallel()
	address, free := fullListener(t)
	defer free()
	cfg := testConfig("http://" + address + "/")
	cfg.Timeout = 100 * time.Millisecond
	cfg.Duration = 500 * time.Millisecond
	r := &Runner{cfg: cfg}
	r.target = &target{address: netip.MustParseAddrPort(address), request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")}
	m, err := r.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Errors{Connect: 2}); m.errors != want || m.requests != 0 {
		t.Errorf("errors %+v, want %+v", m.errors, want)
	}
}
