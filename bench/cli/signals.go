package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/proxycheck/process"
)

// signalError is the cause of a context that a signal ended: exit code 130.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string {
	if number, ok := e.signal.(syscall.Signal); ok {
		return "interrupted by " + unix.SignalName(number)
	}
	return "interrupted by " + e.signal.String()
}

// interruption returns the signal that ended ctx if there was one, otherwise
// err. "context canceled" would not say why. What could not be removed is still
// reported.
func interruption(ctx context.Context, err error) error {
	stopped, ok := context.Cause(ctx).(*signalError)
	switch {
	case !ok || err == nil:
		return err
	case len(process.AllLeft(err)) > 0:
		return errors.Join(stopped, err)
	}
	return stopped
}

const (
	// takeDownLimit bounds how long a command may take to end after a signal.
	// It exceeds the sum of the parts' own limits in seconds: load 5, gateway
	// 10, upstream 3, etcd 3, and 5 for each request that hangs.
	takeDownLimit = 60 * time.Second
	// repeatGap is how long a repeated Ctrl-C counts as the first one, which a
	// wrapper may pass on. Nobody deliberately presses it again that fast.
	repeatGap = time.Second
	// hurryLimit bounds the removal of routes and keys after a second Ctrl-C.
	hurryLimit = time.Second
)

// Signals lists the signals that Main handles.
func Signals() []os.Signal {
	// A reader that goes away must not end the program before it has taken
	// everything down: writing fails instead. Not ignored, which children
	// would inherit.
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE}
	// Under nohup a hang-up is to be ignored.
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// Main runs the command that p names until it ends or a signal ends it, and
// returns the exit code. The first signal ends the command, which then takes
// down what it started.
//
// The same signal often comes twice: timeout(1) sends it to its child and then to
// the whole group, a closing terminal hangs up twice, wrappers pass on what the
// group already had. So repeats are ignored. Only a Ctrl-C or SIGQUIT at least a
// second after the first cuts taking down short.
func Main(p Program, signals <-chan os.Signal) int {
	process.TakeOwnName()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan int, 1)
	go func() { done <- p.run(ctx) }()
	var first time.Time
	hurried := false
	var limit <-chan time.Time
	for {
		select {
		case code := <-done:
			return code
		case <-limit:
			fmt.Fprintln(p.Stderr, "armrepro: could not stop and remove everything in time")
			if left := process.Held(); len(left) > 0 {
				printLeft(p.Stderr, left)
				return exitFailed
			}
			return exitInterrupted
		case s := <-signals:
			switch {
			case s == syscall.SIGPIPE:
			case first.IsZero():
				first, limit = time.Now(), time.After(takeDownLimit)
				cancel(&signalError{s})
			case !hurried && meant(s, time.Since(first)):
				hurried = true
				// With its children dead, nothing is left to wait for but
				// the removal of routes and keys.
				process.KillAll()
				limit = time.After(hurryLimit)
			}
		}
	}
}

// meant says whether a signal that comes this long after the first one is
// deliberate.
func meant(s os.Signal, after time.Duration) bool {
	return (s == syscall.SIGINT || s == syscall.SIGQUIT) && after >= repeatGap
}
