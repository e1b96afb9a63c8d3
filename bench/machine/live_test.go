//go:build linux

package machine

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests in this file look at the system they run on.
var live = os.DirFS("/")

func TestDetectLive(t *testing.T) {
	t.Parallel()
	m, evidence := Detect(live, Options{Live: LiveFacts()})
	if m.Kernel == "" || m.Cores < 1 || m.MemoryBytes < 1<<26 || m.PageSize != os.Getpagesize() {
		t.Errorf("Detect = %+v", m)
	}
	if len(evidence) == 0 {
		t.Error("no evidence")
	}
}

func TestCPUTime(t *testing.T) {
	t.Parallel()
	before, err := CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const work = 20 * time.Millisecond
	deadline := time.Now().Add(30 * time.Second)
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

func TestPortHolderLive(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Logf("%s: %v", network, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		holder, err := PortHolder(live, port)
		if err != nil || holder == nil || holder.PID != os.Getpid() {
			t.Errorf("%s: PortHolder = %v, %v, want this process", network, holder, err)
		} else if !strings.Contains(holder.String(), "machine.test") {
			t.Errorf("%s: holder is %q", network, holder)
		}
		l.Close()
		if holder, err := PortHolder(live, port); err != nil || holder != nil {
			t.Errorf("%s: PortHolder of a closed port = %v, %v, want nil", network, holder, err)
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
