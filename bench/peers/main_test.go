package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"armrepro/proxycheck/process"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asPeers is the variable that makes the test binary the program. As its own
// child it is the bare server.
const asPeers = "PEERS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asPeers) != "" || len(os.Args) > 1 && os.Args[1] == bareCommand {
		main()
	}
	os.Exit(m.Run())
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, want string }{
		{"--only nonsense", `unknown section "nonsense"`},
		{"--only cost,", `unknown section ""`},
		{"--pairs -1", "--pairs must be"},
		{"--pairs 1001", "--pairs must be"},
		{"--duration 1500ms", "whole seconds"},
		{"--duration 0s", "whole seconds"},
		{"--duration 2h", "whole seconds"},
		{"--slack 0", "--slack must be"},
		{"--slack NaN", "--slack must be"},
		{"--slack Inf", "--slack must be"},
		{"--proxy-work -1s", "--proxy-work must be"},
		{"--no-such-flag", "unknown flag"},
		{"argument", `unexpected argument "argument"`},
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), &out, &err)
		if code != exitUsage || !strings.Contains(err.String(), test.want) || !strings.Contains(err.String(), "see --help") || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, want %d and %q", test.args, code, err.String(), exitUsage, test.want)
		}
	}
	var out, err bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &err); code != exitHeld || err.Len() > 0 {
		t.Errorf("exit code %d, %q", code, err.String())
	}
	golden(t, "help.txt", out.String())
}

// TestMissing runs without any of the peers in sight.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, err bytes.Buffer
	code := run(t.Context(), nil, &out, &err)
	for _, want := range []string{`"wrk": executable file not found`, "apt-get install wrk nginx"} {
		if code != exitFailed || !strings.Contains(err.String(), want) {
			t.Errorf("exit code %d, %q, want %d and %q", code, err.String(), exitFailed, want)
		}
	}
}

// TestMissed sets bounds that no latency can keep. Bytes must come out the same on
// any machine, however busy.
func TestMissed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: it takes some seconds of load")
	}
	needPeers(t)
	var out, err bytes.Buffer
	code := run(t.Context(), strings.Fields("--only latency,bytes --pairs 1 --duration 1s --slack 0.000001"), &out, &err)
	if code != exitMissed || !strings.Contains(out.String(), string(missed)) || strings.Count(out.String(), "1.000–1.000  equal") != 2 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), err.String())
	}
}

// needPeers skips a test where the peers are not installed.
func needPeers(t *testing.T) {
	t.Helper()
	if _, err := findTools(t.Context(), t.TempDir(), "not built"); err != nil {
		t.Skipf("skipped: %v", err)
	}
}

// TestInterrupt stops the program while load runs and looks for what is left.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	needPeers(t)
	// In place of armrepro, a generator that takes its time.
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	var output bytes.Buffer
	child, err := process.Start(process.Config{
		Path: process.Self, Args: []string{"--armrepro", slow, "--only", "straight"}, Stderr: &output,
		Env: append(os.Environ(), asPeers+"=1", "TMPDIR="+tmp), DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var servers []process.Proc
	loading := func() error {
		servers, err = process.Children(os.DirFS("/"), child.Pid())
		if err != nil || len(servers) < 2 {
			return exec.ErrNotFound
		}
		return nil
	}
	err = process.Poll(ctx, 5*time.Millisecond, loading)
	if stopErr := child.Stop(syscall.SIGINT, time.Minute); err != nil || stopErr != nil {
		t.Fatalf("%v, %v\n%s", err, stopErr, output.String())
	}
	if err := child.Err(); err == nil || err.Error() != "exit status 130" || !strings.Contains(output.String(), "interrupted: interrupt signal received") {
		t.Errorf("%v\n%s", err, output.String())
	}
	for _, p := range servers {
		if process.Running(os.DirFS("/"), p.PID) {
			t.Errorf("still running: %+v", p)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
