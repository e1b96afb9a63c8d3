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

// TestSteadyClient is slower than one time-out altogether but never between
// two requests.
func TestSteadyClient(t *testing.T) {
	t.Parallel()
	s := startTest(t, shortTimeouts)
	conn := dial(t, s.Addrs()[0])
	r := bufio.NewReader(conn)
	for begin := time.Now(); time.Since(begin) < 2*shortTimeouts.idle; time.Sleep(100 * time.Millisecond) {
		write(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got := readAnswer(t, r); got != hello {
			t.Fatalf("answer %q", got)
		}
	}
}

// TestDeafClient pipelines requests and never reads an answer: the server stops
// reading, keeps no more than one read's answers and ends the connection.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	s := startTest(t, shortTimeouts)
	conn := dial(t, s.Addrs()[0])
	requests := strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1000)
	sent := 0
	begin := time.Now()
	for {
		n, err := io.WriteString(conn, requests)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("never ended")
		}
		if err != nil {
			break
		}
		if sent > 1<<30 {
			t.Fatal("the server reads although its answers are not taken")
		}
	}
	if took := time.Since(begin); took < shortTimeouts.read-100*time.Millisecond {
		t.Errorf("ended after %v", took)
	}
}

// TestSlowReader reads one long answer slowly but steadily until the time-out
// has long passed, and then the rest of it.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	limits := timeouts{read: 600 * time.Millisecond, idle: time.Minute, linger: time.Second}
	s := startTest(t, limits)
	// Connections inherit it: the kernel must not buffer the whole answer.
	if err := unix.SetsockoptInt(s.listeners[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 64<<10); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s.Addrs()[0])
	if err := conn.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	// JSON needs six bytes for each of these.
	body := strings.Repeat("\x01", 1<<20)
	write(t, conn, "POST /anything HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n"+body)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	total := 0
	buf := make([]byte, 16<<10)
	for {
		n, err := conn.Read(buf)
		total += n
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes in %v: %v", total, time.Since(begin), err)
		}
		if time.Since(begin) < 2*limits.read {
			time.Sleep(4 * time.Millisecond)
		}
	}
	if took := time.Since(begin); took < 2*limits.read {
		t.Errorf("took %v only", took)
	}
	if total < 6*len(body) {
		t.Errorf("%d bytes read, want more than %d", total, 6*len(body))
	}
}

// TestHalfClosed gets every answer after the client has ended its side, also
// those that don't fit into the kernel's buffer.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	const n = 20000
	conn := dial(t, s.Addrs()[0])
	go func() {
		_, _ = io.WriteString(conn, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", n))
		conn.CloseWrite()
	}()
	time.Sleep(50 * time.Millisecond) // Lets buffers fill.
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), helloChunks); got != n {
		t.Errorf("%d answers to %d requests", got, n)
	}
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
