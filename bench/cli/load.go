package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench"
	"armrepro/bench/experiment"
	"armrepro/bench/load"
	"armrepro/proxycheck/process"
)

// loadOptions are the flags of load beside its Config.
type loadOptions struct {
	headers  []string
	body     string
	bodyFile string
	latency  bool
	output   string
	hdr      string
	force    bool
	eventsFD int
}

func newLoad() *cobra.Command {
	cfg := load.Config{
		Connections: load.DefaultConnections,
		Threads:     load.DefaultThreads,
		Duration:    load.DefaultDuration,
		Timeout:     load.DefaultTimeout,
	}
	o := loadOptions{output: "wrk"}
	cmd := &cobra.Command{
		Use:   "load [flags] URL",
		Short: "the load generator alone, with wrk's flags",
		Long:  loadAbout,
		Args:  arguments(1, 1, "URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.URL = args[0]
			if err := o.apply(&cfg); err != nil {
				return err
			}
			ctx := cmd.Context()
			if err := o.generate(ctx, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return interruption(ctx, err)
			}
			// An interrupted run has printed what it measured.
			return context.Cause(ctx)
		},
	}
	group(cmd, "Load", func(fs *pflag.FlagSet) {
		addLoadFlags(fs, duration(&cfg.Duration), count(&cfg.Threads), duration(&cfg.Timeout), "threads that share the connections")
		fs.VarP(count(&cfg.Connections), "connections", "c", "connections to keep open")
		fs.VarP(rate(&cfg.Rate), "rate", "R", "fixed rate in requests/s (default: a closed loop)")
		fs.Var(bounded(&cfg.Requests, math.MaxInt32), "until-requests", "end after this many responses, or after the duration")
	})
	group(cmd, "Request", func(fs *pflag.FlagSet) {
		fs.StringArrayVarP(&o.headers, "header", "H", nil, "`HEADER` add this header (\"Name: value\") to every request; repeatable")
		fs.Var(filled(&cfg.Method, "METHOD"), "method", "request method (default GET, or POST with a body)")
		fs.StringVar(&o.body, "body", "", "`TEXT` request body")
		fs.Var(filled(&o.bodyFile, "FILE"), "body-file", "read the request body from this file")
		fs.Var(filled(&cfg.UnixSocket, "PATH"), "unix-socket", "connect to this unix socket instead of the URL's host")
	})
	group(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.BoolVarP(&o.latency, "latency", "L", false, "print the latency distribution")
		fs.VarP(newChoice(&o.output, "output format", "wrk", "json"),
			"output", "o", "output format: wrk (as wrk prints it) or json")
		fs.Var(filled(&o.hdr, "FILE"), "hdr", "write the latencies to this file as an HdrHistogram log")
		fs.BoolVar(&o.force, "force", false, "allow --hdr to replace a file")
		fs.IntVar(&o.eventsFD, "events-fd", -1, "write progress as JSON lines to this file descriptor")
		_ = fs.MarkHidden("events-fd")
	})
	return cmd
}

// addLoadFlags adds the flags that run and load share, with wrk's names.
func addLoadFlags(fs *pflag.FlagSet, duration, threads, timeout pflag.Value, threadsUsage string) {
	fs.VarP(duration, "duration", "d", "how long each run lasts")
	fs.VarP(threads, "threads", "t", threadsUsage)
	fs.VarP(timeout, "timeout", "T", "how long a response may take before it counts as a timeout")
}

// apply completes cfg from the flags.
func (o *loadOptions) apply(cfg *load.Config) error {
	var err error
	if cfg.Header, err = parseHeaders(o.headers); err != nil {
		return err
	}
	cfg.Body = []byte(o.body)
	if o.bodyFile != "" {
		if o.body != "" {
			return usagef("load: use either --body or --body-file, not both")
		}
		if cfg.Body, err = readBody(o.bodyFile); err != nil {
			return usagef("--body-file: %v", err)
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

// mostBody bounds the body of a request, in bytes: each connection sends it whole.
const mostBody = 16 << 20

func readBody(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := process.ReadAll(f, mostBody)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return body, nil
}

// generate runs the generator and prints what it measured.
func (o *loadOptions) generate(ctx context.Context, cfg load.Config, stdout, stderr io.Writer) error {
	if _, err := process.RaiseNoFile(); err != nil {
		fmt.Fprintf(stderr, "armrepro: %v\n", err)
	}
	// Its loops block without telling the scheduler: each keeps one of these,
	// and a collection would wait for them. See package eventloop.
	runtime.GOMAXPROCS(cfg.Threads + 1)
	runner, err := load.New(ctx, cfg)
	if err != nil {
		return err
	}
	if !runner.Secure() {
		debug.SetGCPercent(-1)
	}
	// Opened before the load, so a bad name does not cost a measurement.
	hdr, err := openOut("--hdr", o.hdr, o.force)
	if err != nil {
		return err
	}
	if o.output == "wrk" {
		if err := runner.WriteHeader(stdout); err != nil {
			return err
		}
	}
	measured, run, err := measureLoad(ctx, runner, openEvents(o.eventsFD))
	if err != nil {
		return err
	}
	// Printed first: a full disk then loses only the log.
	printErr := o.print(stdout, stderr, measured, run, cfg.Connections)
	return errors.Join(printErr, hdr.write(measured.WriteHDR))
}

// print prints the measurement, and doubts about it.
func (o *loadOptions) print(stdout, stderr io.Writer, measured *load.Measurement, run bench.Run, connections int) error {
	var err error
	if o.output == "wrk" {
		err = measured.WriteWrk(stdout, o.latency)
	} else {
		err = writeJSON(stdout, run)
	}
	// The process that follows the events judges the figures itself.
	if o.eventsFD >= 0 {
		return err
	}
	for _, cause := range run.Causes {
		kind, why, _ := strings.Cut(cause, ": ")
		fmt.Fprintf(stderr, "armrepro: first %s error: %s\n", kind, why)
	}
	for _, w := range bench.DoubtRun(&run, connections) {
		fmt.Fprintf(stderr, "armrepro: %s: %s\n  %s\n", w.Code, w.Text, w.Hint)
	}
	if run.Requests == 0 {
		err = errors.Join(err, errors.New("no response received"))
	}
	return err
}

// measureLoad runs the generator and measures what this process uses.
func measureLoad(ctx context.Context, runner *load.Runner, on events) (measured *load.Measurement, run bench.Run, err error) {
	before, err := process.CPUTime(os.Getpid())
	if err != nil {
		return nil, run, err
	}
	on.send(experiment.LoadStarted, 0)
	stop := on.follow(runner)
	measured, err = runner.Run(ctx)
	stop()
	on.send(experiment.LoadEnded, runner.Completed())
	if err != nil {
		return nil, run, err
	}
	after, err := process.CPUTime(os.Getpid())
	if err != nil {
		return nil, run, err
	}
	if run.Result, err = measured.Result(); run.Seconds > 0 {
		run.CPU.Load = new((after - before).Seconds() / run.Seconds)
	}
	if rss, err := process.PeakRSS(os.DirFS("/"), os.Getpid()); err == nil {
		run.RSS.Load = &rss
	}
	return measured, run, err
}

// events report progress to the process that started this one, if it asked.
type events struct{ to io.Writer }

func openEvents(fd int) events {
	if fd < 0 {
		return events{io.Discard}
	}
	return events{os.NewFile(uintptr(fd), "events")}
}

// send sends one event. An error means that the reader has gone, which is fine.
func (e events) send(name string, completed uint64) {
	_ = json.NewEncoder(e.to).Encode(experiment.Event{Name: name, Completed: completed})
}

// follow sends the runner's progress until the returned function is called.
func (e events) follow(r *load.Runner) (stop func()) {
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		const every = 500 * time.Millisecond
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				e.send(experiment.LoadProgress, r.Completed())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		sending.Wait()
	}
}
