package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// conn is one connection. In a closed loop its next request goes out when the
// response to the last one is complete; at a fixed rate, when one is due.
type conn struct {
	fd    int32
	state connState
	// answered says that the connection has carried a response already, so
	// that the server may have closed it between two requests.
	answered bool
	// late says that the current request has been counted as a timeout.
	late bool
	// queued says that it is in the schedule's ring.
	queued bool
	// down says that the current outage has been counted as a connect error.
	down bool
	// unread says that its turn ended before all was read.
	unread bool
	// secure is TLS over fd; nil without.
	secure *secure
	sent   int32
	// start is when the first byte of the current request was written, or
	// when connecting or leaving began.
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
	// shaking is TLS's handshake, a part of connecting.
	shaking
	// leaving is when the server has announced the end instead of a response,
	// and what it does with its socket tells why.
	leaving
	// idle waits until a request is due. From here on there may be data.
	idle
	sending
	waiting
)

// closing is how long after announcing the end of the stream a server takes to
// close the socket, unless it waits for the client to say the same.
const closing = 100 * time.Millisecond

// connect opens connection i. A server that refuses is no error of the loop.
func (l *loop) connect(i int32) {
	c := &l.conns[i]
	c.parser.reset()
	*c = conn{fd: -1, queued: c.queued, down: c.down, start: l.now(), due: c.due, parser: c.parser}
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.err = fmt.Errorf("create socket: %w", err)
		return
	}
	c.fd = int32(fd)
	if err := unix.Connect(fd, l.address); err != nil && err != unix.EINPROGRESS {
		l.refused(c, err)
		return
	}
	if l.family != unix.AF_UNIX {
		// As wrk does; requests are small and responses are waited for.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			l.err = fmt.Errorf("set TCP_NODELAY: %w", err)
		}
	}
	c.state = connecting
	l.err = cmp.Or(l.err, l.events.Add(fd, eventloop.Connection, i))
}

// refused counts one connect error an outage; the next tick tries again.
func (l *loop) refused(c *conn, why error) {
	if !c.down {
		c.down = true
		l.fail(connectError, why, l.now())
	}
	c.close()
}

// close closes the socket, if there is one.
func (c *conn) close() {
	if c.secure != nil {
		c.secure.end()
	}
	if c.fd >= 0 {
		unix.Close(int(c.fd))
	}
	c.secure, c.fd, c.state = nil, -1, closed
}

// reopen closes connection i and connects it again.
func (l *loop) reopen(i int32) {
	l.conns[i].close()
	l.connect(i)
}

// renew reopens a connection that the server has ended as it may.
func (l *loop) renew(i int32) {
	l.Reconnects++
	l.reopen(i)
}

// lose reopens a connection on which an error of kind k has cost its request, if
// it had one.
func (l *loop) lose(i int32, k kind, why error) {
	l.fail(k, why, l.now())
	l.conns[i].due = noRequest
	l.reopen(i)
}

// handle reacts to one event.
func (l *loop) handle(ev eventloop.Event) {
	i := ev.Token
	if i == timerToken {
		l.dispatch()
		return
	}
	c := &l.conns[i]
	switch {
	case c.state == connecting:
		l.connected(i)
	case c.state == shaking:
		l.shake(i)
	case c.state == leaving && c.secure.closed():
		// Only now it shows what was left unread.
		l.failed(i, readError, errUnanswered)
	case c.state == sending && ev.Ready&eventloop.Writable != 0:
		l.send(i)
	}
	if c.state >= idle && (c.unread || ev.Ready&(eventloop.Readable|eventloop.HangUp) != 0) {
		l.receive(i, ev.Ready&eventloop.HangUp != 0)
	}
}

// connected finds out how connecting went and goes on to the first request.
func (l *loop) connected(i int32) {
	c := &l.conns[i]
	errno, err := unix.GetsockoptInt(int(c.fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		l.err = fmt.Errorf("read socket error: %w", err)
		return
	}
	config := l.runner.target.tls
	switch why := syscall.Errno(errno); {
	case why == 0 && config != nil:
		c.secure, c.state = newSecure(int(c.fd), config), shaking
		l.shake(i)
	case why == 0:
		c.down = false
		l.next(i)
	case config == nil && isReset(why):
		// It was accepted, and closed at once.
		c.down = false
		l.fail(readError, why, l.now())
		l.reopen(i)
	default:
		l.refused(c, why)
	}
}

// shake goes on with the handshake, as far as the server has. As in wrk, a
// connection without TLS is none.
func (l *loop) shake(i int32) {
	c := &l.conns[i]
	switch done, err := c.secure.shake(); {
	case !done:
	case err != nil:
		l.refused(c, err)
	default:
		c.down = false
		c.unread = true // The server's first records may have come with its last one of the handshake.
		l.next(i)
	}
}

// next gives a connection that is free its next request: at once in a closed
// loop, or for one that was lost when the connection closed; otherwise when one
// is due.
func (l *loop) next(i int32) {
	c := &l.conns[i]
	if l.schedule == nil || c.due != noRequest {
		l.issue(i)
		return
	}
	c.state = idle
	if !c.queued {
		c.queued = true
		l.schedule.push(i)
	}
	l.dispatch()
}

// issue begins a request.
func (l *loop) issue(i int32) {
	c := &l.conns[i]
	c.start = l.now()
	c.sent = 0
	l.send(i)
}

// send writes what is left of the request.
func (l *loop) send(i int32) {
	c := &l.conns[i]
	request := l.runner.target.request
	n, err := c.write(request[c.sent:])
	c.sent += int32(n)
	if err != nil && err != unix.EAGAIN {
		l.sendFailed(i, err)
		return
	}
	c.state = sending
	if err == nil && int(c.sent) == len(request) {
		c.state = waiting
	}
}

// write sends a part of p, over TLS as much as the socket takes. EAGAIN says that
// some of it has to wait until the socket is writable.
func (c *conn) write(p []byte) (n int, err error) {
	if c.secure != nil {
		return c.secure.write(p)
	}
	return eventloop.Write(int(c.fd), p)
}

// read receives into p. An error of io.EOF is the end of the stream, EAGAIN says
// that nothing has arrived.
func (c *conn) read(p []byte) (n int, err error) {
	if c.secure != nil {
		return c.secure.read(p)
	}
	return eventloop.Read(int(c.fd), p)
}

// sendFailed reacts to a connection that takes no more of a request. The server
// may have answered before it closed, having seen enough.
func (l *loop) sendFailed(i int32, why error) {
	c := &l.conns[i]
	if c.sent > 0 {
		if n, err := c.read(l.buf); err == nil {
			l.Bytes += uint64(n)
			if !l.parse(i, l.buf[:n], true) {
				return
			}
		}
	}
	l.failed(i, writeError, why)
}

// maxReads bounds how much of a connection is read before the others have their
// turn.
const maxReads = 16

// receive reads what has arrived. Less than a full buffer means that nothing is
// left: what comes later is an event of its own. After a hang-up it is not, so
// then everything is read.
func (l *loop) receive(i int32, hungUp bool) {
	c := &l.conns[i]
	c.unread = false
	for range maxReads {
		n, err := c.read(l.buf)
		switch {
		case err == unix.EAGAIN:
			return
		case err == io.EOF:
			l.ended(i)
			return
		case err != nil:
			l.failed(i, readError, err)
			return
		}
		l.Bytes += uint64(n)
		hungUp = hungUp || c.secure != nil && c.secure.over
		if !l.parse(i, l.buf[:n], hungUp) || n < len(l.buf) && !hungUp {
			return
		}
	}
	c.unread = true
	l.err = cmp.Or(l.err, l.events.Rearm(int(c.fd), eventloop.Connection, i))
}

// parse reads the bytes of a response and, when that is complete, sends the next
// request. It returns false if the connection was given up.
func (l *loop) parse(i int32, data []byte, hungUp bool) (open bool) {
	c := &l.conns[i]
	if c.state == idle {
		l.lose(i, readError, errUnasked)
		return false
	}
	used, done, malformed := c.parser.feed(data)
	if done {
		l.completed(c)
	}
	switch {
	case malformed != nil:
		l.lose(i, readError, malformed)
	case !done:
		return true
	case used < len(data):
		// What follows a response belongs to no request: the stream cannot
		// be trusted any more, and the response may have been longer than
		// it said.
		l.lose(i, readError, errUnasked)
	case !c.parser.KeepAlive() || hungUp || c.state == sending:
		// In the last case the server has answered without waiting for
		// the whole request, and does not wait for the rest of it either.
		l.renew(i)
	default:
		c.parser.reset()
		fd := c.fd
		l.next(i)
		return c.state >= idle && c.fd == fd
	}
	return false
}

// completed counts a response.
func (l *loop) completed(c *conn) {
	now := l.now()
	if !l.runner.take(now) {
		return
	}
	l.answered(&l.runner.cfg, c.parser.status, now, now-c.start, now-c.due, c.late)
	c.answered, c.late, c.due = true, false, noRequest
}

// ended reacts to the end of the stream.
func (l *loop) ended(i int32) {
	c := &l.conns[i]
	switch {
	case c.parser.end() && (c.secure == nil || !c.secure.cut):
		l.completed(c)
		l.renew(i)
	case c.secure != nil && !c.secure.closed() && c.unanswered():
		c.state, c.start = leaving, l.now()
	case c.parser.started():
		l.failed(i, readError, errCutOff)
	default:
		l.failed(i, readError, errUnanswered)
	}
}

// unanswered says whether the server may have closed the connection between two
// requests, without having seen the second one.
func (c *conn) unanswered() bool { return c.state != idle && c.answered && !c.parser.started() }

// failed reopens a connection that broke or ended. It counts as an error of kind k
// unless the server closed the connection between two requests, as it may.
func (l *loop) failed(i int32, k kind, why error) {
	c := &l.conns[i]
	left := why == errUnanswered || isReset(why)
	if c.state == idle || left && c.unanswered() && !accepted(int(c.fd)) {
		l.renew(i)
	} else {
		l.lose(i, k, why)
	}
}

// isReset says whether why is what a socket says after the other side has closed
// its own.
func isReset(why error) bool {
	return errors.Is(why, unix.ECONNRESET) || errors.Is(why, unix.EPIPE)
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
