package wrk

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"armrepro/bench/load"
	"armrepro/proxycheck/process"
)

// Tool is an installed wrk.
type Tool struct{ Path, Version string }

// version is in what wrk -v prints: "wrk 4.2.0 [epoll]", on Debian "wrk debian/4.1.0-3".
var version = regexp.MustCompile(`(?m)^wrk (?:debian/)?(\S+)`)

// findTimeout bounds the wait for a version.
const findTimeout = 10 * time.Second

const installHint = "on Debian and its descendants:\n  apt-get install wrk"

// Find finds the wrk on PATH. An error has a hint.
func Find(ctx context.Context) (Tool, error) {
	path, err := exec.LookPath("wrk")
	if err != nil {
		return Tool{}, process.Hintf(installHint, "find wrk: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	// It prints its version with exit code 1, among its usage.
	out, _ := process.Run(ctx, process.Config{Path: path, Args: []string{"-v"}})
	found := version.FindStringSubmatch(out)
	if found == nil {
		return Tool{}, process.Hintf(installHint, "find wrk: %s -v does not name a version: %.100q", path, out)
	}
	return Tool{Path: path, Version: found[1]}, nil
}

// Check says what of cfg wrk can't do, if anything.
func Check(cfg load.Config) error {
	switch {
	case cfg.Rate > 0:
		return errors.New("wrk has no fixed rate")
	case cfg.Duration%time.Second != 0:
		return fmt.Errorf("wrk takes whole seconds, not %s", cfg.Duration)
	case cfg.Timeout%time.Second != 0:
		return fmt.Errorf("wrk takes a timeout in whole seconds, not %s", cfg.Timeout)
	case cfg.Connections%cfg.Threads != 0:
		return fmt.Errorf("wrk opens as many connections on each thread: %d threads cannot share %d", cfg.Threads, cfg.Connections)
	}
	return nil
}

// Args are the arguments for a load that Check has nothing against.
func Args(cfg load.Config) []string {
	return []string{
		"--threads", strconv.Itoa(cfg.Threads), "--connections", strconv.Itoa(cfg.Connections),
		"--duration", wholeSeconds(cfg.Duration), "--timeout", wholeSeconds(cfg.Timeout), "--latency", cfg.URL,
	}
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(d/time.Second)) + "s" }
