package proxycheck

import (
	"context"
	"fmt"
	"strings"

	"armrepro/proxycheck/process"
)

// run runs a command to its end and returns what it printed.
func run(ctx context.Context, cfg process.Config) (string, error) {
	out, err := process.Run(ctx, cfg)
	if err == nil {
		return out, nil
	}
	if out != "" {
		err = fmt.Errorf("%w; it printed: %s", err, summary(out))
	}
	return "", process.WithHint(err, failureHint(out))
}

// summary is what matters of what a Lua program printed: the beginning of the
// error that ended it, without the traceback, or else the last lines.
func summary(out string) string {
	text, _, traced := strings.Cut(out, "\nstack traceback:")
	if !traced {
		return lastLines(out, 5)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "luajit: ") {
			lines = lines[i:min(i+2, len(lines))]
			break
		}
	}
	return lastLines(strings.Join(lines, "\n"), 5)
}

// lastLines is the end of s, at most n lines, as one line.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// failureHint knows the reasons for which APISIX's commands and nginx fail.
func failureHint(said string) string {
	switch {
	case strings.Contains(said, "Address already in use"):
		return "the port was taken meanwhile: see who listens on it with ss -ltnp, or choose another"
	case strings.Contains(said, "module '") && strings.Contains(said, "not found"):
		return "a Lua library of the install is missing: reinstall APISIX, or run make deps in the source checkout"
	case strings.Contains(said, "Too many open files"):
		return "raise the limit of open files: ulimit -n 65536"
	case strings.Contains(said, "permission denied\""):
		return "grant etcd's user readwrite on the keys: on the prefix /armrepro-, or on the one that --etcd-prefix names"
	}
	return ""
}
