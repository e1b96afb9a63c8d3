package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// savedResult is a result file of another package's tests.
func savedResult(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "report", "testdata", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReport(t *testing.T) {
	t.Parallel()
	valid, builtin := savedResult(t, "valid.json"), savedResult(t, "builtin.json")
	text, err := os.ReadFile(valid)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		stdin  string
		code   int
		stdout string
		stderr string
	}{
		{name: "text", args: []string{valid}, stdout: "│ Requests/sec"},
		{name: "several", args: []string{valid, builtin}, stdout: "armrepro's built-in gateway, not APISIX"},
		{name: "stdin", args: []string{"-"}, stdin: string(text), stdout: "Neoverse N1"},
		{name: "markdown", args: []string{"-o", "markdown", valid}, stdout: "| Requests/sec"},
		{name: "markdown by its short name", args: []string{"-o", "md", valid}, stdout: "| Requests/sec"},
		{name: "references", args: []string{valid, "--references"}, stdout: "1.00×"},
		{name: "no references", args: []string{"--references", builtin}, stdout: "none, since they are APISIX's"},
		{name: "help", args: []string{"--help"}, stdout: "Usage: armrepro report [flags] FILE..."},
		{name: "no file", code: exitUsage, stderr: "report needs a FILE"},
		{name: "format", args: []string{"-o", "xml", valid}, code: exitUsage, stderr: "unknown output format \"xml\"; use text, markdown, csv or json"},
		{name: "missing file", args: []string{"nosuch.json"}, code: exitFailed, stderr: "open nosuch.json"},
		{name: "directory", args: []string{"testdata"}, code: exitFailed, stderr: "armrepro: read testdata: is a directory"},
		{name: "no result", args: []string{"words.go"}, code: exitFailed, stderr: "read words.go: not JSON, line 1"},
		{name: "empty stdin", args: []string{"-"}, code: exitFailed, stderr: "read standard input: not a result: the input is empty"},
		{name: "later version", args: []string{"-"}, stdin: strings.Replace(string(text), "armrepro/v1", "armrepro/v2", 1),
			code: exitFailed, stderr: "with the version of armrepro that wrote it"},
		{name: "one of two is bad", args: []string{valid, "words.go"}, code: exitFailed, stderr: "read words.go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			args := append([]string{"report"}, tt.args...)
			code := Program{Args: args, Stdin: strings.NewReader(tt.stdin), Stdout: &stdout, Stderr: &stderr}.run(t.Context())
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.stdout) || code != exitOK && stdout.Len() > 0 {
				t.Errorf("stdout is\n%s\nwant %q", &stdout, tt.stdout)
			}
			if !strings.Contains(stderr.String(), tt.stderr) || code == exitOK && stderr.Len() > 0 {
				t.Errorf("stderr is\n%s\nwant %q", &stderr, tt.stderr)
			}
		})
	}
}

func TestReportCSVHasOneHeader(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	args := []string{"report", "--output", "csv", savedResult(t, "valid.json"), savedResult(t, "builtin.json")}
	if code := (Program{Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}.run(t.Context())); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if n := strings.Count(stdout.String(), "started,"); n != 1 {
		t.Errorf("%d headers in\n%s", n, &stdout)
	}
}

// TestReportInterrupted stops a report that waits for a pipe without a writer.
func TestReportInterrupted(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int)
	var stdout, stderr strings.Builder
	go func() {
		code <- Program{Args: []string{"report", pipe}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}.run(ctx)
	}()
	cancel(&signalError{os.Interrupt})
	select {
	case got := <-code:
		if got != exitInterrupted {
			t.Errorf("exit code %d, want %d: %s", got, exitInterrupted, &stderr)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("report still waits")
	}
	// Let the goroutine that opens the pipe end.
	w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		w.Close()
	}
}
