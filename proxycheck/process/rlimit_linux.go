package process

import (
	"fmt"
	"syscall"
)

const (
	// wantNoFile is what the hard limit on open files is raised to where
	// the process may: enough for any number of connections that are opened
	// here, below the kernel's default fs.nr_open.
	wantNoFile = 1 << 19
	// maxNoFile bounds the soft limit. Some container engines set a hard
	// limit of a thousand million, and programs that close every possible
	// descriptor when they start take minutes then.
	maxNoFile = 1 << 20
)

// RaiseNoFile raises the limit on open files of this process and of those it
// starts: the soft limit to the hard one, and the hard one too where root
// allows it. It returns the soft limit that holds afterwards.
func RaiseNoFile() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit on open files: %w", err)
	}
	if limit.Max < wantNoFile {
		higher := syscall.Rlimit{Cur: wantNoFile, Max: wantNoFile}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher); err == nil {
			return higher.Cur, nil
		}
		// Not root, or fs.nr_open is lower: the hard limit stays.
	}
	// Set it even if it seems to be set: Go raises the soft limit by itself
	// when a program starts, but gives children the old one unless the
	// program asked for it in this way (https://go.dev/issue/46279).
	limit.Cur = min(limit.Max, maxNoFile)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit on open files to %d: %w", limit.Cur, err)
	}
	return limit.Cur, nil
}
