package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Config says what to start.
type Config struct {
	// Path is the program; Args follow it. Args do not include the program.
	Path string
	Args []string
	// Env is the whole environment; nil means this process's.
	Env []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Stdout and Stderr receive the child's output as well as Tail. Either
	// may be nil.
	Stdout, Stderr io.Writer
	// ExtraFiles become descriptors 3, 4, … of the child.
	ExtraFiles []*os.File
	// DeathSignal reaches the child when this process dies, however it
	// dies. Zero means SIGKILL. A process with children of its own, such as
	// an nginx master, needs SIGTERM, or it would leave them orphaned.
	DeathSignal syscall.Signal
}

// Process is a started child.
type Process struct {
	cmd  *exec.Cmd
	tail *tail
	done chan struct{}
	err  error
}

// spawner starts every child from one operating system thread that never
// ends: Linux delivers the parent-death signal when the starting thread exits,
// not when the process does (https://go.dev/issue/27505).
var spawner = sync.OnceValue(func() chan func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// Self is this program as it was when it was started, also where its file has been
// replaced since.
const Self = "/proc/self/exe"

// TakeOwnName gives this process the name of its program where it was started by
// Self, whose last element says nothing in a list of processes. That is for the
// eyes only: where /proc can't be written, the old name stays.
func TakeOwnName() {
	const comm = "/proc/self/comm"
	if name, err := os.ReadFile(comm); err == nil && string(name) == filepath.Base(Self)+"\n" {
		_ = os.WriteFile(comm, []byte(filepath.Base(os.Args[0])), 0)
	}
}

// Start starts the child in a process group of its own, so that a Ctrl-C at
// the terminal reaches only this process, which then stops its children in
// the right order.
func Start(cfg Config) (*Process, error) {
	p := &Process{
		cmd:  exec.Command(cfg.Path, cfg.Args...),
		tail: &tail{},
		done: make(chan struct{}),
	}
	if cfg.Path == Self {
		p.cmd.Args[0] = os.Args[0]
	}
	p.cmd.Env = cfg.Env
	p.cmd.Dir = cfg.Dir
	p.cmd.Stdout = tee(cfg.Stdout, p.tail)
	p.cmd.Stderr = tee(cfg.Stderr, p.tail)
	p.cmd.ExtraFiles = cfg.ExtraFiles
	// A grandchild that left the group but kept the pipes must not keep Wait
	// from returning.
	p.cmd.WaitDelay = time.Second
	signal := cfg.DeathSignal
	if signal == 0 {
		signal = syscall.SIGKILL
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}

	started := make(chan error)
	spawner() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Path, err)
	}
	alive.Store(p, true)
	go p.wait()
	return p, nil
}

// alive holds every Process that has not ended.
var alive sync.Map

// KillAll kills every child that Start has started, with its group. It does not
// wait for their end.
func KillAll() {
	alive.Range(func(p, _ any) bool {
		_ = p.(*Process).cmd.Process.Kill()
		return true
	})
}

// wait waits for the child and then ends its whole group: a master that was
// killed leaves its workers behind in it. The group is killed before the child
// is reaped, since from then on its pid may be another's.
func (p *Process) wait() {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	if p.err = p.cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
		p.err = nil // that its pipes were not closed in time says nothing about the child
	}
	alive.Delete(p)
	close(p.done)
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the child ended: nil for exit code 0. It may only be called once
// Done is closed.
func (p *Process) Err() error { return p.err }

// CPUTime is the processor time that the child used in its whole life, in user
// and kernel mode, together with those of its own children that it waited for.
// It may only be called once Done is closed.
func (p *Process) CPUTime() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Tail is the end of what the child printed, at most 4 KiB.
func (p *Process) Tail() string { return p.tail.String() }

// Signal sends signal to the child alone. A child that has ended already is no
// error.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.Pid(), err)
	}
	return nil
}

// Stop sends signal, waits up to grace for the child to end, and kills its
// whole process group after that. A child that has ended already is no error.
func (p *Process) Stop(signal syscall.Signal, grace time.Duration) error {
	if err := p.Signal(signal); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	// The signal goes to the child alone, through a handle that can't mean
	// another process; the end of the child ends its group.
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	timer.Reset(killTimeout)
	select {
	case <-p.done:
	case <-timer.C:
		err = errors.Join(err, errors.New("it is still there"))
	}
	if err != nil {
		return leftProcesses(err, p.Pid())
	}
	return fmt.Errorf("process %d did not end within %s of %s and was killed", p.Pid(), grace, signal)
}

// killTimeout bounds the wait for a killed process to end. One that waits for a
// disk may take longer.
const killTimeout = 5 * time.Second

func tee(w io.Writer, t *tail) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(w, t)
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - tailBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
