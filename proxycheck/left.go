package proxycheck

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// LeftBehind is the error of having been unable to take something away again.
type LeftBehind = process.LeftBehind

// Left is something that is left behind, and how to remove it.
type Left = process.Left

// The kinds of folders that runs leave when they are killed.
const (
	// homeKind is a native gateway's home.
	homeKind = "gateway"
	// routeKind marks a route in a gateway that outlives its run: the next
	// run has to tell it from the route of one that is measuring.
	routeKind = "route"
)

// Sweep removes what killed runs have left in runDir: it waits for their
// gateways to end, ends those that don't, and removes their homes and data.
// What belongs to runs that are alive is left alone. An empty runDir means the
// temporary folders. It belongs before CheckPorts, or a gateway that is still
// ending would be taken for one that holds its ports.
func Sweep(ctx context.Context, runDir string) error {
	dirs, err := tempDirs(runDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range []string{homeKind, process.EtcdData} {
		folders, err := process.TakeOver(kind, dirs...)
		errs = append(errs, err)
		for _, f := range folders {
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
	return errors.Join(removeLeftKeys(filepath.Join(f.Path(), "conf/config.yaml")), f.Remove())
}

// ownPrefix is the etcd prefix of a run that was given none.
var ownPrefix = regexp.MustCompile(`^` + ownEtcdPrefix + `[0-9a-f]{8}$`)

// removeLeftKeys removes what a killed run has left in an etcd that is still
// there. An etcd that has died with its run has nothing to be removed from.
func removeLeftKeys(configFile string) error {
	file, err := os.ReadFile(configFile)
	if err != nil {
		return nil // it was killed before it had one
	}
	etcd, prefix := parseEtcd(file)
	if !ownPrefix.MatchString(prefix) {
		return nil
	}
	if err := removeKeys(etcd, prefix); !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}

// tempDirs is process.TempDirs with advice.
func tempDirs(runDir string) ([]string, error) {
	dirs, err := process.TempDirs(runDir)
	if err != nil {
		return nil, &HintError{Err: err, Advice: "set TMPDIR to a folder that exists"}
	}
	return dirs, nil
}

// markDirs lists where marks of routes are. They have to be found again
// whatever TMPDIR is, and after a restart of the machine as the route is.
func markDirs(runDir string) ([]string, error) {
	dirs, err := tempDirs(runDir)
	if runDir == "" {
		dirs = append([]string{"/var/tmp", "/tmp"}, dirs...)
	}
	return dirs, err
}

// markRoute marks the route that is to be put at url.
func markRoute(runDir, url string) (*process.Folder, error) {
	dirs, err := markDirs(runDir)
	if err != nil {
		return nil, err
	}
	return process.NewFolder(routeKind, url, dirs...)
}

// takeOverMarks takes over the marks of runs that are no longer alive.
func takeOverMarks(runDir string) ([]*process.Folder, error) {
	dirs, err := tempDirs(runDir)
	if err != nil {
		return nil, err
	}
	return process.TakeOver(routeKind, dirs...)
}
