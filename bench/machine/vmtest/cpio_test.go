package main

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is the archive of a/b with the text "hello" and of the empty c. Dots
// are zeros.
var golden = strings.Join([]string{
	"07070100000001000041ED0000000000000000000000020000000000000000000000000000000000000000000000000000000200000000a.",
	"07070100000002000081A40000000000000000000000010000000000000005000000000000000000000000000000000000000400000000a/b...hello...",
	"07070100000003000081ED0000000000000000000000010000000000000000000000000000000000000000000000000000000200000000c.",
	"07070100000004000000000000000000000000000000010000000000000000000000000000000000000000000000000000000B00000000TRAILER!!!....",
}, "")

func TestWriteCPIO(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := writeCPIO(&b, []file{
		{path: "a/b", mode: 0o644, data: []byte("hello")},
		{path: "c", mode: 0o755},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, strings.ReplaceAll(b.String(), "\x00", ".")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFoldersOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := writeCPIO(&b, []file{
		{path: "run/cloud-init/one", mode: 0o644}, {path: "run/cloud-init/two", mode: 0o644},
		{path: "run/user", mode: fs.ModeDir | 0o700},
	})
	if err != nil {
		t.Fatal(err)
	}
	const directory = "000041"
	if n := strings.Count(b.String(), directory); n != 3 {
		t.Errorf("%d folders, want run, run/cloud-init and run/user", n)
	}
}

type fullDisk struct{ left int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteCPIOFails(t *testing.T) {
	t.Parallel()
	for left := range len(golden) {
		err := writeCPIO(&fullDisk{left}, []file{{path: "a/b", mode: 0o644, data: []byte("hello")}, {path: "c", mode: 0o755}})
		if !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: error %v", left, err)
		}
	}
}
