package load

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// conn is one connection. In a closed loop its next request goes out when the
// answer to the last one is complete; at a fixed rate, when one is due.
type conn struct {
	fd    int32
	state connState
	// answered says that the connection has carried an answer already, so
	// that the server may have closed it between two requests.
	answered bool
	// late says that the current request has been counted as a timeout.
	late bool
	// queued says that it is in the schedule's ring.
	queued bool
	// down says that the current outage has been counted as a connect error.
	down bool
	sent int32
	// start is when the first byte of the current request was written, or
	// when connecting began.
	start time.Duration
	// due is when the current request was meant to be sent, at a fixed rate;
	// noRequest if the connection has none.
	due    time.Duration
	parser parser
}

// noRequest is the due time of no request.
const noRequest = -1

type connState uint8

const (
	closed connState = iota
	connecting
	// idle waits until a request is due.
	idle
	sending
	waiting
)

// interest is registered once for the life of a connection: edge-triggered, so
// that no further call is needed to change it. A hang-up is asked for because
// an edge may stand for data and the end of the stream together.
const interest = eventloop.Readable | eventloop.Writable | unix.EPOLLRDHUP | unix.EPOLLET

// hangUp are the events after which the socket has to be read to its end.
const hangUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// connect opens connection i. A server that refuses is no error of the loop.
func (l *loop) connect(i int32) error {
	c := &l.conns[i]
	*c = conn{fd: -1, queued: c.queued, down: c.down, start: l.now(), due: c.due, parser: parser{bodiless: c.parser.bodiless}}
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	switch err {
	case nil:
	case unix.EMFILE, unix.ENFILE:
		return errDescriptors
	default:
		return fmt.Errorf("create socket: %w", err)
	}
	if err := unix.Connect(fd, l.address); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		l.refused(c)
		return nil
	}
	if l.family != unix.AF_UNIX {
		// As wrk does; requests are small and answers are waited for.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			unix.Close(fd)
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
	}
	if err := l.events.Add(fd, interest, i); err != nil {
		unix.Close(fd)
		return err
	}
	c.fd, c.state = int32(fd), connecting
	return nil
}

// refused counts one connect error an outage; the next tick tries again.
func (l *loop) refused(c *conn) {
	if !c.down {
		c.down = true
		l.errors.Connect++
	}
	c.state = closed
}

// reopen closes connection i and connects it again.
func (l *loop) reopen(i int32) error {
	if c := &l.conns[i]; c.fd >= 0 {
		unix.Close(int(c.fd))
	}
	return l.connect(i)
}

// handle reacts to one event.
func (l *loop) handle(ev eventloop.Event) error {
	if ev.Token == timerToken {
		return l.dispatch()
	}
	c := &l.conns[ev.Token]
	if c.state == connecting {
		if err := l.connected(ev.Token); err != nil {
			return err
		}
	} else if c.state == sending && ev.Ready&eventloop.Writable != 0 {
		if err := l.send(ev.Token); err != nil {
			return err
		}
	}
	if ev.Ready&(eventloop.Readable|hangUp) != 0 && c.state > connecting {
		return l.receive(ev.Token, ev.Ready&hangUp != 0)
	}
	return nil
}

// connected finds out how connecting went and sends the first request.
func (l *loop) connected(i int32) error {
	c := &l.conns[i]
	errno, err := unix.GetsockoptInt(int(c.fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return fmt.Errorf("read socket error: %w", err)
	}
	switch syscall.Errno(errno) {
	case 0:
	case unix.ECONNRESET, unix.EPIPE:
		// It was accepted, and closed at once.
		c.down = false
		l.errors.Read++
		return l.reopen(i)
	default:
		unix.Close(int(c.fd))
		c.fd = -1
		l.refused(c)
		return nil
	}
	c.down = false
	return l.next(i)
}

// next gives a connection that is free its next request: at once in a closed
// loop, or for one that was lost when the connection closed; otherwise when one
// is due.
func (l *loop) next(i int32) error {
	c := &l.conns[i]
	if l.schedule == nil || c.due != noRequest {
		return l.begin(i)
	}
	c.state = idle
	if !c.queued {
		c.queued = true
		l.schedule.push(i)
	}
	return l.dispatch()
}

// begin sends a request.
func (l *loop) begin(i int32) error {
	c := &l.conns[i]
	c.start = l.now()
	c.sent = 0
	return l.send(i)
}

// send writes what is left of the request.
func (l *loop) send(i int32) error {
	c := &l.conns[i]
	n, errno := eventloop.Write(int(c.fd), l.request[c.sent:])
	if errno != 0 && errno != unix.EAGAIN {
		return l.sendFailed(i, errno)
	}
	c.sent += int32(n)
	c.state = sending
	if int(c.sent) == len(l.request) {
		c.state = waiting
	}
	return nil
}

// sendFailed reacts to a connection that takes no more of a request. The server
// may have answered before it closed, having seen enough.
func (l *loop) sendFailed(i int32, errno syscall.Errno) error {
	c := &l.conns[i]
	if c.sent > 0 {
		n, readErrno := eventloop.Read(int(c.fd), l.buf)
		if readErrno == 0 && n > 0 {
			l.bytes += uint64(n)
			if open, err := l.parse(i, l.buf[:n], true); err != nil || !open {
				return err
			}
		}
	}
	return l.failed(i, &l.errors.Write, errno)
}

// maxReads bounds how much of a connection is read before the others have their
// turn.
const maxReads = 16

// receive reads what has arrived. Less than a full buffer means that nothing is
// left: what comes later is an event of its own. After a hang-up it is not, so
// then everything is read.
func (l *loop) receive(i int32, hungUp bool) error {
	c := &l.conns[i]
	for range maxReads {
		n, errno := eventloop.Read(int(c.fd), l.buf)
		switch {
		case errno == unix.EAGAIN:
			return nil
		case errno != 0:
			return l.failed(i, &l.errors.Read, errno)
		case n == 0:
			return l.ended(i)
		}
		l.bytes += uint64(n)
		open, err := l.parse(i, l.buf[:n], hungUp)
		if err != nil || !open || n < len(l.buf) && !hungUp {
			return err
		}
	}
	return l.events.Rearm(int(c.fd), interest, i)
}

// parse reads the bytes of an answer and, when that is complete, sends the next
// request. It returns false if the connection was given up.
func (l *loop) parse(i int32, data []byte, hungUp bool) (open bool, err error) {
	c := &l.conns[i]
	if c.state == idle {
		l.errors.Read++ // Nobody has asked for anything.
		return false, l.reopen(i)
	}
	used, done, malformed := c.parser.feed(data)
	if done {
		l.completed(c)
	}
	switch {
	case malformed != nil:
		l.errors.Read++
		c.due = noRequest
		return false, l.reopen(i)
	case !done:
		return true, nil
	case used < len(data):
		// What follows an answer belongs to no request: the stream cannot
		// be trusted any more, and the answer may have been longer than it
		// said.
		l.errors.Read++
		return false, l.reopen(i)
	case !c.parser.keepAlive || hungUp || c.state == sending:
		// In the last case the server has answered without waiting for
		// the whole request, and does not wait for the rest of it either.
		l.reopened++
		return false, l.reopen(i)
	}
	c.parser.reset()
	fd := c.fd
	err = l.next(i)
	return c.state > connecting && c.fd == fd, err
}

// completed counts an answer.
func (l *loop) completed(c *conn) {
	now := l.now()
	if !l.runner.take(now) {
		return
	}
	l.answered(&l.runner.cfg, c.parser.status, now-c.start, now-c.due, c.late)
	c.answered, c.late, c.due = true, false, noRequest
}

// ended reacts to the end of the stream.
func (l *loop) ended(i int32) error {
	c := &l.conns[i]
	if c.parser.end() {
		l.completed(c)
		l.reopened++
		return l.reopen(i)
	}
	return l.failed(i, &l.errors.Read, 0)
}

// failed reopens a connection that broke, or ended if errno is 0. It counts as
// an error of the given kind unless the server closed the connection between
// two requests, as it may.
func (l *loop) failed(i int32, counter *uint64, errno syscall.Errno) error {
	c := &l.conns[i]
	left := errno == 0 || errno == unix.ECONNRESET || errno == unix.EPIPE
	unsent := c.state == idle
	if unsent || left && c.answered && !c.parser.started() && !accepted(int(c.fd)) {
		l.reopened++
	} else {
		*counter++
		c.due = noRequest
	}
	return l.reopen(i)
}

// accepted says whether the server's side took the request before it closed the
// connection. If it did, closing is no answer. If it had closed before, its
// kernel rejected the request with a reset or never acknowledged it.
func accepted(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.State == tcpClose || info.Unacked > 0 {
		return false
	}
	// Asked for last: a reset that arrives meanwhile leaves nothing unacked,
	// and the kernel reads the state before it locks the rest.
	errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return err == nil && errno == 0
}

// tcpClose is TCP_CLOSE of the kernel's enum in net/tcp_states.h, the state
// after a reset.
const tcpClose = 7
