package experiment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/proxycheck/process"
)

// pinned runs load generators on these CPUs; nil for any.
type pinned struct{ cpus []int }

// childGenerator runs each load in a separate process, so nothing in this one can
// disturb it.
type childGenerator struct{ pinned }

// generatorStop bounds the wait for an interrupted load to print what it has.
const generatorStop = 5 * time.Second

// generatorSpare is how much longer than its duration a load may take: starting,
// connecting and summing up. After that it is stopped.
const generatorSpare = 60 * time.Second

// Event is one line that `armrepro load --events-fd` writes for the process that
// started it.
type Event struct {
	Name      string `json:"event"`
	Completed uint64 `json:"completed"`
}

// The names of events. LoadStarted and LoadEnded enclose the measured window.
const (
	LoadStarted  = "started"
	LoadProgress = "progress"
	LoadEnded    = "ended"
)

// Load starts `armrepro load` and waits for its result.
func (g childGenerator) Load(ctx context.Context, cfg load.Config, on bench.Observer) (bench.Run, error) {
	events, theirs, err := os.Pipe()
	if err != nil {
		return bench.Run{}, fmt.Errorf("create pipe: %w", err)
	}
	defer events.Close()
	var out bytes.Buffer
	child, err := process.Start(process.Config{
		Path: process.Self, Args: loadArgs(cfg), Stdout: &out, ExtraFiles: []*os.File{theirs},
	})
	theirs.Close()
	if err != nil {
		return bench.Run{}, err
	}
	err = g.finish(ctx, cfg, child, func() error { return child.Stop(syscall.SIGTERM, generatorStop) }, func() { follow(events, on) })
	var run bench.Run
	if parseErr := json.Unmarshal(out.Bytes(), &run); parseErr != nil && err == nil {
		err = fmt.Errorf("load %s: read its result: %w", cfg.URL, parseErr)
	}
	return run, err
}

// finish pins a load generator and waits for its end, while watch does what else is to
// be done. It is stopped when ctx ends, or when it takes too long.
func (p pinned) finish(ctx context.Context, cfg load.Config, child *process.Process, stop func() error, watch func()) error {
	if p.cpus != nil {
		// One that has ended says why itself.
		if err := process.SetAffinity(child.Pid(), p.cpus); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("pin the load generator: %w", err), child.Stop(syscall.SIGKILL, generatorStop))
		}
	}
	ctx, release := context.WithTimeoutCause(ctx, cfg.Duration+generatorSpare,
		fmt.Errorf("load %s: the load generator did not finish in time", cfg.URL))
	defer release()
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() { stopped <- stop() })
	watch()
	<-child.Done()
	if !cancel() {
		return errors.Join(<-stopped, context.Cause(ctx))
	}
	if child.Err() != nil {
		return fmt.Errorf("load %s: %w: %s", cfg.URL, child.Err(), child.Tail())
	}
	return nil
}

// loadArgs are the arguments of the child that runs cfg.
func loadArgs(cfg load.Config) []string {
	args := []string{
		"load", "--output", "json", "--events-fd", "3",
		"--connections", strconv.Itoa(cfg.Connections), "--threads", strconv.Itoa(cfg.Threads),
		"--duration", cfg.Duration.String(), "--timeout", cfg.Timeout.String(),
	}
	if cfg.Rate > 0 {
		args = append(args, "--rate", strconv.FormatFloat(cfg.Rate, 'f', -1, 64))
	}
	return append(args, cfg.URL)
}

// follow calls back for every event until the child closes its end.
func follow(events io.Reader, on bench.Observer) {
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Name {
		case LoadStarted:
			on.Started()
		case LoadProgress:
			on.Progress(e.Completed)
		case LoadEnded:
			on.Ended()
		}
	}
}
