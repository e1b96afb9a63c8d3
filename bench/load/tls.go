package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tlsRun is a run over https: a goroutine a connection, with Go's own sockets.
// crypto/tls has no way to wait for many connections in one loop. It costs more
// CPU than the loops and counts the same.
type tlsRun struct {
	runner *Runner
	began  time.Time
	// cancel interrupts whatever waits; finished says that it was called.
	cancel context.CancelFunc
	// timer is the schedule's; nil without a rate.
	timer *os.File

	// mu guards what follows, and what connections say that it guards.
	mu       sync.Mutex
	finished bool
	err      error
	conns    []tlsConn
	schedule *schedule
	counters
	// lastRate and rated are when the last rate was recorded and requests
	// then.
	lastRate time.Duration
	rated    uint64
}

// Loops says whether event loops drive the connections of a run, which need
// more GOMAXPROCS than threads and no garbage collection. Over https they don't.
func (cfg Config) Loops() bool {
	r, err := newRequest(cfg)
	return err == nil && r.tls == nil
}

// runTLS runs all connections until the end.
func (r *Runner) runTLS(m *Measurement) error {
	ctx, cancel := context.WithDeadline(context.Background(), m.began.Add(r.cfg.Duration))
	defer cancel()
	t, err := newTLSRun(r, m.began, cancel)
	if err != nil {
		return err
	}
	var connections, turns sync.WaitGroup
	for i := range t.conns {
		connections.Go(func() { t.conns[i].keepBusy(ctx) })
	}
	if t.timer != nil {
		turns.Go(t.takeTurns)
	}
	t.watch(ctx)
	t.end()
	connections.Wait()
	turns.Wait()
	m.add(&t.counters)
	return t.err
}

func newTLSRun(r *Runner, began time.Time, cancel context.CancelFunc) (*tlsRun, error) {
	t := &tlsRun{
		runner:   r,
		began:    began,
		cancel:   cancel,
		conns:    make([]tlsConn, r.cfg.Connections),
		counters: newCounters(r.cfg),
	}
	for i := range t.conns {
		t.conns[i].run, t.conns[i].index, t.conns[i].due = t, int32(i), noRequest
	}
	if r.cfg.Rate > 0 {
		return t, t.newSchedule()
	}
	return t, nil
}

// newSchedule makes one schedule for all connections. Go's own timers are up to
// a millisecond late; a descriptor wakes its reader as promptly as a socket.
func (t *tlsRun) newSchedule() error {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if outOfDescriptors(err) {
		return errDescriptors
	}
	if err != nil {
		return fmt.Errorf("create timer: %w", err)
	}
	t.timer = os.NewFile(uintptr(timer), "timer")
	t.schedule = &schedule{
		interval: float64(time.Second) / t.runner.cfg.Rate,
		idle:     make([]int32, len(t.conns)),
		timer:    timer,
	}
	return nil
}

func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (t *tlsRun) now() time.Duration { return time.Since(t.began) }

// ended says whether the run has come to its end, and ends it then.
func (t *tlsRun) ended() bool {
	if !t.finished && (t.runner.stop.Load() || t.now() >= t.runner.cfg.Duration) {
		t.finish()
	}
	return t.finished
}

// finish ends the run.
func (t *tlsRun) finish() {
	t.finished = true
	t.cancel()
}

// fail ends the run with what ends a loop, too.
func (t *tlsRun) fail(err error) {
	if !t.ended() {
		t.err = err
		t.finish()
	}
}

// watch ticks as a loop does, until the end.
func (t *tlsRun) watch(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.tick()
		}
	}
}

// tick does what has to be done every now and then.
func (t *tlsRun) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended() {
		return
	}
	now := t.now()
	if done := t.requests - t.rated; done > 0 {
		// As of one thread, which is what the row is about.
		t.rates.record(int(float64(done)/(now-t.lastRate).Seconds())/t.runner.cfg.Threads, 1)
		t.runner.done.Add(done)
		t.lastRate, t.rated = now, t.requests
	}
	for i := range t.conns {
		t.conns[i].checkTime(now)
	}
}

// end wakes everything that waits for a socket or the timer.
func (t *tlsRun) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
	t.runner.done.Add(t.requests - t.rated)
	if t.schedule != nil {
		t.unsent = t.schedule.overdue(min(t.now(), t.runner.cfg.Duration))
		// Nobody sets it any more: dispatch knows of the end.
		t.timer.Close()
	}
	for i := range t.conns {
		t.conns[i].interrupt()
	}
}

// takeTurns sends what is due whenever the timer says so.
func (t *tlsRun) takeTurns() {
	var expirations [8]byte
	for {
		if _, err := t.timer.Read(expirations[:]); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				t.mu.Lock()
				t.fail(fmt.Errorf("read timer: %w", err))
				t.mu.Unlock()
			}
			return
		}
		t.mu.Lock()
		t.dispatch()
		t.mu.Unlock()
	}
}

// dispatch gives every request that is due to a connection that is free.
func (t *tlsRun) dispatch() {
	if t.ended() {
		return
	}
	s := t.schedule
	now := t.now()
	if !s.begun {
		s.begun = true
		s.next += float64(now)
	}
	for s.waiting > 0 && s.due() <= now {
		c := &t.conns[s.pop()]
		c.queued = false
		if c.state != idle {
			continue // It was closed while it waited.
		}
		c.due = s.due()
		s.next += s.interval
		c.begin()
		socket := c.socket
		c.writes.Go(func() { c.sendDue(socket) })
		now = t.now()
	}
	if s.waiting == 0 {
		return // The next answer comes back here.
	}
	if err := s.wake(now); err != nil {
		t.fail(err)
	}
}
