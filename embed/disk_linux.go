package embed

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes is the disk space in bytes that this user can still fill in dir.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}
