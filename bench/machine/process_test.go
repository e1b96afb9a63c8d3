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
