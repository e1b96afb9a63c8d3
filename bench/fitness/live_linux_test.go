package fitness

import (
	"os"
	"testing"

	"armrepro/proxycheck/process"
)

func BenchmarkSnapshot(b *testing.B) {
	for b.Loop() {
		TakeSnapshot(os.DirFS("/"), SnapshotOptions{Pids: []int{os.Getpid()}})
	}
}

func TestSnapshotLive(t *testing.T) {
	t.Parallel()
	s := TakeSnapshot(os.DirFS("/"), SnapshotOptions{Pids: []int{os.Getpid()}, FreeDisk: func() (uint64, error) { return process.FreeDisk("/") }})
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
