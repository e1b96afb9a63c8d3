// Package upstream answers what the nginx behind the published benchmarks
// answered: ten bytes, chunked, text/plain, on every path; and on /anything/*
// what httpbin answers there.
//
// It wants a process of its own: see package eventloop.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// Body is what every path but /anything/* answers.
const Body = "1234567890"

// Config says where to listen.
type Config struct {
	// Listen holds host:port addresses. Port 0 picks a free one.
	Listen []string
	// Loops is the number of event loops, each with a thread; 1 if it is 0.
	// The nginx of the published benchmarks had two workers, but one loop is
	// enough for a gateway's worker and leaves its figures closer to those.
	Loops int
}

// timeouts are how long a client may take.
type timeouts struct {
	// read is for a request that has begun, and for a client that does not
	// take its answer.
	read time.Duration
	// idle is for a connection between requests.
	idle time.Duration
	// linger is for a client that goes on sending after an answer that closes
	// the connection. Closing at once would reset the connection, and the
	// client might never see the answer.
	linger time.Duration
}

// nginxTimeouts are nginx's defaults but for linger, which is 5 s there.
var nginxTimeouts = timeouts{read: 60 * time.Second, idle: 75 * time.Second, linger: 2 * time.Second}

// Server answers requests until it is closed.
type Server struct {
	timeouts  timeouts
	addrs     []string
	listeners []int
	loops     []*loop
	threads   sync.WaitGroup
	stop      atomic.Bool
	close     sync.Once
	errs      chan error
}

// Start listens on every address and begins to answer. An address that is taken
// is an error that wraps EADDRINUSE.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return start(ctx, cfg, nginxTimeouts)
}

func start(ctx context.Context, cfg Config, t timeouts) (*Server, error) {
	if len(cfg.Listen) == 0 {
		return nil, errors.New("listen: no address given")
	}
	loops := cmp.Or(cfg.Loops, 1)
	s := &Server{timeouts: t, errs: make(chan error, loops)}
	// All loops share a socket: with one each (SO_REUSEPORT) a second server on
	// the same port would go unnoticed.
	for _, address := range cfg.Listen {
		fd, at, err := eventloop.Listen(ctx, address)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.listeners, s.addrs = append(s.listeners, fd), append(s.addrs, at.String())
	}
	for range loops {
		l, err := newLoop(s)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.loops = append(s.loops, l)
	}
	for _, l := range s.loops {
		s.threads.Go(func() {
			if err := l.run(); err != nil {
				s.errs <- err
			}
		})
	}
	return s, nil
}

// Addrs are the addresses that it listens on, in Config's order.
func (s *Server) Addrs() []string { return s.addrs }

// Err delivers what ended a loop, if anything did.
func (s *Server) Err() <-chan error { return s.errs }

// Answered counts the answers, errors included, that clients were sent so far, at
// most one round of a loop ago. It may be called at any time.
func (s *Server) Answered() uint64 {
	var n uint64
	for _, l := range s.loops {
		n += l.published.Load()
	}
	return n
}

// Close stops the loops and closes every connection. It may be called twice.
func (s *Server) Close() error {
	s.close.Do(func() {
		s.stop.Store(true)
		s.threads.Wait()
		for _, l := range s.loops {
			l.close()
		}
		for _, fd := range s.listeners {
			unix.Close(fd)
		}
	})
	return nil
}
