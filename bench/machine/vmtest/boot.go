package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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

// bootTime bounds a guest from power on to power off. It leaves room for init to
// end a command that hangs, and to tell what it said.
const bootTime = 7 * time.Minute

// boot starts a guest and returns what its console showed when it is off. Only
// with firmware does a guest of this kind have ACPI and DMI; without, it has a
// device tree.
func (k kit) boot(ctx context.Context, g guest, initramfs string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bootTime, fmt.Errorf("the guest did not turn itself off within %s", bootTime))
	defer cancel()
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
	return output(ctx, []string{"LD_LIBRARY_PATH=" + strings.Join(k.libraries, ":")}, k.emulator, args...)
}

// writeInitramfs writes what a guest boots into: init, armrepro, the commands
// and the guest's own files.
func writeInitramfs(name string, g guest, init, armrepro []byte) error {
	files := map[string][]byte{"init": init, "bin/armrepro": armrepro, "commands": []byte(strings.Join(g.commands(), "\n"))}
	for name, text := range g.files {
		files[name] = []byte(text)
	}
	if err := os.WriteFile(name, cpio(files), 0o644); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}

// cpio makes the archive that Linux unpacks into its first root folder, in the
// format newc, with the folders on the way to a file before it.
// See https://docs.kernel.org/driver-api/early-userspace/buffer-format.html
func cpio(files map[string][]byte) []byte {
	const regular, directory, alignment = 0o100755, 0o040755, 4
	var b bytes.Buffer
	inode := 0
	add := func(name string, mode int, data []byte) {
		inode++
		b.WriteString("070701")
		// Owner, group, links, time, size, four device numbers, length of the
		// name, and the checksum of another format.
		for _, n := range []int{inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
			fmt.Fprintf(&b, "%08X", n)
		}
		b.WriteString(name + "\x00")
		b.Write(make([]byte, -b.Len()&(alignment-1)))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&(alignment-1)))
	}
	folders := map[string]bool{".": true}
	var addFolder func(dir string)
	addFolder = func(dir string) {
		if !folders[dir] {
			addFolder(path.Dir(dir))
			folders[dir] = true
			add(dir, directory, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		addFolder(path.Dir(name))
		add(name, regular, files[name])
	}
	add("TRAILER!!!", 0, nil)
	return b.Bytes()
}

// buildInit builds the first program of the guests.
func buildInit(ctx context.Context) ([]byte, error) {
	env := []string{"GOOS=linux", "GOARCH=" + guestArch, "CGO_ENABLED=0"}
	return output(ctx, env, "go", "build", "-o", "/dev/stdout", "armrepro/bench/machine/vmtest/init")
}
