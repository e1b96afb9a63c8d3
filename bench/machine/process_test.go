package machine

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"
)

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
func TestReadCPUTimes(t *testing.T) {
	t.Parallel()
	before := CPUTimes{Busy: 2500 * time.Millisecond, IRQ: 400 * time.Millisecond, Idle: 5 * time.Second, Steal: 300 * time.Millisecond}
	got, err := ReadCPUTimes(fstest.MapFS{"proc/stat": text("cpu  100 50 60 400 100 10 30 30 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")})
	if err != nil || got != before {
		t.Errorf("ReadCPUTimes = %+v, %v, want %+v", got, err, before)
	}
	after := CPUTimes{Busy: 3 * time.Second, IRQ: 400 * time.Millisecond, Idle: 4 * time.Second, Steal: time.Second}
	want := CPUTimes{Busy: 500 * time.Millisecond, Steal: 700 * time.Millisecond}
	if got := after.Sub(before); got != want {
		t.Errorf("Sub = %+v, want %+v", got, want)
	}
	stat := fstest.MapFS{"proc/stat": text("cpu 9 9 9 9 9 9 9 9\ncpu0 1 0 0 2 0 0 3 4 0 0\ncpu1 5 0 0 0 0 0 0 0 0 0\ncpu10 6 0 0 0 0 0 0 1 0 0\n")}
	want = CPUTimes{Busy: 100 * time.Millisecond, IRQ: 30 * time.Millisecond, Idle: 20 * time.Millisecond, Steal: 50 * time.Millisecond}
	if got, err := ReadCPUTimesOf(stat, []int{0, 10}); err != nil || got != want {
		t.Errorf("ReadCPUTimesOf = %+v, %v, want %+v", got, err, want)
	}
	for _, cpus := range [][]int{nil, {0, 2}} {
		if got, err := ReadCPUTimesOf(stat, cpus); err == nil {
			t.Errorf("ReadCPUTimesOf CPUs %v = %+v, want an error", cpus, got)
		}
	}
	for _, bad := range []string{"", "intr 1\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"} {
		if got, err := ReadCPUTimes(fstest.MapFS{"proc/stat": text(bad)}); err == nil {
			t.Errorf("ReadCPUTimes of %q = %+v, want an error", bad, got)
		}
	}
}

// denied is a tree that may not be read.
type denied struct{}

func (denied) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
