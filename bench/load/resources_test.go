package load

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream"
)

// The tests in this file measure the whole process, so none is parallel.

// startChild starts a server in a process of its own and returns its URL.
func startChild(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"=1")
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
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line) + "/hello"
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

func memory() runtime.MemStats {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats
}

// TestAllocations proves that requests cost none, over a whole run with all
// that it takes to begin and end it.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s, err := upstream.Start(context.Background(), upstream.Config{Listen: []string{"127.0.0.1:0"}, Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg := testConfig("http://" + s.Addrs()[0] + "/hello")
	cfg.Connections, cfg.Threads, cfg.Requests, cfg.Duration = 16, 2, 100_000, 30*time.Second
	runner, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := memory()
	m, err := runner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	after := memory()
	allocs := float64(after.Mallocs-before.Mallocs) / float64(m.Requests)
	t.Logf("%d requests, %d allocations (%.4f a request), upstream's included", m.Requests, after.Mallocs-before.Mallocs, allocs)
	if m.Requests < uint64(cfg.Requests) || allocs >= 0.01 {
		t.Errorf("%v allocations a request", allocs)
	}
}

// TestTenThousand opens 10000 connections and looks at what they cost.
func TestTenThousand(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be measured")
	}
	const connections = 10000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(limit.Max, 1<<20)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < connections+100 {
		t.Skipf("CANNOT TEST %d CONNECTIONS: the limit on open files is %d (%v)", connections, limit.Cur, err)
	}
	cfg := testConfig(startChild(t))
	cfg.Connections, cfg.Timeout = connections, 30*time.Second
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := memory().HeapAlloc
	l := step(t, cfg)
	l.until("connections", func() bool {
		return l.Requests > 2*connections && !slices.ContainsFunc(l.conns, func(c conn) bool { return !c.answered })
	})
	grown := memory().HeapAlloc - before
	t.Logf("%d requests, %d bytes a connection", l.Requests, grown/connections)
	if files := lowestFree(t); files < connections {
		t.Errorf("%d descriptors, want %d connections", files, connections)
	}
	if l.Errors != (Errors{}) || grown/connections > 5000 {
		t.Errorf("errors %+v, %d bytes a connection", l.Errors, grown/connections)
	}
	// What may grow is the range of the histogram.
	requests, middle := l.Requests, memory().Mallocs
	l.until("more requests", func() bool { return l.Requests > requests+2*connections })
	if n := memory().Mallocs - middle; n > uint64(len(l.raw.pages)+1000) {
		t.Errorf("%d allocations for %d requests", n, l.Requests-requests)
	}
}

// TestSecureMemory has connections over https, each with what its handshake left
// behind.
func TestSecureMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be measured")
	}
	const connections = 200
	s := transport{"https", listenTLS}.serve(t, behave)
	cfg := testConfig(s.url)
	cfg.Connections, cfg.Timeout = connections, 30*time.Second
	used := func() uint64 {
		runtime.GC()
		return memory().HeapAlloc + memory().StackInuse
	}
	before := used()
	l := step(t, cfg)
	l.until("connections", func() bool { return !slices.ContainsFunc(l.conns, func(c conn) bool { return !c.answered }) })
	// The server's side is in the same process, and no smaller.
	if n := (used() - before) / connections; n > 160<<10 {
		t.Errorf("%d bytes a connection with both its ends", n)
	} else {
		t.Logf("%d bytes a connection with both its ends", n)
	}
}

// lowestFree is the lowest descriptor that is not in use.
func lowestFree(t *testing.T) int {
	fd, err := unix.Dup(0)
	if err != nil {
		t.Error(err)
		return 0
	}
	unix.Close(fd)
	return fd
}

// poll waits until enough is true.
func poll(t *testing.T, what string, enough func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !enough(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s are left", what)
			return
		}
	}
}

// TestNoLeaks runs against servers of every kind in turn: nothing may be left
// of a run, however it went, and reconnecting must not gather anything.
func TestNoLeaks(t *testing.T) {
	round := func(over transport, rate float64) {
		for _, handle := range []func(*session){
			behave,
			func(c *session) { c.request() },
			func(c *session) { c.reset(); c.cut() },
			func(c *session) {
				if c.request() {
					c.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				}
			},
			func(c *session) {
				if c.request() {
					c.endless("HTTP/1.1 200 OK\r\n", "X: 1234567890\r\n")
				}
			},
			(*session).drain,
		} {
			s := over.listen(t, "127.0.0.1:0", -1, handle)
			cfg := testConfig(s.url)
			cfg.Duration, cfg.Rate = 20*time.Millisecond, rate
			run(t, cfg)
			s.close()
		}
	}
	for _, over := range []transport{{"http", listenFor}, {"https", listenTLS}} {
		round(over, 0)
		files, goroutines := openFiles(t), runtime.NumGoroutine()
		runtime.GC()
		before := memory()
		round(over, 0)
		round(over, 1000)
		poll(t, "descriptors", func() bool { return openFiles(t) <= files })
		poll(t, "goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
		runtime.GC()
		if after := memory(); after.HeapAlloc > before.HeapAlloc+1<<20 {
			t.Errorf("%s: %d bytes in use, %d before", over.name, after.HeapAlloc, before.HeapAlloc)
		}
	}
}

// TestTooManyFiles runs into the limit on open files, which is the whole process's,
// so it is not parallel.
func TestTooManyFiles(t *testing.T) {
	for _, over := range []transport{{"http", listenFor}, {"https", listenTLS}} {
		checkTooManyFiles(t, over.serve(t, behave))
	}
}

func checkTooManyFiles(t *testing.T, s *server) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(s.url)
	cfg.Connections = 200
	runner, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	files := openFiles(t)
	low := limit
	low.Cur = uint64(files + 50)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	_, err = runner.Run(context.Background())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), errDescriptors.Error()) {
		t.Errorf("error %v, want %v", err, errDescriptors)
	}
	poll(t, "descriptors", func() bool { return openFiles(t) <= files })
}
