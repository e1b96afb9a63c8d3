package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream"
	"armrepro/upstream/eventloop"
)

// bareCommand is the word that makes this program the bare server.
const bareCommand = "bare-server"

// bareAnswer is what nginx answers for the published benchmarks, at one moment.
const bareAnswer = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 05 Jan 2026 00:00:00 GMT\r\n" +
	"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" +
	"a\r\n" + upstream.Body + "\r\n0\r\n\r\n"

// serveBare answers whatever it reads at the addresses with the same bytes, on one
// thread, until ctx ends: the least that a server of three system calls a request
// costs on this machine. It shows what part of the upstream's cost is the kernel's.
func serveBare(ctx context.Context, at []string) error {
	events, err := eventloop.New()
	if err != nil {
		return err
	}
	defer events.Close()
	const tick = 100 * time.Millisecond
	for _, address := range at {
		fd, _, err := eventloop.Listen(ctx, address)
		if err == nil {
			err = events.Add(fd, eventloop.Readable, ^int32(fd)) // Below 0, to tell it from a connection.
		}
		if err != nil {
			return err // With the program, its sockets end.
		}
	}
	buf, answer := make([]byte, 64<<10), []byte(bareAnswer)
	for ctx.Err() == nil {
		n, err := events.Wait(tick)
		if err != nil {
			return err
		}
		for i := range n {
			if token := events.Event(i).Token; token >= 0 {
				answerBare(int(token), buf, answer)
			} else if err := acceptBare(events, int(^token)); err != nil {
				return err
			}
		}
	}
	return nil
}

// acceptBare takes every connection that waits.
func acceptBare(events *eventloop.Loop, listening int) error {
	for {
		fd, _, err := unix.Accept4(listening, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return nil // There are no more, or this one has gone again.
		}
		if err := events.Add(fd, eventloop.Readable|unix.EPOLLRDHUP|unix.EPOLLET, int32(fd)); err != nil {
			return err
		}
	}
}

func answerBare(fd int, buf, answer []byte) {
	switch _, err := eventloop.Read(fd, buf); err {
	case unix.EAGAIN:
	case nil:
		// So short an answer always fits into an idle socket.
		_, _ = eventloop.Write(fd, answer)
	default:
		unix.Close(fd)
	}
}

// slowLatency is the latency injected into request n. Latencies are log-normal, as
// those of real servers roughly are, without steps at whose edge a percentile would
// jump: the median is 2 ms, p90 3.8 ms, p99 6.4 ms. Multiples of the golden ratio
// spread the ranks evenly over any stretch of requests.
func slowLatency(n uint64) time.Duration {
	const median, sigma = float64(2 * time.Millisecond), 0.5
	_, rank := math.Modf((float64(n) + 0.5) * math.Phi)
	return time.Duration(median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*rank-1)))
}

// startSlow answers in this process, which does nothing else meanwhile.
func startSlow() (address string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	var requests atomic.Uint64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The kernel's timer, since Go's wakes up to a millisecond late.
		// Signals of Go's scheduler interrupt it.
		left := unix.NsecToTimespec(slowLatency(requests.Add(1)).Nanoseconds())
		for unix.Nanosleep(&left, &left) == unix.EINTR {
		}
		_, _ = io.WriteString(w, upstream.Body)
	})}
	go func() { _ = server.Serve(ln) }()
	return ln.Addr().String(), func() { server.Close() }, nil
}
