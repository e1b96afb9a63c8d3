package cli

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReaderGone has whoever reads the output go away: what was measured is
// saved, and everything is taken down.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	saved := filepath.Join(t.TempDir(), "result.json")
	p := prepare(t, nil, append(shortRun, "--save", saved)...)
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	p.launch()
	if code := p.exit(); code != exitReaderGone && code != exitInvalid {
		t.Errorf("exit code %d, want %d", code, exitReaderGone)
	}
	if text, err := os.ReadFile(saved); err != nil || !strings.Contains(string(text), `"verdict"`) {
		t.Errorf("the result was not saved: %v", err)
	}
	p.leftNothing()
}

// TestNohup sends a hang-up to a program that was started to ignore it.
func TestNohup(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, nil, "run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "1")
	p.cmd.Path = "/bin/sh"
	p.cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, self}, p.cmd.Args[1:]...)
	p.launch()
	p.until("the load to begin", func() bool { return p.child("load --output json") != 0 })
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitOK && code != exitInvalid {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	p.leftNothing()
}

// TestForeignProc runs in a pid namespace of its own with the outer one's /proc,
// in which it would take its own gateway for somebody else's.
func TestForeignProc(t *testing.T) {
	t.Parallel()
	p := prepare(t, nil, "check", "--gateway", "builtin")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := p.cmd.Start(); err != nil {
		t.Skipf("skipped: no pid namespace can be made here: %v", err)
	}
	_ = p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(p.err.String(), "another pid namespace") {
		t.Errorf("exit code %d, %q", code, p.err.String())
	}
	p.leftNothing()
}

// TestLoadUnanswered loads what does not speak HTTP: it says why, and fails.
func TestLoadUnanswered(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for conn, err := server.Accept(); err == nil; conn, err = server.Accept() {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n")
		}
	}()
	p := start(t, nil, "load", "-d", "200ms", "http://"+server.Addr().String()+"/")
	if code := p.exit(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if out := p.out.String(); !strings.Contains(out, "Requests/sec:") {
		t.Errorf("the result is missing:\n%s", out)
	}
	for _, want := range []string{"armrepro: first read error: ", "armrepro: no response received"} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, p.err.String())
		}
	}
}
