package process

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// FreeDisk is the space in bytes that this user can still write to the file
// system that dir is on.
func FreeDisk(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "read the free space of", Path: dir, Err: err}
	}
	return s.Bavail * uint64(s.Bsize), nil
}
