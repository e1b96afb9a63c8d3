package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"armrepro/bench/fitness"
	"armrepro/proxycheck/process"
)

// session is one run of this program.
type session struct {
	opts  options
	tools tools
	// dir is temporary.
	dir string
	// openFiles is the limit on open files of every process here.
	openFiles uint64
	ephemeral portRange
	// rounds of MD5 are the proxy's work on each request.
	rounds int
	rows   []row
	stderr io.Writer
}

func (s *session) progress(format string, args ...any) {
	fmt.Fprintf(s.stderr, format+"\n", args...)
}

// skip adds a row for what could not be measured, and says it at once.
func (s *session) skip(section, name, why string) {
	s.progress("%s, %s: skipped: %s", section, name, why)
	s.rows = append(s.rows, row{section: section, name: name, verdict: skipped, note: why})
}

// comparePeers measures what the options ask for. What was measured is printed
// even when something fails in between.
func comparePeers(ctx context.Context, opts options, stdout, stderr io.Writer) (err error) {
	s := &session{opts: opts, stderr: stderr}
	if s.tools, err = findTools(ctx); err != nil {
		return err
	}
	if s.openFiles, err = process.RaiseNoFile(); err != nil {
		return err
	}
	if s.ephemeral, err = readPortRange(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "peers"); err != nil {
		return fmt.Errorf("create temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if s.tools.armrepro = opts.armrepro; opts.armrepro == "" {
		s.progress("building armrepro")
		if s.tools.armrepro, err = buildArmrepro(ctx, s.dir); err != nil {
			return err
		}
	}
	busy, err := busyBefore(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "wrk %s and nginx %s against armrepro; CPUs (%s): %d, of which %.1f were busy before the start\n\n",
		s.tools.wrkVersion, s.tools.nginxVersion, runtime.GOARCH, runtime.NumCPU(), busy)
	err = s.measureAll(ctx)
	if len(s.rows) > 0 {
		err = errors.Join(err, writeTable(stdout, s.rows))
	}
	return err
}

// measureAll runs the sections. One that fails leaves the others as they are.
func (s *session) measureAll(ctx context.Context) error {
	var errs []error
	for _, section := range sections() {
		if !s.opts.wants(section.name) || ctx.Err() != nil {
			continue
		}
		// Each time, since the machine's speed moves.
		if section.proxied {
			if err := s.calibrate(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", section.name, err))
				continue
			}
		}
		errs = append(errs, section.run(s, ctx))
	}
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return judge(s.rows)
}

// judge is an error if a bound was missed, or if all rows were skipped.
func judge(rows []row) error {
	measured, failed := 0, 0
	for _, r := range rows {
		if r.verdict != skipped {
			measured++
		}
		if r.verdict.failed() {
			failed++
		}
	}
	switch {
	case measured == 0:
		return errors.New("nothing could be measured here")
	case failed > 0:
		return &missedError{failed}
	}
	return nil
}

// busyBefore is how many cores are busy while nothing of the comparison runs.
func busyBefore(ctx context.Context) (float64, error) {
	const window = time.Second
	root := os.DirFS("/")
	before, err := fitness.ReadCPUTimes(root)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := fitness.ReadCPUTimes(root)
	if err != nil {
		return 0, err
	}
	used := after.Sub(before)
	return (used.Busy + used.Steal).Seconds() / time.Since(begin).Seconds(), nil
}
