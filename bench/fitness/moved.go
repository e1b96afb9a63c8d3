package fitness

import (
	"time"

	"armrepro/proxycheck/process"
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
	var spent CPUTimes
	if before.cpu != nil && after.cpu != nil {
		spent = after.cpu.Sub(*before.cpu)
	}
	steal := spent.Steal.Seconds() / spent.Total().Seconds() // NaN is not above anything
	throttled := grown(before.throttled, after.throttled)
	swapped := grown(before.swapped, after.swapped)
	thermal := grown(before.thermal, after.thermal)
	passed := grown(before.uptime, after.uptime)
	var jumped time.Duration
	if before.boot != nil && after.boot != nil {
		jumped = after.boot.Sub(*before.boot)
	}
	return made(
		when(steal >= stealShare, Steal, "run again at another time, or on an instance with dedicated cores",
			"the hypervisor gave %.1f %% of the CPU time to others (steal)", 100*steal),
		movedOthers(before, after, spent, passed),
		when(throttled > 0 && passed > 0 && throttled.Seconds() >= throttledShare*passed.Seconds(), Throttled,
			"run outside the container or slice, or raise its quota",
			"a control group exhausted its CPU quota and stood still for %s in all", throttled.Round(time.Millisecond)),
		when(swapped >= swappedPages, Swapping, "stop other programs on this machine, or use one with more memory",
			"%d pages of memory were swapped", swapped),
		when(jumped.Abs() >= clockStep, ClockStep, "run again once the clock is synchronized",
			"the system clock jumped by %s; the machine may have been paused or migrated", jumped),
		movedFrequency(before, after),
		when(thermal > 0, ThermalThrottling, "let the machine cool down, and run again",
			"the CPU overheated and slowed down %d times", thermal),
	)
}

// grown is how much a count has grown; 0 if that is unknown.
func grown[T uint64 | time.Duration](before, after *T) T {
	if before == nil || after == nil || *after < *before {
		return 0
	}
	return *after - *before
}

// movedOthers compares the CPU time of all processes with that of the
// measurement's. It leaves out interrupts, which belong to no process: those of
// the loopback are the measurement's.
func movedOthers(before, after Snapshot, spent CPUTimes, passed time.Duration) *Finding {
	if before.procs == nil || after.procs == nil || passed == 0 {
		return nil
	}
	own, processes, shares := after.procs.since(before.procs)
	others := spent.Busy - spent.IRQ - own
	cores := others.Seconds() / passed.Seconds()
	most := ""
	switch who, used := busiest(shares); {
	case used >= others/2:
		most = ", most by " + who
	case used >= others/4:
		most = ", the busiest is " + who
	}
	// User and system time of each process are rounded down to whole ticks.
	uncertain := time.Duration(2*processes) * process.Tick
	return when(cores >= otherCores && others >= uncertain, OtherLoad, "stop other programs on this machine, and run again",
		"other processes used %.2f cores%s", cores, most)
}

func movedFrequency(before, after Snapshot) *Finding {
	if before.mhz != nil && after.mhz != nil && *after.mhz < *before.mhz*(1-slower) {
		return when(true, FrequencyMoved, "stop other programs or let the machine cool down, and run again: heat, power limits, other processes or the hypervisor can slow the CPU down",
			"measured clock: %.0f MHz before, %.0f MHz after", *before.mhz, *after.mhz)
	}
	for _, was := range before.policy {
		for _, is := range after.policy {
			if was.cpu == is.cpu && was.allowed != 0 && is.allowed != 0 && is.allowed != was.allowed {
				return when(true, FrequencyMoved, "let the machine cool down, check its power limits, and run again",
					"limit of CPU %d: %d MHz before, %d MHz after", is.cpu, was.allowed/1000, is.allowed/1000)
			}
		}
	}
	return nil
}
