package cli

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/apisixtest"
)

// longRun are arguments of a run that goes on until it is stopped.
var longRun = []string{"run", "--gateway", "builtin", "-d", "60s", "--warmup", "0"}

// shortRun are arguments of a run that ends by itself.
var shortRun = []string{"run", "--gateway", "builtin", "-d", "200ms", "--warmup", "0", "--runs", "1"}

// TestKill kills the program: nothing that it started outlives it, and the next
// run is not hindered by what it left.
func TestKill(t *testing.T) {
	t.Parallel()
	p := start(t, nil, longRun...)
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
	for _, pid := range p.processes() {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && pid != p.child("load --output json") && string(comm) != "armrepro\n" {
			t.Errorf("process %d is called %q", pid, comm)
		}
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.until("every process to end", func() bool { return len(p.processes()) == 0 })

	p.cmd.Args = append([]string{p.cmd.Args[0]}, append(shortRun, p.cmd.Args[1+len(longRun):]...)...)
	next := p.again()
	if code := next.exit(); code != exitOK && code != exitInvalid {
		t.Errorf("the next run: exit code %d\n%s", code, next.err.String())
	}
	next.leftNothing()
}

// TestChildDies kills what the program started: it says which one has ended,
// and takes the rest down.
func TestChildDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ child, want string }{
		{"upstream --listen", "the upstream ended"},
		{"gateway --listen", "the built-in gateway has ended"},
		{"load --output json", "signal: killed"},
	} {
		t.Run(strings.Fields(tt.child)[0], func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, longRun...)
			var pid int
			p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
			p.until("the child", func() bool { pid = p.child(tt.child); return pid != 0 })
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			if !strings.Contains(p.err.String(), tt.want) {
				t.Errorf("the log does not say %q:\n%s", tt.want, p.err.String())
			}
			p.leftNothing()
		})
	}
}

// TestNative measures the fake APISIX of both generations, and compares every
// file of its install before and after.
func TestNative(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.15.0", "3.18.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			root := apisixtest.Install(t, version, "")
			before := checksum(t, root)
			p := start(t, []string{"PATH=" + apisixtest.Path(root)},
				"run", "-d", "300ms", "--warmup", "0", "--runs", "1", "--gateway", "native", "--apisix-home", filepath.Join(root, "usr/local/apisix"))
			if code := p.exit(); code != exitOK && code != exitInvalid {
				t.Errorf("exit code %d\n%s", code, p.err.String())
			}
			if !strings.Contains(p.out.String(), "APISIX "+version) {
				t.Errorf("the version is missing:\n%s", p.out.String())
			}
			p.leftNothing()
			if after := checksum(t, root); after != before {
				t.Error("the install is changed")
			}
		})
	}
}

// TestNativeKilled kills the program while APISIX runs.
func TestNativeKilled(t *testing.T) {
	t.Parallel()
	root := apisixtest.Install(t, "3.18.0", "")
	before := checksum(t, root)
	p := start(t, []string{"PATH=" + apisixtest.Path(root)},
		"run", "-d", "60s", "--warmup", "0", "--gateway", "native", "--apisix-home", filepath.Join(root, "usr/local/apisix"))
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.until("every process to end", func() bool { return len(p.processes()) == 0 })
	if after := checksum(t, root); after != before {
		t.Error("the install is changed")
	}
}

// checksum is over the names, modes and contents of every file below dir.
func checksum(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode(), info.ModTime())
		if !info.Mode().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		sum.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
