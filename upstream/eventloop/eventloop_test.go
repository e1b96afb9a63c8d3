//go:build linux

package eventloop

import (
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain gives every loop that waits a processor beside the ones that Go's
// scheduler needs.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(16)
	os.Exit(m.Run())
}

func newLoop(t *testing.T) *Loop {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// socketPair returns two connected non-blocking sockets.
func socketPair(t *testing.T) (a, b int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(pair[0])
		unix.Close(pair[1])
	})
	return pair[0], pair[1]
}

// shutdown ends a socket but leaves its descriptor, which t closes.
func shutdown(t *testing.T, fd int) {
	t.Helper()
	if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
}

// some waits until there are events. Go's scheduler sends signals to threads
// that run for long, and a signal ends a Wait without an event.
func some(t *testing.T, l *Loop) int {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		n, err := l.Wait(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return n
		}
	}
	t.Fatal("no event in 5 s")
	return 0
}

// wait waits for exactly one event.
func wait(t *testing.T, l *Loop) Event {
	t.Helper()
	if n := some(t, l); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}
	return l.Event(0)
}

// none makes sure that there is no event.
func none(t *testing.T, l *Loop) {
	t.Helper()
	if n, err := l.Wait(0); err != nil || n != 0 {
		t.Fatalf("Wait: %d events, %v; want none", n, err)
	}
}

func TestLevelTriggered(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	a, b := socketPair(t)
	if err := l.Add(a, Readable, 7); err != nil {
		t.Fatal(err)
	}
	none(t, l)
	if n, err := Write(b, []byte("abc")); n != 3 || err != nil {
		t.Fatalf("Write: %d, %v", n, err)
	}
	for range 2 {
		if ev := wait(t, l); ev.Token != 7 || ev.Ready&Readable == 0 {
			t.Fatalf("event %+v", ev)
		}
	}
	buf := make([]byte, 2)
	if n, err := Read(a, buf); n != 2 || err != nil || string(buf) != "ab" {
		t.Fatalf("Read: %q, %d, %v", buf, n, err)
	}
	if err := l.Remove(a); err != nil {
		t.Fatal(err)
	}
	none(t, l)
	if err := l.Remove(a); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Remove again: %v", err)
	}
}

func TestEdgeTriggered(t *testing.T) {
	t.Parallel()
	const interest = Readable | unix.EPOLLRDHUP | unix.EPOLLET
	l := newLoop(t)
	a, b := socketPair(t)
	if err := l.Add(a, interest, -1); err != nil {
		t.Fatal(err)
	}
	Write(b, []byte("abc"))
	if ev := wait(t, l); ev.Token != -1 {
		t.Fatalf("event %+v", ev)
	}
	none(t, l)
	if err := l.Rearm(a, interest, 3); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, l); ev.Token != 3 || ev.Ready&Readable == 0 {
		t.Fatalf("after Rearm: event %+v", ev)
	}
	none(t, l)
	if err := l.Rearm(b, interest, 3); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Rearm of what is not watched: %v", err)
	}
	shutdown(t, b)
	if ev := wait(t, l); ev.Ready&unix.EPOLLRDHUP == 0 {
		t.Errorf("after shutdown: event %+v", ev)
	}
}

// TestHangUpIsReadable holds even if only writing is of interest.
func TestHangUpIsReadable(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	a, b := socketPair(t)
	shutdown(t, b)
	if err := l.Add(a, Writable, 1); err != nil {
		t.Fatal(err)
	}
	if ev := wait(t, l); ev.Ready&Readable == 0 {
		t.Errorf("event %+v is not readable", ev)
	}
	if n, err := Read(a, make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read: %d, %v; want the end", n, err)
	}
}

func TestReadWriteErrors(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	if n, err := Read(a, make([]byte, 1)); n != 0 || err != unix.EAGAIN {
		t.Errorf("Read of nothing: %d, %v", n, err)
	}
	if n, err := Read(-1, make([]byte, 1)); n != 0 || err != unix.EBADF {
		t.Errorf("Read of no descriptor: %d, %v", n, err)
	}
	var err error
	for err == nil {
		_, err = Write(a, make([]byte, 1<<16))
	}
	if err != unix.EAGAIN {
		t.Errorf("Write until full: %v", err)
	}
	shutdown(t, b)
	// SIGPIPE would end the test here.
	if n, err := Write(a, []byte("x")); n != 0 || err != unix.EPIPE {
		t.Errorf("Write to a closed peer: %d, %v", n, err)
	}
}

func TestWaitTimeout(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	tests := []struct{ timeout, least time.Duration }{
		{-time.Second, 0},
		{0, 0},
		{time.Nanosecond, time.Millisecond},
		{1100 * time.Microsecond, 2 * time.Millisecond},
		{5 * time.Millisecond, 5 * time.Millisecond},
	}
	for _, tt := range tests {
		var longest time.Duration
		for tries := 0; tries < 50 && longest < tt.least; tries++ {
			begin := time.Now()
			if n, err := l.Wait(tt.timeout); n != 0 || err != nil {
				t.Fatalf("Wait(%v): %d, %v", tt.timeout, n, err)
			}
			longest = max(longest, time.Since(begin))
		}
		if longest < tt.least {
			t.Errorf("Wait(%v) returned after %v at most; want %v", tt.timeout, longest, tt.least)
		}
	}
}

func TestMoreEventsThanFit(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	const pairs = maxEvents + 10
	for i := range int32(pairs) {
		a, b := socketPair(t)
		if err := l.Add(a, Readable|unix.EPOLLET, i); err != nil {
			t.Fatal(err)
		}
		Write(b, []byte("x"))
	}
	seen := map[int32]bool{}
	for len(seen) < pairs {
		for i := range some(t, l) {
			seen[l.Event(i).Token] = true
		}
	}
	none(t, l)
}

// TestClosed runs alone: another test's loop could get the same descriptor.
func TestClosed(t *testing.T) {
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Wait(0); err == nil {
		t.Error("Wait on a closed loop succeeded")
	}
	a, _ := socketPair(t)
	if err := l.Add(a, Readable, 0); err == nil {
		t.Error("Add to a closed loop succeeded")
	}
}

// TestNoAllocations is what the hot path relies on.
func TestNoAllocations(t *testing.T) {
	l := newLoop(t)
	a, b := socketPair(t)
	if err := l.Add(a, Readable|unix.EPOLLET, 0); err != nil {
		t.Fatal(err)
	}
	message, buf := []byte("message"), make([]byte, 64)
	allocs := testing.AllocsPerRun(100, func() {
		Write(b, message)
		wait(t, l)
		if n, _ := Read(a, buf); n != len(message) {
			t.Error("nothing read")
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations a message", allocs)
	}
}
