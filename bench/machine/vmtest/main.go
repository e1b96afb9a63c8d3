// Command vmtest boots the arm64 binary as the only program of virtual machines
// with Arm cores and the firmware strings of cloud instances, and checks what
// it says about them.
//
// The emulator, its firmware and a kernel come from Debian's packages, which
// are downloaded into a cache and not installed. Exit codes: 0 everything is as
// expected, 1 something is not or failed, 2 usage, 130 interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"armrepro/bench/machine/vmtest/transcript"
)

func main() {
	fetchOnly := flag.Bool("fetch", false, "only fill the cache")
	program := flag.String("armrepro", "dist/armrepro-linux-arm64", "boot the program `FILE`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "vmtest: unexpected argument %q; see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := test(ctx, *program, *fetchOnly)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "vmtest: interrupted")
		os.Exit(130)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "vmtest: %v\n", err)
		os.Exit(1)
	}
}

// test boots every guest, prints what it said, and returns what was wrong.
func test(ctx context.Context, program string, fetchOnly bool) error {
	k, err := fetch(ctx)
	if err != nil || fetchOnly {
		return err
	}
	armrepro, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read armrepro: %w; build it with make build", err)
	}
	dir, err := os.MkdirTemp("", "vmtest-")
	if err != nil {
		return fmt.Errorf("create temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	init, err := buildInit(ctx)
	if err != nil {
		return err
	}
	for _, g := range guests {
		begin := time.Now()
		seen := k.see(ctx, g, filepath.Join(dir, "initramfs"), init, armrepro)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("%s in %.1f s: %s\n", g.name, time.Since(begin).Seconds(), seen)
		for _, wrong := range seen.wrong {
			err = errors.Join(err, fmt.Errorf("%s: %s", g.name, wrong))
		}
	}
	return err
}

// see boots g and says what was seen.
func (k kit) see(ctx context.Context, g guest, initramfs string, init, armrepro []byte) outcome {
	err := writeInitramfs(initramfs, g, init, armrepro)
	var console []byte
	if err == nil {
		console, err = k.boot(ctx, g, initramfs)
	}
	if err != nil {
		return outcome{wrong: []string{err.Error()}}
	}
	done, err := transcript.Parse(console)
	seen := g.check(done)
	if err != nil {
		seen.require(false, "%v", err)
	}
	if len(done) < len(g.commands()) {
		const most = 2000
		seen.require(false, "the console ends with %q", console[max(0, len(console)-most):])
	}
	return seen
}

// output runs a program and returns what it prints on standard output.
func output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	// The emulator would go on without this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", filepath.Base(name), cmp.Or(context.Cause(ctx), err), strings.TrimSpace(said.String()))
	}
	return out, nil
}
