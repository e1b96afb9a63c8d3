package load

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// paced answers like a server that works for about d.
func paced(d time.Duration) func(*session) {
	return func(c *session) {
		for c.request() {
			time.Sleep(d)
			if !c.answer(okAnswer) {
				return
			}
		}
	}
}

// TestCounts compares every count with the server's own, with threads that get
// unequal shares of the connections.
func TestCounts(t *testing.T) {
	t.Parallel()
	s := serve(t, behave)
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections = 3, 7
	m := runUntil(t, cfg, func() bool { return s.accepted.Load() == 7 && s.answers.Load() > 1000 })
	if m.Errors != (Errors{}) || m.Reconnects != 0 {
		t.Errorf("errors %+v, %d reconnects", m.Errors, m.Reconnects)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
	if got := s.accepted.Load(); got != 7 {
		t.Errorf("%d connections, want 7", got)
	}
	if m.Bytes != m.Requests*uint64(len(okAnswer)) {
		t.Errorf("%d bytes of %d answers of %d bytes", m.Bytes, m.Requests, len(okAnswer))
	}
	if m.busiest <= 0 || m.busiest > m.elapsed {
		t.Errorf("busy for %v of %v", m.busiest, m.elapsed)
	}
}

// TestRequestBytes checks what goes over the wire.
func TestRequestBytes(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[string]
	s := serve(t, func(c *session) {
		buf := make([]byte, 1000)
		n, err := c.reader.Read(buf)
		if err != nil {
			return
		}
		text := string(buf[:n])
		got.CompareAndSwap(nil, &text)
		c.answer(okAnswer)
		c.drain()
	})
	cfg := testConfig(s.url + "?q=1#fragment")
	cfg.Connections = 1
	cfg.Header = map[string][]string{"X-Two": {"a", "b"}, "Accept": {"*/*"}}
	runUntil(t, cfg, func() bool { return got.Load() != nil })
	want := "GET /hello?q=1 HTTP/1.1\r\nHost: " + s.listener.Addr().String() + "\r\nAccept: */*\r\nX-Two: a\r\nX-Two: b\r\n\r\n"
	if text := got.Load(); text == nil || *text != want {
		t.Errorf("request %q, want %q", *text, want)
	}
}

// TestLittle checks mean latency and rate against each other: no more connections
// can have been busy than there are, and nearly all always were.
func TestLittle(t *testing.T) {
	t.Parallel()
	s := serve(t, paced(time.Millisecond))
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections, cfg.Requests, cfg.Duration = 2, 16, 2000, time.Hour
	result, err := run(t, cfg).Result()
	if err != nil {
		t.Fatal(err)
	}
	l := result.Latency
	if *l.P50 < 1000 || *l.P50 > *l.P90 || *l.P90 > *l.P99 || *l.P99 > *l.P999 || *l.P999 > *l.Max {
		t.Errorf("percentiles %v %v %v %v %v, want 1000 us and more, in order", *l.P50, *l.P90, *l.P99, *l.P999, *l.Max)
	}
	if busy := result.QPS * *l.Mean / 1e6; busy < 8 || busy > 16.01 {
		t.Errorf("%v answers/s of %v us on average make %v connections, want 16", result.QPS, *l.Mean, busy)
	}
}

// TestStall has a server that answers nobody for a while: all that waited for it
// count, and wrk's correction adds what a closed loop has not sent meanwhile.
func TestStall(t *testing.T) {
	t.Parallel()
	const (
		connections = 16
		stall       = 100 * time.Millisecond
	)
	var waiting, resumed atomic.Int64
	over := make(chan struct{})
	s := serve(t, func(c *session) {
		for stalls := 0; c.request(); {
			if stalls == 1 {
				resumed.Add(1) // The client has counted the response that stalled.
			}
			if c.server.answers.Load() > 500 {
				stalls++
				// It begins once every connection waits.
				if waiting.Add(1) == connections {
					time.AfterFunc(stall, func() { close(over) })
				}
				<-over
			}
			if !c.answer(okAnswer) {
				return
			}
		}
	})
	cfg := testConfig(s.url)
	cfg.Connections = connections
	m := runUntil(t, cfg, func() bool { return resumed.Load() == connections })
	result, err := m.Result()
	if err != nil {
		t.Fatal(err)
	}
	waited := m.Requests - m.raw.below(int((stall - stall/20).Microseconds())).count
	if waited < connections {
		t.Errorf("%d of %d connections have waited for the server", waited, connections)
	}
	if l := result.Latency; *l.MeanWrk <= *l.Mean {
		t.Errorf("mean is %v us, %v corrected: the stall is not in it", *l.Mean, *l.MeanWrk)
	}
}

// TestClockStopsFirst wants the measured time to end before the first connection
// is closed.
func TestClockStopsFirst(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, over transport) {
		s := over.serve(t, behave)
		cfg := testConfig(s.url)
		cfg.Connections, cfg.Threads, cfg.Requests, cfg.Duration = 8, 3, 100, time.Hour
		r, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		loops, err := r.newLoops()
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.measure(loops)
		if err != nil || m.Requests != 100 || m.elapsed != time.Duration(r.last.Load()) {
			t.Errorf("%d requests in %v, the last at %v: %v", m.Requests, m.elapsed, time.Duration(r.last.Load()), err)
		}
		var open int
		for _, l := range loops {
			for i := range l.conns {
				if _, err := unix.FcntlInt(uintptr(l.conns[i].fd), unix.F_GETFD, 0); err == nil {
					open++
				}
			}
			l.close()
		}
		if open != cfg.Connections {
			t.Errorf("%d connections are open at the end, want %d", open, cfg.Connections)
		}
	})
}

// TestLoops has more threads than any machine has processors: their connections
// and their part of the rate are all there.
func TestLoops(t *testing.T) {
	t.Parallel()
	s := serve(t, behave)
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections = MaxThreads, MaxThreads+9
	r, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	loops, err := r.newLoops()
	if err != nil {
		t.Fatal(err)
	}
	threads, connections := 0, 0
	for _, l := range loops {
		threads += l.threads
		connections += len(l.conns)
		l.close()
	}
	if len(loops) > processors() || threads != cfg.Threads || connections != cfg.Connections {
		t.Errorf("%d loops for %d threads with %d connections", len(loops), threads, connections)
	}
}

// TestRates checks wrk's Req/Sec: the rate of one of two threads, taken at each tick in
// which something completed, over the time since the last one.
func TestRates(t *testing.T) {
	t.Parallel()
	l := &loop{runner: &Runner{}, threads: 2, counters: newCounters(Config{})}
	for _, step := range []struct {
		at       time.Duration
		requests uint64
	}{{100, 100}, {200, 300}, {300, 300}, {400, 300}, {500, 306}, {650, 396}} {
		l.Requests = step.requests
		l.tick(step.at * time.Millisecond)
	}
	var got []int
	l.rates.each(func(v int, n uint64) bool {
		got = append(got, v)
		return n == 2
	})
	if want := []int{10, 300, 500, 1000}; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
	if done := l.runner.Completed(); done != 396 {
		t.Errorf("Completed is %d, want 396", done)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := serve(t, behave)
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Duration = 2, time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	runner, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for runner.Completed() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	m, err := runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
	if _, err := New(ctx, cfg); err == nil {
		t.Error("New succeeded with a context that has ended")
	}
	// One that has ended before measures nothing, and says so.
	m, err = runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := m.Result(); err != nil || result.Requests > 0 || result.Latency.Mean != nil {
		t.Errorf("after the end: %+v, %v", result, err)
	}
}

// TestIPv6 is skipped where there is none.
func TestIPv6(t *testing.T) {
	t.Parallel()
	if !hasIPv6() {
		t.Skip("no IPv6 on this machine's loopback interface")
	}
	s := listen(t, "[::1]:0", behave)
	t.Cleanup(s.close)
	cfg := testConfig(s.url)
	m := runUntil(t, cfg, func() bool { return s.answers.Load() > 100 })
	if m.Errors != (Errors{}) {
		t.Errorf("errors %+v", m.Errors)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
}
