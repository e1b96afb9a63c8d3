// Command peers compares armrepro's load generator and upstream with wrk and
// nginx on this machine and prints a table of ratios.
//
// Everything runs in a temporary folder and on 127.0.0.0/8. Each figure is
// measured in pairs, the peer and armrepro in turn. A ratio is armrepro's value
// divided by the peer's; the table has the median over the pairs, the lowest
// and the highest.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"armrepro/proxycheck/process"
)

// Exit codes.
const (
	exitHeld        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	if len(args) > 0 && args[0] == bareCommand {
		err = serveBare(ctx, args[1:])
	} else {
		err = comparePeers(ctx, args, stdout, stderr)
	}
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return exitHeld
	}
	code := exitFailed
	if coded, ok := errors.AsType[*codedError](err); ok {
		code = coded.code
	}
	if ctx.Err() != nil {
		code = exitInterrupted
		// What could not be stopped is said instead.
		if len(process.AllLeft(err)) == 0 {
			err = fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
	}
	fmt.Fprintf(stderr, "peers: %v\n", err)
	if hint := process.Hint(err); hint != "" {
		fmt.Fprintf(stderr, "\n%s\n", hint)
	}
	return code
}

// codedError is an error with an exit code of its own.
type codedError struct {
	code int
	error
}

func usagef(format string, args ...any) error {
	return process.WithHint(&codedError{exitUsage, fmt.Errorf(format, args...)}, "see --help")
}

// options are what the flags say.
type options struct {
	only     []string
	pairs    int
	duration time.Duration
	slack    float64
	control  bool
	armrepro string
	// proxyWork is the CPU time that a request takes the proxy.
	proxyWork time.Duration
}

const about = `Usage: go run ./bench/peers [flags]

Compares armrepro's load generator and upstream with wrk and nginx on this machine. A ratio
is armrepro's value divided by the peer's, from runs in turn: the median over the pairs, the
lowest and the highest.

Sections:
%s
Flags:
%s
Exit codes: 0 every bound held, 1 failed, 2 usage, 3 a bound was missed, 130 interrupted.
`

// usualProxyWork is about what a request takes APISIX's worker in the first
// scenario.
const usualProxyWork = 30 * time.Microsecond

func parseOptions(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("peers", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.StringSliceVar(&o.only, "only", nil, "measure only `SECTIONS`")
	fs.IntVar(&o.pairs, "pairs", 0, fmt.Sprintf("`PAIRS` of runs for each figure (default %d; %d for pinned and unpinned)", usualPairs, faithfulPairs))
	fs.DurationVar(&o.duration, "duration", 3*time.Second, "`TIME` of each run, in whole seconds")
	fs.Float64Var(&o.slack, "slack", 1, "widen the bounds by `FACTOR`: costs and distances from 1 may be larger,\nrequests/s smaller; bytes must be equal all the same")
	fs.BoolVar(&o.control, "control", false, "also compare each peer with itself, which shows the noise")
	fs.StringVar(&o.armrepro, "armrepro", "", "compare the program `FILE` instead of building it")
	fs.DurationVar(&o.proxyWork, "proxy-work", usualProxyWork, "CPU `TIME` that a request takes the proxy; MD5 fills it up")
	fs.Usage = func() {
		var list strings.Builder
		for _, s := range sections {
			fmt.Fprintf(&list, "  %-10s %s\n", s.name, s.about)
		}
		fmt.Fprintf(stdout, about, list.String(), strings.ReplaceAll(fs.FlagUsages(), "[=true|false]", "             "))
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return o, err
	case err != nil:
		return o, usagef("%w", err)
	case fs.NArg() > 0:
		return o, usagef("unexpected argument %q", fs.Arg(0))
	}
	return o, o.check()
}

func (o options) check() error {
	for _, name := range o.only {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return usagef("--only: unknown section %q", name)
		}
	}
	// Far above any use.
	const maxPairs, maxDuration, maxProxyWork = 1000, time.Hour, 10 * time.Millisecond
	switch {
	case o.pairs < 0 || o.pairs > maxPairs:
		return usagef("--pairs must be between 1 and %d", maxPairs)
	case o.duration < time.Second || o.duration > maxDuration || o.duration%time.Second != 0:
		return usagef("--duration must be whole seconds, at most %s: wrk accepts no others", maxDuration)
	case !(o.slack > 0) || math.IsInf(o.slack, 0):
		return usagef("--slack must be above 0")
	case o.proxyWork < 0 || o.proxyWork > maxProxyWork:
		return usagef("--proxy-work must be between 0s and %s", maxProxyWork)
	}
	return nil
}
