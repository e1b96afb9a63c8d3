package experiment

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"armrepro/bench"
	"armrepro/bench/fitness"
	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// watcher checks whether the machine is fit to measure on, from before anything
// is started until the load is over. It also pins the processes.
type watcher struct {
	machine  machine.Machine
	evidence []machine.Evidence
	// cpus are those that this process may use before it is pinned.
	cpus []int
	pins fitness.Pins
	plan fitness.Plan
	// first was taken before anything was started, before right before the load.
	first, before fitness.Snapshot
	begun         time.Time
	// found are the codes of the findings before the load; looked says that begin
	// has run.
	found  []string
	looked bool
	// mhz is the highest frequency measured so far.
	mhz float64
}

// PinError says that Config.Pin makes no sense on this machine.
type PinError struct{ error }

// newWatcher takes the first snapshot and plans the pinning.
func newWatcher(m machine.Machine, evidence []machine.Evidence, workers int, pin string) (*watcher, error) {
	root := os.DirFS("/")
	cpus, err := process.AllowedCPUs(root)
	if err != nil && pin != fitness.PinNone && pin != fitness.PinAuto {
		return nil, fmt.Errorf("pin processes: %w", err)
	}
	pins, err := fitness.PlanPins(machine.LogicalCPUs(root, cpus), workers, pin)
	if err != nil {
		return nil, &PinError{err}
	}
	f := &watcher{machine: m, evidence: evidence, cpus: cpus, pins: pins, begun: time.Now()}
	f.first = f.snapshot(nil)
	return f, nil
}

// snapshot counts as this run's processes: this one, its descendants, and the
// gateway's workers, whoever started them.
func (f *watcher) snapshot(workers []int) fitness.Snapshot {
	opts := fitness.SnapshotOptions{
		CPUs:     f.cpus,
		Pids:     append([]int{os.Getpid()}, workers...),
		FreeDisk: func() (uint64, error) { return process.FreeDisk(os.TempDir()) },
	}
	// An emulated CPU has no clock frequency.
	if !f.machine.Emulated {
		opts.MeasureMHz = f.measureMHz
	}
	return fitness.TakeSnapshot(os.DirFS("/"), opts)
}

// measureMHz measures again if the frequency is lower than before: another process
// on the core lowers it too, for a moment.
func (f *watcher) measureMHz() float64 {
	const tries, near = 5, 0.98
	var best float64
	for range tries {
		if best = max(best, machine.MeasureMHz()); best >= near*f.mhz {
			break
		}
	}
	f.mhz = max(f.mhz, best)
	return best
}

// quietWindow is how long the machine is watched before anything is started.
const quietWindow = time.Second

// quiet checks what else the machine does while this run is idle.
func (f *watcher) quiet(ctx context.Context, r *bench.Result) error {
	select {
	case <-time.After(time.Until(f.begun.Add(quietWindow))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	warn(r, "before the start: ", fitness.Moved(f.first, f.snapshot(nil)))
	return nil
}

// begin checks the machine when everything is up, before the load.
func (f *watcher) begin(c *conductor, workers []int) {
	f.before, f.looked = f.snapshot(workers), true
	f.plan = fitness.Plan{Workers: c.cfg.Settings.Workers, Connections: c.cfg.Settings.Connections, Pins: f.pins}
	for _, p := range c.cfg.Ports.All() {
		f.plan.Ports = append(f.plan.Ports, *p.Number)
	}
	findings := fitness.Check(f.machine, f.before, f.plan)
	for _, finding := range findings {
		f.found = append(f.found, finding.Code)
	}
	warn(c.result, "", findings)
	c.result.Unchecked = fitness.UncheckedOf(f.evidence, f.before)
}

// end checks what has changed during the load.
func (f *watcher) end(c *conductor, workers []int) {
	after := f.snapshot(workers)
	warn(c.result, "during the load: ", fitness.Moved(f.before, after))
	now, _ := machine.Detect(os.DirFS("/"), machine.LiveFacts(false))
	if f.pins.Gateway != nil {
		// This process may use fewer CPUs since it was pinned.
		now.Allowed, now.UsableCores = f.machine.Allowed, f.machine.UsableCores
	}
	warn(c.result, "after the load: ", slices.DeleteFunc(fitness.Check(now, after, f.plan), func(found fitness.Finding) bool {
		return slices.Contains(f.found, found.Code)
	}))
	if free, err := process.FreeDisk(os.TempDir()); err == nil && free < fullDisk {
		c.result.Warn(bench.Warning{Code: "disk-full", Text: "the disk of the temporary folder filled up: the gateway's logs are incomplete, and writing less of them is faster",
			Hint: "free some space, measure for a shorter time, or set TMPDIR to a larger file system"})
	}
}

// fullDisk is the free space in bytes below which a disk counts as full.
const fullDisk = 1 << 20

// warn adds findings, prefixed with when they were made.
func warn(r *bench.Result, when string, findings []fitness.Finding) {
	for _, f := range findings {
		f.Text = when + f.Text
		r.Warnings = append(r.Warnings, bench.Warning{Code: f.Code, Text: f.Text, Hint: f.Hint, Invalid: f.Invalid})
	}
}

// pin pins every process of the run to its CPUs, except an attached gateway, which
// belongs to the user.
func (c *conductor) pin(workers []int) error {
	pins := c.fit.pins
	if pins.Gateway == nil {
		return nil
	}
	c.result.Settings.Pins = &bench.Pins{
		Upstream: process.FormatCPUList(pins.Upstream),
		Load:     process.FormatCPUList(pins.Load),
	}
	if c.result.Gateway.Kind != Attach {
		c.result.Settings.Pins.Gateway = process.FormatCPUList(pins.Gateway)
		for _, pid := range workers {
			if err := process.SetAffinity(pid, pins.Gateway); err != nil {
				return fmt.Errorf("pin the gateway: %w", err)
			}
		}
	}
	for _, pid := range c.upstream.all() {
		if err := process.SetAffinity(pid, pins.Upstream); err != nil {
			return fmt.Errorf("pin the upstream: %w", err)
		}
	}
	if err := process.SetAffinity(os.Getpid(), pins.Others); err != nil {
		return fmt.Errorf("pin armrepro: %w", err)
	}
	return nil
}
