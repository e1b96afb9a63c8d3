// Command peers compares armrepro's load generator and upstream with wrk and
// nginx on this machine and prints a table of ratios.
//
// Everything runs in a temporary folder and on 127.0.0.1. Each figure is
// measured in pairs, the peer and armrepro in turn. A ratio is armrepro's value
// divided by the peer's; the table has the median over the pairs, the lowest
// and the highest. Exit codes: 0 every bound held, 1 failed, 2 usage, 3 a bound
// was missed, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"armrepro/proxycheck"
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

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout, stderr)
	var (
		usage   *usageError
		missed  *missedError
		stopped *signalError
	)
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return exitHeld
	case errors.As(context.Cause(ctx), &stopped):
		fmt.Fprintf(stderr, "peers: %v\n", stopped)
		return exitInterrupted
	case errors.As(err, &missed):
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return exitMissed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "peers: %v\npeers: see --help\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "peers: %v\n", err)
	if hint := proxycheck.Hint(err); hint != "" {
		fmt.Fprintf(stderr, "\n%s\n", hint)
	}
	return exitFailed
}

// usageError is a command line that cannot be meant.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "interrupted by " + e.signal.String() }

// missedError says that everything was measured but not as it ought to be.
type missedError struct{ count int }

func (e *missedError) Error() string { return fmt.Sprintf("bounds missed: %d", e.count) }

// dispatch is one of the servers or the comparison.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 1 && servers[args[0]] != nil {
		return serve(ctx, args[0], args[1:])
	}
	opts, err := parseOptions(args, stdout)
	if err != nil {
		return err
	}
	return comparePeers(ctx, opts, stdout, stderr)
}

// servers are the words that make this program one of its own servers.
var servers = map[string]func(context.Context, []net.Listener) error{
	slowCommand: serveSlow,
	bareCommand: serveBare,
}

// serve listens at every address and answers until ctx ends.
func serve(ctx context.Context, command string, at []string) error {
	var listeners []net.Listener
	for _, address := range at {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		defer ln.Close()
		listeners = append(listeners, ln)
	}
	return servers[command](ctx, listeners)
}
