package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"armrepro/bench"
	benchreport "armrepro/bench/report"
	"armrepro/proxycheck"
)

const reportAbout = `Prints results that 'armrepro run --save FILE' or '--output json' wrote, one after the
other. FILE may be - for standard input.`

// outputFlags are the flags that say how results are printed.
type outputFlags struct {
	format     string
	references bool
}

func (o *outputFlags) add(fs *pflag.FlagSet) {
	formats := benchreport.Formats()
	fs.StringVarP(&o.format, "output", "o", formats[0], "print the result as one of "+strings.Join(formats, ", "))
	fs.BoolVar(&o.references, "references", false, "add the published figures of the same scenarios (text and markdown)")
}

// check says whether the flags can be meant. It is for the start of a command:
// nobody wants to learn of a typing mistake after the measurement.
func (o *outputFlags) check() error {
	for _, f := range benchreport.Formats() {
		if f == o.format {
			return nil
		}
	}
	return usagef("--output: %q is none of %s", o.format, strings.Join(benchreport.Formats(), ", "))
}

// print writes results to w as the flags ask.
func (o *outputFlags) print(w io.Writer, color bool, results ...bench.Result) error {
	return benchreport.Write(w, o.format, results, benchreport.Options{
		Color:      color,
		Width:      terminalWidth(w),
		References: o.references,
	})
}

// terminalWidth is the width of w in columns; 0 if it is no terminal.
func terminalWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	const mostReadable = 120
	return min(width, mostReadable)
}

func runReport(ctx context.Context, args []string, s streams) error {
	var (
		output outputFlags
		log    logFlags
	)
	flags := newFlags("report", "FILE...", reportAbout, s)
	output.add(flags)
	flags.BoolVar(&log.noColor, "no-color", false, "use no colors; the variable NO_COLOR does the same")
	if err := parse(flags, args, 1, len(args)); err != nil {
		return err
	}
	if err := output.check(); err != nil {
		return err
	}
	var results []bench.Result
	for _, name := range flags.Args() {
		r, err := readResult(ctx, name, s.in)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return output.print(s.out, log.color(s.out), results...)
}

// readResult reads the result in the file name, or from stdin if that is -. A
// pipe that nobody writes to does not keep it from being interrupted.
func readResult(ctx context.Context, name string, stdin io.Reader) (bench.Result, error) {
	type answer struct {
		result bench.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		r, err := openResult(name, stdin)
		answers <- answer{r, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return bench.Result{}, interruption(ctx, ctx.Err())
	}
}

func openResult(name string, stdin io.Reader) (bench.Result, error) {
	in := stdin
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return bench.Result{}, err
		}
		defer f.Close()
		in = f
	}
	r, err := benchreport.Read(in)
	if err == nil {
		return r, nil
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		// It names the file already.
		return bench.Result{}, err
	}
	err = fmt.Errorf("read %s: %w", name, err)
	if errors.Is(err, benchreport.ErrVersion) {
		return bench.Result{}, &proxycheck.HintError{Err: err, Hint: "Print it with the version of armrepro that wrote it, or with a newer one."}
	}
	return bench.Result{}, err
}
