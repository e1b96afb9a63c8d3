package load

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// schedule says when requests are due at a fixed rate (an open loop), whatever
// the responses do: so a slow response keeps no request from being counted late
// (Schroeder et al., "Open Versus Closed: A Cautionary Tale", NSDI 2006). Each loop
// has its share of the rate, and any of its connections that is free takes the
// next request.
type schedule struct {
	// interval is the time between two requests, next when the next one is
	// due.
	interval float64
	next     float64
	// begun says that a connection has been ready, from when on requests are
	// due.
	begun bool
	// idle is a ring of the connections that wait for a request, waiting of
	// them from first on. Each is in it once.
	idle           []int32
	first, waiting int
	// timer wakes the loop when the next request is due. epoll's own timeout
	// is too coarse.
	timer int
	// armed is what the timer is set to.
	armed time.Duration
}

// timerToken stands for the timer among the connections.
const timerToken = -1

// newSchedule is that of loop i of n, which share rate; nil without a rate.
func newSchedule(rate float64, i, n, connections int, events *eventloop.Loop) (*schedule, error) {
	if rate == 0 {
		return nil, nil
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	s := &schedule{
		interval: float64(time.Second) * float64(n) / rate,
		next:     float64(time.Second) * float64(i) / rate,
		idle:     make([]int32, connections),
		timer:    timer,
	}
	// Edge-triggered: it is never read.
	if err := events.Add(timer, eventloop.Readable|unix.EPOLLET, timerToken); err != nil {
		unix.Close(timer)
		return nil, err
	}
	return s, nil
}

// never is beyond the end of any run.
const never = math.MaxInt64 / 2

// due is when the next request is due.
func (s *schedule) due() time.Duration { return time.Duration(min(s.next, never)) }

// overdue counts the requests that are due at now and have not been taken.
func (s *schedule) overdue(now time.Duration) uint64 {
	if s.due() > now {
		return 0
	}
	return uint64((float64(now)-s.next)/s.interval) + 1
}

// wake sets the timer to when the next request is due.
func (s *schedule) wake(now time.Duration) error {
	due := s.due()
	if due == s.armed {
		return nil
	}
	s.armed = due
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(1, due-now)))}
	if err := unix.TimerfdSettime(s.timer, 0, &spec, nil); err != nil {
		return fmt.Errorf("set timer: %w", err)
	}
	return nil
}

func (s *schedule) close() {
	if s != nil {
		unix.Close(s.timer)
	}
}

// push adds a connection that waits for a request.
func (s *schedule) push(i int32) {
	s.idle[(s.first+s.waiting)%len(s.idle)] = i
	s.waiting++
}

// pop takes the connection that has waited for longest, so that all are used.
func (s *schedule) pop() int32 {
	i := s.idle[s.first]
	s.first = (s.first + 1) % len(s.idle)
	s.waiting--
	return i
}

// dispatch gives every request that is due to a connection that is free.
func (l *loop) dispatch() {
	s := l.schedule
	now := l.now()
	if !s.begun {
		s.begun = true
		s.next += float64(now)
	}
	for s.waiting > 0 && s.due() <= now {
		i := s.pop()
		c := &l.conns[i]
		c.queued = false
		if c.state != idle {
			continue // It was closed while it waited.
		}
		c.due = s.due()
		s.next += s.interval
		l.issue(i)
		now = l.now()
	}
	if s.waiting > 0 { // Otherwise the next response comes back here.
		l.err = cmp.Or(l.err, s.wake(now))
	}
}
