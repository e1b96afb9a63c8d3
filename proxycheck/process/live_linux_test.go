package process

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests in this file look at the system they run on.
var live = os.DirFS("/")

func TestCPUTime(t *testing.T) {
	t.Parallel()
	before, err := CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const work = 20 * time.Millisecond
	deadline := time.Now().Add(2 * time.Minute)
	for {
		after, err := CPUTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after-before >= work {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("CPU time grew by %s only", after-before)
		}
	}
}

func TestCPUTimeOfNobody(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{-1, 0, 1 << 22} {
		if got, err := CPUTime(pid); err == nil {
			t.Errorf("CPUTime(%d) = %v, want an error", pid, got)
		}
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := CPUTime(child.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("CPUTime of an ended process: %v, want ESRCH", err)
	}
}

func TestChildrenAndPeakRSS(t *testing.T) {
	t.Parallel()
	child := exec.Command("cat")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer stdin.Close()
	// An echoed byte shows that the child has become cat.
	if _, err := stdin.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	children, err := Children(live, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range children {
		if c.PID == child.Process.Pid {
			found = c.Name == "cat" && c.Title == "cat" && c.Parent == os.Getpid()
		}
	}
	if !found {
		t.Errorf("Children = %+v, want cat, pid %d, among them", children, child.Process.Pid)
	}
	if rss, err := PeakRSS(live, child.Process.Pid); err != nil || rss < 100<<10 || rss > 1<<30 {
		t.Errorf("PeakRSS(cat) = %d, %v", rss, err)
	}
}

func TestListenersLive(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		l, err := net.Listen(network, address)
		if err != nil && network == "tcp6" {
			t.Logf("no IPv6 here: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		holders, err := Listeners(live, port)
		if err != nil || len(holders) == 0 || holders[0].PID != os.Getpid() {
			t.Errorf("%s: Listeners = %v, %v, want this process", network, holders, err)
		} else if !strings.Contains(holders[0].String(), filepath.Base(os.Args[0])) {
			t.Errorf("%s: holder is %q", network, &holders[0])
		}
		l.Close()
		// A child that another test is starting has the socket until it has
		// become its program.
		deadline := time.Now().Add(2 * time.Minute)
		for {
			holders, err := Listeners(live, port)
			if err == nil && len(holders) == 0 {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Errorf("%s: Listeners of a closed port = %v, %v, want none", network, holders, err)
				break
			}
		}
	}
}

func TestRaiseNoFile(t *testing.T) {
	limit, err := RaiseNoFile()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", "ulimit -n").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != strconv.FormatUint(limit, 10) {
		t.Errorf("a child has the limit %s, want %d", got, limit)
	}
}

func TestSetAffinity(t *testing.T) {
	t.Parallel()
	allowed, err := AllowedCPUs(live)
	if err != nil {
		t.Fatal(err)
	}
	// A Go program has several threads, and a child of its own is not shared
	// with other tests.
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), "ARMREPRO_TEST_ROLE=threads")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer stdin.Close()
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	last := allowed[len(allowed)-1:]
	if err := SetAffinity(child.Process.Pid, last); err != nil {
		t.Fatal(err)
	}
	threads, err := numbered(live, procPath(child.Process.Pid, "task"))
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v, %v, want several", threads, err)
	}
	for _, tid := range threads {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if want := "Cpus_allowed_list:\t" + FormatCPUList(last) + "\n"; !strings.Contains(string(b), want) {
			t.Errorf("thread %d may run elsewhere than on CPU %v", tid, last)
		}
	}
}

func TestSetAffinityErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pid  int
		cpus []int
		want string
	}{
		{1 << 22, []int{0}, "no such file"},
		{os.Getpid(), nil, "no CPU is given"},
		{os.Getpid(), []int{MaxCPUs}, "beyond what can be pinned to"},
	} {
		if err := SetAffinity(tt.pid, tt.cpus); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("SetAffinity(%d, %v): %v, want an error with %q", tt.pid, tt.cpus, err, tt.want)
		}
	}
}

func TestFreeDisk(t *testing.T) {
	t.Parallel()
	if n, err := FreeDisk(t.TempDir()); err != nil || n == 0 {
		t.Errorf("FreeDisk = %d, %v", n, err)
	}
	if n, err := FreeDisk("/no/such/folder"); err == nil {
		t.Errorf("FreeDisk of nothing = %d", n)
	}
}

func TestCPUTimeOfAChild(t *testing.T) {
	t.Parallel()
	p, err := Start(Config{Path: "/bin/sh", Args: []string{"-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if used := p.CPUTime(); used < time.Millisecond {
		t.Errorf("20000 rounds of a shell took %s", used)
	}
}
