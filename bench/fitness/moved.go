package fitness

import (
	"fmt"
	"time"
)

// The thresholds above which a change is a finding.
const (
	// stealShare is a share of the time of all CPUs.
	stealShare = 0.01
	// otherCores is CPU time of other processes, in cores.
	otherCores = 0.1
	// throttledShare is a share of the elapsed time.
	throttledShare = 0.001
	// swappedPages is 1 MiB of pages of 4 KiB.
	swappedPages = 256
	// clockStep is more than gradual clock adjustment causes.
	clockStep = 2 * time.Second
	// slower is how much the measured frequency may fall; several
	// measurements of an idle machine stay within 2%.
	slower = 0.05
)

// Moved looks for changes between two snapshots of the machine that affect the
// figures measured in between.
func Moved(before, after Snapshot) []Finding {
	var all []Finding
	for _, check := range []func(before, after Snapshot) *Finding{
		movedSteal, movedOthers, movedThrottled, movedSwap, movedClock, movedFrequency, movedThermal,
	} {
		if f := check(before, after); f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// elapsed is the time between two snapshots; 0 if unknown.
func elapsed(before, after Snapshot) time.Duration {
	if before.uptime == nil || after.uptime == nil {
		return 0
	}
	return max(0, *after.uptime-*before.uptime)
}

func movedSteal(before, after Snapshot) *Finding {
	if before.cpu == nil || after.cpu == nil {
		return nil
	}
	d := after.cpu.Sub(*before.cpu)
	if d.Total() == 0 {
		return nil
	}
	share := float64(d.Steal) / float64(d.Total())
	if share < stealShare {
		return nil
	}
	return found(Steal, "run again at another time, or on an instance with dedicated cores",
		"the hypervisor gave %.1f %% of the CPU time to others (steal)", 100*share)
}

// movedOthers compares the CPU time of all processes with that of the
// measurement's. It leaves out interrupts, which belong to no process: those of
// the loopback are the measurement's.
func movedOthers(before, after Snapshot) *Finding {
	passed := elapsed(before, after)
	if before.cpu == nil || after.cpu == nil || before.procs == nil || after.procs == nil || passed == 0 {
		return nil
	}
	d := after.cpu.Sub(*before.cpu)
	own, processes := after.procs.ownSince(before.procs)
	others := d.Busy - d.IRQ - own
	cores := others.Seconds() / passed.Seconds()
	// User and system time of each process are rounded down to whole ticks.
	uncertain := time.Duration(2*processes) * tick
	if cores < otherCores || others < uncertain {
		return nil
	}
	text := fmt.Sprintf("other processes used %.2f cores", cores)
	switch who, used := after.procs.busiest(before.procs); {
	case used >= others/2:
		text += ", most by " + who
	case used >= others/4:
		text += ", the busiest is " + who
	}
	return found(OtherLoad, "stop other programs on this machine, and run again",
		"%s", text)
}

func movedThrottled(before, after Snapshot) *Finding {
	passed := elapsed(before, after)
	if before.throttled == nil || after.throttled == nil || passed == 0 {
		return nil
	}
	d := *after.throttled - *before.throttled
	if d.Seconds() < throttledShare*passed.Seconds() || d <= 0 {
		return nil
	}
	return found(Throttled, "run outside the container or slice, or raise its quota",
		"a control group exhausted its CPU quota and stood still for %s in all", d.Round(time.Millisecond))
}

func movedSwap(before, after Snapshot) *Finding {
	if before.swapped == nil || after.swapped == nil || *after.swapped < *before.swapped+swappedPages {
		return nil
	}
	return found(Swapping, "stop other programs on this machine, or use one with more memory",
		"%d pages of memory were swapped", *after.swapped-*before.swapped)
}

func movedClock(before, after Snapshot) *Finding {
	if before.boot == nil || after.boot == nil {
		return nil
	}
	d := after.boot.Sub(*before.boot)
	if d.Abs() < clockStep {
		return nil
	}
	return found(ClockStep, "run again once the clock is synchronized",
		"the system clock jumped by %s; the machine may have been paused or migrated", d)
}

func movedFrequency(before, after Snapshot) *Finding {
	const hint = "let the machine cool down, check its power limits, and run again"
	if before.mhz != nil && after.mhz != nil && *after.mhz < *before.mhz*(1-slower) {
		return found(FrequencyMoved, "stop other programs or let the machine cool down, and run again: heat, power limits, other processes or the hypervisor can slow the CPU down",
			"measured clock: %.0f MHz before, %.0f MHz after", *before.mhz, *after.mhz)
	}
	for _, was := range before.policy {
		for _, is := range after.policy {
			if was.cpu == is.cpu && was.allowed != 0 && is.allowed != 0 && is.allowed != was.allowed {
				return found(FrequencyMoved, hint,
					"limit of CPU %d: %d MHz before, %d MHz after", is.cpu, was.allowed/1000, is.allowed/1000)
			}
		}
	}
	return nil
}

func movedThermal(before, after Snapshot) *Finding {
	if before.thermal == nil || after.thermal == nil || *after.thermal <= *before.thermal {
		return nil
	}
	return found(ThermalThrottling, "let the machine cool down, and run again",
		"the CPU overheated and slowed down %d times", *after.thermal-*before.thermal)
}
