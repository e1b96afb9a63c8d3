package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// tlsRun is a run over https: a goroutine a connection, with Go's own sockets.
// crypto/tls has no way to wait for many connections in one loop. It costs more
// CPU than the loops and counts the same.
type tlsRun struct {
	runner *Runner
	began  time.Time
	// sent numbers the requests at a fixed rate, which decides when each is
	// due.
	sent atomic.Int64

	mu sync.Mutex
	counters
}

// runTLS runs all connections until the end.
func (r *Runner) runTLS(m *Measurement) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Duration)
	defer cancel()
	t := &tlsRun{runner: r, began: m.began, counters: newCounters(r.cfg)}
	var connections sync.WaitGroup
	for range r.cfg.Connections {
		connections.Go(func() { t.connection(ctx) })
	}
	t.watch(ctx, cancel)
	connections.Wait()
	if r.cfg.Rate > 0 {
		due := int64(min(time.Since(m.began), r.cfg.Duration).Seconds() * r.cfg.Rate)
		t.unsent = uint64(max(0, due-t.sent.Load()))
	}
	m.add(&t.counters)
	return nil
}

// watch records the rate every tick, and ends the run when it is told to or
// enough is answered.
func (t *tlsRun) watch(ctx context.Context, cancel func()) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var counted uint64
	last := t.began
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			t.mu.Lock()
			if done := t.requests - counted; done > 0 {
				// As of one thread, which is what the row is about.
				t.rates.record(int(float64(done)/now.Sub(last).Seconds())/t.runner.cfg.Threads, 1)
				t.runner.done.Add(done)
				counted, last = t.requests, now
			}
			t.mu.Unlock()
			if t.runner.stop.Load() || t.over(ctx) {
				cancel()
			}
		}
	}
}

// over says that the run has come to its end.
func (t *tlsRun) over(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended(ctx)
}

// ended is over for whoever holds the lock. A socket's deadline, or this
// goroutine, can be a moment ahead of the context.
func (t *tlsRun) ended(ctx context.Context) bool {
	cfg := &t.runner.cfg
	return ctx.Err() != nil || time.Since(t.began) >= cfg.Duration ||
		cfg.Requests > 0 && t.requests >= uint64(cfg.Requests)
}

// count changes the counters, unless the run is over: what fails then fails
// because of that.
func (t *tlsRun) count(ctx context.Context, change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended(ctx) {
		change()
	}
}

// connection keeps one connection busy until ctx ends.
func (t *tlsRun) connection(ctx context.Context) {
	due := time.Duration(noRequest)
	for down := false; !t.over(ctx); {
		conn, err := t.dial(ctx)
		if err != nil {
			if !down {
				t.count(ctx, func() { t.errors.Connect++ })
			}
			down = true
			pause(ctx, tick)
			continue
		}
		down = false
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		due = t.requestsOn(ctx, conn, due)
		stop()
		conn.Close()
	}
}

func (t *tlsRun) dial(ctx context.Context) (net.Conn, error) {
	target := t.runner.target
	network, address := "tcp", target.address.String()
	if target.path != "" {
		network, address = "unix", target.path
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: t.runner.cfg.Timeout}, Config: target.tls}
	return d.DialContext(ctx, network, address)
}

// requestsOn sends one request after the other on conn until that ends. It
// returns when the request that was lost with it was due, or noRequest.
func (t *tlsRun) requestsOn(ctx context.Context, conn net.Conn, due time.Duration) time.Duration {
	p := parser{bodiless: t.runner.cfg.Method == http.MethodHead}
	buf := make([]byte, 16<<10)
	for answered := false; !t.over(ctx); answered = true {
		if due == noRequest {
			if due = t.takeTurn(ctx); ctx.Err() != nil {
				return noRequest
			}
		}
		start := time.Since(t.began)
		if t.runner.cfg.Rate == 0 {
			due = start
		}
		late := time.AfterFunc(t.runner.cfg.Timeout, func() { t.count(ctx, func() { t.errors.Timeout++ }) })
		err := t.exchange(conn, &p, buf)
		late.Stop()
		now := time.Since(t.began)
		switch {
		case err == nil:
			t.count(ctx, func() {
				t.answered(p.status, now-due, now-start)
				if !p.keepAlive {
					t.reopened++
				}
			})
		case answered && !p.started() && closedByServer(err):
			t.count(ctx, func() { t.reopened++ })
			return due
		case !errors.Is(err, errGivenUp):
			t.count(ctx, func() { t.errors.Read++ })
			return noRequest
		default:
			return noRequest
		}
		due = noRequest
		if !p.keepAlive {
			return noRequest
		}
		p.reset()
	}
	return noRequest
}

// takeTurn waits until the next request is due.
func (t *tlsRun) takeTurn(ctx context.Context) time.Duration {
	rate := t.runner.cfg.Rate
	if rate == 0 {
		return noRequest
	}
	n := t.sent.Add(1) - 1
	due := time.Duration(float64(n) / rate * float64(time.Second))
	pause(ctx, due-time.Since(t.began))
	if ctx.Err() != nil {
		t.sent.Add(-1)
	}
	return due
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// errGivenUp says that an answer took twice the timeout.
var errGivenUp = errors.New("no answer in twice the timeout")

// exchange sends a request and reads its answer.
func (t *tlsRun) exchange(conn net.Conn, p *parser, buf []byte) error {
	if err := conn.SetDeadline(time.Now().Add(2 * t.runner.cfg.Timeout)); err != nil {
		return err
	}
	if _, err := conn.Write(t.runner.target.request); err != nil {
		return givenUp(err)
	}
	for {
		n, err := conn.Read(buf)
		if n == 0 && err != nil {
			if p.end() {
				return nil
			}
			return givenUp(err)
		}
		t.mu.Lock()
		t.bytes += uint64(n)
		t.mu.Unlock()
		used, done, err := p.feed(buf[:n])
		switch {
		case err != nil:
			return err
		case done && p.keepAlive && used < n:
			return errors.New("bytes follow the answer")
		case done:
			return nil
		}
	}
}

func givenUp(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return errGivenUp
	}
	return err
}

// closedByServer says whether err is the end of a connection rather than a
// broken answer.
func closedByServer(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF)
}
