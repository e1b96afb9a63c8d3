package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// grace is how long a program may take to end once it is told to.
const grace = 3 * time.Second

// finish waits until p has ended by itself or, when ctx ends before, stops it.
func finish(ctx context.Context, p *process.Process) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		// One that has to be killed is gone all the same.
		_ = p.Stop(syscall.SIGTERM, grace)
		return context.Cause(ctx)
	}
}

// output runs a program and returns what it prints on standard output.
func output(ctx context.Context, cfg process.Config) (string, error) {
	var stdout bytes.Buffer
	cfg.Stdout = &stdout
	p, err := process.Start(cfg)
	if err != nil {
		return "", err
	}
	if err := finish(ctx, p); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", filepath.Base(cfg.Path), err, p.Tail())
	}
	return stdout.String(), nil
}
