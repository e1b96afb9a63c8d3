package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SetAffinity lets the process pid run on the given CPUs only, with all its
// threads and those that they start later.
func SetAffinity(pid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
		if !set.IsSet(cpu) {
			return fmt.Errorf("pin process %d: CPU %d is beyond what can be pinned to", pid, cpu)
		}
	}
	if len(cpus) == 0 {
		return fmt.Errorf("pin process %d: no CPU is given", pid)
	}
	// A thread that is started meanwhile by one that is not yet pinned shows
	// up in the next pass.
	done := map[int]bool{}
	for {
		threads, err := numbered(os.DirFS("/"), procPath(pid, "task"))
		if err != nil {
			return fmt.Errorf("pin process %d: %w", pid, err)
		}
		pinned := 0
		for _, tid := range threads {
			if done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("pin process %d to CPUs %s: %w", pid, FormatCPUList(cpus), err)
			}
			done[tid] = true
			pinned++
		}
		if pinned == 0 {
			return nil
		}
	}
}
