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
	"time"

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

// comparePeers measures what the options ask for. What was measured is printed
// even when something fails in between.
func comparePeers(ctx context.Context, opts options, stdout, stderr io.Writer) (err error) {
	s := &session{opts: opts, stderr: stderr}
	load, err := process.ReadLine(os.DirFS("/"), "proc/loadavg")
	if err != nil {
		return err
	}
	if s.tools, err = findTools(ctx); err != nil {
		return err
	}
	if s.openFiles, err = process.RaiseNoFile(); err != nil {
		return err
	}
	if s.cpus, err = process.AllowedCPUs(os.DirFS("/")); err != nil {
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
	lastMinute, _, _ := strings.Cut(load, " ")
	fmt.Fprintf(stdout, "wrk %s and nginx %s against armrepro; CPUs (%s): %d, load average before the start: %s\n\n",
		s.tools.wrkVersion, s.tools.nginxVersion, runtime.GOARCH, runtime.NumCPU(), lastMinute)
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

// probeRounds are enough to tell what one takes.
const probeRounds = 100

// calibrate finds how many rounds of MD5 make a request take the proxy as much
// CPU time as the options ask for, so that it is the same bottleneck on a fast
// machine as on a slow one.
func (s *session) calibrate(ctx context.Context) error {
	bare, err := s.proxyCost(ctx, 0)
	if err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	probed, err := s.proxyCost(ctx, probeRounds)
	if err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	if s.rounds, err = roundsFor(s.opts.proxyWork, bare, probed); err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	s.progress("the proxy: %d rounds of MD5 for %s a request, of which nginx itself takes %s",
		s.rounds, s.opts.proxyWork, bare.Round(time.Microsecond/10))
	return nil
}

// roundsFor is how many rounds take the time that is left of want, given the
// cost of a request without any and with probeRounds. It is 0 where nginx itself
// takes longer.
func roundsFor(want, bare, probed time.Duration) (int, error) {
	if probed <= bare {
		return 0, errors.New("the machine is too noisy: a request took longer without its work than with it")
	}
	rounds := probeRounds * (want - bare).Seconds() / (probed - bare).Seconds()
	return max(0, int(rounds+0.5)), nil
}

// proxyCost is the CPU time that a request takes the proxy with so many rounds.
func (s *session) proxyCost(ctx context.Context, rounds int) (cost time.Duration, err error) {
	s.rounds = rounds
	defer func() { err = errors.Join(err, s.stopServers()) }()
	st, err := s.startStack(ctx, usualKeepalive)
	if err != nil {
		return 0, err
	}
	measured, err := s.runOnce(ctx, s.wrk(usual(st.viaNginx)), warmUp)
	return time.Duration(1000 * proxyCost.of(measured)), err
}
