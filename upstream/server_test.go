package upstream

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childEnv turns this program into a server for the test that started it, with
// at most that many descriptors.
const childEnv = "ARMREPRO_TEST_SERVER_FILES"

// TestMain gives every loop that waits a processor beside the ones that the
// tests need: see package eventloop.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(64)
	// Most tests wait most of the time. What the command line says still wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	if files := os.Getenv(childEnv); files != "" {
		if err := serveUntilEOF(files); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveUntilEOF prints where it listens and serves until its input ends.
func serveUntilEOF(files string) error {
	n, err := strconv.ParseUint(files, 10, 64)
	if err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: n, Max: n}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	s, err := Start(context.Background(), Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		return err
	}
	fmt.Println(s.Addrs()[0])
	go func() {
		fmt.Fprintln(os.Stderr, <-s.Err())
		os.Exit(1)
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startTest starts a server for one test.
func startTest(t testing.TB, limits timeouts) *Server {
	t.Helper()
	s, err := start(context.Background(), Config{Listen: []string{"127.0.0.1:0"}}, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-s.Err():
			t.Errorf("a loop ended: %v", err)
		default:
		}
	})
	return s
}

// dial connects to a server. The deadline only ends a test that hangs.
func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// exchange sends text, ends sending, and returns all that is answered, dates
// masked.
func exchange(t testing.TB, s *Server, text string) string {
	t.Helper()
	conn := dial(t, s.Addrs()[0])
	write(t, conn, text)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("after %q: %v", answer, err)
	}
	return maskDates(string(answer))
}

var dates = regexp.MustCompile(`Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

func maskDates(text string) string { return dates.ReplaceAllString(text, "Date: …\r\n") }

// readAnswer reads one answer with a Content-Length or with hello's chunk.
func readAnswer(t testing.TB, r *bufio.Reader) string {
	t.Helper()
	var text string
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text += line
		if n, ok := cutNumber(line); ok {
			length = n
		}
		if line == "Transfer-Encoding: chunked\r\n" {
			length = len(helloChunks)
		}
		if line == "\r\n" {
			break
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatalf("after %q: %v", text, err)
	}
	return maskDates(text + string(body))
}

// cutNumber reads a Content-Length line.
func cutNumber(line string) (n int, ok bool) {
	_, err := fmt.Sscanf(line, "Content-Length: %d", &n)
	return n, err == nil
}

const (
	helloChunks = "a\r\n1234567890\r\n0\r\n\r\n"
	// hello is the answer to a GET of any path, by keep-alive.
	hello = "HTTP/1.1 200 OK\r\nServer: armrepro-upstream\r\nDate: …\r\nContent-Type: text/plain\r\n" +
		"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" + helloChunks
)

// whole is an answer with a Content-Length.
func whole(status, contentType, connection, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nServer: armrepro-upstream\r\nDate: …\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s",
		status, contentType, len(body), connection, body)
}

// refusal is an answer that refuses a request.
func refusal(status string) string {
	contentType := "text/plain"
	if status == "405 Method Not Allowed" {
		contentType += "\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"
	}
	return whole(status, contentType, "close", status+"\n")
}
