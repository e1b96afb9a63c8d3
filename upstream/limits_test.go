package upstream

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests in this file measure whole processes, so none is parallel.

// child is a server in a process of its own.
type child struct {
	pid     int
	address string
}

// startChild starts a server that may have at most that many descriptors.
func startChild(t *testing.T, files uint64) child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, files))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return child{pid: cmd.Process.Pid, address: strings.TrimSpace(line)}
}

// resident is the process's resident memory in bytes.
func (c child) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// cpu is the processor time that the process has used.
func (c child) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		t.Fatalf("stat %q", text)
	}
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	const hertz = 100
	return time.Duration(ticks) * time.Second / hertz
}

// getHello sends one request and reads the answer.
func getHello(conn net.Conn) error {
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		return err
	}
	text := make([]byte, 1000)
	n := 0
	for !strings.HasSuffix(string(text[:n]), helloChunks) {
		k, err := conn.Read(text[n:])
		if err != nil {
			return err
		}
		n += k
	}
	return nil
}

// raiseFiles raises this process's limit on open files; false if it stays
// below n.
func raiseFiles(t *testing.T, n uint64) bool {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(limit.Max, 1<<20)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Cur >= n
}

// TestTenThousandIdle holds 10000 connections, each of which has had an
// answer, and looks at what they cost.
func TestTenThousandIdle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be measured")
	}
	if testing.Short() {
		t.Skip("10000 connections take seconds to open")
	}
	const connections = 10000
	if !raiseFiles(t, connections+100) {
		t.Skipf("CANNOT TEST %d CONNECTIONS: the limit on open files is lower", connections)
	}
	c := startChild(t, connections+100)
	conns := make([]net.Conn, 0, connections)
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	warm := func(n int) {
		for range n {
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			if err := getHello(conn); err != nil {
				t.Fatal(err)
			}
		}
	}
	warm(100)
	before := c.resident(t)
	warm(connections - 100)
	opened := c.resident(t)
	t.Logf("%d bytes a connection", (opened-before)/connections)
	if perConnection := (opened - before) / connections; perConnection > 1000 {
		t.Errorf("%d bytes a connection", perConnection)
	}
	// A request on each leaves nothing behind.
	for _, conn := range conns {
		if err := getHello(conn); err != nil {
			t.Fatal(err)
		}
	}
	if again := c.resident(t); again > opened+1<<20 {
		t.Errorf("%d bytes resident after another round, %d before", again, opened)
	}
}

// TestNoDescriptors uses up the server's: it goes on with the connections that
// it has, waits without spinning, and takes new ones when others end.
func TestNoDescriptors(t *testing.T) {
	const files = 50
	c := startChild(t, files)
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range 2 * files {
		conn, err := net.Dial("tcp", c.address) // The kernel takes them all.
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	const sure = files / 2
	for i, conn := range conns[:sure] {
		if err := getHello(conn); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	last := conns[len(conns)-1]
	last.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := last.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	before := c.cpu(t)
	if n, err := last.Read(make([]byte, 1)); err == nil {
		t.Fatalf("%d byte read from a connection that is one too many", n)
	}
	if used := c.cpu(t) - before; used > 200*time.Millisecond {
		t.Errorf("%v of processor time used while there was nothing to do", used)
	}
	if err := getHello(conns[0]); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
	for _, conn := range conns[:len(conns)-1] {
		conn.Close()
	}
	last.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := last.Read(make([]byte, 1)); err != nil {
		t.Errorf("after the others have ended: %v", err)
	}
}

// TestDeafClients looks at what clients cost that never read an answer.
func TestDeafClients(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be measured")
	}
	c := startChild(t, 200)
	requests := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 20000))
	before := c.resident(t)
	const clients = 20
	for range clients {
		conn := dial(t, c.address)
		// As much as the kernel takes within a moment.
		for full := false; !full; {
			conn.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := conn.Write(requests)
			full = err != nil
		}
	}
	perClient := (c.resident(t) - before) / clients
	t.Logf("%d bytes a client", perClient)
	if perClient > 4<<20 {
		t.Errorf("%d bytes a client", perClient)
	}
	conn := dial(t, c.address)
	if err := getHello(conn); err != nil {
		t.Errorf("another client: %v", err)
	}
}
