// Command init is the first and only process of a guest that vmtest starts: it
// mounts what a system has, runs the commands of /commands one after another,
// tells on the console what they did, and turns the machine off.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/bench/machine/vmtest/transcript"
)

// commandTime bounds each command; emulated processors are slow.
const commandTime = 3 * time.Minute

func main() {
	if err := run(); err != nil {
		// There is nobody else to tell.
		_ = transcript.Write(os.Stdout, transcript.Command{Failure: err.Error()})
	}
	// What the terminal has not sent yet would be lost (tcdrain).
	_ = unix.IoctlSetInt(int(os.Stdout.Fd()), unix.TCSBRK, 1)
	// A first process that returns makes the kernel panic, which ends the
	// guest as well.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() error {
	if err := cmp.Or(mountAll(), raiseLoopback(), os.Setenv("PATH", "/bin")); err != nil {
		return err
	}
	lines, err := os.ReadFile("/commands")
	if err != nil {
		return fmt.Errorf("read commands: %w", err)
	}
	for line := range strings.Lines(string(lines)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := transcript.Write(os.Stdout, runCommand(words)); err != nil {
			return fmt.Errorf("write to the console: %w", err)
		}
	}
	return nil
}

func mountAll() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return fmt.Errorf("create %s: %w", m.dir, err)
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.dir, err)
		}
	}
	return nil
}

// raiseLoopback brings lo up, which gives it 127.0.0.1 as well.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("name lo: %w", err)
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

func runCommand(words []string) transcript.Command {
	ctx, cancel := context.WithTimeoutCause(context.Background(), commandTime, fmt.Errorf("it took more than %s", commandTime))
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = "/tmp"
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && (ctx.Err() != nil || !errors.As(err, &exited)) {
		fmt.Fprintf(&stderr, "\ninit: run %s: %v\n", words[0], cmp.Or(context.Cause(ctx), err))
	}
	exit := -1
	if cmd.ProcessState != nil {
		exit = cmd.ProcessState.ExitCode()
	}
	return transcript.Command{Line: strings.Join(words, " "), Stdout: stdout.String(), Stderr: stderr.String(), Exit: exit}
}
