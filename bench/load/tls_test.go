package load

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testCertificate is httptest's.
var testCertificate = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
})

// serveTLS is serve over https.
func serveTLS(t testing.TB, handle func(*session)) *server {
	t.Helper()
	s := listenTLS(t, "127.0.0.1:0", -1, handle)
	t.Cleanup(s.close)
	return s
}

func listenTLS(t testing.TB, address string, first int64, handle func(*session)) *server {
	t.Helper()
	s := listenFor(t, address, first, secured(handle))
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	return s
}

// secured lets handle speak TLS. When it returns, the end is announced.
func secured(handle func(*session)) func(*session) {
	cfg := &tls.Config{Certificates: []tls.Certificate{testCertificate()}}
	return func(c *session) {
		secure := tls.Server(c.TCPConn, cfg)
		if secure.Handshake() != nil {
			return
		}
		c.secure, c.reader = secure, bufio.NewReader(secure)
		handle(c)
		secure.Close()
	}
}

// Write writes as the session speaks.
func (c *session) Write(p []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.TCPConn.Write(p)
}

// cut closes the connection without announcing the end.
func (c *session) cut() { c.TCPConn.Close() }

// cutReset does so by a reset.
func (c *session) cutReset() {
	c.reset()
	c.cut()
}

func TestTLSBroken(t *testing.T) {
	t.Parallel()
	const faults = 5
	for _, tt := range broken {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, first(faults, func(c *session) {
				if c.request() {
					tt.misbehave(c)
				}
			}))
			m := runUntil(t, testConfig(s.url), recovered(s, faults))
			if want := (Errors{Read: faults}); m.errors != want || m.reopened != 0 {
				t.Errorf("errors %+v, want %+v; %d reconnects, want none", m.errors, want, m.reopened)
			}
			checkRecovered(t, s, m, faults)
		})
	}
}

// TestTLSBrokenFirst has servers that don't wait for a request.
func TestTLSBrokenFirst(t *testing.T) {
	t.Parallel()
	const faults = 5
	for name, misbehave := range map[string]func(*session){
		"closes":       func(c *session) {},
		"cuts":         (*session).cut,
		"resets":       (*session).cutReset,
		"speaks first": func(c *session) { c.send("220 mail.example ESMTP\r\n"); c.drain() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, first(faults, misbehave))
			m := runUntil(t, testConfig(s.url), recovered(s, faults))
			// A reset may be found by writing or by reading.
			if e := m.errors; e.Read+e.Write != faults || e.Total() != faults || m.reopened != 0 {
				t.Errorf("errors %+v, %d reconnects; want %d read or write errors", e, m.reopened, faults)
			}
			checkRecovered(t, s, m, faults)
		})
	}
}

// TestTLSUntilClose has answers that end with the connection: only its announced
// end completes them.
func TestTLSUntilClose(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end      func(*session)
		complete bool
	}{
		"announced": {func(c *session) {}, true},
		"cut":       {(*session).cut, false},
		"reset":     {(*session).cutReset, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, func(c *session) {
				if c.request() && c.answer("HTTP/1.1 200 OK\r\n\r\nabc") {
					tt.end(c)
				}
			})
			m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 20 })
			if tt.complete && (m.requests == 0 || m.errors != (Errors{}) || m.reopened != m.requests) {
				t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
			}
			if !tt.complete && (m.requests != 0 || m.errors.Read == 0 || m.errors.Total() != m.errors.Read) {
				t.Errorf("%d requests, errors %+v, want read errors alone", m.requests, m.errors)
			}
		})
	}
}

// TestTLSFraming compares what is counted of whole answers.
func TestTLSFraming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer, method string
		closes, extra        bool
	}{
		{name: "interim answers", answer: "HTTP/1.1 100 Continue\r\n\r\n" + okAnswer},
		{name: "HEAD", method: http.MethodHead, answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"},
		{name: "chunked", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n"},
		{name: "announced close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", closes: true},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", closes: true},
		{name: "pipelined", answer: okAnswer + okAnswer + okAnswer, extra: true},
		{name: "longer than announced", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhiEXTRA", extra: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, answering(tt.answer))
			cfg := testConfig(s.url)
			cfg.Method = tt.method
			m := runUntil(t, cfg, func() bool { return s.answers.Load() > 40 })
			var reopened, read uint64
			if tt.closes {
				reopened = m.requests
			}
			if tt.extra {
				read = m.requests
			}
			if want := (Errors{Read: read}); m.requests == 0 || m.errors != want || m.reopened != reopened {
				t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
			}
		})
	}
}

// TestTLSSilentClose has a server that closes after every answer and does not
// say so, before the next request or with it unread.
func TestTLSSilentClose(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session){
		"announced": func(c *session) {},
		"cut":       (*session).cut,
		"reset":     (*session).cutReset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, func(c *session) {
				if c.request() && c.answer(okAnswer) {
					end(c)
				}
			})
			m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 40 })
			if name == "reset" {
				// It may destroy the answer.
				if m.errors.Total() != m.errors.Read+m.errors.Write {
					t.Errorf("errors %+v", m.errors)
				}
				return
			}
			// The last connections may not have got to their end.
			if m.errors != (Errors{}) || m.reopened > m.requests || m.reopened+2 < m.requests || m.requests == 0 {
				t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
			}
		})
	}
}

// TestTLSIdle has servers that close or speak on connections that wait for a
// request. One of them has got the only request that is due for long.
func TestTLSIdle(t *testing.T) {
	t.Parallel()
	const connections = 4
	for name, idle := range map[string]func(*session){
		"closes": func(c *session) {},
		"cuts":   (*session).cut,
		"resets": (*session).cutReset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveTLS(t, first(connections, idle))
			cfg := testConfig(s.url)
			cfg.Connections, cfg.Rate = connections, 0.01
			m := runUntil(t, cfg, func() bool { return s.accepted.Load() >= 2*connections })
			lost := m.errors.Read + m.errors.Write
			if lost != 1 || m.errors.Total() != lost || m.reopened != connections-1 {
				t.Errorf("errors %+v, %d reconnects", m.errors, m.reopened)
			}
		})
	}
	t.Run("speaks", func(t *testing.T) {
		t.Parallel()
		s := serveTLS(t, first(connections, func(c *session) { c.send(okAnswer); c.drain() }))
		cfg := testConfig(s.url)
		cfg.Connections, cfg.Rate = connections, 0.01
		m := runUntil(t, cfg, func() bool { return s.accepted.Load() >= 2*connections-1 })
		if want := (Errors{Read: connections - 1}); m.errors != want || m.requests != 1 {
			t.Errorf("errors %+v, want %+v; %d requests", m.errors, want, m.requests)
		}
	})
}

// TestTLSEarlyAnswer is TestEarlyAnswer over https.
func TestTLSEarlyAnswer(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n"
	s := serveTLS(t, func(c *session) {
		if _, err := c.reader.Peek(1); err == nil && c.answer(answer) {
			<-c.server.closing // Nothing more is read.
		}
	})
	cfg := testConfig(s.url)
	cfg.Header = map[string][]string{"X": {strings.Repeat("x", 16<<20)}}
	m := runUntil(t, cfg, func() bool { return s.answers.Load() > 20 })
	if m.requests == 0 || m.errors != (Errors{Status: m.requests}) || m.reopened != m.requests {
		t.Errorf("%d requests, errors %+v, %d reconnects", m.requests, m.errors, m.reopened)
	}
}

// TestTLSLargeRequest sends more than a record, with and without a rate.
func TestTLSLargeRequest(t *testing.T) {
	t.Parallel()
	url, _ := httpServer(t, (*httptest.Server).StartTLS, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})
	for _, rate := range []float64{0, 200} {
		for _, size := range []int{tlsRecord - 100, tlsRecord, 300 << 10} {
			cfg := modeConfig(url)
			cfg.Method, cfg.Body, cfg.Rate = http.MethodPost, make([]byte, size), rate
			cfg.Requests, cfg.Duration, cfg.Timeout = 50, 20*time.Second, 10*time.Second
			if m := measure(t, cfg); m.reopened != 0 {
				t.Errorf("%d bytes: %d reconnects", size, m.reopened)
			}
		}
	}
}

// TestTLSSilent has servers whose answers never end: each is one timeout, and its
// connection is opened again after twice that.
func TestTLSSilent(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(*session){
		"never answers": func(c *session) {
			for c.request() {
			}
		},
		"never reads": func(c *session) { <-c.server.closing },
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
			s := serveTLS(t, handle)
			cfg := testConfig(s.url)
			cfg.Timeout, cfg.Duration = 500*time.Millisecond, 2500*time.Millisecond
			m := run(t, cfg)
			connections := s.accepted.Load()
			if connections < 4 || connections > 8 {
				t.Errorf("%d connections, want 4 to 6", connections)
			}
			if n := int64(m.errors.Timeout); n < connections-2 || n > connections+2 {
				t.Errorf("%d timeouts over %d connections, want one each", n, connections)
			}
			if m.errors.Total() != m.errors.Timeout || m.requests != 0 || m.reopened != 0 {
				t.Errorf("errors %+v, %d requests, %d reconnects", m.errors, m.requests, m.reopened)
			}
		})
	}
}

// TestTLSLate has answers that are late but come: requests and timeouts.
func TestTLSLate(t *testing.T) {
	t.Parallel()
	s := serveTLS(t, paced(330*time.Millisecond))
	cfg := testConfig(s.url)
	cfg.Timeout, cfg.Duration = 300*time.Millisecond, 1500*time.Millisecond
	m := run(t, cfg)
	late := m.requests + uint64(s.accepted.Load()-2)
	if m.requests == 0 || m.errors.Timeout < late || m.errors.Timeout > late+2 {
		t.Errorf("%d timeouts of %d late answers", m.errors.Timeout, late)
	}
	if m.errors.Total() != m.errors.Timeout || m.reopened != 0 {
		t.Errorf("errors %+v, %d reconnects", m.errors, m.reopened)
	}
}

// TestTLSOutage takes the server away until connections are refused, and brings
// it back.
func TestTLSOutage(t *testing.T) {
	t.Parallel()
	const connections = 4
	var working atomic.Int64
	leave := make(chan struct{})
	before := listenTLS(t, "127.0.0.1:0", -1, func(c *session) {
		for counted := false; c.request() && c.answer(okAnswer); counted = true {
			if !counted && working.Add(1) == connections {
				c.server.listener.Close()
				<-c.server.stopped
				close(leave)
			}
			select {
			case <-leave:
				return
			default:
			}
		}
	})
	again := make(chan *server, 1)
	go func() {
		<-leave
		before.sessions.Wait()
		time.Sleep(250 * time.Millisecond) // The outage's length.
		again <- listenTLS(t, before.listener.Addr().String(), 0, behave)
	}()
	cfg := testConfig(before.url)
	cfg.Connections = connections
	var after *server
	m := runUntil(t, cfg, func() bool {
		select {
		case after = <-again:
		default:
		}
		return after != nil && after.answers.Load() > 100 && after.accepted.Load() == connections
	})
	after.close()
	if want := (Errors{Connect: connections}); m.errors != want || m.reopened != connections {
		t.Errorf("errors %+v, want %+v; %d reconnects, want %d", m.errors, want, m.reopened, connections)
	}
}

// TestTLSNoHandshake has a server that speaks no TLS: as with wrk, nothing
// connects.
func TestTLSNoHandshake(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *session) { c.send("HTTP/1.1 400 Bad Request\r\n\r\n"); c.drain() })
	cfg := testConfig(strings.Replace(s.url, "http:", "https:", 1))
	m := runUntil(t, cfg, func() bool { return s.accepted.Load() >= 6 })
	if want := (Errors{Connect: 2}); m.errors != want || m.requests != 0 {
		t.Errorf("errors %+v, want %+v", m.errors, want)
	}
}
