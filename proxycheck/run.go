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
	return "", process.WithHint(err, causeHint(out))
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

// lastLines is the end of s, at most n lines, as one line that is fit to print.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		lines[i] = process.Clean(line)
	}
	return strings.Join(lines, " | ")
}
