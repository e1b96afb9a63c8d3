package upstream

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// tick is how often a loop looks at the clock: for the Date header, for clients
// that are too slow and for whether it should stop.
const tick = 100 * time.Millisecond

// readBuffer is shared by all connections of a loop.
const readBuffer = 64 << 10

// loop answers a share of the connections from one thread.
type loop struct {
	server  *Server
	events  *eventloop.Loop
	answers answers
	// conns is indexed by descriptor.
	conns []conn
	buf   []byte
	// out collects the answers to what one read brought.
	out []byte
	// now is when the last events came.
	now, nextTick time.Time
	// full holds listeners that are not watched because no descriptor was
	// left for a further connection.
	full []int
	// err is what ends the loop, if anything does.
	err error
	// answered counts the answers that were handed to the kernel whole.
	answered uint64
	// published is answered for other threads, as of the last round. Its cache
	// line is the loop's alone.
	_         cpu.CacheLinePad
	published atomic.Uint64
	_         cpu.CacheLinePad
}

func newLoop(s *Server) (*loop, error) {
	events, err := eventloop.New()
	if err != nil {
		return nil, err
	}
	l := &loop{server: s, events: events, buf: make([]byte, readBuffer), now: time.Now()}
	l.answers.refresh(l.now)
	for _, fd := range s.listeners {
		if err := l.watch(fd); err != nil {
			events.Close()
			return nil, err
		}
	}
	return l, nil
}

// watch waits for connections to a listener. Its token is below 0, which tells it
// from those.
func (l *loop) watch(listener int) error {
	return l.events.Add(listener, eventloop.Readable|eventloop.Exclusive, ^int32(listener))
}

// run answers until the server is closed.
func (l *loop) run() error {
	for l.err == nil && !l.server.stop.Load() {
		l.round(tick)
	}
	return l.err
}

// round answers what comes next, within the timeout.
func (l *loop) round(timeout time.Duration) {
	n, err := l.events.Wait(timeout)
	l.err = err
	l.now = time.Now()
	for i := range n {
		l.handle(l.events.Event(i))
	}
	l.published.Store(l.answered)
	if l.now.After(l.nextTick) {
		l.tick()
	}
}

// close closes every connection and the epoll instance.
func (l *loop) close() {
	for i := range l.conns {
		if l.conns[i].open {
			unix.Close(i)
		}
	}
	l.events.Close()
}

func (l *loop) handle(ev eventloop.Event) {
	if ev.Token < 0 {
		l.accept(int(^ev.Token))
		return
	}
	c := &l.conns[ev.Token]
	if !c.open {
		return // Closed by an earlier event of the same batch.
	}
	if ev.Ready&eventloop.Writable != 0 && len(c.out) > 0 {
		l.flush(c)
	}
	// What could not be read while there was something to send is still
	// reported with the event that lets it be sent.
	if c.open && len(c.out) == 0 && ev.Ready&(eventloop.Readable|eventloop.HangUp) != 0 {
		l.receive(c, ev.Ready&eventloop.HangUp != 0)
	}
}

// accept takes every connection that waits.
func (l *loop) accept(ln int) {
	for {
		fd, _, err := unix.Accept4(ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
		case unix.EAGAIN:
			return
		case unix.EINTR, unix.ECONNABORTED, unix.EPERM, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP,
			unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET:
			continue // One connection's own error; see accept(2).
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			// It stays readable: watched on, it would spin.
			l.full = append(l.full, ln)
			l.err = cmp.Or(l.err, l.events.Remove(ln))
			return
		default:
			l.err = fmt.Errorf("accept connection: %w", err)
			return
		}
		if l.events.Add(fd, eventloop.Connection, int32(fd)) != nil {
			unix.Close(fd) // The kernel has no memory to watch it.
			continue
		}
		if missing := fd + 1 - len(l.conns); missing > 0 {
			l.conns = append(l.conns, make([]conn, missing)...)
		}
		l.conns[fd] = conn{fd: int32(fd), open: true, since: l.now}
	}
}

// tick renews the date, watches listeners again that had to wait for a
// descriptor, and ends connections whose time is over.
func (l *loop) tick() {
	l.nextTick = l.now.Add(tick)
	l.answers.refresh(l.now)
	for _, ln := range l.full {
		l.err = cmp.Or(l.err, l.watch(ln))
	}
	l.full = l.full[:0]
	for i := range l.conns {
		if c := &l.conns[i]; c.open {
			l.checkTime(c)
		}
	}
}

// checkTime ends a connection whose client is too slow.
func (l *loop) checkTime(c *conn) {
	age := l.now.Sub(c.since)
	limits := &l.server.timeouts
	switch {
	case c.lingering:
		if age > limits.linger {
			l.closeConn(c)
		}
	case len(c.out) > 0:
		if age > limits.read {
			l.closeConn(c)
		}
	case c.idle():
		if age > limits.idle {
			l.closeConn(c)
		}
	case age > limits.read:
		l.refuse(c, 408)
		l.flush(c)
	}
}

// maxReads bounds how much of a connection is read before the others have their
// turn.
const maxReads = 16

// receive reads what has arrived and answers what is complete.
func (l *loop) receive(c *conn, hungUp bool) {
	for range maxReads {
		n, err := eventloop.Read(int(c.fd), l.buf)
		if err == unix.EAGAIN {
			return
		}
		if err != nil {
			l.closeConn(c)
			return
		}
		if !c.lingering {
			l.process(c, l.buf[:n])
			l.flush(c)
		}
		switch {
		case !c.open:
			return
		case len(c.out) > 0:
			// No further request is read before this one's client has
			// taken its answer.
			return
		case n < len(l.buf) && !hungUp:
			return
		}
	}
	if l.events.Rearm(int(c.fd), eventloop.Connection, c.fd) != nil {
		l.closeConn(c)
	}
}

// process answers every request that data completes, and keeps the rest.
func (l *loop) process(c *conn, data []byte) {
	if c.idle() {
		c.since = l.now
	}
	if len(c.in) > 0 {
		c.in = append(c.in, data...)
		if bytes.IndexByte(data, '\n') < 0 && len(c.in) <= maxHead {
			return // No line more than before.
		}
		data = c.in
	}
	used := 0
	for used < len(data) && !c.closing {
		n := l.processOne(c, data[used:])
		if n == 0 {
			break
		}
		used += n
	}
	switch {
	case c.closing || used == len(data):
		c.in = nil
	default:
		c.in = append(c.in[:0], data[used:]...)
	}
}

// processOne takes a request's head, or a part of its body, from data. It
// returns how many bytes it took: 0 if a head is not complete.
func (l *loop) processOne(c *conn, data []byte) int {
	if c.pending != nil {
		used, done, status := c.pending.read(data)
		switch {
		case status != 0:
			l.refuse(c, status)
		case done:
			p := c.pending
			c.pending = nil
			l.answer(c, &p.request, p.body)
		}
		return used
	}
	if data[0] == '\r' || data[0] == '\n' {
		return 1 // Empty lines before a request are to be ignored (RFC 9112, 2.2).
	}
	r, used, status := parseRequest(data)
	switch {
	case status != 0:
		l.refuse(c, status)
		return len(data)
	case used == 0:
		return 0
	case r.Chunked || r.Length > 0:
		c.pending = newPending(data[:used])
		if r.expects {
			l.out = append(l.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
		}
	default:
		l.answer(c, &r, nil)
	}
	return used
}

func (l *loop) answer(c *conn, r *request, body []byte) {
	var peer string
	if isAnything(r.target) {
		peer = peerIP(int(c.fd))
	}
	l.out = l.answers.appendAnswer(l.out, r, body, peer)
	if len(body) > 0 {
		l.now = time.Now() // Echoing a large one takes a while.
	}
	c.closing = !r.KeepAlive()
	c.since = l.now
	c.unsent++
}

func (l *loop) refuse(c *conn, status int) {
	l.out = l.answers.appendError(l.out, status)
	c.closing, c.pending, c.in = true, nil, nil
	c.since = l.now
	c.unsent++
}

// flush sends the answers collected, and keeps what the client does not take.
func (l *loop) flush(c *conn) {
	out := l.out
	if len(c.out) > 0 {
		c.out = append(c.out, out...)
		out = c.out
	}
	l.out = l.out[:0]
	for len(out) > 0 {
		n, err := eventloop.Write(int(c.fd), out)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			l.closeConn(c)
			return
		}
		out = out[n:]
		c.since = l.now
	}
	if len(out) > 0 {
		c.out = append(c.out[:0], out...)
		return
	}
	c.out = nil
	l.answered += c.unsent
	c.unsent = 0
	if c.closing && !c.lingering {
		c.lingering = true
		c.since = l.now
		if unix.Shutdown(int(c.fd), unix.SHUT_WR) != nil {
			l.closeConn(c)
		}
	}
}

func (l *loop) closeConn(c *conn) {
	unix.Close(int(c.fd))
	*c = conn{fd: c.fd}
}

// peerIP is the address of the client, or an empty string.
func peerIP(fd int) string {
	address, err := unix.Getpeername(fd)
	if err != nil {
		return ""
	}
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return net.IP(a.Addr[:]).String()
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr).Unmap().String()
	}
	return ""
}
