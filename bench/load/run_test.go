package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	if m.errors != (Errors{}) || m.reopened != 0 {
		t.Errorf("errors %+v, %d reconnects", m.errors, m.reopened)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
	if got := s.accepted.Load(); got != 7 {
		t.Errorf("%d connections, want 7", got)
	}
	if m.bytes != m.requests*uint64(len(okAnswer)) {
		t.Errorf("%d bytes of %d answers of %d bytes", m.bytes, m.requests, len(okAnswer))
	}
	if busy := m.busiest.Seconds() / m.elapsed.Seconds(); busy <= 0 || busy > 1.1 {
		t.Errorf("busy is %v", busy)
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

// eventually lets a busy machine spoil four runs of five. It is for claims about
// time alone.
func eventually(t *testing.T, run func() error) {
	t.Helper()
	for range 4 {
		if run() == nil {
			return
		}
	}
	if err := run(); err != nil {
		t.Error(err)
	}
}

// TestLittle checks mean latency and rate against each other, and against a
// server that takes a known time.
func TestLittle(t *testing.T) {
	t.Parallel()
	s := serve(t, paced(5*time.Millisecond))
	cfg := testConfig(s.url)
	cfg.Threads, cfg.Connections, cfg.Duration = 2, 16, 500*time.Millisecond
	eventually(t, func() error {
		result, err := run(t, cfg).Result()
		if err != nil {
			return err
		}
		l := result.Latency
		if *l.P50 < 5000 || *l.P50 > *l.P90 || *l.P90 > *l.P99 || *l.P99 > *l.P999 || *l.P999 > *l.Max {
			t.Errorf("percentiles %v %v %v %v %v, want 5000 us and more, in order", *l.P50, *l.P90, *l.P99, *l.P999, *l.Max)
		}
		if busy := result.QPS * *l.Mean / 1e6; busy < 14.5 || busy > 16.5 {
			return fmt.Errorf("%v answers/s of %v us on average make %v connections, want 16", result.QPS, *l.Mean, busy)
		}
		return nil
	})
}

// TestStall has a server that answers nobody for 100 ms.
func TestStall(t *testing.T) {
	t.Parallel()
	eventually(t, func() error {
		var (
			answering sync.RWMutex
			once      sync.Once
		)
		s := serve(t, func(c *session) {
			for c.request() {
				if c.server.answers.Load() > 500 {
					once.Do(func() {
						answering.Lock()
						time.Sleep(100 * time.Millisecond)
						answering.Unlock()
					})
				}
				time.Sleep(2 * time.Millisecond)
				answering.RLock()
				ok := c.answer(okAnswer)
				answering.RUnlock()
				if !ok {
					return
				}
			}
		})
		defer s.close()
		cfg := testConfig(s.url)
		cfg.Connections, cfg.Duration = 16, 600*time.Millisecond
		result, err := run(t, cfg).Result()
		if err != nil {
			return err
		}
		l := result.Latency
		switch {
		case *l.P999 < 95_000 || *l.P999 > 200_000 || *l.Max < *l.P999:
			return fmt.Errorf("p99.9 is %v us and the maximum %v us, want 100 ms", *l.P999, *l.Max)
		case *l.P50 > 20_000:
			return fmt.Errorf("median is %v us, want 2 ms or a little more", *l.P50)
		case *l.MeanWrk < 1.2**l.Mean:
			return fmt.Errorf("mean is %v us, %v corrected: the stall is not in it", *l.Mean, *l.MeanWrk)
		}
		return nil
	})
}

// TestRates checks wrk's Req/Sec: the rate of one thread, taken at each tick in
// which something completed, over the time since the last one.
func TestRates(t *testing.T) {
	t.Parallel()
	l := &loop{runner: &Runner{}, threads: 1, counters: newCounters(Config{})}
	for _, step := range []struct {
		at       time.Duration
		requests uint64
	}{{100, 50}, {200, 150}, {300, 150}, {400, 150}, {500, 153}, {650, 198}} {
		l.requests = step.requests
		if err := l.tick(step.at * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	l.rates.each(func(v int, n uint64) bool {
		got = append(got, v)
		return n == 1
	})
	if want := []int{10, 300, 500, 1000}; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
	if done := l.runner.Completed(); done != 198 {
		t.Errorf("Completed is %d, want 198", done)
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
	var cancelled time.Time
	go func() {
		for runner.Completed() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancelled = time.Now()
		cancel()
	}()
	m, err := runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(cancelled); took > 500*time.Millisecond {
		t.Errorf("stopped %v after it was told to", took)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
	if m.elapsed > 5*time.Second || m.elapsed < 50*time.Millisecond {
		t.Errorf("measured for %v", m.elapsed)
	}
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
	if m.errors != (Errors{}) {
		t.Errorf("errors %+v", m.errors)
	}
	checkServed(t, s, m, cfg.Connections, okAnswer)
}
