package load

import (
	"crypto/tls"
	"io"
	"iter"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// secure is TLS over a non-blocking socket. To crypto/tls it is the net.Conn
// below, to a conn what it sends and receives by: an error of EAGAIN, which
// crypto/tls passes on as one that goes away, says that the socket has to get
// ready first.
type secure struct {
	tls *tls.Conn
	fd  int
	// resume goes on with the handshake, which crypto/tls can't be called again
	// for, and abandon ends it. pause is set while it runs, and gives back to
	// the loop until there is an event; false means that the handshake is
	// abandoned.
	resume  func() (struct{}, bool)
	abandon func()
	pause   func(struct{}) bool
	// failure is why the handshake failed.
	failure error
	// out is encrypted and waits for the socket to take it.
	out []byte
	// over says that no more can be read, cut that the socket ended without an
	// announcement by TLS.
	over, cut bool
}

// tlsRecord is the most that TLS encrypts in one piece.
const tlsRecord = 16 << 10

func newSecure(fd int, cfg *tls.Config) *secure {
	s := &secure{fd: fd}
	s.tls = tls.Client(s, cfg)
	s.resume, s.abandon = iter.Pull(func(pause func(struct{}) bool) {
		s.pause = pause
		s.failure = s.tls.Handshake()
		s.pause = nil
	})
	return s
}

// shake goes on with the handshake. It says whether that has ended, and how.
func (s *secure) shake() (done bool, err error) {
	if err := s.flush(); err != nil && err != unix.EAGAIN {
		return true, err
	}
	_, more := s.resume()
	return !more, s.failure
}

// end says goodbye, if there is room for it, and leaves the socket open.
func (s *secure) end() {
	s.abandon()
	_ = s.tls.Close() // It fails where the server has gone.
}

// read receives as many records as have arrived and p has room for.
func (s *secure) read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = s.tls.Read(p[n:])
		n += m
	}
	s.over = err != nil && err != unix.EAGAIN
	if n > 0 {
		return n, nil // crypto/tls repeats an error that is not EAGAIN.
	}
	return 0, err
}

// write encrypts one record after the other, as long as the socket takes them. It
// returns how much of p is encrypted; EAGAIN says that not all of that is sent.
func (s *secure) write(p []byte) (n int, err error) {
	for {
		if err := s.flush(); err != nil {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		m, err := s.tls.Write(p[n:min(n+tlsRecord, len(p))])
		n += m
		if err != nil {
			return n, err
		}
	}
}

// flush sends what has waited.
func (s *secure) flush() error {
	for len(s.out) > 0 {
		n, err := eventloop.Write(s.fd, s.out)
		if err != nil {
			return err
		}
		s.out = s.out[n:]
	}
	s.out = nil
	return nil
}

// closed says whether the server has closed the socket. What it sent before is
// thrown away.
func (s *secure) closed() bool {
	var rest [512]byte
	var err error
	for !s.cut && err == nil {
		_, err = eventloop.Read(s.fd, rest[:])
	}
	return err != unix.EAGAIN
}

// Read and the following methods are what crypto/tls sees of the socket.
func (s *secure) Read(p []byte) (int, error) {
	for {
		n, err := eventloop.Read(s.fd, p)
		s.cut = s.cut || err == io.EOF
		if err != unix.EAGAIN || s.pause == nil {
			return n, err
		}
		if !s.pause(struct{}{}) {
			return 0, net.ErrClosed
		}
	}
}

// Write takes all of p. What the socket has no room for waits in out.
func (s *secure) Write(p []byte) (int, error) {
	rest := p
	if len(s.out) == 0 {
		n, err := eventloop.Write(s.fd, p)
		if err != nil && err != unix.EAGAIN {
			return 0, err
		}
		rest = p[n:]
	}
	s.out = append(s.out, rest...)
	return len(p), nil
}

func (s *secure) Close() error                     { return nil }
func (s *secure) LocalAddr() net.Addr              { return nil }
func (s *secure) RemoteAddr() net.Addr             { return nil }
func (s *secure) SetDeadline(time.Time) error      { return nil }
func (s *secure) SetReadDeadline(time.Time) error  { return nil }
func (s *secure) SetWriteDeadline(time.Time) error { return nil }
