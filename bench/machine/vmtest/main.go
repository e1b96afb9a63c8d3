// Command vmtest boots the arm64 binary as the only program of virtual machines
// with Arm cores and the firmware strings of cloud instances, and checks what
// it says about them.
//
// The emulator, its firmware and a kernel come from Debian's packages, which
// are downloaded into a cache and not installed. Exit codes: 0 everything is as
// expected, 1 something is not or failed, 2 usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"

	"armrepro/proxycheck"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		cancel(&signalError{<-signals})
		<-signals
		os.Exit(exitInterrupted)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "interrupted by " + e.signal.String() }

// usageError is a command line that cannot be meant.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if err == nil {
		err = test(ctx, o, stdout, stderr)
	}
	return report(err, stderr)
}

// report prints err with its hint and returns the exit code that it stands for.
func report(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if stopped, ok := errors.AsType[*signalError](err); ok {
		fmt.Fprintf(stderr, "vmtest: %v\n", stopped)
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "vmtest: %v\n", err)
	if hint := proxycheck.Hint(err); hint != "" {
		fmt.Fprintf(stderr, "\n%s\n", hint)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// options are what the flags say.
type options struct {
	fetchOnly bool
	cache     string
	armrepro  string
	console   bool
}

func parseOptions(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("vmtest", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.fetchOnly, "fetch", false, "only fill the cache")
	fs.StringVar(&o.cache, "cache", "", "keep the unpacked packages in this folder (default armrepro-vmtest in the user's cache)")
	fs.StringVar(&o.armrepro, "armrepro", "", "boot this program for arm64 instead of building it")
	fs.BoolVar(&o.console, "console", false, "show the consoles of the guests")
	fs.Usage = func() {
		fmt.Fprintf(stdout, `Usage: go run ./bench/machine/vmtest [flags]

Boots armrepro in virtual machines with Arm cores and checks what it says about them. The
packages that this takes are fetched with apt once and kept; nothing is installed.

Flags:
%s
Exit codes: 0 everything is as expected, 1 something is not or failed, 2 usage, 130 interrupted.
`, fs.FlagUsages())
	}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return o, err
	case err != nil:
		return o, &usageError{err.Error() + "; see --help"}
	case fs.NArg() > 0:
		return o, &usageError{fmt.Sprintf("unexpected argument %q; see --help", fs.Arg(0))}
	}
	if o.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return o, &proxycheck.HintError{Err: fmt.Errorf("find cache: %w", err), Hint: "name a folder with --cache"}
		}
		o.cache = filepath.Join(base, "armrepro-vmtest")
	}
	return o, nil
}
