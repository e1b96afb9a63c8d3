package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/proxycheck"
)

func TestMeant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		signal os.Signal
		after  time.Duration
		want   bool
	}{
		{syscall.SIGINT, 0, false},
		{syscall.SIGINT, repeatGap - 1, false},
		{syscall.SIGINT, repeatGap, true},
		{syscall.SIGQUIT, repeatGap, true},
		{syscall.SIGTERM, time.Minute, false},
		{syscall.SIGHUP, time.Minute, false},
		{syscall.SIGPIPE, time.Minute, false},
	} {
		if got := meant(tt.signal, tt.after); got != tt.want {
			t.Errorf("%v after %s: %t, want %t", tt.signal, tt.after, got, tt.want)
		}
	}
}

// moment is a command in one of its phases.
type moment struct {
	name string
	args []string
	// says is what it has printed by then.
	says string
	// code is its exit code when a signal ends it then.
	code int
}

// moments are all commands that a signal ends, in each phase. The first ones are
// every command once.
func moments(t *testing.T) (all []moment, commands int) {
	etcd := listen(t)
	start(t, nil, "etcd", "--listen", etcd).said("etcd ready")
	target := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(target.Close)
	all = []moment{
		{"load", []string{"load", "-d", "60s", "-R", "100", target.URL}, "2 threads and 10 connections", exitInterrupted},
		{"etcd", []string{"etcd", "--listen", listen(t)}, "etcd ready", exitOK},
		{"upstream", []string{"upstream", "--listen", listen(t)}, "upstream ready", exitOK},
		{"gateway", []string{
			"gateway", "--etcd", "http://" + etcd, "--listen", listen(t), "--admin-listen", listen(t), "--prometheus-listen", listen(t),
		}, "gateway ready", exitOK},
		{"check", []string{"check", "--gateway", "builtin"}, "gateway ready", exitInterrupted},
		{"run", []string{"run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "900"}, "run 1 of 900", exitInterrupted},
	}
	commands = len(all)
	for _, says := range []string{"machine", "etcd ready", "upstream ready", "gateway ready"} {
		all = append(all, moment{"run, " + says, longRun, says, exitInterrupted})
	}
	return all, commands
}

func listen(t *testing.T) string { return "127.0.0.1:" + strconv.Itoa(freePort(t)) }

// at brings a program to a moment. set may change how it is started.
func at(t *testing.T, m moment, set func(*program)) *program {
	t.Helper()
	p := prepare(t, nil, m.args...)
	p.results = t.TempDir()
	if m.args[0] == "run" {
		p.cmd.Args = append(p.cmd.Args, "--save", filepath.Join(p.results, "result.json"))
	}
	set(p)
	p.launch()
	p.said(m.says)
	return p
}

// endedWell checks that a program which was stopped at m has done what it should.
func endedWell(t *testing.T, p *program, m moment) {
	t.Helper()
	if code := p.exit(); code != m.code {
		t.Errorf("exit code %d, want %d\n%s", code, m.code, p.err.String())
	}
	p.leftNothing()
	if m.name != "run" {
		return
	}
	if text, err := os.ReadFile(filepath.Join(p.results, "result.json")); err != nil || !strings.Contains(string(text), `"interrupted"`) {
		t.Errorf("the result was not saved as interrupted: %v", err)
	}
}

// TestSignalTwice sends what timeout(1) sends: a signal to its child, and then to
// the whole group. The children of a run have groups of their own.
func TestSignalTwice(t *testing.T) {
	t.Parallel()
	all, _ := moments(t)
	t.Run("", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				p := at(t, m, func(p *program) { p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
				sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP}[i%4]
				for _, pid := range []int{p.cmd.Process.Pid, -p.cmd.Process.Pid, -p.cmd.Process.Pid} {
					if err := syscall.Kill(pid, sig); err != nil {
						t.Fatal(err)
					}
				}
				endedWell(t, p, m)
				if m.code == exitOK {
					return
				}
				if !strings.Contains(p.err.String(), "interrupted by "+unix.SignalName(sig)) {
					t.Errorf("the signal is not named:\n%s", p.err.String())
				}
				if out := p.out.String(); m.name == "run" && (!strings.Contains(out, "Requests/sec") || !strings.Contains(strings.ToLower(out), "interrupted")) {
					t.Errorf("the partial result is missing or not marked:\n%s", out)
				}
			})
		}
	})
}

// TestTerminalCloses closes the terminal of each command.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	all, commands := moments(t)
	t.Run("", func(t *testing.T) {
		for _, m := range all[:commands] {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				ours, theirs := terminal(t)
				p := at(t, m, func(p *program) {
					p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, theirs
					p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
					go func() { _, _ = io.Copy(&p.out, ours) }()
				})
				theirs.Close()
				ours.Close()
				endedWell(t, p, m)
			})
		}
	})
}

// terminal makes a pseudo terminal: our end and that of a program.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("skipped: no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	// Fd would make our end block: closing it would wait for who reads it.
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	controlErr := raw.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	})
	err = errors.Join(controlErr, err)
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestSecondInterrupt presses Ctrl-C again while taking down hangs: everything is
// removed all the same.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	p := start(t, nil, longRun...)
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
	if err := syscall.Kill(p.child("gateway --listen"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.child("load --output json"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(repeatGap + repeatGap/10)
	}
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d\n%s", code, exitInterrupted, p.err.String())
	}
	p.leftNothing()
}

// TestCutShort presses Ctrl-C again while the etcd that holds the keys hangs: what
// is left is listed, and the next run removes it.
func TestCutShort(t *testing.T) {
	t.Parallel()
	listen := "127.0.0.1:" + strconv.Itoa(freePort(t))
	etcd := start(t, nil, "etcd", "--listen", listen)
	etcd.said("etcd ready")
	p := start(t, nil, append(longRun, "--etcd", "http://"+listen)...)
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
	if err := etcd.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(repeatGap + repeatGap/10)
	}
	code, said := p.exit(), p.err.String()
	if code != exitFailed || !strings.Contains(said, "keys under /armrepro-") || !strings.Contains(said, "etcdctl --endpoints=http://"+listen+" del --prefix /armrepro-") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if err := etcd.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := proxycheck.SweepKeys(""); err != nil {
		t.Error(err)
	}
	p.leftNothing()
}
