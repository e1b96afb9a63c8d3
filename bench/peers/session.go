package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

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
	// cpus are those that this process may use.
	cpus []int
	// rounds of MD5 are the proxy's work on each request.
	rounds int
	// runs counts those of the generators.
	runs int
	// servers were started for the section at hand.
	servers []*server
	rows    []row
	stderr  io.Writer
}

func (s *session) progress(format string, args ...any) {
	fmt.Fprintf(s.stderr, format+"\n", args...)
}

// skip adds a row for what could not be measured, and says it at once.
func (s *session) skip(section, name, why string) {
	s.progress("%s, %s: skipped: %s", section, name, why)
	s.rows = append(s.rows, row{section: section, name: name, verdict: skipped, note: why})
}

// comparePeers measures what the arguments ask for. What was measured is printed
// even when something fails in between.
func comparePeers(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s := &session{stderr: stderr}
	if s.opts, err = parseOptions(args, stdout); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "peers"); err != nil {
		return fmt.Errorf("create temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	load, err := process.ReadLine(os.DirFS("/"), "proc/loadavg")
	if err != nil {
		return err
	}
	if s.tools, err = findTools(ctx, s.dir, s.opts.armrepro); err != nil {
		return err
	}
	if s.openFiles, err = process.RaiseNoFile(); err != nil {
		return err
	}
	if s.cpus, err = process.AllowedCPUs(os.DirFS("/")); err != nil {
		return err
	}
	lastMinute, _, _ := strings.Cut(load, " ")
	fmt.Fprintf(stdout, "wrk %s and nginx %s against armrepro; CPUs (%s): %d, load average before the start: %s\n\n",
		s.tools.wrk.Version, s.tools.nginx.Version, runtime.GOARCH, runtime.NumCPU(), lastMinute)
	err = s.measureAll(ctx)
	if len(s.rows) > 0 {
		err = errors.Join(err, writeTable(stdout, s.rows))
	}
	return err
}

// measureAll runs the sections. One that fails leaves the others as they are.
func (s *session) measureAll(ctx context.Context) error {
	var errs []error
	for _, section := range sections {
		if len(s.opts.only) > 0 && !slices.Contains(s.opts.only, section.name) || ctx.Err() != nil {
			continue
		}
		err := errors.Join(section.measure(s, ctx), s.stopServers(), process.SetAffinity(os.Getpid(), s.cpus))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", section.name, err))
		}
	}
	if err := errors.Join(append(errs, context.Cause(ctx))...); err != nil {
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
		if r.verdict == missed || r.verdict == failing {
			failed++
		}
	}
	if measured == 0 {
		return errors.New("nothing could be measured here")
	}
	if failed > 0 {
		return &codedError{exitMissed, fmt.Errorf("bounds missed: %d", failed)}
	}
	return nil
}
