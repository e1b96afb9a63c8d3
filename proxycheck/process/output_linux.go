package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Head keeps the first megabyte written to it: what a program prints is not
// trusted to end.
type Head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const headBytes = 1 << 20

func (h *Head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(b[:min(len(b), headBytes-h.buf.Len())])
	return len(b), nil
}

func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}

// Run runs a program to its end, or kills it when ctx ends. It returns the first
// megabyte of what was printed to standard output, followed by that to standard
// error.
func Run(ctx context.Context, cfg Config) (string, error) {
	var stdout, stderr Head
	cfg.Stdout, cfg.Stderr = &stdout, &stderr
	p, err := Start(cfg)
	if err != nil {
		return "", err
	}
	select {
	case <-p.Done():
		err = p.Err()
	case <-ctx.Done():
		_ = p.Stop(syscall.SIGKILL, time.Second)
		err = Late(ctx, errors.New("it is still running"))
	}
	if err != nil {
		err = fmt.Errorf("run %s: %w", CommandLine(append([]string{cfg.Path}, cfg.Args...)...), err)
	}
	return stdout.String() + stderr.String(), err
}
