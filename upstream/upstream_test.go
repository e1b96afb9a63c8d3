package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStartFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		name   string
		listen []string
		is     error
		// text is part of the error.
		text string
	}{
		{name: "no address", text: "listen: no address given"},
		{name: "taken", listen: []string{taken.Addr().String()}, is: unix.EADDRINUSE, text: "listen: listen tcp " + taken.Addr().String()},
		{name: "second one taken", listen: []string{"127.0.0.1:0", taken.Addr().String()}, is: unix.EADDRINUSE},
		{name: "not of this machine", listen: []string{"192.0.2.1:0"}, is: unix.EADDRNOTAVAIL},
		{name: "no port", listen: []string{"127.0.0.1"}, text: "missing port"},
		{name: "bad port", listen: []string{"127.0.0.1:65536"}, text: "invalid port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Start(context.Background(), Config{Listen: tt.listen})
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.is, tt.text)
			}
		})
	}
}

// TestSharesNothing makes sure that a second server cannot take a port that the
// first one has.
func TestSharesNothing(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	if second, err := Start(context.Background(), Config{Listen: s.Addrs()}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("second server: %v", err)
		if err == nil {
			second.Close()
		}
	}
}

func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	s, err := Start(context.Background(), Config{Listen: []string{"127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0"}, Loops: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Addrs()) != 3 || !strings.HasPrefix(s.Addrs()[1], "127.0.0.2:") {
		t.Fatalf("addresses %q", s.Addrs())
	}
	for _, address := range s.Addrs() {
		conn := dial(t, address)
		write(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got := readAnswer(t, bufio.NewReader(conn)); got != hello {
			t.Errorf("%s answers %q", address, got)
		}
	}
}

// TestDate is checked against the clock, over a second's change.
func TestDate(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	var first time.Time
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		response, err := http.Get("http://" + s.Addrs()[0] + "/hello")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		date, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(date); age < 0 || age > 3*time.Second {
			t.Fatalf("date is %v old", age)
		}
		if first.IsZero() {
			first = date
		}
		if date.After(first) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("date is %v after 5 s", date)
		}
	}
}

// TestClient lets net/http's client use its connection again and again.
func TestClient(t *testing.T) {
	t.Parallel()
	s := startTest(t, nginxTimeouts)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	connections := 0
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			connections++
		}
	}}
	ctx := httptrace.WithClientTrace(context.Background(), trace)
	for i := range 60 {
		method, path, body := http.MethodGet, "/hello", io.Reader(nil)
		switch i % 6 {
		case 1:
			method, body = http.MethodPost, strings.NewReader("a=b")
		case 2: // Chunked, since its length is not known.
			method, path, body = http.MethodPost, "/anything", io.MultiReader(strings.NewReader("abc"))
		case 3:
			method = http.MethodHead
		case 4:
			method, path, body = http.MethodPut, "/anything/large", strings.NewReader(strings.Repeat("x", 500000))
		case 5:
			method, body = http.MethodPost, strings.NewReader(strings.Repeat("x", maxBody))
		}
		request, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addrs()[0]+path, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Expect", "100-continue")
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%s %s: %s, %v", method, path, response.Status, err)
		}
		if path == "/hello" && method != http.MethodHead && string(text) != Body {
			t.Fatalf("%s %s: %q", method, path, text)
		}
		if path == "/anything/large" && len(text) < 500000 {
			t.Fatalf("%s %s: %d bytes", method, path, len(text))
		}
	}
	// The client gives a connection up whose last body it took long to write.
	if connections > 6 {
		t.Errorf("%d connections for 60 requests", connections)
	}
}

// TestClose ends a server with connections in every state, at once.
func TestClose(t *testing.T) {
	round := func() {
		s, err := Start(context.Background(), Config{Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		var conns []net.Conn
		for i := range 50 {
			conn, err := net.Dial("tcp", s.Addrs()[0])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conns = append(conns, conn)
			switch i % 5 {
			case 1:
				write(t, conn, "GET / HT")
			case 2:
				write(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			case 3:
				write(t, conn, "POST /anything HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
			case 4:
				write(t, conn, "GET / HTTP/1.0\r\n\r\n")
			}
		}
		begin := time.Now()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took > 500*time.Millisecond {
			t.Errorf("closing took %v", took)
		}
		if _, err := net.Dial("tcp", s.Addrs()[0]); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("connecting to a closed server: %v", err)
		}
		for _, conn := range conns {
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection is open after Close")
			}
		}
	}
	round()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	round()
	if got := openFiles(t); got > files {
		t.Errorf("%d descriptors, %d before", got, files)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

// openFiles counts this process's descriptors.
func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - 1 // The folder itself.
}
