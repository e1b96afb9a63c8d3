package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/wrk"
	"armrepro/proxycheck/process"
)

// wrkGenerator loads with an installed wrk.
type wrkGenerator struct {
	pinned
	tool wrk.Tool
}

// Load runs wrk. What wrk does not tell is nil in the run.
func (g wrkGenerator) Load(ctx context.Context, cfg load.Config, on bench.Observer) (bench.Run, error) {
	var out process.Head
	on.Started()
	child, err := process.Start(process.Config{Path: g.tool.Path, Args: wrk.Args(cfg), Stdout: &out})
	if err != nil {
		return bench.Run{}, err
	}
	var peak *uint64
	err = g.finish(ctx, cfg, child, func() error { return interrupt(child) }, func() { peak = watchWrk(child, on) })
	on.Ended()
	var run bench.Run
	result, parseErr := parseOne(out.String())
	if parseErr == nil {
		run.Result, run.RSS.Load = result, peak
	} else if err == nil {
		err = fmt.Errorf("load %s: read what wrk printed: %w", cfg.URL, parseErr)
	}
	if run.Seconds > 0 {
		run.CPU.Load = new(child.CPUTime().Seconds() / run.Seconds)
	}
	return run, err
}

// parseOne reads the output of one run.
func parseOne(text string) (load.Result, error) {
	runs, err := wrk.Parse(strings.NewReader(text))
	if err != nil {
		return load.Result{}, err
	}
	if len(runs) != 1 {
		return load.Result{}, fmt.Errorf("want one run, not %d", len(runs))
	}
	return runs[0].Result, runs[0].Err()
}

// watchEvery is the time between two looks at wrk, which says nothing until its end.
const watchEvery = 250 * time.Millisecond

// watchWrk waits until wrk has ended and returns its peak memory, as far as seen: its
// rusage would have that of this process, from which it was started.
func watchWrk(child *process.Process, on bench.Observer) (peak *uint64) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-child.Done():
			return peak
		case <-ticker.C:
			on.Progress(0)
			if rss, err := process.PeakRSS(os.DirFS("/"), child.Pid()); err == nil {
				peak = &rss
			}
		}
	}
}

// interrupt makes wrk print what it has measured. Until it measures, it ignores the
// signal, so that is repeated.
func interrupt(child *process.Process) error {
	const every, tries = 500 * time.Millisecond, 10
	for range tries {
		if err := child.Signal(syscall.SIGINT); err != nil {
			return err
		}
		select {
		case <-child.Done():
			return nil
		case <-time.After(every):
		}
	}
	return errors.Join(errors.New("wrk does not end when interrupted"), child.Stop(syscall.SIGKILL, generatorStop))
}
