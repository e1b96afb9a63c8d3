package proxycheck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// A route of ours in a gateway that outlives this run needs a mark on this
// machine: a killed run leaves its route behind, and the next one has to tell
// it from the route of a run that is measuring right now. The mark is a locked
// file named after the route; the kernel gives up the lock with the process.

const claimSuffix = ".route"

// routeIDPattern is what newRouteID makes.
var routeIDPattern = regexp.MustCompile(`^armrepro-[0-9a-f]{8}$`)

// claim makes and locks the mark of a route.
func claim(runDir, routeID string) (*os.File, error) {
	dirs, err := runDirs(runDir)
	if err != nil {
		return nil, err
	}
	var f *os.File
	for _, dir := range dirs {
		if f, err = os.OpenFile(filepath.Join(dir, routeID+claimSuffix), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mark the route %s as ours: %w", routeID, err)
	}
	if locked, err := tryLock(f); err != nil || !locked {
		return nil, errors.Join(fmt.Errorf("mark the route %s as ours: lock %s", routeID, f.Name()), err, f.Close())
	}
	return f, nil
}

// unclaim removes the mark, if there is one.
func unclaim(f *os.File) error {
	if f == nil {
		return nil
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// takeOver locks the mark that a run which is no longer alive has left for the
// route. It returns nil if the route is not such a leftover of this machine.
func takeOver(runDir, routeID string) (*os.File, error) {
	if !routeIDPattern.MatchString(routeID) {
		return nil, nil
	}
	dirs, err := runDirs(runDir)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		f, err := os.OpenFile(filepath.Join(dir, routeID+claimSuffix), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look whose the route %s is: %w", routeID, err)
		}
		locked, err := tryLock(f)
		if err == nil && locked {
			return f, nil
		}
		return nil, errors.Join(err, f.Close())
	}
	return nil, nil
}

// runDirs lists the folders where runs leave things, without links and each
// once, the preferred one first.
func runDirs(runDir string) ([]string, error) {
	names := []string{runDir}
	if runDir == "" {
		names = []string{os.TempDir(), "/tmp", "/var/tmp"}
	}
	var dirs []string
	var errs []error
	seen := map[string]bool{}
	for _, name := range names {
		dir, err := filepath.EvalSymlinks(name)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, &HintError{
			Err:  fmt.Errorf("find a folder for temporary files: %w", errors.Join(errs...)),
			Hint: "set TMPDIR to a folder that exists",
		}
	}
	return dirs, nil
}
