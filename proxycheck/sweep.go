package proxycheck

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"armrepro/proxycheck/process"
)

// The kinds of folders that runs leave when they are killed.
const (
	// homeKind is a native gateway's home.
	homeKind = "gateway"
	// routeKind marks a route in a gateway that outlives its run: the next
	// run has to tell it from the route of one that is measuring.
	routeKind = "route"
	// keysKind marks the keys of a run in an etcd that outlives it.
	keysKind = "keys"
)

// Sweep removes what killed runs have left in runDir: it waits for their
// gateways to end, ends those that don't, and removes their homes and data.
// What belongs to runs that are alive is left alone. An empty runDir means the
// temporary folders. It belongs before CheckPorts, or a gateway that is still
// ending would be taken for one that holds its ports.
func Sweep(ctx context.Context, runDir string) error {
	dirs, err := process.TempDirs(runDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range []string{homeKind, process.UpstreamHome, process.EtcdData} {
		for _, f := range process.TakeOver(kind, dirs...) {
			errs = append(errs, sweepFolder(ctx, f))
		}
	}
	return errors.Join(errs...)
}

// endPatience is how long the gateway of a killed run may take to end before it
// is killed. Its parent's death told it to, and nginx takes up to 2 s.
const endPatience = 2500 * time.Millisecond

func sweepFolder(ctx context.Context, f *process.Folder) error {
	if err := f.End(ctx, endPatience); err != nil {
		return errors.Join(err, f.Leave())
	}
	return f.Remove()
}

// markDirs lists where marks of routes are. They have to be found again
// whatever TMPDIR is, and after a restart of the machine as the route is.
func markDirs(runDir string) ([]string, error) {
	dirs, err := process.TempDirs(runDir)
	if runDir == "" {
		dirs = append([]string{"/var/tmp", "/tmp"}, dirs...)
	}
	return dirs, err
}

// newMark marks something that this run puts elsewhere, and that left names. note
// is for the run that takes the mark over.
func newMark(runDir, kind, note string, left process.Left) (*process.Folder, error) {
	dirs, err := markDirs(runDir)
	if err != nil {
		return nil, err
	}
	mark, err := process.NewFolder(kind, note, dirs...)
	if err == nil {
		mark.StandsFor(left)
	}
	return mark, err
}

// takeOverMarks takes over the marks of runs that are no longer alive.
func takeOverMarks(runDir, kind string) ([]*process.Folder, error) {
	dirs, err := markDirs(runDir)
	if err != nil {
		return nil, err
	}
	return process.TakeOver(kind, dirs...), nil
}

// SweepKeys removes the keys that killed runs have left in an etcd that outlived
// them. The error lists those that are still there, or may be.
func SweepKeys(runDir string) error {
	marks, err := takeOverMarks(runDir, keysKind)
	errs := []error{err}
	for _, mark := range marks {
		k := &ownKeys{mark: mark}
		if json.Unmarshal([]byte(mark.Note), k) != nil || !ownPrefix.MatchString(k.Prefix) {
			errs = append(errs, mark.Remove())
			continue
		}
		errs = append(errs, k.remove())
	}
	return errors.Join(errs...)
}

// ownPrefix is the etcd prefix of a run that was given none.
var ownPrefix = regexp.MustCompile(`^` + ownEtcdPrefix + `[0-9a-f]{8}$`)
