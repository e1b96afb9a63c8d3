package process

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	sh := func(ctx context.Context, script string) (string, error) {
		return Run(ctx, Config{Path: "/bin/sh", Args: []string{"-c", script}})
	}
	if out, err := sh(t.Context(), "echo err >&2; echo out"); err != nil || out != "out\nerr\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := sh(t.Context(), "echo why; exit 3"); err == nil || out != "why\n" || err.Error() != "run /bin/sh -c 'echo why; exit 3': exit status 3" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := sh(t.Context(), "head -c 3000000 /dev/zero"); err != nil || len(out) != headBytes {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := sh(ctx, "sleep 60"); !errors.Is(err, stopped) || !strings.Contains(err.Error(), "still running") {
		t.Errorf("%v", err)
	}
}
