package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench"
	"armrepro/bench/report"
	"armrepro/proxycheck/process"
)

// outputFlags are the flags that say how results are printed.
type outputFlags struct {
	format     string
	references bool
}

func (o *outputFlags) add(fs *pflag.FlagSet) {
	formats := report.Formats()
	o.format = formats[0]
	format := newChoice(&o.format, "output format", formats...)
	read := format.read
	format.read = func(s string) (string, error) {
		if s == "md" {
			s = "markdown"
		}
		return read(s)
	}
	fs.VarP(format, "output", "o", "output format: "+report.Or(formats))
	fs.BoolVar(&o.references, "references", false, "add the published figures of the same scenarios (text and markdown)")
}

// print writes results to w in the format of the flags.
func (o *outputFlags) print(w io.Writer, color bool, results ...bench.Result) error {
	return report.Write(w, o.format, results, report.Options{
		Color:      color,
		Width:      terminalWidth(w),
		References: o.references,
	})
}

func newReport() *cobra.Command {
	var (
		output outputFlags
		log    logFlags
	)
	cmd := &cobra.Command{
		Use:   "report [flags] FILE...",
		Short: "print or convert saved results",
		Long:  reportAbout,
		Args:  arguments(1, math.MaxInt, "FILE"),
		RunE: func(cmd *cobra.Command, names []string) error {
			var results []bench.Result
			for _, name := range names {
				r, err := readResults(cmd.Context(), name, cmd.InOrStdin())
				if err != nil {
					return err
				}
				results = append(results, r...)
			}
			out := cmd.OutOrStdout()
			return output.print(out, log.color(out), results...)
		},
	}
	group(cmd, "Output", func(fs *pflag.FlagSet) {
		output.add(fs)
		log.addNoColor(fs)
	})
	return cmd
}

// readResults reads the results in the file name, or from stdin if that is -. A
// signal interrupts it even while it waits for a pipe.
func readResults(ctx context.Context, name string, stdin io.Reader) ([]bench.Result, error) {
	var results []bench.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		results, err = openResults(name, stdin)
	}()
	select {
	case <-done:
		return results, err
	case <-ctx.Done():
		return nil, interruption(ctx, ctx.Err())
	}
}

func openResults(name string, stdin io.Reader) ([]bench.Result, error) {
	in := stdin
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	r, err := report.Read(in)
	if err == nil {
		return r, nil
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		// It names the file already.
		return nil, err
	}
	err = fmt.Errorf("read %s: %w", name, err)
	if errors.Is(err, report.ErrVersion) {
		return nil, process.WithHint(err, "print it with the version of armrepro that wrote it, or a newer one")
	}
	return nil, err
}
