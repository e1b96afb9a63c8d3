package load

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// server is a test's own server, which may behave as badly as the test wants.
type server struct {
	listener *net.TCPListener
	url      string
	handle   func(*session)

	// accepted leaves out the connection by which New looks for the server.
	accepted atomic.Int64
	// requests have been read to their end, answers written to theirs.
	requests atomic.Int64
	answers  atomic.Int64
	// bytes counts what has been written.
	bytes atomic.Int64

	sessions sync.WaitGroup
	mutex    sync.Mutex
	open     map[*session]bool
	// closing is closed when the server begins to close, stopped when no
	// more connections are accepted.
	closing, stopped chan struct{}
	once             sync.Once
}

// session is one connection of a server.
type session struct {
	*net.TCPConn
	server *server
	reader *bufio.Reader
	// number counts connections from 0; New's own is -1.
	number int64
	// secure is what the session speaks over https.
	secure *tls.Conn
}

// transport is how a test's server speaks.
type transport struct {
	name   string
	listen func(t testing.TB, address string, first int64, handle func(*session)) *server
}

// overBoth runs a test over http and https.
func overBoth(t *testing.T, test func(*testing.T, transport)) {
	t.Helper()
	for _, over := range []transport{{"http", listenFor}, {"https", listenTLS}} {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

// serve is the function of the same name.
func (o transport) serve(t testing.TB, handle func(*session)) *server {
	t.Helper()
	s := o.listen(t, "127.0.0.1:0", -1, handle)
	t.Cleanup(s.close)
	return s
}

// testCertificate is quicker to sign with than httptest's.
var testCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// listenTLS is listenFor over https. When handle returns, the end is announced.
func listenTLS(t testing.TB, address string, first int64, handle func(*session)) *server {
	t.Helper()
	cfg := &tls.Config{Certificates: []tls.Certificate{testCertificate()}}
	s := listenFor(t, address, first, func(c *session) {
		secure := tls.Server(c.TCPConn, cfg)
		if secure.Handshake() != nil {
			return
		}
		c.secure, c.reader = secure, bufio.NewReader(secure)
		handle(c)
		secure.Close()
	})
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	return s
}

// Write writes as the session speaks.
func (c *session) Write(p []byte) (int, error) {
	if c.secure != nil {
		return c.secure.Write(p)
	}
	return c.TCPConn.Write(p)
}

// cut closes the connection without announcing the end, which http has no way
// to.
func (c *session) cut() { c.TCPConn.Close() }

// okAnswer is what a server that behaves answers.
const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234567890"

// serve runs handle for every connection until the test ends. The connection is
// closed when handle returns.
func serve(t testing.TB, handle func(*session)) *server {
	t.Helper()
	s := listen(t, "127.0.0.1:0", handle)
	t.Cleanup(s.close)
	return s
}

// listen is serve without the end.
func listen(t testing.TB, address string, handle func(*session)) *server {
	t.Helper()
	return listenFor(t, address, -1, handle)
}

// listenFor numbers connections from first.
func listenFor(t testing.TB, address string, first int64, handle func(*session)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		listener: ln.(*net.TCPListener),
		url:      "http://" + ln.Addr().String() + "/hello",
		handle:   handle,
		open:     map[*session]bool{},
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	s.accepted.Store(first)
	s.sessions.Go(s.accept)
	return s
}

func (s *server) accept() {
	defer close(s.stopped)
	for {
		conn, err := s.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		c := &session{TCPConn: conn, server: s, reader: bufio.NewReader(conn), number: s.accepted.Add(1) - 1}
		s.mutex.Lock()
		s.open[c] = true
		s.mutex.Unlock()
		s.sessions.Go(func() {
			defer c.end()
			if c.number < 0 {
				c.drain()
				return
			}
			s.handle(c)
		})
	}
}

// close ends everything and waits for it.
func (s *server) close() {
	s.once.Do(func() { close(s.closing) })
	s.listener.Close()
	s.mutex.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mutex.Unlock()
	s.sessions.Wait()
}

func (c *session) end() {
	c.Close()
	c.server.mutex.Lock()
	delete(c.server.open, c)
	c.server.mutex.Unlock()
}

// request reads one request; false if none comes any more.
func (c *session) request() bool {
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return false
		}
		if string(line) == "\r\n" {
			c.server.requests.Add(1)
			return true
		}
	}
}

// send writes text; false if the client has gone.
func (c *session) send(text string) bool {
	n, err := io.WriteString(c, text)
	c.server.bytes.Add(int64(n))
	return err == nil
}

// answer writes one whole answer.
func (c *session) answer(text string) bool {
	ok := c.send(text)
	if ok {
		c.server.answers.Add(1)
	}
	return ok
}

// drain reads until the client has gone.
func (c *session) drain() { _, _ = io.Copy(io.Discard, c.reader) }

// reset makes closing a reset.
func (c *session) reset() { _ = c.SetLinger(0) }

// behave answers every request with okAnswer.
func behave(c *session) {
	for c.request() && c.answer(okAnswer) {
	}
}

// first lets the first n connections misbehave and the others behave.
func first(n int64, misbehave func(*session)) func(*session) {
	return func(c *session) {
		if c.number < n {
			misbehave(c)
			return
		}
		behave(c)
	}
}

// runUntil measures until enough has happened.
func runUntil(t testing.TB, cfg Config, enough func() bool) *Measurement {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cfg.Duration = time.Hour
	runner, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil && !enough() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	m, err := runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !enough() {
		t.Errorf("not enough happened in %v", m.elapsed)
	}
	check(t, runner, m)
	return m
}

// check compares counts that have to agree.
func check(t testing.TB, runner *Runner, m *Measurement) {
	t.Helper()
	if got := runner.Completed(); got != m.Requests {
		t.Errorf("Completed is %d after the run, requests are %d", got, m.Requests)
	}
	if m.raw.count != m.Requests {
		t.Errorf("%d latencies of %d requests", m.raw.count, m.Requests)
	}
}

// testConfig is for a short run.
func testConfig(url string) Config {
	return Config{URL: url, Connections: 2, Threads: 1, Duration: 200 * time.Millisecond, Timeout: time.Minute}
}

// run measures for as long as cfg says, and makes sure that it ends no sooner.
func run(t testing.TB, cfg Config) *Measurement {
	t.Helper()
	runner, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := runner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Requests == 0 && m.elapsed < cfg.Duration {
		t.Errorf("run took %v, want %v", m.elapsed, cfg.Duration)
	}
	check(t, runner, m)
	return m
}

// stepped is the only loop of a run that a test drives by hand, so that it can
// look at everything between two steps, and let time pass.
type stepped struct {
	*loop
	t *testing.T
}

// step finds cfg's server and connects.
func step(t *testing.T, cfg Config) stepped {
	t.Helper()
	r, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return stepRunner(t, r)
}

func stepRunner(t *testing.T, r *Runner) stepped {
	t.Helper()
	l, err := newLoop(r, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	l.begin(time.Now())
	return stepped{l, t}
}

// until steps until enough is true. Its loop doesn't tick by itself.
func (s stepped) until(what string, enough func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !enough(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not in time; errors %+v, %d requests", what, s.Errors, s.Requests)
		}
		s.lastTick = s.now()
		if s.step(s.now(), s.now()+time.Millisecond); s.err != nil {
			s.t.Fatal(s.err)
		}
	}
}

// all says whether all connections are in that state.
func (s stepped) all(state connState) func() bool {
	return func() bool {
		return !slices.ContainsFunc(s.conns, func(c conn) bool { return c.state != state })
	}
}

// pass lets time pass and the loop notice.
func (s stepped) pass(d time.Duration) {
	s.t.Helper()
	s.started = s.started.Add(-d)
	if s.tick(s.now()); s.err != nil {
		s.t.Fatal(s.err)
	}
}
