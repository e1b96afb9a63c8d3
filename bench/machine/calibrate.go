package machine

import (
	"runtime"
	"time"
)

// The loop runs at most 8 times, and no more once 40 ms have passed: 750,000
// links, in each of which 8 operations wait for each other, take 5 ms at
// 1.2 GHz.
const (
	calibrationRuns  = 8
	calibrationTime  = 40 * time.Millisecond
	calibrationLinks = 750_000
	linkCycles       = 8
)

// MeasureMHz measures the frequency of the core it runs on: it times a chain
// of additions and exclusive ors, each of which needs the one before and takes
// one cycle on every core of the tables. Interruptions can only make a run
// longer, so the shortest of several counts. It takes under 50 ms on a machine
// that is not overloaded.
func MeasureMHz() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(1<<63 - 1)
	begin := time.Now()
	for range calibrationRuns {
		start := time.Now()
		chain(calibrationLinks, 1, 0x9e3779b97f4a7c15)
		best = min(best, time.Since(start))
		if time.Since(begin) > calibrationTime {
			break
		}
	}
	return calibrationLinks * linkCycles / best.Seconds() / 1e6
}

// chain does links times linkCycles operations in a row. An addition and an
// exclusive or cannot be merged, so the compiler leaves the row as it is; and it
// leaves no call out that it cannot see into.
//
//go:noinline
func chain(links int, a, b uint64) uint64 {
	for range links {
		a += b
		a ^= b
		a += b
		a ^= b
		a += b
		a ^= b
		a += b
		a ^= b
	}
	return a
}
