package bench

import (
	"io/fs"
	"time"

	"armrepro/bench/fitness"
	"armrepro/proxycheck/process"
)

// processes are those of a run, apart from the load generator, which accounts for
// itself. self hosts etcd.
type processes struct {
	workers, upstream []int
	self              int
	// cpus are those that they may run on.
	cpus []int
}

// usage is what had been used at one moment. Nil is unknown.
type usage struct {
	at                            time.Time
	gateway, wait, upstream, self *time.Duration
	// workers are the parts of gateway; nil where one is unknown.
	workers []time.Duration
	// busy is the time that cpus spent on any process, steal included.
	busy, steal *time.Duration
}

// usage reads the clocks of the processes.
func (p processes) usage(root fs.FS) usage {
	u := usage{
		at:       time.Now(),
		upstream: sum(process.CPUTime, p.upstream...),
		self:     sum(process.CPUTime, p.self),
		wait: sum(func(pid int) (time.Duration, error) {
			return process.RunDelay(root, pid)
		}, p.workers...),
	}
	u.gateway, u.workers = workersTime(p.workers)
	if t, err := fitness.ReadCPUTimes(root); err == nil {
		u.steal = &t.Steal
	}
	if t, err := fitness.ReadCPUTimesOf(root, p.cpus); err == nil {
		// The interrupts of the loopback are the run's own.
		u.busy = new(t.Busy - t.IRQ + t.Steal)
	}
	return u
}

// workersTime is the CPU time of all workers and of each; nil if there is none, or
// if one of them cannot be read.
func workersTime(pids []int) (*time.Duration, []time.Duration) {
	var each []time.Duration
	total := sum(func(pid int) (time.Duration, error) {
		t, err := process.CPUTime(pid)
		each = append(each, t)
		return t, err
	}, pids...)
	return total, each
}

// sum adds up read over pids. It is nil if there is none, or if one of them
// cannot be read.
func sum[T ~int64 | ~uint64](read func(pid int) (T, error), pids ...int) *T {
	var total T
	for _, pid := range pids {
		v, err := read(pid)
		if err != nil {
			return nil
		}
		total += v
	}
	if len(pids) == 0 {
		return nil
	}
	return &total
}

// difference is to - from, or nil if one of them is unknown.
func difference[T ~int64 | ~uint64](from, to *T) *T {
	if from == nil || to == nil || *to < *from {
		return nil
	}
	return new(*to - *from)
}

// since fills in run's CPU with what was used between before and u.
func (u usage) since(before usage, workers []int, run *Run) {
	elapsed := u.at.Sub(before.at).Seconds()
	cores := func(from, to *time.Duration) *float64 {
		d := difference(from, to)
		if d == nil || elapsed <= 0 {
			return nil
		}
		return new(d.Seconds() / elapsed)
	}
	cpu := &run.CPU
	cpu.Gateway = cores(before.gateway, u.gateway)
	if cpu.Gateway != nil {
		for i := range u.workers {
			cpu.Workers = append(cpu.Workers, known(cores(&before.workers[i], &u.workers[i])))
		}
	}
	cpu.GatewayWait = cores(before.wait, u.wait)
	if wait := cpu.GatewayWait; wait != nil && cpu.Gateway != nil {
		// Threads of one worker can wait at the same time.
		*wait = min(*wait, max(0, float64(len(workers))-*cpu.Gateway))
	}
	cpu.Upstream = cores(before.upstream, u.upstream)
	cpu.Etcd = cores(before.self, u.self)
	cpu.Steal = cores(before.steal, u.steal)
	own := []*float64{cpu.Upstream, cpu.Load, cpu.Etcd}
	if workers == nil || len(workers) > 0 {
		own = append(own, cpu.Gateway)
	}
	cpu.Others = rest(cores(before.busy, u.busy), own)
}

// rest is what is left of busy without the run's own processes, or nil if one of
// those is unknown. The kernel counts busy in steps of 10 ms, which can make it
// the smaller one.
func rest(busy *float64, own []*float64) *float64 {
	if busy == nil {
		return nil
	}
	left := *busy
	for _, used := range own {
		if used == nil {
			return nil
		}
		left -= *used
	}
	return new(max(0, left))
}

// peakRSS fills in run's memory.
func (p processes) peakRSS(root fs.FS, run *Run) {
	read := func(pid int) (uint64, error) { return process.PeakRSS(root, pid) }
	run.RSS.Gateway = sum(read, p.workers...)
	run.RSS.Upstream = sum(read, p.upstream...)
	run.RSS.Etcd = sum(read, p.self)
}

// WorkersMemory is the resident memory of the workers now, in bytes; nil if one of
// them cannot be seen.
func WorkersMemory(root fs.FS, workers []int) *uint64 {
	return sum(func(pid int) (uint64, error) { return process.RSS(root, pid) }, workers...)
}
