package cli

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/bench/experiment"
	"armrepro/proxycheck/apisixtest"
)

// program is a running armrepro, in an environment of its own by which every
// process that it starts, and their children, are found again.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	mark string
	tmp  string
	out  lockedBuffer
	err  lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs the program with ports that are free.
func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := prepare(t, env, args...)
	p.launch()
	return p
}

// prepare is start without the start.
func prepare(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, mark: "ARMREPRO_TEST_MARK=" + strconv.Itoa(freePort(t)), tmp: privateTemp(t)}
	var ports experiment.Ports
	for _, f := range ports.All() {
		args = append(args, fmt.Sprintf("--%s=%d", f.Flag, freePort(t)))
	}
	p.command(env, args...)
	return p
}

// again runs the program once more, with the same ports and temporary folder.
func (p *program) again() *program {
	p.t.Helper()
	q := &program{t: p.t, mark: p.mark, tmp: p.tmp}
	q.command(p.cmd.Env, p.cmd.Args[1:]...)
	q.launch()
	return q
}

func (p *program) command(env []string, args ...string) {
	p.cmd = exec.Command("/proc/self/exe", args...)
	p.cmd.Env = append(os.Environ(), asArmrepro+"=1", p.mark, "TMPDIR="+p.tmp)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
}

func (p *program) launch() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		for _, pid := range p.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// privateTemp is a temporary folder with a short path that everybody may enter,
// as the home of a gateway needs it.
func privateTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const everybody = 0o755
	if err := os.Chmod(dir, everybody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// until polls until cond holds.
func (p *program) until(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited too long for %s\n%s", what, p.err.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// logged waits until the log holds text.
func (p *program) logged(text string) {
	p.t.Helper()
	p.until("the log to say "+text, func() bool { return strings.Contains(p.err.String(), text) })
}

// exit waits for the program's end and returns its exit code.
func (p *program) exit() int {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return 0
	case <-time.After(40 * time.Second):
		p.t.Fatalf("it does not end\n%s", p.err.String())
		return -1
	}
}

// processes lists the living processes with the program's mark.
func (p *program) processes() []int {
	var pids []int
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(p.mark)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// child finds the process whose command line holds words.
func (p *program) child(words string) int {
	for _, pid := range p.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), words) {
			return pid
		}
	}
	return 0
}

// leftNothing checks that no process and no file is left.
func (p *program) leftNothing() {
	p.t.Helper()
	p.until("every process to end", func() bool { return len(p.processes()) == 0 })
	entries, err := os.ReadDir(p.tmp)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		p.t.Errorf("%s is left in the temporary folder", e.Name())
	}
}

// longRun are arguments of a run that goes on until it is stopped.
var longRun = []string{"run", "--gateway", "builtin", "-d", "60s", "--warmup", "0"}

// shortRun are arguments of a run that ends by itself.
var shortRun = []string{"run", "--gateway", "builtin", "-d", "200ms", "--warmup", "0", "--runs", "1"}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, longRun...)
			p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, p.err.String())
			}
			if !strings.Contains(p.err.String(), "interrupted by "+unix.SignalName(sig)) {
				t.Errorf("the signal is not named:\n%s", p.err.String())
			}
			p.leftNothing()
		})
	}
}

// TestInterruptPrintsWhatWasMeasured stops in the second run.
func TestInterruptPrintsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "900")
	p.logged("run 1 of 900")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if out := p.out.String(); !strings.Contains(out, "Requests/sec") || !strings.Contains(strings.ToLower(out), "interrupted") {
		t.Errorf("the partial result is missing or not marked:\n%s", out)
	}
	p.leftNothing()
}

// TestInterruptAtAnyTime stops while things are being set up.
func TestInterruptAtAnyTime(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"machine", "etcd ready", "upstream ready", "gateway ready"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, longRun...)
			p.logged(moment)
			if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, p.err.String())
			}
			p.leftNothing()
		})
	}
}

// TestKill kills the program: nothing that it started outlives it, and the next
// run is not hindered by what it left.
func TestKill(t *testing.T) {
	t.Parallel()
	p := start(t, nil, longRun...)
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
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
