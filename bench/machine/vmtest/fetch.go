package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// The packages of Debian that guests need: the emulator and its firmware, for
// this machine, and a kernel for the guest.
var emulatorPackages = []string{"qemu-system-arm", "qemu-efi-aarch64"}

const (
	kernelPackage = "linux-image-cloud-arm64"
	guestArch     = "arm64"
	fetchTime     = 5 * time.Minute
)

// kit is what it takes to boot a guest.
type kit struct {
	emulator, firmware, kernel string
	// version is what the emulator calls itself.
	version string
	// libraries are the folders of the libraries that the emulator needs and
	// this machine may lack.
	libraries []string
}

const fetchHint = `The packages come from the sources that apt has on this machine, which have to be those
of Debian or a descendant that has the packages too. Nothing is installed.`

// fetch returns the kit of the cache, which it fills first if need be: a kit is
// put together beside it and then moved into place, so it is whole or not there.
func fetch(ctx context.Context, cache string, progress func(string, ...any)) (kit, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return kit{}, fmt.Errorf("find cache: %w", err)
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return kit{}, &proxycheck.HintError{Err: fmt.Errorf("read release: %w", err), Hint: fetchHint}
	}
	// Another release has other libraries.
	key := sha256.Sum256(fmt.Appendf(release, "%q %s", emulatorPackages, kernelPackage))
	dir := filepath.Join(cache, fmt.Sprintf("%x", key[:6]))
	if _, err := os.Stat(dir); err == nil {
		return findKit(ctx, dir)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return kit{}, fmt.Errorf("create cache: %w", err)
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return kit{}, fmt.Errorf("create cache: %w", err)
	}
	defer os.RemoveAll(work)
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, fmt.Errorf("it took more than %s", fetchTime))
	defer cancel()
	progress("fetching %s and %s into %s", strings.Join(emulatorPackages, ", "), kernelPackage, dir)
	built := filepath.Join(work, "kit")
	if err := build(ctx, work, built); err != nil {
		return kit{}, &proxycheck.HintError{Err: err, Hint: fetchHint}
	}
	if _, err := findKit(ctx, built); err != nil {
		return kit{}, err
	}
	// If another process was faster, its kit is as good.
	if err := os.Rename(built, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return kit{}, fmt.Errorf("fill cache: %w", err)
	}
	return findKit(ctx, dir)
}

// build downloads the packages into work and unpacks them into dir.
func build(ctx context.Context, work, dir string) error {
	a, err := newApt(filepath.Join(work, "apt"))
	if err != nil {
		return err
	}
	if err := a.get(ctx, "update"); err != nil {
		return err
	}
	// Of what is installed only the libraries are used as they are.
	install := []string{"install", "--download-only", "--yes", "--reinstall", "--no-install-recommends"}
	if err := a.get(ctx, append(install, emulatorPackages...)...); err != nil {
		return err
	}
	if err := unpack(ctx, filepath.Join(a.dir, "cache/archives"), filepath.Join(dir, "emulator")); err != nil {
		return err
	}
	// What the kernel depends on belongs into a system, which the guest is not.
	current, err := a.dependency(ctx, kernelPackage+":"+guestArch)
	if err != nil {
		return err
	}
	if err := a.get(ctx, "download", current); err != nil {
		return err
	}
	if err := unpack(ctx, a.dir, filepath.Join(dir, "guest")); err != nil {
		return err
	}
	// Most of what is in there is no use: flash images, modules, documents.
	for _, name := range []string{"emulator/usr/share/AAVMF", "emulator/usr/share/doc", "guest/lib", "guest/usr"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("trim packages: %w", err)
		}
	}
	return nil
}

// unpack unpacks every package in the folder from.
func unpack(ctx context.Context, from, to string) error {
	packages, err := fs.Glob(os.DirFS(from), "*.deb")
	if err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("create folder to unpack into: %w", err)
	}
	for _, p := range packages {
		if _, err := output(ctx, process.Config{Path: "dpkg-deb", Args: []string{"--extract", filepath.Join(from, p), to}}); err != nil {
			return err
		}
	}
	return nil
}

// findKit finds the parts in a folder that build filled, and asks the emulator
// for its version, which shows that it has its libraries.
func findKit(ctx context.Context, dir string) (kit, error) {
	k, err := findParts(dir)
	if err == nil {
		k.version, err = output(ctx, process.Config{Path: k.emulator, Args: []string{"--version"}, Env: k.environment()})
	}
	if err != nil && ctx.Err() == nil {
		err = &proxycheck.HintError{Err: err, Hint: "Remove " + dir + " and try again: it is filled anew."}
	}
	k.version, _, _ = strings.Cut(k.version, "\n")
	return k, err
}

func findParts(dir string) (kit, error) {
	var k kit
	root := os.DirFS(dir)
	for part, pattern := range map[*string]string{
		&k.emulator: "emulator/usr/bin/qemu-system-aarch64",
		&k.firmware: "emulator/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
		&k.kernel:   "guest/boot/vmlinuz-*",
	} {
		found, err := fs.Glob(root, pattern)
		if err != nil || len(found) != 1 {
			return kit{}, fmt.Errorf("find %s: there are %d in %s", pattern, len(found), dir)
		}
		*part = filepath.Join(dir, found[0])
	}
	for _, pattern := range []string{"emulator/usr/lib/*-linux-gnu*", "emulator/lib/*-linux-gnu*"} {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			return kit{}, fmt.Errorf("list libraries: %w", err)
		}
		for _, name := range found {
			k.libraries = append(k.libraries, filepath.Join(dir, name))
		}
	}
	return k, nil
}
