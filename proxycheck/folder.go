package proxycheck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Folder is a new folder for what a run writes. Its lock tells Sweep whether
// the run is still alive.
type Folder struct {
	dir  string
	lock *os.File
}

const (
	// folderPrefix is what the names of all folders begin with.
	folderPrefix = "armrepro-"
	homePrefix   = folderPrefix + "gateway-"
	lockName     = "lock"
)

// NewFolder makes a folder for purpose, a word, in the first temporary folder
// where that is possible.
func NewFolder(purpose string) (*Folder, error) {
	parents, err := runDirs("")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, parent := range parents {
		f, err := newFolder(parent, folderPrefix+purpose+"-")
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, &HintError{
		Err:  fmt.Errorf("make a folder for throw-away data: %w", errs[0]),
		Hint: "Set TMPDIR to a folder that exists and can be written to.",
	}
}

func newFolder(parent, prefix string) (*Folder, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir}
	if err := f.takeLock(); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// takeLock locks the lock file before that gets its name, so that nobody takes
// the folder for a leftover in between.
func (f *Folder) takeLock() error {
	name := filepath.Join(f.dir, lockName)
	var err error
	if f.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if locked, err := tryLock(f.lock); err != nil || !locked {
		return errors.Join(fmt.Errorf("lock %s.new", name), err)
	}
	return os.Rename(name+".new", name)
}

// Path is the folder's.
func (f *Folder) Path() string { return f.dir }

// Remove removes the folder with all that is in it and gives up the lock, in
// this order: an unlocked folder is taken for a leftover.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.dir)
	if f.lock != nil {
		f.lock.Close()
	}
	return err
}
