package bench

import (
	"io/fs"
	"time"

	"armrepro/bench/machine"
	"armrepro/proxycheck/process"
)

// processes are those whose use of the machine is watched during a run. A zero
// pid cannot be watched.
type processes struct {
	workers  []int
	upstream int
	etcd     int
}

// usage is what the processes had used at one moment. Nil is unknown.
type usage struct {
	at       time.Time
	gateway  *time.Duration
	wait     *time.Duration
	upstream *time.Duration
	etcd     *time.Duration
	steal    *time.Duration
}

// usage reads the clocks of the processes.
func (p processes) usage(root fs.FS) usage {
	u := usage{
		at:       time.Now(),
		gateway:  sum(process.CPUTime, p.workers...),
		upstream: sum(process.CPUTime, p.upstream),
		etcd:     sum(process.CPUTime, p.etcd),
		wait: sum(func(pid int) (time.Duration, error) {
			return process.RunDelay(root, pid)
		}, p.workers...),
	}
	if t, err := machine.ReadCPUTimes(root); err == nil {
		u.steal = &t.Steal
	}
	return u
}

// sum adds up read over pids. It is nil if there is none, or if one of them
// cannot be read.
func sum[T ~int64 | ~uint64](read func(pid int) (T, error), pids ...int) *T {
	var total T
	for _, pid := range pids {
		v, err := read(pid)
		if pid == 0 || err != nil {
			return nil
		}
		total += v
	}
	if len(pids) == 0 {
		return nil
	}
	return &total
}

// since fills in run's CPU with what was used between before and u.
func (u usage) since(before usage, workers int, run *Run) {
	elapsed := u.at.Sub(before.at)
	cores := func(from, to *time.Duration) *float64 {
		if from == nil || to == nil || elapsed <= 0 {
			return nil
		}
		c := (*to - *from).Seconds() / elapsed.Seconds()
		return &c
	}
	run.CPU.Gateway = cores(before.gateway, u.gateway)
	run.CPU.GatewayWait = cores(before.wait, u.wait)
	if wait := run.CPU.GatewayWait; wait != nil && run.CPU.Gateway != nil {
		// Threads of one worker can wait at the same time.
		*wait = min(*wait, max(0, float64(workers)-*run.CPU.Gateway))
	}
	run.CPU.Upstream = cores(before.upstream, u.upstream)
	run.CPU.Etcd = cores(before.etcd, u.etcd)
	run.CPU.Steal = cores(before.steal, u.steal)
}

// peakRSS fills in run's memory.
func (p processes) peakRSS(root fs.FS, run *Run) {
	read := func(pid int) (uint64, error) { return process.PeakRSS(root, pid) }
	run.RSS.Gateway = sum(read, p.workers...)
	run.RSS.Upstream = sum(read, p.upstream)
	run.RSS.Etcd = sum(read, p.etcd)
}
