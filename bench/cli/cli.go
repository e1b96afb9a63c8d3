// Package cli is armrepro's command line: a file for each group of commands,
// which turns flags into a Config, calls one function, and prints what it
// returns.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"armrepro/bench"
	"armrepro/proxycheck/process"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitInterrupted = 130
	exitReaderGone  = 141 // as the shell says of a program that SIGPIPE ended
)

// Program is how armrepro was called.
type Program struct {
	Version string
	// Args are the arguments after the program's name.
	Args  []string
	Stdin io.Reader
	// Results go to Stdout, everything else to Stderr.
	Stdout, Stderr io.Writer
}

// usageError is a wrong command line: exit code 2.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }
func (e *usageError) Hint() string  { return e.hint }

func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// invalidError says that the figures do not count: exit code 3.
type invalidError struct{ reason string }

func (e *invalidError) Error() string { return "the result is invalid: " + e.reason }

// run finds the command, runs it, and returns the exit code.
func (p Program) run(ctx context.Context) int {
	out := &stream{Writer: p.Stdout}
	p.Stdout, p.Stderr = out, &stream{Writer: p.Stderr}
	cmd, err := p.newRoot().ExecuteContextC(ctx)
	gone, outErr := out.state()
	// The help does not look whether it could be written.
	if err = cmp.Or(err, outErr); err == nil {
		if gone {
			return exitReaderGone
		}
		return exitOK
	}
	return fail(p.Stderr, strings.TrimSuffix(cmd.CommandPath(), " help"), err)
}

// fail prints err with its hint, and returns its exit code.
func fail(w io.Writer, command string, err error) int {
	fmt.Fprintf(w, "armrepro: %s\n", printable(err.Error()))
	if left := process.AllLeft(err); len(left) > 0 {
		printLeft(w, left)
		return exitFailed
	}
	hint := process.Hint(err)
	switch {
	case is[*signalError](err):
		return exitInterrupted
	case is[*invalidError](err):
		return exitInvalid
	case is[*usageError](err):
		if hint != "" {
			fmt.Fprintf(w, "armrepro: %s\n", hint)
		}
		fmt.Fprintf(w, "armrepro: see '%s --help'\n", command)
		return exitUsage
	}
	if hint != "" {
		fmt.Fprintf(w, "\n%s\n", printable(hint))
	}
	return exitFailed
}

// printable takes out what a terminal would obey: an error may quote an answer, a file
// or the name of a process.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// printLeft lists what is left behind, and how to remove it.
func printLeft(w io.Writer, left []process.Left) {
	fmt.Fprintln(w, "\nCould not remove these; remove them with the commands below:")
	for _, l := range left {
		fmt.Fprintf(w, "  %s\n    %s\n", l.What, l.How)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// newRoot returns the command line with every command.
func (p Program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:                        "armrepro [COMMAND] [flags]",
		Long:                       rootAbout,
		Version:                    p.Version,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		// An unknown command is the error to report, not its flags.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetArgs(withCommand(p.Args))
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetVersionTemplate(versionLine(p.Version))
	root.SetHelpFunc(printHelp)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newRun(p.tool()), newCheck(p.tool()), newLoad(), newUpstream(), newEtcd(), newGateway(p.Version),
		newMachine(), newReport(), newVersion(p.Version),
		// A text that only help shows.
		&cobra.Command{Use: "scenario", Short: "how to write a scenario file (see armrepro help scenario)", Long: scenarioAbout},
	)
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	describeCompletion(root)
	return root
}

// Help lists the commands in the order in which they were added.
func init() { cobra.EnableCommandSorting = false }

func (p Program) tool() bench.Tool { return bench.Tool{Name: "armrepro", Version: p.Version} }

// withCommand adds the default command, run, where args name none.
func withCommand(args []string) []string {
	asked := []string{"-h", "--help", "-v", "--version"}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && !slices.Contains(asked, args[0]) {
		return append([]string{"run"}, args...)
	}
	return args
}

// unknownCommand is the error for a command that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	if name == "" {
		return usagef("the command is empty")
	}
	return &usageError{
		text: fmt.Sprintf("unknown command %q", name),
		hint: didYouMean(root.SuggestionsFor(name)...),
	}
}

// arguments checks that a command gets between least and most arguments; what
// names them.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > most {
			return usagef("%s: unexpected argument %q", cmd.Name(), args[most])
		}
		if len(args) < least || slices.Contains(args, "") {
			return usagef("%s needs a %s", cmd.Name(), what)
		}
		return nil
	}
}
