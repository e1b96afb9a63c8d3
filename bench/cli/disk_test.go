package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountsEnv says what the program mounts before anything else, in a namespace of its
// own: options and folders, such as "size=40m:/tmp/x".
const mountsEnv = "ARMREPRO_TEST_MOUNTS"

// mountAll mounts what the variable says. It ends the program where that fails.
func mountAll() {
	mounts := os.Getenv(mountsEnv)
	if mounts == "" {
		return
	}
	err := os.Unsetenv(mountsEnv) // its children are there already
	err = errors.Join(err, unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for mount := range strings.SplitSeq(mounts, ",") {
		options, dir, _ := strings.Cut(mount, ":")
		flags := uintptr(0)
		if options == "ro" {
			options, flags = "", unix.MS_RDONLY
		}
		err = errors.Join(err, unix.Mount("tmpfs", dir, "tmpfs", flags, options))
	}
	if err != nil {
		panic(err)
	}
}

// withMounts has the program start with such mounts: as root, or else as root of a
// user namespace.
func (p *program) withMounts(mounts ...string) {
	p.t.Helper()
	p.cmd.Env = append(p.cmd.Env, mountsEnv+"="+strings.Join(mounts, ","))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		p.cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		p.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
	}
	p.launch()
}

// TestDiskFull starts on a full disk, and has it fill up under load.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		p := prepare(t, nil, longRun...)
		p.withMounts("size=8m:" + p.tmp)
		p.says(exitFailed, "MiB free in "+p.tmp, "at least 32 MiB are needed", "free some space there")
		p.leftNothing()
	})
	t.Run("meanwhile", func(t *testing.T) {
		t.Parallel()
		p := prepare(t, nil, "run", "--gateway", "builtin", "-d", "1s", "--warmup", "0", "--runs", "1")
		p.withMounts("size=40m:" + p.tmp)
		p.said("upstream ready")
		// Its folder is in a namespace of its own, and stays as long as it is open.
		name := filepath.Join("/proc", p.pid(), "root", p.tmp)
		dir, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		filler, err := os.Create(filepath.Join(name, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		defer filler.Close()
		for chunk := make([]byte, 1<<20); err == nil; {
			_, err = filler.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		p.says(-1, "disk-full", "filled up")
		p.leftNothing()
		if left, err := dir.Readdirnames(0); err != nil || len(left) != 1 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
	})
}

// TestReadOnlyTemp has no temporary folder that can be written to.
func TestReadOnlyTemp(t *testing.T) {
	t.Parallel()
	p := prepare(t, nil, shortRun...)
	p.withMounts("ro:/tmp", "ro:/var/tmp")
	p.says(exitFailed, "read-only file system", "TMPDIR")
	p.leftNothing()
}
