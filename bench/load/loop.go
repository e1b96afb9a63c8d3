package load

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// tick is how often a loop looks for timeouts, records its request rate and
// tries refused connections again. wrk records its rate as often.
const tick = 100 * time.Millisecond

// readBuffer is shared by all connections of a loop.
const readBuffer = 64 << 10

// loop drives a share of the connections. Times are since the run began.
type loop struct {
	runner  *Runner
	family  int
	address unix.Sockaddr
	events  *eventloop.Loop
	started time.Time
	// threads is how many of the threads that were asked for it stands for.
	threads  int
	conns    []conn
	buf      []byte
	schedule *schedule

	// err is what ends the loop, if anything does.
	err error

	counters
	// waited is how long the loop had nothing to do.
	waited time.Duration

	lastTick time.Duration
	// lastRate and rated are when the last rate was recorded and requests
	// then.
	lastRate time.Duration
	rated    uint64
}

// newLoop is loop i of n.
func newLoop(r *Runner, i, n int) (*loop, error) {
	events, err := eventloop.New()
	if err != nil {
		return nil, err
	}
	// What TLS leaves behind has to be collected during the run.
	events.Collectable = r.Secure()
	connections := share(r.cfg.Connections, n, i)
	schedule, err := newSchedule(r.cfg.Rate, i, n, connections, events)
	if err != nil {
		events.Close()
		return nil, err
	}
	l := &loop{
		runner:   r,
		events:   events,
		threads:  share(r.cfg.Threads, n, i),
		conns:    make([]conn, connections),
		buf:      make([]byte, readBuffer),
		schedule: schedule,
		counters: newCounters(r.cfg),
	}
	l.family, l.address = r.target.sockaddr()
	for i := range l.conns {
		l.conns[i].fd, l.conns[i].due = -1, noRequest
		l.conns[i].parser.bodiless = r.cfg.Method == http.MethodHead
	}
	return l, nil
}

// share is part i of n things that are split as evenly as possible.
func share(n, parts, i int) int {
	s := n / parts
	if i < n%parts {
		s++
	}
	return s
}

// close closes every socket and the epoll instance.
func (l *loop) close() {
	for i := range l.conns {
		l.conns[i].close()
	}
	l.schedule.close()
	l.events.Close()
}

func (l *loop) now() time.Duration { return time.Since(l.started) }

// run sends requests until the duration is over or enough are answered.
func (l *loop) run(began time.Time) error {
	l.begin(began)
	end := l.runner.cfg.Duration
	for now := l.now(); now < end && l.err == nil && !l.runner.stop.Load(); now = l.now() {
		l.step(now, end)
	}
	if l.schedule != nil {
		l.Unsent = l.schedule.overdue(min(l.now(), end))
	}
	l.runner.done.Add(l.Requests - l.rated)
	return l.err
}

// begin connects all.
func (l *loop) begin(began time.Time) {
	l.started = began
	for i := range l.conns {
		l.connect(int32(i))
	}
}

// step reacts to what happens next, until the given time at most.
func (l *loop) step(now, end time.Duration) {
	if now >= l.lastTick+tick {
		l.tick(now)
	}
	n, err := l.events.Wait(min(l.lastTick+tick, end) - now)
	l.err = cmp.Or(l.err, err)
	l.waited += l.now() - now
	for i := 0; i < n && !l.runner.stop.Load(); i++ {
		l.handle(l.events.Event(i))
	}
}

// tick does what has to be done every now and then.
func (l *loop) tick(now time.Duration) {
	// As in wrk, a time without a response belongs to the next rate.
	if done := l.Requests - l.rated; done > 0 {
		rate := float64(done) / (now - l.lastRate).Seconds() / float64(l.threads)
		l.rates.record(int(rate), uint64(l.threads))
		l.runner.done.Add(done)
		l.lastRate, l.rated = now, l.Requests
	}
	l.lastTick = now
	for i := range l.conns {
		l.checkTime(int32(i), now)
	}
}

// checkTime looks for a connection that waits for too long.
func (l *loop) checkTime(i int32, now time.Duration) {
	c := &l.conns[i]
	timeout := l.runner.cfg.Timeout
	age := now - c.start
	switch {
	case c.state == closed:
		l.connect(i)
	case c.state == leaving && age > closing:
		l.renew(i)
	case c.state == idle || c.state == leaving || age <= timeout:
	case c.state < idle:
		l.refused(c, errUnopened)
		l.connect(i)
	case !c.late:
		// wrk counts a timeout when the response arrives at last, so one
		// that never arrives goes uncounted there.
		c.late = true
		l.fail(timeoutError, errLate, now)
	case age > 2*timeout:
		c.due = noRequest
		l.reopen(i)
	}
}

// errDescriptors ends a run.
var errDescriptors = errors.New("too many open files: raise the limit (ulimit -n) or use fewer connections")
