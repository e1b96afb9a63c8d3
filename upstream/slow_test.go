package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// shortTimeouts are for tests of clients that are too slow.
var shortTimeouts = timeouts{read: 300 * time.Millisecond, idle: 600 * time.Millisecond, linger: 300 * time.Millisecond}

// until reads to the end of a connection and checks what came, and that it came no
// sooner than least after begin.
func until(t *testing.T, conn net.Conn, begin time.Time, least time.Duration, want string) {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("after %q: %v", got, err)
	}
	if text := maskDates(string(got)); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	// The server looks ten times a second, at a clock that may be as old.
	if took := time.Since(begin); took < least-100*time.Millisecond {
		t.Errorf("connection ended after %v, want %v", took, least)
	}
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	timeout := refusal("408 Request Timeout")
	tests := []struct {
		name, text string
		// more is sent every 50 ms.
		more, want string
		least      time.Duration
	}{
		{name: "sends nothing", least: shortTimeouts.idle},
		{name: "idle after an answer", text: "GET / HTTP/1.1\r\nHost: a\r\n\r\n", want: hello, least: shortTimeouts.idle},
		{name: "half a head", text: "GET / HTTP/1.1\r\nHost:", want: timeout, least: shortTimeouts.read},
		{name: "one byte at a time", text: "GET /", more: "x", want: timeout, least: shortTimeouts.read},
		{name: "one header at a time", text: "GET / HTTP/1.1\r\n", more: "X: y\r\n", want: timeout, least: shortTimeouts.read},
		{name: "half a body", text: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", want: timeout, least: shortTimeouts.read},
		{name: "one chunk at a time", text: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", more: "1\r\na\r\n", want: timeout, least: shortTimeouts.read},
		{name: "half a second request", text: "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", want: hello + timeout, least: shortTimeouts.read},
		{name: "after the end", text: "GET / HTTP/1.0\r\n\r\n", want: whole("200 OK", "text/plain", "close", Body)},
	}
	s := startTest(t, shortTimeouts)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, s.Addrs()[0])
			begin := time.Now()
			write(t, conn, tt.text)
			done := make(chan struct{})
			defer close(done)
			if tt.more != "" {
				go func() {
					for tick := time.NewTicker(50 * time.Millisecond); ; {
						select {
						case <-tick.C:
							_, _ = io.WriteString(conn, tt.more)
						case <-done:
							tick.Stop()
							return
						}
					}
				}()
			}
			until(t, conn, begin, tt.least, tt.want)
		})
	}
}

// stepped is the only loop of a server. The test drives it by hand, so that it can
// look at everything between two rounds, and let time pass.
type stepped struct {
	*loop
	t      *testing.T
	client *net.TCPConn
}

// step starts a server of one client, between which the kernel buffers little.
func step(t *testing.T) stepped {
	t.Helper()
	fd, at, err := eventloop.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	// Connections inherit it.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<10); err != nil {
		t.Fatal(err)
	}
	l, err := newLoop(&Server{timeouts: nginxTimeouts, listeners: []int{fd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	s := stepped{l, t, dial(t, at.String())}
	if err := s.client.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	s.until("a connection", func() bool { return s.conn() != nil })
	return s
}

// conn is the loop's side of the connection, nil where there is none.
func (s stepped) conn() *conn {
	for i := range s.conns {
		if s.conns[i].open {
			return &s.conns[i]
		}
	}
	return nil
}

// full says whether the client leaves answers to the server.
func (s stepped) full() bool { return s.conn() != nil && len(s.conn().out) > 0 }

// until makes rounds until enough is true.
func (s stepped) until(what string, enough func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !enough(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited for %s", what)
		}
		if s.round(time.Millisecond); s.err != nil {
			s.t.Fatal(s.err)
		}
	}
}

// pass lets time pass and the loop notice.
func (s stepped) pass(d time.Duration) {
	for i := range s.conns {
		s.conns[i].since = s.conns[i].since.Add(-d)
	}
	s.now = time.Now()
	s.tick()
}

// inBackground calls f, and returns whether that has ended.
func inBackground(f func()) (ended func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// TestSteadyClient is slower than one time-out altogether but never between
// two requests.
func TestSteadyClient(t *testing.T) {
	t.Parallel()
	s := step(t)
	r := bufio.NewReader(s.client)
	for n := range uint64(5) {
		write(t, s.client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		s.until("an answer", func() bool { return s.answered == n+1 })
		if got := readAnswer(t, r); got != hello {
			t.Fatalf("answer %q", got)
		}
		s.pass(nginxTimeouts.idle - 10*time.Second)
	}
	if s.pass(11 * time.Second); s.conn() != nil {
		t.Error("still connected after a pause longer than the time-out")
	}
}

// TestDeafClient pipelines requests and never reads an answer: the server stops
// reading, keeps no more than one read's answers and ends the connection.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	s := step(t)
	request := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	var err error
	gone := inBackground(func() {
		for err == nil {
			_, err = io.WriteString(s.client, strings.Repeat(request, 1000))
		}
	})
	kept, rounds := 0, 0
	s.until("answers that are never taken", func() bool {
		if rounds++; len(s.conn().out) != kept {
			kept, rounds = len(s.conn().out), 0
		}
		return kept > 0 && rounds > 50
	})
	if most := (readBuffer/len(request) + 1) * len(hello); kept > most {
		t.Errorf("%d bytes are kept, want %d at most", kept, most)
	}
	if s.pass(nginxTimeouts.read - 10*time.Second); s.conn() == nil {
		t.Error("it ended before the time-out")
	}
	s.pass(11 * time.Second)
	s.until("the end", func() bool { return s.conn() == nil && gone() })
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the client's side never ended")
	}
}

// TestSlowReader reads one long answer slowly but steadily until the time-out
// has long passed, and then the rest of it.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := step(t)
	// JSON needs six bytes for each of these.
	body := strings.Repeat("\x01", 1<<20)
	sent := inBackground(func() {
		_, _ = io.WriteString(s.client, "POST /anything HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n"+body)
		s.client.CloseWrite()
	})
	s.until("an answer that is not taken", func() bool { return sent() && s.full() })
	buf := make([]byte, 16<<10)
	total := 0
	for range 5 {
		left := len(s.conn().out)
		s.until("more of the answer to be sent", func() bool {
			n, err := io.ReadFull(s.client, buf)
			total += n
			return err != nil || len(s.conn().out) < left
		})
		if s.pass(nginxTimeouts.read - 10*time.Second); !s.full() {
			t.Fatalf("the server has ended it after %d bytes", total)
		}
	}
	ended := inBackground(func() {
		rest, err := io.ReadAll(s.client)
		if total += len(rest); err != nil || total < 6*len(body) {
			t.Errorf("%d bytes read, want more than %d: %v", total, 6*len(body), err)
		}
	})
	s.until("the end", ended)
}

// TestHalfClosed gets every answer after the client has ended its side, also
// those that don't fit into the kernel's buffer.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := step(t)
	const n = 20000
	sent := inBackground(func() {
		_, _ = io.WriteString(s.client, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", n))
		s.client.CloseWrite()
	})
	s.until("answers that are not taken", s.full)
	ended := inBackground(func() {
		text, err := io.ReadAll(s.client)
		if got := strings.Count(string(text), helloChunks); got != n || err != nil {
			t.Errorf("%d answers to %d requests: %v", got, n, err)
		}
	})
	s.until("the end", func() bool { return sent() && ended() })
}

// TestRefusedMidway has clients that go on sending after an answer which closes
// the connection: they see all of it, and no reset before.
func TestRefusedMidway(t *testing.T) {
	t.Parallel()
	s := startTest(t, shortTimeouts)
	for name, tt := range map[string]struct{ text, more, want string }{
		"large body":     {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n", strings.Repeat("x", 4096), refusal("413 Request Entity Too Large")},
		"endless chunks": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1000\r\n" + strings.Repeat("x", 4096) + "\r\n", refusal("413 Request Entity Too Large")},
		"endless head":   {"GET / HTTP/1.1\r\n", strings.Repeat("X: y\r\n", 1000), refusal("431 Request Header Fields Too Large")},
		"endless target": {"GET /", strings.Repeat("x", 4096), refusal("414 Request URI Too Long")},
		"garbage":        {"garbage\r\n", "garbage\r\n", refusal("400 Bad Request")},
		"close":          {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", whole("200 OK", "text/plain", "close", Body)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, s.Addrs()[0])
			write(t, conn, tt.text)
			ended := make(chan error, 1)
			go func() {
				for {
					if _, err := io.WriteString(conn, tt.more); err != nil {
						ended <- err
						return
					}
				}
			}()
			begin := time.Now()
			until(t, conn, begin, 0, tt.want)
			if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("sending goes on %v after the end", time.Since(begin))
			}
		})
	}
}
