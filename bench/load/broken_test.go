package load

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/http1"
)

// broken are servers that break HTTP or a connection, each after reading a
// request. Every broken connection is one read error.
var broken = []struct {
	name string
	// cause is what is said of it. Where it's a reset, the end that TLS
	// announces before may be seen instead.
	cause     error
	misbehave func(*session)
}{
	{name: "closes without a response", cause: errUnanswered, misbehave: func(c *session) {}},
	{name: "closes in the status line", cause: errCutOff, misbehave: func(c *session) { c.send("HTTP/1.1 2") }},
	{name: "closes in the header", cause: errCutOff, misbehave: func(c *session) { c.send("HTTP/1.1 200 OK\r\nContent-Le") }},
	{name: "closes in the body", cause: errCutOff, misbehave: func(c *session) { c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345") }},
	{name: "closes in a chunk", cause: errCutOff, misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345")
	}},
	{name: "closes before the last chunk", cause: errCutOff, misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	}},
	{name: "closes after an interim answer", cause: errCutOff, misbehave: func(c *session) { c.send("HTTP/1.1 100 Continue\r\n\r\n") }},
	{name: "resets without a response", cause: unix.ECONNRESET, misbehave: (*session).reset},
	{name: "resets in the body", cause: unix.ECONNRESET, misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
		c.reset()
	}},
	{name: "garbage", cause: errNoStatus, misbehave: func(c *session) {
		c.send("\x00\x01garbage\r\n\r\n")
		c.drain()
	}},
	{name: "HTTP/2 settings", cause: errNoStatus, misbehave: func(c *session) {
		c.send("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\n")
		c.drain()
	}},
	{name: "endless status line", cause: http1.Error("header section over 64 KiB"), misbehave: func(c *session) { c.endless("HTTP/1.1 200 ", strings.Repeat("x", 1000)) }},
	{name: "endless headers", cause: http1.Error("header section over 64 KiB"), misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\n", strings.Repeat("X: 1234567890\r\n", 100))
	}},
	{name: "endless chunk line", cause: http1.Error("chunk size line over 4 KiB"), misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 1000))
	}},
	{name: "endless trailer", cause: http1.Error("trailer section over 64 KiB"), misbehave: func(c *session) {
		c.endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", strings.Repeat("X: 1234567890\r\n", 100))
	}},
	{name: "chunk size overflows", cause: http1.Error("chunk size is not a hexadecimal number below 2^63"), misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\n")
		c.drain()
	}},
	{name: "length overflows", cause: http1.ErrLength, misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551626\r\n\r\n1234567890")
		c.drain()
	}},
	{name: "two lengths", cause: http1.ErrTwoLengths, misbehave: func(c *session) {
		c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n1234567890")
		c.drain()
	}},
	{name: "longer body than announced", cause: errUnasked, misbehave: func(c *session) {
		c.answer(okAnswer + "12345")
		c.drain()
	}},
	{name: "longer body, later", cause: errNoStatus, misbehave: func(c *session) {
		c.answer(okAnswer)
		if c.request() {
			c.send("12345\r\n")
			c.drain()
		}
	}},
	{name: "two answers at once", cause: errUnasked, misbehave: func(c *session) {
		c.answer(okAnswer + okAnswer)
		c.drain()
	}},
	{name: "takes the second request and closes", cause: errUnanswered, misbehave: func(c *session) {
		c.answer(okAnswer)
		c.request()
	}},
	{name: "closes in the second answer", cause: errCutOff, misbehave: func(c *session) {
		c.answer(okAnswer)
		if c.request() {
			c.send("HTTP/1.1 200 OK\r\n")
		}
	}},
	{name: "resets in the second answer", cause: unix.ECONNRESET, misbehave: func(c *session) {
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

// faults is how many connections misbehave.
const faults = 5

func TestBroken(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		for _, tt := range broken {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, first(faults, func(c *session) {
					if c.request() {
						tt.misbehave(c)
					}
				}))
				// By hand no time passes, however long the server takes to close.
				l := step(t, testConfig(s.url))
				l.until("recovery", recovered(s, faults))
				m := &Measurement{counters: l.counters}
				if want := (Errors{Read: faults}); m.Errors != want || m.Reconnects != 0 {
					t.Errorf("errors %+v, want %+v; %d reconnects, want none", m.Errors, want, m.Reconnects)
				}
				want := []string{"read: " + tt.cause.Error()}
				if got := m.words(); !slices.Equal(got, want) && !isReset(tt.cause) {
					t.Errorf("causes %q, want %q", got, want)
				}
				checkRecovered(t, s, m, faults)
			})
		}
	})
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
	if measured := int64(m.Requests); measured == 0 || served < measured || served > measured+2 {
		t.Errorf("%d requests measured, %d served", measured, served)
	}
}

// TestBrokenOnConnect has servers that don't wait for a request.
func TestBrokenOnConnect(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		for name, misbehave := range map[string]func(*session){
			"closes": func(c *session) {},
			"cuts":   (*session).cut,
			"resets": func(c *session) { c.reset(); c.cut() },
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
				s := over.serve(t, first(faults, misbehave))
				m := runUntil(t, testConfig(s.url), recovered(s, faults))
				// A reset may be found by writing or by reading.
				if e := m.Errors; e.Read+e.Write != faults || e.Total() != faults || m.Reconnects != 0 {
					t.Errorf("errors %+v, %d reconnects; want %d read or write errors", e, m.Reconnects, faults)
				}
				checkRecovered(t, s, m, faults)
			})
		}
	})
}

// TestCauses wants the earliest of each kind, whichever loop it came from.
func TestCauses(t *testing.T) {
	t.Parallel()
	sum := newCounters(Config{})
	for at, why := range map[time.Duration]error{3: unix.EPIPE, 1: unix.ECONNRESET, 2: errCutOff} {
		c := newCounters(Config{})
		c.fail(readError, why, at)
		c.fail(readError, errors.New("later"), at+1)
		c.answered(&Config{}, 500+int(at), at, 0, 0, true)
		sum.add(&c)
	}
	want := []string{"read: connection reset by peer", "status: 501"}
	if got := sum.words(); !slices.Equal(got, want) || sum.Errors != (Errors{Read: 6, Status: 3}) {
		t.Errorf("causes %q of %+v, want %q", got, sum.Errors, want)
	}
}
