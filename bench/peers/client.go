package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// sample is what one run measured. What a run does not measure is zero.
type sample struct {
	output
	// counts are there instead of the output where exact ones are wanted.
	counts exact
	// generatorCPU is what the generator's process used in its whole life;
	// upstreamCPU and proxyCPU are what those used during the run, masters
	// and workers together.
	generatorCPU, upstreamCPU, proxyCPU time.Duration
}

// side is one of the two that a comparison runs in turn.
type side func(ctx context.Context, duration time.Duration) (sample, error)

// target is what a generator is pointed at.
type target struct {
	url                  string
	threads, connections int
}

// args are the arguments that wrk and `armrepro load` understand alike.
func (t target) args(duration time.Duration) []string {
	return []string{
		"-t", strconv.Itoa(t.threads), "-c", strconv.Itoa(t.connections),
		"-d", strconv.Itoa(int(duration.Seconds())) + "s", t.url,
	}
}

// wrk runs wrk at t.
func (s *session) wrk(t target) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		return generate(ctx, d, s.tools.wrk, append([]string{"--latency"}, t.args(d)...))
	}
}

// load runs `armrepro load` at t.
func (s *session) load(t target) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		return generate(ctx, d, s.tools.armrepro, append([]string{"load", "--latency"}, t.args(d)...))
	}
}

// generate runs a generator and reads what it prints.
func generate(ctx context.Context, d time.Duration, path string, args []string) (sample, error) {
	ended, err := execute(ctx, d, path, args)
	if err != nil {
		return sample{}, err
	}
	out, err := parseOutput(ended.stdout)
	if err != nil {
		return sample{}, fmt.Errorf("read output of %s: %w", path, err)
	}
	return sample{output: out, generatorCPU: ended.cpu}, nil
}

// wrkExact runs wrk at t for its exact counts.
func (s *session) wrkExact(t target) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		const private = 0o600
		script := filepath.Join(s.dir, "exact.lua")
		if err := os.WriteFile(script, []byte(exactScript), private); err != nil {
			return sample{}, fmt.Errorf("write script for wrk: %w", err)
		}
		ended, err := execute(ctx, d, s.tools.wrk, append([]string{"-s", script}, t.args(d)...))
		if err != nil {
			return sample{}, err
		}
		counts, err := parseExact(ended.stderr)
		return sample{counts: counts}, err
	}
}

// loadExact runs `armrepro load` at t for its exact counts.
func (s *session) loadExact(t target) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		ended, err := execute(ctx, d, s.tools.armrepro, append([]string{"load", "--output", "json"}, t.args(d)...))
		if err != nil {
			return sample{}, err
		}
		counts, err := parseExact(ended.stdout)
		return sample{counts: counts}, err
	}
}

// observed adds what the servers used while the run lasted.
func observed(run side, upstream, proxy *server) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		var before, after [2]time.Duration
		if err := readCPU(&before, upstream, proxy); err != nil {
			return sample{}, err
		}
		measured, err := run(ctx, d)
		if err != nil {
			return sample{}, err
		}
		err = readCPU(&after, upstream, proxy)
		measured.upstreamCPU = after[0] - before[0]
		measured.proxyCPU = after[1] - before[1]
		return measured, err
	}
}

func readCPU(used *[2]time.Duration, servers ...*server) (err error) {
	for i, s := range servers {
		if used[i], err = s.cpuTime(); err != nil {
			return err
		}
	}
	return nil
}

// ended is a child that has ended well.
type ended struct {
	stdout, stderr string
	cpu            time.Duration
}

// overrun is how much longer than its duration a run may take: thousands of
// connections have to be opened, too.
const overrun = 30 * time.Second

// execute runs a program that is to take about as long as duration.
func execute(ctx context.Context, duration time.Duration, path string, args []string) (ended, error) {
	limit := duration + overrun
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	var stdout, stderr bytes.Buffer
	child, err := process.Start(process.Config{Path: path, Args: args, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return ended{}, err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		err := child.Stop(syscall.SIGTERM, stopGrace)
		return ended{}, errors.Join(fmt.Errorf("run %s: %w", path, context.Cause(ctx)), err)
	}
	if err := child.Err(); err != nil {
		return ended{}, fmt.Errorf("run %s: %w: %s", path, err, child.Tail())
	}
	return ended{stdout: stdout.String(), stderr: stderr.String(), cpu: child.CPUTime()}, nil
}
