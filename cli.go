package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// errHelp says that help was asked for and printed.
var errHelp = errors.New("help was printed")

// usageError is a command line that cannot be meant: exit code 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// invalidError says that there are figures, but that they do not count: exit
// code 3.
type invalidError struct{ reason string }

func (e *invalidError) Error() string { return "the result is invalid: " + e.reason }

// signalError is the cause of a context that a signal ended: exit code 130.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string {
	if number, ok := e.signal.(syscall.Signal); ok {
		return "interrupted by " + unix.SignalName(number)
	}
	return "interrupted by " + e.signal.String()
}

// interruption returns the signal that ended ctx if there was one, otherwise
// err. An error that only says that the context was canceled tells nobody why.
func interruption(ctx context.Context, err error) error {
	if stopped, ok := errors.AsType[*signalError](context.Cause(ctx)); ok && err != nil {
		return stopped
	}
	return err
}

// newFlags returns the flag set of one command. synopsis is what follows the
// command's name; about is what it does, in full sentences.
func newFlags(name, synopsis, about string, s streams) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.Usage = func() {
		fmt.Fprintf(s.out, "Usage: armrepro %s [flags]%s\n\n%s\n\nFlags:\n%s",
			name, prefixed(" ", synopsis), about, fs.FlagUsagesWrapped(100))
	}
	return fs
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// parse reads args into fs and checks that at least least and at most most
// arguments are left.
func parse(fs *pflag.FlagSet, args []string, least, most int) error {
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return errHelp
	case err != nil:
		return usagef("%s: %v", fs.Name(), err)
	case fs.NArg() < least:
		return usagef("%s: too few arguments", fs.Name())
	case fs.NArg() > most:
		return usagef("%s: unexpected argument %q", fs.Name(), fs.Arg(most))
	}
	return nil
}

// logFlags are the flags that say what is logged and how.
type logFlags struct {
	level   string
	format  string
	quiet   bool
	noColor bool
}

func (l *logFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&l.level, "log-level", "info", "log at least this: debug, info, warn or error")
	fs.StringVar(&l.format, "log-format", "text", "log as text or json, to standard error")
	fs.BoolVarP(&l.quiet, "quiet", "q", false, "log only warnings and errors, show no progress")
	fs.BoolVar(&l.noColor, "no-color", false, "use no colors; the variable NO_COLOR does the same")
}

// color says whether w may be written to in color.
func (l *logFlags) color(w io.Writer) bool {
	return !l.noColor && os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

// logger returns the logger that the flags ask for.
func (l *logFlags) logger(w io.Writer) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(strings.ToLower(l.level))
	if err != nil || l.level == "" {
		return zerolog.Nop(), usagef("--log-level: %q is none of debug, info, warn, error", l.level)
	}
	if l.quiet {
		level = max(level, zerolog.WarnLevel)
	}
	switch l.format {
	case "json":
	case "text":
		w = zerolog.ConsoleWriter{Out: w, NoColor: !l.color(w), TimeFormat: time.TimeOnly}
	default:
		return zerolog.Nop(), usagef("--log-format: %q is neither text nor json", l.format)
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
