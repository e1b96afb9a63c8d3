package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Lock makes sure that one process of this machine at a time does what. It ends with
// the process, or when release is called. The lock is a name in the kernel, which
// leaves no file behind, for all users whose temporary folder is the same.
//
// The error names the process that holds the lock, and since when.
func Lock(what string) (release func() error, err error) {
	// The name of a socket is short, and a path may not be.
	name := fmt.Sprintf("@armrepro-%x", sha256.Sum256([]byte(what+" "+os.TempDir())))[:40]
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, lockHeld(what, name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", what, err)
	}
	return l.Close, nil
}

// lockHeld says who holds the lock: the kernel knows who listens.
func lockHeld(what, name string) error {
	var holder Holder
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err == nil {
		defer conn.Close()
		if raw, err := conn.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
					holder.PID = int(c.Pid)
				}
			})
		}
	}
	if holder.PID == 0 {
		return Hintf("wait until it has ended: two at once would measure each other",
			"another armrepro is already %s on this machine, in another container", what)
	}
	root := os.DirFS("/")
	p, _ := readStat(root, holder.PID)
	holder.Name, holder.CommandLine = p.Name, WithoutSecrets(title(root, holder.PID))
	return Hintf(fmt.Sprintf("wait until it has ended, or stop it with 'kill %d': two at once would measure each other", holder.PID),
		"another armrepro is already %s on this machine: %s, for %s", what, &holder, p.age().Round(time.Second))
}

// age is how long the process has existed.
func (p Proc) age() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(p.started)*Tick
}
