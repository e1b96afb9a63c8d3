package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"armrepro/bench/load"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
)

// sample is what one run measured.
type sample struct {
	load.Result
	// generatorCPU is what the generator's process used in its whole life;
	// upstreamCPU and proxyCPU are what those used during the run, masters
	// and workers together.
	generatorCPU, upstreamCPU, proxyCPU time.Duration
}

// side is one of the two that a comparison runs in turn.
type side func(ctx context.Context, duration time.Duration) (sample, error)

// target is what a generator is pointed at. Runs take the addresses in turn.
type target struct {
	addresses            []string
	threads, connections int
}

func (s *session) load(t target) side {
	return s.generator(t, parseResult, s.tools.armrepro, "load", "--output", "json")
}

// loadPrinted measures the percentiles that `armrepro load` prints: corrected as
// wrk's are, which those in its JSON are not.
func (s *session) loadPrinted(t target) side {
	return s.generator(t, parsePercentiles, s.tools.armrepro, "load", "--latency")
}

func (s *session) wrk(t target) side {
	return s.generator(t, parseResult, s.tools.wrk.Path, "--script", s.tools.wrkScript)
}

// wrkScript makes wrk write what it measured, unrounded, in the form of `armrepro
// load --output json`, after the text that it always prints. It defines nothing but
// done, so nothing changes in wrk's loops.
const wrkScript = `function done(summary, latency)
  local e = summary.errors
  io.write("\n", string.format('{"requests": %.0f, "bytes": %.0f, "qps": %f,',
    summary.requests, summary.bytes, summary.requests / summary.duration * 1e6))
  io.write(string.format('"latency_us": {"mean_wrk": %f, "p50": %f, "p90": %f, "p99": %f},',
    latency.mean, latency:percentile(50), latency:percentile(90), latency:percentile(99)))
  io.write(string.format('"errors": {"connect": %d, "read": %d, "write": %d, "timeout": %d, "status": %d}}\n',
    e.connect, e.read, e.write, e.timeout, e.status))
end
`

// parseResult reads the JSON object at the end of a generator's output.
func parseResult(output []byte) (r load.Result, err error) {
	begin := bytes.LastIndex(output, []byte("\n{"))
	err = json.Unmarshal(output[begin+1:], &r)
	return r, err
}

// parsePercentiles reads what `armrepro load` prints as wrk would.
func parsePercentiles(output []byte) (load.Result, error) {
	runs, err := wrk.Parse(bytes.NewReader(output))
	if err != nil {
		return load.Result{}, err
	}
	if len(runs) != 1 || runs[0].Err() != nil || runs[0].Result.Latency.P99 == nil {
		return load.Result{}, fmt.Errorf("no run with a latency distribution: %s", output)
	}
	return runs[0].Result, nil
}

// generator runs a generator at t. wrk and `armrepro load` understand the arguments
// for that alike.
func (s *session) generator(t target, parse func([]byte) (load.Result, error), path string, args ...string) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		s.runs++
		output, cpu, err := execute(ctx, d, path, append(slices.Clone(args),
			"-t", strconv.Itoa(t.threads), "-c", strconv.Itoa(t.connections),
			"-d", strconv.Itoa(int(d.Seconds()))+"s", url(t.addresses[s.runs%len(t.addresses)])))
		if err != nil {
			return sample{}, fmt.Errorf("run %s: %w", path, err)
		}
		result, err := parse(output)
		if err != nil {
			return sample{}, fmt.Errorf("parse output of %s: %w", path, err)
		}
		return sample{Result: result, generatorCPU: cpu}, nil
	}
}

// overrun is how much longer than its duration a run may take: thousands of
// connections have to be opened, too.
const overrun = 30 * time.Second

// execute runs a program that is to take about as long as d. It returns what the
// program printed and the CPU time that it used.
func execute(ctx context.Context, d time.Duration, path string, args []string) ([]byte, time.Duration, error) {
	limit := d + overrun
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	var stdout bytes.Buffer
	child, err := process.Start(process.Config{Path: path, Args: args, Stdout: &stdout})
	if err != nil {
		return nil, 0, err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return nil, 0, errors.Join(context.Cause(ctx), child.Stop(syscall.SIGTERM, stopGrace))
	}
	if err := child.Err(); err != nil {
		return nil, 0, fmt.Errorf("%w: %s", err, child.Tail())
	}
	return stdout.Bytes(), child.CPUTime(), nil
}
