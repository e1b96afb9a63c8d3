package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"armrepro/proxycheck/process"
)

// apt is apt with lists, cache and state of its own in dir, so that it needs no
// root and changes nothing of this machine. It reads the machine's sources, for
// the guest's architecture as well.
type apt struct {
	dir     string
	options []string
}

func newApt(dir string) (*apt, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("find apt: %w", err)
	}
	installed, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return nil, fmt.Errorf("read installed packages: %w", err)
	}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("create folders for apt: %w", err)
		}
	}
	// Beside this file apt keeps its lock.
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, installed, 0o644); err != nil {
		return nil, fmt.Errorf("copy list of installed packages: %w", err)
	}
	a := &apt{dir: dir}
	for _, o := range []string{
		"Dir::State=" + filepath.Join(dir, "state"), "Dir::State::status=" + status,
		"Dir::Cache=" + filepath.Join(dir, "cache"),
		"APT::Architectures=" + strings.Join(slices.Compact([]string{runtime.GOARCH, guestArch}), ","),
		// A user of its own could not write to these folders.
		"APT::Sandbox::User=root",
	} {
		a.options = append(a.options, "-o", o)
	}
	return a, nil
}

// get runs apt-get in dir, which is where it leaves what it is to download.
func (a *apt) get(ctx context.Context, args ...string) error {
	_, err := a.run(ctx, "apt-get", args...)
	return err
}

// dependency is the first package that the named one depends on: one that
// stands for the newest version depends on that version.
func (a *apt) dependency(ctx context.Context, name string) (string, error) {
	text, err := a.run(ctx, "apt-cache", "depends", "--important", name)
	if err != nil {
		return "", err
	}
	return parseDependency(name, text)
}

func (a *apt) run(ctx context.Context, program string, args ...string) (string, error) {
	return output(ctx, process.Config{Path: program, Args: slices.Concat(a.options, args), Dir: a.dir})
}

// parseDependency reads what apt-cache depends prints.
func parseDependency(name, text string) (string, error) {
	for line := range strings.Lines(text) {
		if found, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && !strings.HasPrefix(found, "<") {
			return found, nil
		}
	}
	return "", fmt.Errorf("find what %s stands for: it depends on nothing", name)
}
