package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"armrepro/proxycheck/process"
)

// bootTime bounds a guest from power on to power off. It leaves room for init to
// end a command that hangs, and to tell what it said.
const bootTime = 4 * time.Minute

// boot starts a guest and returns what its console showed when it is off; w gets
// that at once.
func (k kit) boot(ctx context.Context, g guest, initramfs string, w io.Writer) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTime, fmt.Errorf("the guest did not turn itself off within %s", bootTime))
	defer cancel()
	var console bytes.Buffer
	p, err := process.Start(process.Config{
		Path:   k.emulator,
		Args:   k.arguments(g, initramfs),
		Env:    append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(k.libraries, ":")),
		Stdout: io.MultiWriter(&console, w),
	})
	if err != nil {
		return nil, err
	}
	if err := finish(ctx, p); err != nil {
		return nil, fmt.Errorf("run guest: %w; the end of what it printed:\n%s", err, p.Tail())
	}
	return console.Bytes(), nil
}

// environment is this process's, with the emulator's libraries.
func (k kit) environment() []string {
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(k.libraries, ":"))
}

// arguments is the command line of the emulator. Only with firmware does a
// guest of this kind have ACPI and DMI; without, it has a device tree.
func (k kit) arguments(g guest, initramfs string) []string {
	args := []string{
		// Translated, on a host of the same architecture too.
		"-machine", "virt", "-accel", "tcg,thread=multi", "-cpu", g.cpu, "-smp", strconv.Itoa(guestCores), "-m", strconv.Itoa(guestMiB),
		"-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
		"-kernel", k.kernel, "-initrd", initramfs,
		// A kernel that panics reboots at once, which turns the guest off.
		"-append", "console=ttyAMA0 quiet panic=-1",
	}
	if g.firmware {
		args = append(args, "-bios", k.firmware)
	}
	for _, s := range g.smbios {
		args = append(args, "-smbios", s)
	}
	return args
}

// writeInitramfs writes what a guest boots into: init, armrepro, the commands
// and the guest's own files.
func writeInitramfs(path string, g guest, init, armrepro []byte) error {
	files := []file{
		{path: "init", mode: 0o755, data: init},
		{path: "bin/armrepro", mode: 0o755, data: armrepro},
		{path: "commands", mode: 0o644, data: []byte(strings.Join(g.commands(), "\n"))},
	}
	for name, text := range g.files {
		files = append(files, file{path: name, mode: 0o644, data: []byte(text)})
	}
	var b bytes.Buffer
	if err := writeCPIO(&b, files); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}

// buildForGuest builds a package of this module for the guest and returns the
// program.
func buildForGuest(ctx context.Context, dir, pkg string) ([]byte, error) {
	path := filepath.Join(dir, filepath.Base(pkg))
	_, err := output(ctx, process.Config{
		Path: "go",
		Args: []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg},
		Env:  append(os.Environ(), "GOOS=linux", "GOARCH="+guestArch, "CGO_ENABLED=0"),
	})
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read what was built: %w", err)
	}
	return program, nil
}
