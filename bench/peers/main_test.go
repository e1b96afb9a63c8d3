package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asPeers is the variable that makes the test binary the program. As its own
// child it is the slow server.
const asPeers = "PEERS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asPeers) != "" || len(os.Args) > 1 && servers[os.Args[1]] != nil {
		main()
	}
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// builtIn is the folder of what built made.
var builtIn string

// built builds armrepro once for all tests.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if builtIn, err = os.MkdirTemp("", "peers-test"); err != nil {
		return "", err
	}
	return buildArmrepro(context.Background(), builtIn)
})

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
		{"--only nonsense", `"nonsense" is none of cost, pinned, unpinned, straight, latency, bytes`},
		{"--only cost,", `"" is none of`},
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
		if code != exitUsage || !strings.Contains(err.String(), test.want) || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, want %d and %q", test.args, code, err.String(), exitUsage, test.want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
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
	for _, want := range []string{"find wrk: it is not installed", "apt-get install wrk nginx"} {
		if code != exitFailed || !strings.Contains(err.String(), want) {
			t.Errorf("exit code %d, %q, want %d and %q", code, err.String(), exitFailed, want)
		}
	}
}

// needPeers skips a test where the peers are not installed, and otherwise
// returns the path of armrepro.
func needPeers(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it takes some seconds of load")
	}
	if _, err := findTools(t.Context()); err != nil {
		t.Skipf("skipped: %v", err)
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBytes measures what must come out the same on any machine, however busy.
func TestBytes(t *testing.T) {
	armrepro := needPeers(t)
	var out, err bytes.Buffer
	code := run(t.Context(), []string{"--armrepro", armrepro, "--only", "bytes", "--pairs", "1", "--duration", "1s"}, &out, &err)
	if code != exitHeld {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), err.String())
	}
	if n := strings.Count(out.String(), "1.000–1.000  equal"); n != 2 {
		t.Errorf("%d rows, want 2:\n%s", n, out.String())
	}
}

// TestMissed sets a bound that nothing can keep.
func TestMissed(t *testing.T) {
	armrepro := needPeers(t)
	var out, err bytes.Buffer
	code := run(t.Context(), []string{"--armrepro", armrepro, "--only", "cost", "--pairs", "1", "--duration", "1s", "--slack", "0.001"}, &out, &err)
	if code != exitMissed || strings.Count(out.String(), string(missed)) != 2 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), err.String())
	}
}

// TestInterrupt stops the program while load runs and looks for what is left.
func TestInterrupt(t *testing.T) {
	armrepro := needPeers(t)
	tmp := t.TempDir()
	mark := "PEERS_TEST_MARK=" + tmp
	cmd := exec.Command("/proc/self/exe", "--armrepro", armrepro, "--only", "unpinned", "--pairs", "1", "--duration", "30s")
	cmd.Env = append(os.Environ(), asPeers+"=1", "TMPDIR="+tmp, mark)
	var out bytes.Buffer
	var err lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	deadline := time.Now().Add(3 * time.Minute)
	for len(marked(mark, "wrk")) == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("no load begins\n%s", err.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(err.String(), "interrupted by interrupt") {
		t.Errorf("exit code %d\n%s", code, err.String())
	}
	if left := marked(mark, ""); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	entries, readErr := os.ReadDir(tmp)
	if readErr != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, readErr)
	}
}

// marked lists the command lines of living processes that have mark in their
// environment and begin with a program whose name ends with name.
func marked(mark, name string) []string {
	var found []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if program, _, _ := strings.Cut(string(line), "\x00"); strings.HasSuffix(program, name) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&signalError{syscall.SIGTERM})
	var out, err bytes.Buffer
	if code := run(ctx, nil, &out, &err); code != exitInterrupted {
		t.Errorf("exit code %d, %q", code, err.String())
	}
}
