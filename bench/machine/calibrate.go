package machine

import (
	"runtime"
	"time"
)

// calibration is how often and how long the loop runs: 8 times 750,000 links,
// in each of which 8 operations wait for each other, is under 40 ms from
// 1.2 GHz up.
const (
	calibrationRuns  = 8
	calibrationLinks = 750_000
	linkCycles       = 8
)

// MeasureMHz measures the frequency of the core it runs on: it times a chain
// of additions and exclusive ors, each of which needs the one before and takes
// one cycle on every core of the tables. Interruptions can only make a run
// longer, so the shortest of several counts. It takes under 50 ms.
func MeasureMHz() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(1<<63 - 1)
	for range calibrationRuns {
		start := time.Now()
		chainSink = chain(calibrationLinks, chainSink|1, 0x9e3779b97f4a7c15)
		best = min(best, time.Since(start))
	}
	return calibrationLinks * linkCycles / best.Seconds() / 1e6
}

// chainSink keeps the compiler from leaving the chain out.
var chainSink uint64

// chain does links times linkCycles operations in a row. An addition and an
// exclusive or cannot be merged, so the compiler leaves the row as it is.
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
