package main

import (
	"fmt"
	"os"

	"armrepro/bench"
	"armrepro/bench/machine"
)

// fitness watches whether the machine is fit to measure on, from before
// anything is started until the load is over, and keeps the processes on their
// CPUs.
type fitness struct {
	machine  machine.Machine
	evidence []machine.Evidence
	pins     machine.Pins
	first    machine.Snapshot
	before   machine.Snapshot
}

// newFitness takes the first snapshot and plans the pinning.
func newFitness(m machine.Machine, evidence []machine.Evidence, workers int, pin string) (*fitness, error) {
	root := os.DirFS("/")
	cpus, err := machine.AllowedCPUs(root)
	if err != nil && pin != machine.PinNone && pin != machine.PinAuto {
		return nil, fmt.Errorf("pin processes: %w", err)
	}
	pins, err := machine.PlanPins(machine.LogicalCPUs(root, cpus), workers, pin)
	if err != nil {
		return nil, usagef("--pin: %v", err)
	}
	f := &fitness{machine: m, evidence: evidence, pins: pins}
	f.first = f.snapshot(nil)
	return f, nil
}

// snapshot is of the machine with the processes of this run, which are this one
// and its descendants, and the gateway's workers wherever those belong.
func (f *fitness) snapshot(workers []int) machine.Snapshot {
	opts := machine.SnapshotOptions{
		Pids:     append([]int{os.Getpid()}, workers...),
		DataDir:  os.TempDir(),
		FreeDisk: machine.FreeDisk,
	}
	// An emulated CPU has no frequency of its own.
	if !f.machine.Emulated {
		opts.MeasureMHz = machine.MeasureMHz
	}
	return machine.TakeSnapshot(os.DirFS("/"), opts)
}

// begin looks at the machine when everything is up and no load has begun.
func (f *fitness) begin(c *conductor, workers []int) {
	f.before = f.snapshot(workers)
	var ports []int
	for _, p := range c.opts.portFlags() {
		ports = append(ports, *p.port)
	}
	warn(c.result, machine.Check(f.machine, f.before, machine.Plan{
		Workers:     c.opts.workers,
		Connections: c.opts.load.Connections,
		Ports:       ports,
		Pins:        f.pins,
	}))
	warn(c.result, machine.Moved(f.first, f.before))
	c.result.Unchecked = machine.UncheckedOf(f.evidence, f.before)
}

// end looks at what has changed under the load.
func (f *fitness) end(c *conductor, workers []int) {
	warn(c.result, machine.Moved(f.before, f.snapshot(workers)))
}

func warn(r *bench.Result, findings []machine.Finding) {
	for _, f := range findings {
		r.Warn(bench.Warning(f))
	}
}

// pin keeps every process of the run on its CPUs. A gateway that was only
// attached to is somebody else's and is left as it is.
func (c *conductor) pin(workers []int) error {
	pins := c.fit.pins
	if pins.Gateway == nil {
		return nil
	}
	c.result.Settings.Pins = &bench.Pins{
		Upstream: machine.FormatCPUList(pins.Upstream),
		Load:     machine.FormatCPUList(pins.Load),
	}
	if c.result.Gateway.Kind != kindAttach {
		c.result.Settings.Pins.Gateway = machine.FormatCPUList(pins.Gateway)
		for _, pid := range workers {
			if err := machine.SetAffinity(pid, pins.Gateway); err != nil {
				return fmt.Errorf("pin the gateway: %w", err)
			}
		}
	}
	if err := machine.SetAffinity(c.upstream.Pid(), pins.Upstream); err != nil {
		return fmt.Errorf("pin the upstream: %w", err)
	}
	if err := machine.SetAffinity(os.Getpid(), pins.Others); err != nil {
		return fmt.Errorf("pin this process: %w", err)
	}
	return nil
}
