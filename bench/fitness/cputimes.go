package fitness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"armrepro/proxycheck/process"
)

// CPUTimes is the time that several CPUs together have spent since boot, from
// /proc/stat. The kernel counts it in steps of 10 ms.
type CPUTimes struct {
	// Busy is everything except Idle and Steal: user, nice, system, irq,
	// softirq. Guest time is already part of user.
	Busy time.Duration
	// IRQ is the part of Busy spent on interrupts, irq and softirq: mostly for
	// the network, and for no particular process.
	IRQ time.Duration
	// Idle includes the wait for disks.
	Idle time.Duration
	// Steal is what the hypervisor gave to other machines while this one
	// wanted to run.
	Steal time.Duration
}

// Total is the sum over all states.
func (t CPUTimes) Total() time.Duration { return t.Busy + t.Idle + t.Steal }

// Sub is the time spent since earlier. The kernel's idle counters can go back a
// little, which counts as 0.
func (t CPUTimes) Sub(earlier CPUTimes) CPUTimes {
	return CPUTimes{
		Busy:  max(0, t.Busy-earlier.Busy),
		IRQ:   max(0, t.IRQ-earlier.IRQ),
		Idle:  max(0, t.Idle-earlier.Idle),
		Steal: max(0, t.Steal-earlier.Steal),
	}
}

// ReadCPUTimes reads the machine's CPU times.
func ReadCPUTimes(root fs.FS) (CPUTimes, error) { return readCPUTimes(root, "cpu") }

// ReadCPUTimesOf reads the CPU times of some CPUs together. One that is offline is
// an error.
func ReadCPUTimesOf(root fs.FS, cpus []int) (CPUTimes, error) {
	if len(cpus) == 0 {
		return CPUTimes{}, errors.New("read CPU times: no CPU given")
	}
	var names []string
	for _, cpu := range cpus {
		names = append(names, fmt.Sprintf("cpu%d", cpu))
	}
	return readCPUTimes(root, names...)
}

// readCPUTimes adds up lines of /proc/stat.
func readCPUTimes(root fs.FS, names ...string) (CPUTimes, error) {
	b, err := process.ReadFile(root, "proc/stat")
	if err != nil {
		return CPUTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	var sum CPUTimes
	for _, name := range names {
		t, err := parseCPUTimes(b, name)
		if err != nil {
			return CPUTimes{}, err
		}
		sum = CPUTimes{Busy: sum.Busy + t.Busy, IRQ: sum.IRQ + t.IRQ, Idle: sum.Idle + t.Idle, Steal: sum.Steal + t.Steal}
	}
	return sum, nil
}

// tick is the unit of times in /proc: USER_HZ, 100 on every architecture that
// matters here.
const tick = 10 * time.Millisecond

func parseCPUTimes(b []byte, name string) (CPUTimes, error) {
	const idle, iowait, irq, softirq, steal, guest = 3, 4, 5, 6, 7, 8
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != name {
			continue
		}
		var t CPUTimes
		for i, f := range fields[1:min(len(fields), guest+1)] {
			n, err := strconv.ParseUint(string(f), 10, 63)
			if err != nil || n > uint64(1<<59/tick) {
				return CPUTimes{}, fmt.Errorf("parse /proc/stat: bad time %q", f)
			}
			d := time.Duration(n) * tick
			switch i {
			case idle, iowait:
				t.Idle += d
			case steal:
				t.Steal = d
			case irq, softirq:
				t.IRQ += d
				t.Busy += d
			default:
				t.Busy += d
			}
		}
		if len(fields) <= steal+1 {
			return CPUTimes{}, errors.New("parse /proc/stat: too few times")
		}
		return t, nil
	}
	return CPUTimes{}, fmt.Errorf("parse /proc/stat: no line for %s", name)
}
