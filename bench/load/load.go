// Package load is the load generator: HTTP/1.1 over keep-alive connections, one
// event loop a thread, counting as wrk counts.
//
// A run wants a process of its own with more GOMAXPROCS than threads and no
// garbage collection: see package eventloop.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Config says what to send, how much and for how long.
type Config struct {
	// URL is what to request: http://host:port/path.
	URL string
	// Header is sent with every request beside Host.
	Header http.Header
	// Connections are split over Threads as evenly as possible; there are at
	// least as many.
	Connections int
	Threads     int
	// Duration is how long to measure.
	Duration time.Duration
	// Method is the request's method; empty means GET. Body follows it.
	Method string
	Body   []byte
	// UnixSocket, if set, is connected to instead of the URL's host.
	UnixSocket string
	// Rate is how many requests a second to send, whatever the responses do.
	// Latencies then count from when a request was meant to be sent. 0 means
	// a closed loop: each connection sends when it has its response.
	Rate float64
	// Requests ends the run after so many responses; 0 means that only
	// Duration does.
	Requests int
	// Timeout is how long a response may take before it counts as a timeout.
	// After twice that the connection is given up and opened again.
	Timeout time.Duration
}

// Defaults are wrk's.
const (
	DefaultConnections = 10
	DefaultThreads     = 2
	DefaultDuration    = 10 * time.Second
	DefaultTimeout     = 2 * time.Second
)

// MaxTimeout bounds Config.Timeout: latencies are counted exactly, and that
// takes memory in proportion.
const MaxTimeout = 10 * time.Minute

// MaxThreads bounds Config.Threads, far above the cores of any one machine.
const MaxThreads = 1024

// MaxConnections bounds Config.Connections: Linux gives no process more
// descriptors (fs.nr_open) unless told to.
const MaxConnections = 1 << 20

// MaxRate bounds Config.Rate, far above what one machine's sockets do.
const MaxRate = 100_000_000

// Runner is one run of the generator.
type Runner struct {
	cfg    Config
	target *target
	done   atomic.Uint64
	stop   atomic.Bool
	// taken counts the responses of all threads where Config.Requests bounds
	// them, and last is when the last of those came, since the run began.
	taken atomic.Int64
	last  atomic.Int64
}

// Check says what is wrong with cfg, if anything, before anything is started.
func (cfg Config) Check() error {
	switch {
	case cfg.Connections < 1:
		return errors.New("number of connections must be at least 1")
	case cfg.Threads < 1 || cfg.Threads > MaxThreads:
		return fmt.Errorf("number of threads must be between 1 and %d", MaxThreads)
	case cfg.Connections < cfg.Threads:
		return errors.New("number of connections must be at least the number of threads")
	case cfg.Connections > MaxConnections:
		return fmt.Errorf("number of connections must be at most %d", MaxConnections)
	case cfg.Duration <= 0:
		return errors.New("duration must be longer than 0")
	case cfg.Requests < 0:
		return errors.New("number of requests must not be negative")
	case math.IsNaN(cfg.Rate) || cfg.Rate < 0 || cfg.Rate > MaxRate:
		return fmt.Errorf("rate must be between 0 and %d requests/s", MaxRate)
	case cfg.Timeout < time.Millisecond || cfg.Timeout > MaxTimeout:
		return fmt.Errorf("timeout must be between 1ms and %s", MaxTimeout)
	}
	_, err := newTarget(cfg)
	return err
}

// New resolves the host of cfg and makes sure that something accepts
// connections there.
func New(ctx context.Context, cfg Config) (*Runner, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	t, err := newTarget(cfg)
	if err == nil {
		err = t.resolve(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &Runner{cfg: cfg, target: t}, nil
}

// Secure says whether the URL is https. Then a run leaves garbage behind that has
// to be collected, which without TLS would only make its loops wait.
func (r *Runner) Secure() bool { return r.target.tls != nil }

// Completed is how many responses have completed so far, at most a tenth of a
// second old. It may be called while Run runs.
func (r *Runner) Completed() uint64 { return r.done.Load() }

// Run loads the target until the duration is over, enough is answered or ctx
// ends. When ctx ends early the returned measurement covers what was measured
// until then.
func (r *Runner) Run(ctx context.Context) (*Measurement, error) {
	defer context.AfterFunc(ctx, func() { r.stop.Store(true) })()
	loops, err := r.newLoops()
	defer func() {
		for _, l := range loops {
			l.close()
		}
	}()
	var m *Measurement
	if err == nil {
		m, err = r.measure(loops)
	}
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		err = errDescriptors
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", r.cfg.URL, err)
	}
	return m, nil
}

// newLoops makes one event loop a thread, but no more than there are processors
// to run them on: loops that take turns on one only interrupt each other.
func (r *Runner) newLoops() (loops []*loop, err error) {
	n := min(r.cfg.Threads, processors())
	for i := range n {
		l, err := newLoop(r, i, n)
		if err != nil {
			return loops, err
		}
		loops = append(loops, l)
	}
	return loops, nil
}

// processors is how many this process may use now, which may be fewer than when it
// was started.
func processors() int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return runtime.NumCPU()
	}
	return allowed.Count()
}

// measure runs the loops to their end. Closing their connections takes time that
// is no part of the measurement, and is left to the caller.
func (r *Runner) measure(loops []*loop) (*Measurement, error) {
	m := &Measurement{cfg: r.cfg, began: time.Now(), counters: newCounters(r.cfg)}
	var (
		threads sync.WaitGroup
		errs    = make([]error, len(loops))
	)
	for i, l := range loops {
		threads.Go(func() {
			// One thread alone would measure something else.
			if errs[i] = l.run(m.began); errs[i] != nil {
				r.stop.Store(true)
			}
		})
	}
	threads.Wait()
	ran := time.Since(m.began)
	m.elapsed = ran
	if last := time.Duration(r.last.Load()); last > 0 {
		m.elapsed = last // Other threads may have noticed it late.
	}
	m.elapsed = max(m.elapsed, 1) // A rate is divided by it.
	for _, l := range loops {
		m.add(&l.counters)
		m.busiest = max(m.busiest, ran-l.waited)
	}
	// What ends one loop ends them all.
	return m, cmp.Or(errs...)
}

// take says whether a response at the given time since the beginning still counts.
// The last one of Config.Requests ends the run.
func (r *Runner) take(at time.Duration) bool {
	if r.cfg.Requests == 0 {
		return true
	}
	n := r.taken.Add(1)
	if n == int64(r.cfg.Requests) {
		r.last.Store(int64(at))
		r.stop.Store(true)
	}
	return n <= int64(r.cfg.Requests)
}
