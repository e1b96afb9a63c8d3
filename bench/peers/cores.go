package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// corePair is where the faithfulness of the peers is measured: on two CPUs,
// however many there are, since the share of the machine that a cheaper peer
// leaves to the gateway depends on it.
type corePair struct {
	// proxy is for the proxy's worker where it is pinned, others for the
	// rest.
	proxy, others int
	// shared says that both are threads of one core.
	shared bool
}

// errOneCPU says that there is no pair.
var errOneCPU = errors.New("it takes two CPUs")

// pickCores picks two CPUs, of different cores where possible.
func pickCores(cpus []machine.LogicalCPU) (corePair, error) {
	if len(cpus) < 2 {
		return corePair{}, errOneCPU
	}
	first := cpus[0]
	for _, c := range cpus[1:] {
		if !slices.Contains(first.Siblings, c.ID) {
			return corePair{proxy: first.ID, others: c.ID}, nil
		}
	}
	return corePair{proxy: first.ID, others: cpus[1].ID, shared: true}, nil
}

// findCores picks from the CPUs that this process may use.
func findCores() (corePair, error) {
	root := os.DirFS("/")
	allowed, err := process.AllowedCPUs(root)
	if err != nil {
		return corePair{}, err
	}
	return pickCores(machine.LogicalCPUs(root, allowed))
}

// confined calls f while this process, and whatever it starts meanwhile, may
// only use the given CPUs.
func confined(cpus []int, f func() error) (err error) {
	allowed, err := process.AllowedCPUs(os.DirFS("/"))
	if err != nil {
		return err
	}
	self := os.Getpid()
	if err := process.SetAffinity(self, cpus); err != nil {
		return fmt.Errorf("confine the measurement: %w", err)
	}
	defer func() { err = errors.Join(err, process.SetAffinity(self, allowed)) }()
	return f()
}
