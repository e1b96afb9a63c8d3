package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

const guestArch = "arm64"

// kit is what it takes to boot a guest.
type kit struct {
	emulator, firmware, kernel string
	// libraries are the folders of the libraries that the emulator needs and
	// this machine may lack.
	libraries []string
}

// fetch returns the kit of the cache, which it fills first if need be.
func fetch(ctx context.Context) (kit, error) {
	dir, err := output(ctx, nil, "sh", "bench/machine/vmtest/fetch.sh")
	if err != nil {
		return kit{}, fmt.Errorf("fetch packages: %w", err)
	}
	return findKit(strings.TrimSpace(string(dir)))
}

// findKit finds the parts in a folder that fetch.sh filled.
func findKit(dir string) (kit, error) {
	var k kit
	for part, pattern := range map[*string]string{
		&k.emulator: "emulator/usr/bin/qemu-system-aarch64",
		&k.firmware: "emulator/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
		&k.kernel:   "guest/boot/vmlinuz-*",
	} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		if len(found) != 1 {
			return kit{}, fmt.Errorf("find %s: there are %d in %s; remove that folder and try again", pattern, len(found), dir)
		}
		*part = found[0]
	}
	for _, pattern := range []string{"emulator/usr/lib/*-linux-gnu*", "emulator/lib/*-linux-gnu*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		k.libraries = append(k.libraries, found...)
	}
	return k, nil
}
