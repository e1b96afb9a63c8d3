package load

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// checkServed compares what was measured with what the server did: what was
// under way when the run ended is at most one answer a connection.
func checkServed(t *testing.T, s *server, m *Measurement, connections int, answer string) {
	t.Helper()
	s.close()
	served, measured := s.answers.Load(), int64(m.Requests)
	if measured == 0 || served < measured || served > measured+int64(connections) {
		t.Errorf("%d requests measured, %d served over %d connections", measured, served, connections)
	}
	if received := s.requests.Load(); received < measured || received > measured+int64(connections) {
		t.Errorf("%d requests measured, %d received over %d connections", measured, received, connections)
	}
	if least, most := measured*int64(len(answer)), s.bytes.Load(); int64(m.Bytes) < least || int64(m.Bytes) > most {
		t.Errorf("%d bytes read, want %d to %d", m.Bytes, least, most)
	}
}

func TestFraming(t *testing.T) {
	t.Parallel()
	const body = "1234567890"
	tests := []struct {
		name, answer string
		// closes says that the connection ends with each answer.
		closes bool
		status bool
		// extra says that it's longer than it may be.
		extra bool
	}{
		{name: "length", answer: okAnswer},
		{name: "no body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{name: "chunked", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" + body + "\r\n0\r\n\r\n"},
		{name: "extensions and trailers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;q=\"v\"\r\n" + body + "\r\n0;last\r\nSum: 1\r\n\r\n"},
		{name: "large", answer: "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat("x", 3000000)},
		{name: "longer than announced", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhiEXTRA", extra: true},
		{name: "pipelined", answer: okAnswer + okAnswer, extra: true},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "304", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"},
		{name: "404", answer: "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n" + body, status: true},
		{name: "503", answer: "HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: true},
		{name: "interim", answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + okAnswer},
		{name: "HTTP/1.0 keep-alive", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 10\r\n\r\n" + body},
		{name: "announced close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n" + body, closes: true},
		{name: "announced close, chunked", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", closes: true},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\n" + body, closes: true},
		{name: "until close", answer: "HTTP/1.1 200 OK\r\n\r\n" + body, closes: true},
		{name: "until close, 1.0", answer: "HTTP/1.0 200 OK\r\n\r\n", closes: true},
		{name: "503 until close", answer: "HTTP/1.0 503 Busy\r\n\r\nbusy", closes: true, status: true},
		{name: "closes unannounced", answer: okAnswer, closes: true},
	}
	overBoth(t, func(t *testing.T, over transport) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, func(c *session) {
					for c.request() && c.answer(tt.answer) && !tt.closes {
					}
				})
				cfg := testConfig(s.url)
				m := runUntil(t, cfg, func() bool { return s.answers.Load() > 20 })
				if tt.name != "closes unannounced" {
					checkServed(t, s, m, cfg.Connections, strings.TrimSuffix(tt.answer, body+"\r\n"))
				}
				var want Errors
				var reopened uint64
				if tt.status {
					want.Status = m.Requests
				}
				if tt.extra {
					want.Read = m.Requests
				}
				if tt.closes {
					reopened = m.Requests
				}
				if m.Errors != want {
					t.Errorf("errors %+v, want %+v", m.Errors, want)
				}
				if m.Reconnects != reopened && tt.name != "closes unannounced" {
					t.Errorf("%d reconnects after %d requests", m.Reconnects, m.Requests)
				}
			})
		}
	})
}

// TestClosesBetweenRequests has a server that ends a connection after its
// third answer, or instead of a fourth, in every way there is.
func TestClosesBetweenRequests(t *testing.T) {
	t.Parallel()
	const closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n1234567890"
	overBoth(t, func(t *testing.T, over transport) {
		for name, last := range map[string]func(*session){
			"announced": func(c *session) { c.answer(closing) },
			"announced, stays open": func(c *session) {
				c.answer(closing)
				c.drain()
			},
			"unannounced": func(c *session) { c.answer(okAnswer) },
			"cut":         func(c *session) { c.answer(okAnswer); c.cut() },
			"with the next request unread": func(c *session) {
				c.answer(okAnswer)
				c.arrived()
			},
			"by a reset": func(c *session) {
				c.answer(okAnswer)
				c.arrived()
				c.reset()
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, func(c *session) {
					for range 2 {
						if !c.request() || !c.answer(okAnswer) {
							return
						}
					}
					if c.request() {
						last(c)
					}
				})
				m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 100 })
				if m.Errors != (Errors{}) {
					t.Errorf("errors %+v of %q, want none", m.Errors, m.words())
				}
				if least := m.Requests / 3; least == 0 || m.Reconnects < least-2 || m.Reconnects > least+2 {
					t.Errorf("%d reconnects after %d requests, want a third", m.Reconnects, m.Requests)
				}
			})
		}
	})
}

// arrived waits for the client's next bytes and leaves them unread.
func (c *session) arrived() {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	var b [1]byte
	_ = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK)
		return err != unix.EAGAIN
	})
}

// TestIdle has servers that close or speak on connections that wait for a
// request. One of them has got the only request that is due for long.
func TestIdle(t *testing.T) {
	t.Parallel()
	const connections = 4
	overBoth(t, func(t *testing.T, over transport) {
		for name, idle := range map[string]func(*session){
			"closes": func(c *session) {},
			"cuts":   (*session).cut,
			"resets": func(c *session) { c.reset(); c.cut() },
			"speaks": func(c *session) { c.send(okAnswer); c.drain() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := over.serve(t, first(connections, idle))
				cfg := testConfig(s.url)
				cfg.Connections, cfg.Rate = connections, 0.01
				speaks, again := name == "speaks", int64(connections)
				if speaks {
					again-- // The one that was asked goes on.
				}
				m := step(t, cfg)
				m.until("new connections", func() bool {
					return s.accepted.Load() >= connections+again && (!speaks || m.Requests == 1)
				})
				lost := m.Errors.Read + m.Errors.Write
				switch {
				case speaks && (m.Errors != (Errors{Read: connections - 1}) || m.Requests != 1):
					t.Errorf("errors %+v, %d requests", m.Errors, m.Requests)
				case !speaks && (lost != 1 && name != "resets" || m.Errors.Total() != lost || m.Reconnects != connections-lost):
					// A reset may come before connecting is known to have ended,
					// or before the request is sent.
					t.Errorf("errors %+v, %d reconnects", m.Errors, m.Reconnects)
				}
			})
		}
	})
}

// TestSplit sends answers in two pieces, cut at every byte, and byte by byte.
func TestSplit(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;x\r\n1234567890\r\n0\r\nT: v\r\n\r\n"
	overBoth(t, func(t *testing.T, over transport) {
		split := over.serve(t, func(c *session) {
			for at := 0; c.request(); at++ {
				answer := okAnswer
				if at%2 == 0 {
					answer = chunked
				}
				cut := at % len(answer)
				if !c.send(answer[:cut]) || !c.answer(answer[cut:]) {
					return
				}
			}
		})
		bytewise := over.serve(t, func(c *session) {
			for c.request() {
				for i := range len(chunked) - 1 {
					c.send(chunked[i : i+1])
				}
				c.answer(chunked[len(chunked)-1:])
			}
		})
		for _, s := range []*server{split, bytewise} {
			cfg := testConfig(s.url)
			m := runUntil(t, cfg, func() bool { return s.answers.Load() > 2*int64(len(chunked)) })
			if m.Errors != (Errors{}) || m.Reconnects > 0 {
				t.Errorf("errors %+v, %d reconnects, want none", m.Errors, m.Reconnects)
			}
			checkServed(t, s, m, cfg.Connections, okAnswer)
		}
	})
}
