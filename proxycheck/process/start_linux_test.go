package process_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

// The test binary is its own child: roleEnv says which part it plays.
const roleEnv = "ARMREPRO_TEST_ROLE"

// aWhile is longer than any test waits. A child cannot wait for ever: with
// nothing that could wake it, Go's runtime calls that a deadlock and ends it.
const aWhile = 10 * time.Minute

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "print":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		os.Exit(3)
	case "flood":
		for i := range 2000 {
			fmt.Println("line", i)
		}
	case "sleep":
		fmt.Println(os.Getpid())
		block()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		block()
	case "master":
		// Prints its worker's pid and waits, as an nginx master would.
		worker := exec.Command("/proc/self/exe")
		worker.Env = append(os.Environ(), roleEnv+"=stubborn")
		worker.Stdout = os.Stdout
		if err := worker.Start(); err != nil {
			panic(err)
		}
		block()
	case "threads":
		// A process with several threads, until its input ends.
		for range 4 {
			started := make(chan bool)
			go func() {
				runtime.LockOSThread()
				close(started)
				select {}
			}()
			<-started
		}
		os.Stdout.Write([]byte{'x'})
		io.Copy(io.Discard, os.Stdin)
	case "owner":
		own()
		block()
	case "conductor":
		// Starts a child by the package under test and waits to be killed.
		if _, err := process.Start(process.Config{
			Path:   "/proc/self/exe",
			Env:    append(os.Environ(), roleEnv+"=sleep"),
			Stdout: os.Stdout,
		}); err != nil {
			panic(err)
		}
		block()
	}
}

// block waits to be killed. An empty select would be taken for a deadlock.
func block() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	<-signals
}

// start starts the test binary in a role.
func start(t *testing.T, role string, stdout io.Writer) *process.Process {
	t.Helper()
	p, err := process.Start(process.Config{
		Path:   "/proc/self/exe",
		Env:    append(os.Environ(), roleEnv+"="+role),
		Stdout: stdout,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(syscall.SIGKILL, 10*time.Second) })
	if pipe, ok := stdout.(*io.PipeWriter); ok {
		go func() {
			<-p.Done()
			pipe.Close() // who reads from it must not wait for a dead child
		}()
	}
	return p
}

// readPid reads the pid that a child prints first.
func readPid(t *testing.T, r io.Reader) int {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone waits until the process has ended.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Fatalf("process %d is still alive", pid)
}

func waitDone(t *testing.T, p *process.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("the process did not end")
	}
}

func TestOutputAndExit(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := start(t, "print", &out)
	waitDone(t, p)
	if p.Err() == nil || !strings.Contains(p.Err().Error(), "exit status 3") {
		t.Errorf("Err() = %v, want exit status 3", p.Err())
	}
	if out.String() != "to stdout\n" {
		t.Errorf("stdout = %q", out.String())
	}
	for _, want := range []string{"to stdout", "to stderr"} {
		if !strings.Contains(p.Tail(), want) {
			t.Errorf("Tail() = %q lacks %q", p.Tail(), want)
		}
	}
	if err := p.Stop(syscall.SIGTERM, time.Second); err != nil {
		t.Errorf("Stop after the end: %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	p := start(t, "flood", nil)
	waitDone(t, p)
	tail := p.Tail()
	if len(tail) > 4096 || !strings.HasSuffix(tail, "line 1999") || strings.Contains(tail, "line 0\n") {
		t.Errorf("Tail() has %d bytes and ends %q", len(tail), tail[max(0, len(tail)-20):])
	}
}

func TestStopBySignal(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := start(t, "sleep", w)
	readPid(t, r)
	if err := p.Stop(syscall.SIGTERM, 10*time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	waitGone(t, p.Pid())
}

func TestStopKillsTheStubborn(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := start(t, "stubborn", w)
	readPid(t, r)
	err := p.Stop(syscall.SIGTERM, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("Stop = %v, want an error that says it was killed", err)
	}
	waitGone(t, p.Pid())
}

func TestEndOfMasterEndsWorkers(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := start(t, "master", w)
	worker := readPid(t, r)
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDone(t, p)
	waitGone(t, worker)
}

func TestDeathOfParentEndsChild(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	conductor := start(t, "conductor", w)
	child := readPid(t, r)
	if err := syscall.Kill(conductor.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, child)
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := process.Start(process.Config{Path: "/does/not/exist"})
	if err == nil || !strings.Contains(err.Error(), "start /does/not/exist") {
		t.Errorf("Start = %v", err)
	}
}
