package process

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func link(s string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(s), Mode: fs.ModeSymlink}
}

// linkFS is a MapFS whose symbolic links need no target, as those of
// /proc/PID/fd.
type linkFS struct {
	fstest.MapFS
	denied string
}

func (f linkFS) ReadLink(name string) (string, error) {
	if f.denied != "" && strings.HasPrefix(name, f.denied) {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.ReadLink(name)
}

func (f linkFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if f.denied != "" && name == f.denied {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.ReadDir(name)
}

func stat(name string, parent string, state string) *fstest.MapFile {
	return text("1 (" + name + ") " + state + " " + parent + " 1 1 0 -1 0 0 0 0 0 150 50 20 30 20 0 1 0 9 9 9")
}

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:07BC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9001 1 0 100 0 0 10 0
   1: 00000000:2378 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534        0 9002 1 0 100 0 0 10 0
   2: 0100007F:2378 0100007F:8000 01 00000000:00000000 00:00000000 00000000     0        0 9003 1 0 100 0 0 10 0
`

// processes is a tree with an nginx master, its two workers that share its
// socket, and an upstream.
func processes() linkFS {
	return linkFS{MapFS: fstest.MapFS{
		"proc/net/tcp":      text(tcpTable),
		"proc/net/tcp6":     text("header\n   0: 00000000000000000000000001000000:1F90 0:0 0A 0 0 0 0 0 9004\n"),
		"proc/100/stat":     stat("nginx (x) y", "1", "S"),
		"proc/100/cmdline":  text("nginx: master process openresty -p /a\x00\x00\x00"),
		"proc/100/fd/6":     link("socket:[9002]"),
		"proc/100/fd/0":     link("/dev/null"),
		"proc/101/stat":     stat("nginx", "100", "R"),
		"proc/101/cmdline":  text("nginx: worker process\x00\x00"),
		"proc/101/fd/6":     link("socket:[9002]"),
		"proc/102/stat":     stat("nginx", "100", "S"),
		"proc/102/cmdline":  text("nginx: privileged agent process\x00"),
		"proc/103/stat":     stat("nginx", "100", "Z"),
		"proc/200/stat":     stat("armrepro", "1", "S"),
		"proc/200/cmdline":  text("/opt/armrepro\x00upstream\x00--listen\x00127.0.0.1:1980\x00"),
		"proc/200/fd/3":     link("socket:[9001]"),
		"proc/200/status":   text("Name:\tarmrepro\nVmPeak:\t  900 kB\nVmHWM:\t  512 kB\n"),
		"proc/201/status":   text("Name:\tkthreadd\n"),
		"proc/202/status":   text("VmHWM:\t many kB\n"),
		"proc/self/cmdline": text("x"),
	}}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	got, err := Children(processes(), 100)
	want := []Proc{
		{PID: 101, Parent: 100, Name: "nginx", Title: "nginx: worker process", Used: 2 * time.Second, Ended: time.Second / 2, group: 1, started: 9, state: 'R'},
		{PID: 102, Parent: 100, Name: "nginx", Title: "nginx: privileged agent process", Used: 2 * time.Second, Ended: time.Second / 2, group: 1, started: 9, state: 'S'},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Proc{})); diff != "" || err != nil {
		t.Errorf("Children: %v (-want +got):\n%s", err, diff)
	}
	if got, err := Children(processes(), 101); len(got) != 0 || err != nil {
		t.Errorf("Children of a worker = %v, %v", got, err)
	}
	if _, err := Children(processes(), 999); err == nil {
		t.Error("Children of nobody is no error")
	}
}

func TestPeakRSS(t *testing.T) {
	t.Parallel()
	if got, err := PeakRSS(processes(), 200); got != 512<<10 || err != nil {
		t.Errorf("PeakRSS = %d, %v, want 512 KiB", got, err)
	}
	for _, pid := range []int{201, 202, 999} {
		if got, err := PeakRSS(processes(), pid); err == nil {
			t.Errorf("PeakRSS(%d) = %d, want an error", pid, got)
		}
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, denied string
		port         int
		want         string
	}{
		{name: "one process", port: 1980, want: "process 200 (/opt/armrepro upstream --listen 127.0.0.1:1980)"},
		{name: "the master before its workers", port: 9080, want: "process 100 (nginx: master process openresty -p /a)"},
		{name: "a socket nobody shows", port: 8080, want: unknownHolder},
		{name: "no permission", port: 1980, denied: "proc/200/fd", want: unknownHolder},
		{name: "free", port: 9180},
		{name: "only connections", port: 32768},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := processes()
			root.denied = tt.denied
			holders, err := Listeners(root, tt.port)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(holders) > 0 {
				got = holders[0].String()
			}
			if got != tt.want {
				t.Errorf("Listeners = %q first, want %q", got, tt.want)
			}
		})
	}
	if _, err := Listeners(fstest.MapFS{}, 80); err == nil {
		t.Error("no proc/net/tcp is no error")
	}
}

func TestListenersOfSharedPort(t *testing.T) {
	t.Parallel()
	got, err := Listeners(processes(), 9080)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, h := range got {
		pids = append(pids, h.PID)
	}
	if !slices.Equal(pids, []int{100, 101}) {
		t.Errorf("Listeners = %v, want the master and the worker", got)
	}
}

// TestRunDelayUnknown tells a kernel without an account from one where nothing
// waited.
func TestRunDelayUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		threads []string
		want    time.Duration
		fails   bool
	}{
		{"waited", []string{"5 7 1", "0 0 0"}, 7, false},
		{"did not wait", []string{"5 0 1"}, 0, false},
		{"no account", []string{"0 0 0\n", "0 0 0\n"}, 0, true},
		{"no file", []string{""}, 0, true},
	} {
		root := fstest.MapFS{}
		for i, text := range tt.threads {
			name := "status"
			if text != "" {
				name = "schedstat"
			}
			root[fmt.Sprintf("proc/5/task/%d/%s", i+5, name)] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, err := RunDelay(root, 5); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
