package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// tlsConn is one connection over https, opened again and again. It is conn with
// a goroutine that always reads, so that nothing the server does between two
// requests goes unseen; run.mu guards all that others look at.
type tlsConn struct {
	run   *tlsRun
	index int32
	buf   []byte

	// socket is nil while there is no connection; wire is what it runs over.
	socket *tls.Conn
	wire   *wire
	state  connState
	// answered, late, queued and down are as in conn.
	answered, late, queued, down bool
	// givenUp says that its answer took twice the timeout.
	givenUp bool
	// sendErr says why a request was not sent.
	sendErr error
	// start and due are as in conn.
	start, due time.Duration
	parser     parser

	// writes are the goroutines that write to socket, writing lets one of
	// them after the other.
	writes  sync.WaitGroup
	writing sync.Mutex
}

// tlsRecord is the most that TLS encrypts in one piece, and what every socket
// takes at once.
const tlsRecord = 16 << 10

// errTaken says that the server took a request and closed the connection.
var errTaken = errors.New("connection closed instead of an answer")

// keepBusy keeps the connection open and busy until the run ends.
func (c *tlsConn) keepBusy(ctx context.Context) {
	c.buf = make([]byte, tlsRecord)
	for ctx.Err() == nil {
		socket, wire, err := c.run.dial(ctx)
		if err != nil {
			c.refused(err)
			pause(ctx, tick)
			continue
		}
		if open, request := c.opened(socket, wire); open {
			c.use(socket, request)
		}
		// It says goodbye, and ends a write that still runs.
		socket.Close()
		c.writes.Wait()
	}
}

// dial connects. As in wrk, a connection without TLS is none.
func (t *tlsRun) dial(ctx context.Context) (*tls.Conn, *wire, error) {
	ctx, cancel := context.WithTimeout(ctx, t.runner.cfg.Timeout)
	defer cancel()
	target := t.runner.target
	network, address := "tcp", target.address.String()
	if target.path != "" {
		network, address = "unix", target.path
	}
	var d net.Dialer
	plain, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, nil, err
	}
	w := &wire{Conn: plain}
	socket := tls.Client(w, target.tls)
	if err := socket.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, nil, err
	}
	return socket, w, nil
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refused counts one connect error an outage. What keeps a socket from being
// made is no server's doing, and ends the run.
func (c *tlsConn) refused(err error) {
	t := c.run
	t.mu.Lock()
	defer t.mu.Unlock()
	call, ok := errors.AsType[*os.SyscallError](err)
	switch {
	case t.ended():
	case outOfDescriptors(err):
		t.fail(errDescriptors)
	case ok && call.Syscall == "socket":
		t.fail(fmt.Errorf("create socket: %w", call.Err))
	case !c.down:
		c.down = true
		t.errors.Connect++
	}
}

// opened takes a new connection, unless the run is over. It says whether its
// first request is to be sent now.
func (c *tlsConn) opened(socket *tls.Conn, w *wire) (open, request bool) {
	t := c.run
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended() {
		return false, false
	}
	c.socket, c.wire = socket, w
	c.answered, c.late, c.down, c.givenUp, c.sendErr = false, false, false, false, nil
	c.parser = parser{bodiless: t.runner.cfg.Method == http.MethodHead}
	return true, c.next()
}

// use sends one request after the other until the connection ends.
func (c *tlsConn) use(socket *tls.Conn, request bool) {
	for open := true; open; {
		switch {
		case !request:
		case len(c.run.runner.target.request) > tlsRecord:
			// The server may answer before it has taken all of it.
			c.writes.Go(func() { c.send(socket) })
		default:
			c.send(socket)
		}
		n, err := c.read(socket)
		open, request = c.received(c.buf[:n], err)
	}
}

// next gives a connection that is free its next request, as loop.next does. It
// says whether that is to be sent now.
func (c *tlsConn) next() (request bool) {
	s := c.run.schedule
	if s == nil || c.due != noRequest {
		c.begin()
		return true
	}
	c.state = idle
	if !c.queued {
		c.queued = true
		s.push(c.index)
	}
	c.run.dispatch()
	return false
}

// begin starts a request. One that is not split is sent or not: nobody answers
// a part of it.
func (c *tlsConn) begin() {
	c.start = c.run.now()
	c.state = waiting
	if len(c.run.runner.target.request) > tlsRecord {
		c.state = sending
	}
}

// sendDue is send in a goroutine of its own, which may have waited for its turn:
// that is no part of the service time.
func (c *tlsConn) sendDue(socket *tls.Conn) {
	c.run.mu.Lock()
	if c.socket == socket {
		c.start = c.run.now()
	}
	c.run.mu.Unlock()
	c.send(socket)
}

// send writes the request. All but its last record being taken counts as sent,
// so that an answer to its end cannot be faster than the word of it.
func (c *tlsConn) send(socket *tls.Conn) {
	c.writing.Lock()
	defer c.writing.Unlock()
	request := c.run.runner.target.request
	if rest := len(request) - tlsRecord; rest > 0 {
		_, err := socket.Write(request[:rest])
		c.sent(socket, err)
		request = request[rest:]
	}
	if _, err := socket.Write(request); err != nil {
		c.sent(socket, err)
	}
}

// sent says how writing went. What to do about an error is for the reader to
// say, who gets one as well: the server may have answered before.
func (c *tlsConn) sent(socket *tls.Conn, err error) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	switch {
	case c.socket != socket:
	case err != nil:
		c.sendErr = err
	case c.state == sending:
		c.state = waiting
	}
}

// read reads once. Where the server may close without an answer, it finds out
// whether it did.
func (c *tlsConn) read(socket *tls.Conn) (n int, err error) {
	n, err = socket.Read(c.buf)
	if n == 0 && closedByServer(err) && c.answered && !c.parser.started() && !c.isIdle() {
		// What has not been written cannot have been taken.
		c.writes.Wait()
		if c.wire.taken() {
			err = errTaken
		}
	}
	return n, err
}

func (c *tlsConn) isIdle() bool {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c.state == idle
}

// received reacts to what a read returned. It says whether the connection stays
// open, and whether its next request is to be sent now.
func (c *tlsConn) received(data []byte, err error) (open, request bool) {
	t := c.run
	t.mu.Lock()
	defer t.mu.Unlock()
	open = !t.ended() && !c.givenUp
	if c.givenUp {
		c.due = noRequest
	}
	if open && len(data) > 0 {
		t.bytes += uint64(len(data))
		open, request = c.parse(data, err != nil)
	}
	if open && err != nil {
		c.closed(err)
		open = false
	}
	if !open {
		c.state, c.socket = closed, nil
	}
	return open, request
}

// parse reads the bytes of an answer, as loop.parse does.
func (c *tlsConn) parse(data []byte, hungUp bool) (open, request bool) {
	t := c.run
	if c.state == idle {
		t.errors.Read++ // Nobody has asked for anything.
		return false, false
	}
	used, done, malformed := c.parser.feed(data)
	if done {
		c.completed()
	}
	switch {
	case malformed != nil:
		t.errors.Read++
		c.due = noRequest
	case !done:
		return true, false
	case used < len(data):
		t.errors.Read++
	case !c.parser.keepAlive || hungUp || c.state == sending:
		t.reopened++
	default:
		return c.nextUnlessMore()
	}
	return false, false
}

// nextUnlessMore goes on to the next request, unless further records have arrived
// with the answer: bytes that nobody has asked for, or the end of the stream.
func (c *tlsConn) nextUnlessMore() (open, request bool) {
	var b [1]byte
	c.wire.dry = true
	n, err := c.socket.Read(b[:])
	c.wire.dry = false
	switch {
	case n > 0:
		c.run.errors.Read++
	case err == io.EOF:
		c.run.reopened++
	default:
		c.parser.reset()
		return true, c.next()
	}
	return false, false
}

// completed counts an answer.
func (c *tlsConn) completed() {
	t := c.run
	now := t.now()
	if !t.runner.take(now) {
		return
	}
	t.answered(&t.runner.cfg, c.parser.status, now-c.start, now-c.due, c.late)
	c.answered, c.late, c.due = true, false, noRequest
}

// closed reacts to the end of the connection, which may be that of an answer. It
// counts as loop.ended and loop.failed do.
func (c *tlsConn) closed(err error) {
	t := c.run
	switch {
	case c.parser.end() && err == io.EOF && !c.wire.ended:
		c.completed()
		t.reopened++
	case c.state == idle, closedByServer(err) && c.answered && !c.parser.started():
		t.reopened++
	case c.sendErr != nil:
		t.errors.Write++
		c.due = noRequest
	default:
		t.errors.Read++
		c.due = noRequest
	}
}

// closedByServer says whether err is the end of a connection between two
// records. Many servers don't announce it.
func closedByServer(err error) bool {
	return err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// checkTime looks whether the connection waits for too long, as loop.checkTime
// does.
func (c *tlsConn) checkTime(now time.Duration) {
	timeout := c.run.runner.cfg.Timeout
	switch {
	case c.state < sending || now-c.start <= timeout:
	case !c.late:
		c.late = true
		c.run.errors.Timeout++
	case now-c.start > 2*timeout:
		c.givenUp = true
		c.interrupt()
	}
}

// interrupt ends reading and writing. It says no goodbye, for which there may be
// no room.
func (c *tlsConn) interrupt() {
	if c.socket != nil {
		c.wire.Close()
	}
}

// wire is the socket under TLS. It knows whether it has ended, which crypto/tls
// does not tell from the server's announcement that the stream is complete.
type wire struct {
	net.Conn
	ended bool
	// dry keeps the socket from being read: only what has been is there.
	dry bool
}

// errDry is temporary, after which crypto/tls reads on.
var errDry = &net.DNSError{Err: "nothing is left of what was read", IsTemporary: true, IsTimeout: true}

func (w *wire) Read(p []byte) (int, error) {
	if w.dry {
		return 0, errDry
	}
	n, err := w.Conn.Read(p)
	w.ended = w.ended || err == io.EOF
	return n, err
}

// closing is how long after announcing the end of the stream a server takes to
// close the socket, unless it waits for the client to say the same.
const closing = 10 * time.Millisecond

// taken says whether the server took the last request before it closed the
// connection. The end of the stream is announced before the socket is closed,
// and only that shows what was left unread. A server that waits for the client's
// goodbye reads the request while it does, and takes it for nothing.
func (w *wire) taken() bool {
	if !w.ended {
		_ = w.SetReadDeadline(time.Now().Add(closing))
		_, _ = io.Copy(io.Discard, w)
	}
	if !w.ended {
		return false
	}
	socket, ok := w.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	took := false
	err = raw.Control(func(fd uintptr) { took = accepted(int(fd)) })
	return err == nil && took
}
