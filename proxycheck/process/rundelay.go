package process

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RunDelay is how long the threads of the process pid have waited for a core
// although they had something to do, since they began: the second field of
// /proc/PID/task/TID/schedstat. Threads that have ended are not in it. A kernel
// that keeps no such account is an error.
func RunDelay(root fs.FS, pid int) (time.Duration, error) {
	dir := fmt.Sprintf("proc/%d/task", pid)
	tasks, err := fs.ReadDir(root, dir)
	if err != nil {
		return 0, fmt.Errorf("read run delay: %w", err)
	}
	var sum time.Duration
	kept := false
	for _, t := range tasks {
		text, err := fs.ReadFile(root, dir+"/"+t.Name()+"/schedstat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return 0, fmt.Errorf("read run delay: %w", err)
		}
		ran, delay, err := parseRunDelay(string(text))
		if err != nil {
			return 0, fmt.Errorf("read run delay of process %d: %w", pid, err)
		}
		sum += delay
		kept = kept || ran
	}
	if !kept {
		return 0, fmt.Errorf("read run delay of process %d: the kernel does not account for it", pid)
	}
	return sum, nil
}

// parseRunDelay reads "CPU-TIME RUN-DELAY TIMESLICES", in nanoseconds. Without an
// account all three are 0 (proc_pid_schedstat in fs/proc/base.c), as they are of a
// thread that never ran.
func parseRunDelay(text string) (ran bool, delay time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return false, 0, fmt.Errorf("schedstat has %d fields, not 3", len(fields))
	}
	ns, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || ns < 0 {
		return false, 0, fmt.Errorf("schedstat: %q is no time", fields[1])
	}
	return fields[2] != "0", time.Duration(ns), nil
}
