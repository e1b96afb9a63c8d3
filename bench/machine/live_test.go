//go:build linux

package machine

import (
	"os"
	"testing"
	"time"

	"armrepro/proxycheck/process"
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

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		Detect(live, Options{Live: LiveFacts()})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for b.Loop() {
		TakeSnapshot(live, SnapshotOptions{Pids: []int{os.Getpid()}})
	}
}

func TestMeasureMHz(t *testing.T) {
	t.Parallel()
	start := time.Now()
	mhz := MeasureMHz()
	if mhz < 200 || mhz > 10_000 {
		t.Errorf("MeasureMHz = %.0f", mhz)
	}
	t.Logf("%.0f MHz in %s", mhz, time.Since(start))
}

func TestSnapshotLive(t *testing.T) {
	t.Parallel()
	s := TakeSnapshot(live, SnapshotOptions{Pids: []int{os.Getpid()}, DataDir: "/", FreeDisk: process.FreeDisk})
	if s.uptime == nil || s.boot == nil || s.cpu == nil || s.procs == nil || s.memAvailable == nil || s.freeDisk == nil ||
		s.openFiles == nil || s.ports == nil || s.timeWait == nil || s.somaxconn == nil {
		t.Errorf("TakeSnapshot = %+v", s)
	}
	if !s.procs[os.Getpid()].own {
		t.Error("this process is not its own")
	}
	if got := Moved(s, s); len(got) != 0 {
		t.Errorf("Moved within no time = %+v", got)
	}
}
