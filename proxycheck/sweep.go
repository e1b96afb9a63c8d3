package proxycheck

import (
	"bytes"
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

	"armrepro/proxycheck/process"
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
		locks, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*", lockName))
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

// endProcessesIn waits until the processes that have dir as their working
// folder have ended: that is how a gateway's are known even after their parent
// died and they changed their titles. It kills those that outlast half of
// sweepTimeout.
func endProcessesIn(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	patience := time.Now().Add(sweepTimeout / 2)
	seen := map[int]bool{}
	return process.Poll(ctx, pollEvery, func() error {
		for _, pid := range processesIn(dir) {
			seen[pid] = true
			if time.Now().After(patience) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		// An ending process loses its folder before its sockets.
		for pid := range seen {
			if running(pid) {
				return fmt.Errorf("process %d still runs in it", pid)
			}
			delete(seen, pid)
		}
		return nil
	})
}

// running says whether the process exists and isn't just waiting to be reaped.
// The first thread of a process can be a zombie while others still end.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name stands in parentheses and may hold some itself (proc(5)).
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	if !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X")) {
		return true
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(threads) > 1
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
	if etcd, prefix := parseEtcd(file); ownPrefix.MatchString(prefix) {
		_ = removeKeys(etcd, prefix)
	}
}
