// Command armrepro reproduces the published benchmark of the Apache APISIX
// gateway on ARM servers on the machine it stands on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"armrepro/proxycheck"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitInterrupted = 130
)

// streams are a command's standard input, output and error. Results go to out,
// everything else to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// command is one word of the command line.
type command struct {
	name    string
	args    string
	summary string
	run     func(ctx context.Context, args []string, s streams) error
}

// commands is every command, in the order in which help shows them. A function,
// since the help command lists what it is part of.
func commands() []command {
	return []command{
		{"run", "", "measure both scenarios and print the table (the default)", runRun},
		{"check", "", "everything but the load: machine, ports, gateway, routes", runCheck},
		{"load", "URL", "the load generator alone, with wrk's flags", runLoad},
		{"upstream", "", "the upstream alone, until a signal", runUpstream},
		{"etcd", "", "the embedded etcd alone, until a signal", runEtcd},
		{"gateway", "", "the built-in gateway alone, until a signal", runGateway},
		{"machine", "", "say what machine this is", runMachine},
		{"report", "FILE...", "print saved results again", runReport},
		{"version", "", "print the version", runVersion},
		{"help", "", "print this help", runHelp},
	}
}

func main() {
	os.Exit(mainExit())
}

// mainExit runs the command line under a context that the first signal ends.
// A second signal exits at once: the children die with this process.
func mainExit() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	// Under nohup a hang-up is to be ignored.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader that goes away must not end the program before it has taken
	// everything down: writing fails instead. Not ignored, which children
	// would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		cancel(&signalError{<-signals})
		<-signals
		os.Exit(exitInterrupted)
	}()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// run is the whole program: it finds the command, runs it and turns its error
// into words on stderr and an exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{in: stdin, out: stdout, err: stderr}
	cmd, args, err := findCommand(args)
	if err == nil {
		err = cmd.run(ctx, args, s)
	}
	return report(err, cmd.name, s.err)
}

// findCommand picks the command that args begin with. No command, or a flag in
// its place, means run.
func findCommand(args []string) (command, []string, error) {
	all := commands()
	if len(args) == 0 {
		return all[0], args, nil
	}
	name := args[0]
	switch name {
	case "-h", "--help":
		name = "help"
	case "-v", "--version":
		name = "version"
	}
	for _, c := range all {
		if c.name == name {
			return c, args[1:], nil
		}
	}
	if name != "" && name[0] == '-' {
		return all[0], args, nil
	}
	return command{}, nil, usagef("unknown command %q", name)
}

// report prints err with its hint and returns the exit code that it stands for.
func report(err error, name string, w io.Writer) int {
	var (
		usage   *usageError
		invalid *invalidError
		stopped *signalError
	)
	switch {
	case err == nil, errors.Is(err, errHelp):
		return exitOK
	case errors.As(err, &stopped):
		fmt.Fprintf(w, "armrepro: %v\n", err)
		return exitInterrupted
	case errors.As(err, &invalid):
		fmt.Fprintf(w, "armrepro: %v\n", err)
		return exitInvalid
	case errors.As(err, &usage):
		fmt.Fprintf(w, "armrepro: %v\n", err)
		if name == "" {
			name = "help"
		}
		fmt.Fprintf(w, "armrepro: see 'armrepro %s'\n", helpFor(name))
		return exitUsage
	}
	fmt.Fprintf(w, "armrepro: %v\n", err)
	if hint := proxycheck.Hint(err); hint != "" {
		fmt.Fprintf(w, "\n%s\n", hint)
	}
	return exitFailed
}
