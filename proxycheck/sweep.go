package proxycheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweepTimeout is how long the gateway of a killed run may take to end. It was
// told to by its parent's death, and nginx takes up to 2 s.
const sweepTimeout = 5 * time.Second

// Sweep removes what killed runs have left in runDir: it waits for their
// gateways to end, ends those that don't, and removes their homes. Homes of
// runs that are alive are left alone. An empty runDir means the temporary
// folders. It belongs before CheckPorts, or a gateway that is still ending
// would be taken for one that holds its ports.
func Sweep(ctx context.Context, runDir string) error {
	dirs, err := runDirs(runDir)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		locks, err := filepath.Glob(filepath.Join(dir, homePrefix+"*", lockName))
		if err != nil {
			return fmt.Errorf("look for leftovers in %s: %w", dir, err)
		}
		for _, lock := range locks {
			if err := sweepHome(ctx, filepath.Dir(lock)); err != nil {
				errs = append(errs, fmt.Errorf("remove leftover %s: %w", filepath.Dir(lock), err))
			}
		}
	}
	return errors.Join(errs...)
}

func sweepHome(ctx context.Context, dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another run was faster
	}
	if err != nil || !info.IsDir() || !ownedByUs(info) {
		return err // another user's is for him to remove
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if locked, err := tryLock(lock); err != nil || !locked {
		return err
	}
	if err := endProcessesIn(ctx, dir); err != nil {
		return err
	}
	removeLeftKeys(filepath.Join(dir, "conf/config.yaml"))
	return os.RemoveAll(dir)
}

// endProcessesIn waits until no process has dir as its working folder, which is
// how a gateway's processes are known even after their parent died and they
// changed their titles. It kills those that outlast sweepTimeout.
func endProcessesIn(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return poll(ctx, func() error {
		pids := processesIn(dir)
		if len(pids) == 0 {
			return nil
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < sweepTimeout/2 {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return fmt.Errorf("processes %v still run in it", pids)
	})
}

// processesIn lists the processes whose working folder is dir.
func processesIn(dir string) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || (cwd != dir && !strings.HasPrefix(cwd, dir+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ownPrefix is the etcd prefix of a run that was given none.
var ownPrefix = regexp.MustCompile(`^/armrepro-[0-9a-f]{8}$`)

// removeLeftKeys removes what a killed run has left in an etcd that is still
// there. An etcd that has died with its run has nothing to be removed from.
func removeLeftKeys(configFile string) {
	file, err := os.ReadFile(configFile)
	if err != nil {
		return
	}
	if etcd := parseEtcdSection(file); ownPrefix.MatchString(etcd.Prefix) {
		_ = removeKeys(etcd.Host, etcd.Prefix)
	}
}
