package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"

	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/proxycheck/process"
)

const loadAbout = `Loads URL over keep-alive connections and prints what wrk would print. Counts take
k, M or G (10k), times take s, m or h (1m).

Without --rate it is wrk's closed loop: a connection sends its next request when it has its
answer. With --rate it is an open loop: requests are due at that rate whatever the answers
do, and latency counts from when a request was due, so that no stall hides (coordinated
omission); what it was from the real send time is printed as Service.

Differences from wrk: an answer that never arrives counts as a timeout (wrk counts only
those that arrive late), and its connection is opened again after twice the timeout; bytes
that follow an answer are a read error, and a 1xx answer is no request; a server that closes
or resets a connection after an answer and before the first byte of the next costs a
reconnect, not an error, unless it had taken that request and closes without a reset, and so
does one whose answer ends with the connection; a reset is a read error, wherever wrk
happens to notice it; a server that refuses connections counts once a connection and outage
and is tried ten times a second; an answer with both Content-Length and chunked is read as
chunked. Read errors are also what RFC 9110 and 9112 forbid or nobody asked for: header
lines over several lines that matter, an empty line before the answer, chunked in HTTP/1.0,
any coding but chunked, 101, two lengths that differ, a zero byte or bare CR in a header,
and headers above 64 KiB. The bytes of such answers count as read. Connections that do not
divide by the threads are all opened (wrk leaves out the rest).

Over https no loops drive the connections: that costs more, nothing can be called busy, and
no certificate is checked. What speaks against a run's figures (a thread that was busy, more
than 1% reconnects, a misfit of rate, latency and connections) is said on standard error.`

// loadEvent is one line of progress for the process that started this one.
type loadEvent struct {
	Event     string `json:"event"`
	Completed uint64 `json:"completed"`
}

// The events of a load run. Started and Ended enclose the measured window.
const (
	loadStarted  = "started"
	loadProgress = "progress"
	loadEnded    = "ended"
)

// loadOptions are the flags of load beside its Config.
type loadOptions struct {
	headers  []string
	body     string
	bodyFile string
	latency  bool
	output   string
	hdr      string
	eventsFD int
}

func (o *loadOptions) add(fs *pflag.FlagSet, cfg *load.Config) error {
	fs.StringArrayVarP(&o.headers, "header", "H", nil, "add this header to every request (Name: value); repeatable")
	fs.StringVar(&cfg.Method, "method", "", "method of the request (default GET, or POST with a body)")
	fs.StringVar(&o.body, "body", "", "body of every request")
	fs.StringVar(&o.bodyFile, "body-file", "", "file with the body of every request")
	fs.StringVar(&cfg.UnixSocket, "unix-socket", "", "connect to this unix socket instead of the URL's host")
	fs.VarP((*rateValue)(&cfg.Rate), "rate", "R", "send so many requests a second, whatever the answers do (default: a closed loop)")
	fs.Var((*countValue)(&cfg.Requests), "until-requests", "end after so many answers, or after the duration")
	fs.BoolVarP(&o.latency, "latency", "L", false, "print the latency distribution")
	fs.StringVarP(&o.output, "output", "o", "wrk", "print the result as wrk prints it (wrk) or as json")
	fs.StringVar(&o.hdr, "hdr", "", "write the latencies to this file as an HdrHistogram log")
	fs.IntVar(&o.eventsFD, "events-fd", -1, "write progress as JSON lines to this file descriptor")
	return fs.MarkHidden("events-fd")
}

// apply completes cfg by what the flags say.
func (o *loadOptions) apply(cfg *load.Config) error {
	if o.output != "wrk" && o.output != "json" {
		return usagef("load: --output: %q is neither wrk nor json", o.output)
	}
	var err error
	if cfg.Header, err = parseHeaders(o.headers); err != nil {
		return err
	}
	cfg.Body = []byte(o.body)
	if o.bodyFile != "" {
		if o.body != "" {
			return usagef("load: --body and --body-file exclude each other")
		}
		if cfg.Body, err = os.ReadFile(o.bodyFile); err != nil {
			return usagef("load: --body-file: %v", err)
		}
	}
	if cfg.Method == "" && len(cfg.Body) > 0 {
		cfg.Method = http.MethodPost
	}
	if err := cfg.Check(); err != nil {
		return usagef("load: %v", err)
	}
	return nil
}

func runLoad(ctx context.Context, args []string, s streams) error {
	cfg := load.Config{
		Connections: load.DefaultConnections,
		Threads:     load.DefaultThreads,
		Duration:    load.DefaultDuration,
		Timeout:     load.DefaultTimeout,
	}
	var opts loadOptions
	fs := newFlags("load", "URL", loadAbout, s)
	addLoadFlags(fs, &cfg, "threads that share the connections")
	if err := opts.add(fs, &cfg); err != nil {
		return err
	}
	if err := parse(fs, args, 1, 1); err != nil {
		return err
	}
	cfg.URL = fs.Arg(0)
	if fs.Changed("unix-socket") && cfg.UnixSocket == "" {
		return usagef("load: --unix-socket: no path is given")
	}
	if err := opts.apply(&cfg); err != nil {
		return err
	}
	if err := generate(ctx, cfg, opts, s); err != nil {
		return interruption(ctx, err)
	}
	// An interrupted run has printed what it measured.
	return context.Cause(ctx)
}

// generate runs the generator and prints what it measured.
func generate(ctx context.Context, cfg load.Config, opts loadOptions, s streams) error {
	if _, err := process.RaiseNoFile(); err != nil {
		fmt.Fprintf(s.err, "armrepro: %v\n", err)
	}
	if cfg.Loops() {
		// They block without telling the scheduler: each keeps one of these,
		// and a collection would wait for them. See package eventloop.
		runtime.GOMAXPROCS(cfg.Threads + 1)
		debug.SetGCPercent(-1)
	}

	runner, err := load.New(ctx, cfg)
	if err != nil {
		return err
	}
	// Made before the load, so that a bad name costs nobody a measurement.
	hdr, err := createHDR(opts.hdr)
	if err != nil {
		return err
	}
	if opts.output == "wrk" {
		if err := runner.WriteHeader(s.out); err != nil {
			return errors.Join(err, hdr.write(nil))
		}
	}
	events := openEvents(opts.eventsFD)
	defer events.close()
	measured, cpu, err := measureLoad(ctx, runner, events)
	if err != nil {
		return errors.Join(err, hdr.write(nil))
	}
	// Printed first: a full disk takes only the log.
	printErr := printLoad(s, measured, cpu, cfg, opts)
	return errors.Join(printErr, hdr.write(measured))
}

// printLoad prints what was measured, and what speaks against it.
func printLoad(s streams, measured *load.Measurement, cpu time.Duration, cfg load.Config, opts loadOptions) error {
	result, err := measured.Result()
	if err != nil {
		return err
	}
	run := bench.Run{Result: result}
	if opts.output == "wrk" {
		err = measured.WriteWrk(s.out, opts.latency)
	} else {
		err = writeRun(s, run, cpu)
	}
	// Whoever follows the events judges for itself.
	if opts.eventsFD >= 0 {
		return err
	}
	for _, w := range bench.DoubtRun(&run, cfg.Connections) {
		fmt.Fprintf(s.err, "armrepro: %s: %s\n  %s\n", w.Code, w.Text, w.Hint)
	}
	return err
}

// measureLoad runs the generator, and measures the CPU time of this process
// meanwhile.
func measureLoad(ctx context.Context, runner *load.Runner, events *eventWriter) (*load.Measurement, time.Duration, error) {
	before, err := process.CPUTime(os.Getpid())
	if err != nil {
		return nil, 0, err
	}
	events.send(loadStarted, 0)
	stop := events.follow(runner)
	measured, err := runner.Run(ctx)
	stop()
	events.send(loadEnded, runner.Completed())
	if err != nil {
		return nil, 0, err
	}
	after, err := process.CPUTime(os.Getpid())
	return measured, after - before, err
}

// hdrFile is the file for the HdrHistogram log; nil if none was asked for.
type hdrFile struct{ *os.File }

// createHDR makes the file, if there is a name.
func createHDR(name string) (*hdrFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, usagef("load: --hdr: %v", err)
	}
	return &hdrFile{f}, nil
}

// write writes the log. Without a measurement, or when that fails, no regular
// file is left.
func (f *hdrFile) write(m *load.Measurement) error {
	if f == nil {
		return nil
	}
	var err error
	if m != nil {
		err = m.WriteHDR(f)
	}
	info, statErr := f.Stat()
	err = errors.Join(err, statErr, f.Close())
	if (m == nil || err != nil) && statErr == nil && info.Mode().IsRegular() {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("write the HdrHistogram log: %w", err)
	}
	return nil
}

// writeRun prints a measurement as the JSON of one run.
func writeRun(s streams, run bench.Run, cpu time.Duration) error {
	if run.Seconds > 0 {
		cores := cpu.Seconds() / run.Seconds
		run.CPU.Load = &cores
	}
	if rss, err := process.PeakRSS(os.DirFS("/"), os.Getpid()); err == nil {
		run.RSS.Load = &rss
	}
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	return enc.Encode(run)
}

// eventWriter sends load events to the process that asked for them. A nil file
// means that nobody did.
type eventWriter struct{ file *os.File }

func openEvents(fd int) *eventWriter {
	if fd < 0 {
		return &eventWriter{}
	}
	return &eventWriter{file: os.NewFile(uintptr(fd), "events")}
}

func (w *eventWriter) close() {
	if w.file != nil {
		w.file.Close()
	}
}

// send writes one event. Whoever asked may have gone; then nobody misses it.
func (w *eventWriter) send(event string, completed uint64) {
	if w.file == nil {
		return
	}
	line, err := json.Marshal(loadEvent{Event: event, Completed: completed})
	if err == nil {
		_, _ = w.file.Write(append(line, '\n'))
	}
}

// follow sends the runner's progress until the returned function is called.
func (w *eventWriter) follow(r *load.Runner) (stop func()) {
	if w.file == nil {
		return func() {}
	}
	ticker := time.NewTicker(500 * time.Millisecond)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ticker.C:
				w.send(loadProgress, r.Completed())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-stopped
	}
}
