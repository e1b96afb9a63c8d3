package fitness

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
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
func readCPUTimes(root fs.FS, names ...string) (sum CPUTimes, err error) {
	b, err := process.ReadFile(root, "proc/stat")
	if err != nil {
		return CPUTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	for _, name := range names {
		if err := sum.add(b, name); err != nil {
			return CPUTimes{}, fmt.Errorf("parse /proc/stat: %w", err)
		}
	}
	return sum, nil
}

// add adds the times in one line of /proc/stat.
func (t *CPUTimes) add(stat []byte, name string) error {
	// Guest time, behind these, is already part of user.
	const idle, iowait, irq, softirq, steal, columns = 3, 4, 5, 6, 7, 8
	line, ok := process.Field(stat, name)
	fields := strings.Fields(line)
	if !ok {
		return fmt.Errorf("no line for %s", name)
	}
	if len(fields) < columns {
		return errors.New("too few times")
	}
	for i, f := range fields[:columns] {
		n, err := strconv.ParseUint(f, 10, 63)
		if err != nil || n > uint64(1<<59/process.Tick) {
			return fmt.Errorf("bad time %q", f)
		}
		d := time.Duration(n) * process.Tick
		switch i {
		case idle, iowait:
			t.Idle += d
			continue
		case steal:
			t.Steal += d
			continue
		case irq, softirq:
			t.IRQ += d
		}
		t.Busy += d
	}
	return nil
}
