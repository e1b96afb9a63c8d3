package load

import (
	"strings"
	"testing"
	"time"
)

// checkServed compares what was measured with what the server did: what was
// under way when the run ended is at most one answer a connection.
func checkServed(t *testing.T, s *server, m *Measurement, connections int, answer string) {
	t.Helper()
	s.close()
	served, measured := s.answers.Load(), int64(m.requests)
	if measured == 0 || served < measured || served > measured+int64(connections) {
		t.Errorf("%d requests measured, %d served over %d connections", measured, served, connections)
	}
	if received := s.requests.Load(); received < measured || received > measured+int64(connections) {
		t.Errorf("%d requests measured, %d received over %d connections", measured, received, connections)
	}
	if least, most := measured*int64(len(answer)), s.bytes.Load(); int64(m.bytes) < least || int64(m.bytes) > most {
		t.Errorf("%d bytes read, want %d to %d", m.bytes, least, most)
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
	}{
		{name: "length", answer: okAnswer},
		{name: "no body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{name: "chunked", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" + body + "\r\n0\r\n\r\n"},
		{name: "extensions and trailers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;q=\"v\"\r\n" + body + "\r\n0;last\r\nSum: 1\r\n\r\n"},
		{name: "large", answer: "HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n" + strings.Repeat("x", 8000000)},
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
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(c *session) {
				for c.request() && c.answer(tt.answer) && !tt.closes {
				}
			})
			cfg := testConfig(s.url)
			m := runUntil(t, cfg, func() bool { return s.answers.Load() > 100 })
			if tt.name != "closes unannounced" {
				checkServed(t, s, m, cfg.Connections, strings.TrimSuffix(tt.answer, body+"\r\n"))
			}
			want := Errors{}
			if tt.status {
				want.Status = m.requests
			}
			if m.errors != want {
				t.Errorf("errors %+v, want %+v", m.errors, want)
			}
			if !tt.closes && m.reopened > 0 {
				t.Errorf("%d reconnects, want none", m.reopened)
			}
			if tt.closes && m.reopened != m.requests && tt.name != "closes unannounced" {
				t.Errorf("%d reconnects after %d requests", m.reopened, m.requests)
			}
		})
	}
}

// TestLongerThanAnnounced has a server that sends more than it announced and then
// closes, as it announced too.
func TestLongerThanAnnounced(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *session) {
		if c.request() {
			c.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhiEXTRA")
		}
	})
	m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 100 })
	if m.requests == 0 || m.errors.Read != m.requests {
		t.Errorf("%d requests, errors %+v", m.requests, m.errors)
	}
}

// TestClosesBetweenRequests has a server that ends a connection after its
// third answer, or instead of a fourth, in every way there is.
func TestClosesBetweenRequests(t *testing.T) {
	t.Parallel()
	const closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n1234567890"
	for name, last := range map[string]func(*session){
		"announced": func(c *session) { c.answer(closing) },
		"announced, stays open": func(c *session) {
			c.answer(closing)
			c.drain()
		},
		"unannounced": func(c *session) { c.answer(okAnswer) },
		"with the next request unread": func(c *session) {
			c.answer(okAnswer)
			time.Sleep(2 * time.Millisecond)
		},
		"by a reset": func(c *session) {
			c.answer(okAnswer)
			c.reader.Peek(1)
			c.reset()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(c *session) {
				for range 2 {
					if !c.request() || !c.answer(okAnswer) {
						return
					}
				}
				if c.request() {
					last(c)
				}
			})
			m := runUntil(t, testConfig(s.url), func() bool { return s.answers.Load() > 1000 })
			if m.errors != (Errors{}) {
				t.Errorf("errors %+v, want none", m.errors)
			}
			if least := m.requests / 3; least == 0 || m.reopened < least-2 || m.reopened > least+2 {
				t.Errorf("%d reconnects after %d requests, want a third", m.reopened, m.requests)
			}
		})
	}
}

// TestSplit sends answers in two pieces, cut at every byte, and byte by byte.
func TestSplit(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na;x\r\n1234567890\r\n0\r\nT: v\r\n\r\n"
	split := serve(t, func(c *session) {
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
	bytewise := serve(t, func(c *session) {
		for c.request() {
			for i := range len(chunked) - 1 {
				c.send(chunked[i : i+1])
			}
			c.answer(chunked[len(chunked)-1:])
		}
	})
	for _, s := range []*server{split, bytewise} {
		cfg := testConfig(s.url)
		m := runUntil(t, cfg, func() bool { return s.answers.Load() > 4*int64(len(chunked)) })
		if m.errors != (Errors{}) || m.reopened > 0 {
			t.Errorf("errors %+v, %d reconnects, want none", m.errors, m.reopened)
		}
		checkServed(t, s, m, cfg.Connections, okAnswer)
	}
}
