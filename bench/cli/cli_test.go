package cli

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"armrepro/proxycheck/process"
)

// TestFail prints each kind of error.
func TestFail(t *testing.T) {
	t.Parallel()
	left := &process.LeftBehind{Left: []process.Left{{What: "folder /tmp/x", How: "rm -rf /tmp/x"}}, Err: errors.New("read-only")}
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(&signalError{syscall.SIGTERM})
	for _, tt := range []struct {
		name string
		err  error
		code int
		want []string
	}{
		{"failed", errors.New("boom"), exitFailed, []string{"armrepro: boom"}},
		{"usage", &usageError{"bad", "do this"}, exitUsage, []string{"armrepro: bad", "armrepro: do this", "see 'armrepro run --help'"}},
		{"invalid", &invalidError{"errors"}, exitInvalid, []string{"the result is invalid: errors"}},
		{"interrupted", interruption(stopped, context.Canceled), exitInterrupted, []string{"interrupted by SIGTERM"}},
		{"left behind", errors.Join(&invalidError{"errors"}, left), exitFailed, []string{"the result is invalid", "folder /tmp/x", "rm -rf /tmp/x"}},
		{"interrupted and left behind", interruption(stopped, left), exitFailed, []string{"interrupted by SIGTERM", "folder /tmp/x", "rm -rf /tmp/x"}},
	} {
		var out strings.Builder
		if code := fail(&out, "armrepro run", tt.err); code != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, code, tt.code)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q lacks %q", tt.name, out.String(), want)
			}
		}
	}
}
