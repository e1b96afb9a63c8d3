package load

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
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
	allocs := float64(after.Mallocs-before.Mallocs) / float64(m.requests)
	t.Logf("%d requests, %d allocations (%.4f a request), upstream's included", m.requests, after.Mallocs-before.Mallocs, allocs)
	if m.requests < uint64(cfg.Requests) || allocs >= 0.01 {
		t.Errorf("%v allocations a request", allocs)
	}
}

// TestTenThousand opens 10000 connections and looks at what they cost.
func TestTenThousand(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would be measured")
	}
	if testing.Short() {
		t.Skip("10000 connections take seconds to open")
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
	url := startChild(t)
	cfg := testConfig(url)
	cfg.Connections, cfg.Threads, cfg.Duration, cfg.Timeout = connections, 2, 4*time.Second, 30*time.Second
	runner, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := memory()
	var (
		files   int
		samples []uint64
	)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				files = max(files, lowestFree(t))
				samples = append(samples, memory().HeapAlloc-before.HeapAlloc)
			case <-stop:
				return
			}
		}
	}()
	m, err := runner.Run(context.Background())
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	last, middle := samples[len(samples)-1], samples[len(samples)/2]
	t.Logf("%d requests, %d descriptors, %d bytes a connection", m.requests, files, last/connections)
	if files < connections {
		t.Errorf("%d descriptors, want %d connections", files, connections)
	}
	if m.errors != (Errors{}) || m.requests == 0 {
		t.Errorf("%d requests, errors %+v", m.requests, m.errors)
	}
	if perConnection := last / connections; perConnection > 5000 {
		t.Errorf("%d bytes a connection", perConnection)
	}
	// What may grow is the range of the loops' histograms and of their sum.
	var pages uint64
	for _, p := range m.raw.pages {
		if p != nil {
			pages++
		}
	}
	if most := middle + pages*pageSize*8*uint64(cfg.Threads+1) + 1<<18; last > most {
		t.Errorf("memory grew from %d to %d bytes in %d samples", middle, last, len(samples)/2)
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

// TestNoLeaks runs against servers of every kind in turn: nothing may be left
// of a run, however it went, and reconnecting must not gather anything.
func TestNoLeaks(t *testing.T) {
	round := func() {
		for _, handle := range []func(*session){
			behave,
			func(c *session) { c.request() },
			(*session).reset,
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
			s := listen(t, "127.0.0.1:0", handle)
			cfg := testConfig(s.url)
			cfg.Duration = 50 * time.Millisecond
			run(t, cfg)
			s.close()
		}
	}
	round()
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	runtime.GC()
	before := memory()
	round()
	runtime.GC()
	after := memory()
	if got := openFiles(t); got > files {
		t.Errorf("%d descriptors, %d before", got, files)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
			break
		}
	}
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("%d bytes in use, %d before", after.HeapAlloc, before.HeapAlloc)
	}
}

// TestTooManyFiles runs into the limit on open files, which is the whole process's,
// so it is not parallel.
func TestTooManyFiles(t *testing.T) {
	t.Run("http", func(t *testing.T) { checkTooManyFiles(t, serve(t, behave)) })
	t.Run("https", func(t *testing.T) { checkTooManyFiles(t, serveTLS(t, behave)) })
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
