package fitness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// Modes of PlanPins other than a list of CPUs.
const (
	// PinAuto pins where there are four usable CPUs or more.
	PinAuto = "auto"
	// PinNone pins nothing.
	PinNone = "none"
)

// pinnable is how many CPUs PinAuto needs: with fewer, pinning costs more than it
// steadies.
const pinnable = 4

// Pins says which CPUs each part of a measurement runs on. Nil lists pin
// nothing.
type Pins struct {
	// Gateway is where the gateway's workers run.
	Gateway []int
	// Upstream and Load are where those run; they may be the same.
	Upstream, Load []int
	// Others is where everything else of the measurement runs.
	Others []int
	// SharedThreads says that other processes run on another hardware thread of
	// a gateway core.
	SharedThreads bool
}

// PlanPins spreads a measurement over the usable CPUs. mode is PinAuto,
// PinNone, or a list of the CPUs for the gateway's workers in the kernel's
// format, such as 2-3.
func PlanPins(cpus []machine.LogicalCPU, workers int, mode string) (Pins, error) {
	switch mode {
	case PinNone:
		return Pins{}, nil
	case PinAuto:
		if len(cpus) < pinnable || len(cpus) < workers+peers {
			return Pins{}, nil
		}
		return spread(cpus, chooseGateway(cpus, workers)), nil
	}
	gateway, err := process.ParseCPUList(mode)
	if err != nil {
		return Pins{}, err
	}
	var usable []int
	for _, c := range cpus {
		usable = append(usable, c.ID)
	}
	slices.Sort(usable)
	other := slices.IndexFunc(gateway, func(id int) bool { return !slices.Contains(usable, id) })
	switch {
	case len(gateway) == 0:
		return Pins{}, errors.New("the list of CPUs is empty")
	case other >= 0:
		return Pins{}, fmt.Errorf("CPU %d is not usable; the usable CPUs are %s", gateway[other], process.FormatCPUList(usable))
	case len(gateway) < workers:
		return Pins{}, fmt.Errorf("the list has fewer CPUs (%d) than gateway workers (%d)", len(gateway), workers)
	case len(gateway) == len(cpus):
		return Pins{}, errors.New("the list leaves no CPU for the upstream and the load generator")
	}
	return spread(cpus, gateway), nil
}

// chooseGateway picks CPUs for the workers: the strongest, each on a separate
// core, and the last of them, since the first CPU serves most interrupts.
func chooseGateway(cpus []machine.LogicalCPU, workers int) []int {
	order := slices.Clone(cpus)
	slices.SortStableFunc(order, func(a, b machine.LogicalCPU) int {
		return cmp.Or(cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(b.ID, a.ID))
	})
	var chosen []int
	for _, ownCore := range []bool{true, false} {
		for _, c := range order {
			taken := slices.Contains(chosen, c.ID) || ownCore && sharesCore(c, chosen)
			if len(chosen) < workers && !taken {
				chosen = append(chosen, c.ID)
			}
		}
	}
	slices.Sort(chosen)
	return chosen
}

// sharesCore says whether a CPU is on the same core as one of others.
func sharesCore(c machine.LogicalCPU, others []int) bool {
	return slices.ContainsFunc(c.Siblings, func(id int) bool { return slices.Contains(others, id) })
}

// spread gives the CPUs that are not the gateway's to the others: half to the
// upstream, half to the load, which use about the same. The other threads of
// the gateway's cores stay idle where enough others are left.
func spread(cpus []machine.LogicalCPU, gateway []int) Pins {
	var apart, siblings []int
	for _, c := range cpus {
		switch {
		case slices.Contains(gateway, c.ID):
		case sharesCore(c, gateway):
			siblings = append(siblings, c.ID)
		default:
			apart = append(apart, c.ID)
		}
	}
	p := Pins{Gateway: gateway}
	if len(apart) < peers {
		p.SharedThreads = len(siblings) > 0
		apart = append(apart, siblings...)
		slices.Sort(apart)
	}
	half := max(1, len(apart)/2)
	p.Upstream, p.Load, p.Others = apart[:half], apart[half:], apart
	if len(p.Load) == 0 {
		p.Load = apart
	}
	return p
}
