package fitness

import (
	"fmt"
	"time"
)

// From what on a change is worth a finding.
const (
	// stealShare is of the time of all CPUs.
	stealShare = 0.01
	// otherCores is CPU time of others, in cores.
	otherCores = 0.1
	// throttledShare is of the time that passed.
	throttledShare = 0.001
	// swappedPages is 1 MiB of pages of 4 KiB.
	swappedPages = 256
	// clockStep is beyond what the adjustment of a clock does.
	clockStep = 2 * time.Second
	// slower is how much the measured frequency may fall; several
	// measurements of an idle machine stay within 2%.
	slower = 0.05
)

// Moved looks for what changed on the machine between two snapshots of it that
// bears on figures measured meanwhile.
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

// movedOthers compares what processes used altogether with what the
// measurement's own did. Interrupts belong to nobody: those of the loopback
// are the measurement's.
func movedOthers(before, after Snapshot) *Finding {
	passed := elapsed(before, after)
	if before.cpu == nil || after.cpu == nil || before.procs == nil || after.procs == nil || passed == 0 {
		return nil
	}
	d := after.cpu.Sub(*before.cpu)
	own, processes := after.procs.ownSince(before.procs)
	others := d.Busy - d.IRQ - own
	cores := others.Seconds() / passed.Seconds()
	// User and system time of each process are cut off to whole ticks.
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
	return found(OtherLoad, "stop what else runs on this machine, and run again",
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
	return found(Throttled, "run outside of the container or slice, or raise its quota",
		"a control group used up its CPU quota: its CPUs stood still for %s in all", d.Round(time.Millisecond))
}

func movedSwap(before, after Snapshot) *Finding {
	if before.swapped == nil || after.swapped == nil || *after.swapped < *before.swapped+swappedPages {
		return nil
	}
	return found(Swapping, "stop what else runs on this machine, or use one with more memory",
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
		"the system clock was set by %s; the machine may have been paused or moved", d)
}

func movedFrequency(before, after Snapshot) *Finding {
	const hint = "let the machine cool down, check its power limits, and run again"
	if before.mhz != nil && after.mhz != nil && *after.mhz < *before.mhz*(1-slower) {
		return found(FrequencyMoved, "the CPU slowed down (heat, power limits), or other processes or the hypervisor took its time: stop them or let it cool down, and run again",
			"measured clock: %.0f MHz before, %.0f MHz after", *before.mhz, *after.mhz)
	}
	for _, was := range before.policy {
		for _, is := range after.policy {
			if was.cpu == is.cpu && was.allowed != 0 && is.allowed != 0 && is.allowed != was.allowed {
				return found(FrequencyMoved, hint,
					"CPU %d was allowed %d MHz before and %d MHz after", is.cpu, was.allowed/1000, is.allowed/1000)
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
		"the CPU got too hot and slowed down %d times", *after.thermal-*before.thermal)
}
