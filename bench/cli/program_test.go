package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"armrepro/bench/experiment"
)

// program is a running armrepro, in an environment of its own by which every
// process that it starts, and their children, are found again.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	mark string
	tmp  string
	// results is a folder for what it is told to write.
	results string
	out     lockedBuffer
	err     lockedBuffer
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

// start runs the program, with free ports if it is a run or check.
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
	if args[0] == "run" || args[0] == "check" {
		var ports experiment.Ports
		for _, f := range ports.All() {
			args = append(args, fmt.Sprintf("--%s=%d", f.Flag, freePort(t)))
		}
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
	deadline := time.Now().Add(2 * time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited too long for %s\n%s", what, p.err.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// said waits until it has printed text.
func (p *program) said(text string) {
	p.t.Helper()
	p.until("it to say "+text, func() bool { return strings.Contains(p.err.String()+p.out.String(), text) })
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
	case <-time.After(2 * time.Minute):
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
