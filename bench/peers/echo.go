package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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
	listening := map[int]bool{}
	for _, address := range at {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		defer ln.Close()
		// A duplicate of the descriptor, which the runtime does not wait for.
		file, err := ln.(*net.TCPListener).File()
		if err != nil {
			return fmt.Errorf("take listener: %w", err)
		}
		defer file.Close()
		fd := int(file.Fd())
		if err := errors.Join(unix.SetNonblock(fd, true), events.Add(fd, eventloop.Readable, int32(fd))); err != nil {
			return err
		}
		listening[fd] = true
	}
	buf, answer := make([]byte, 64<<10), []byte(bareAnswer)
	for ctx.Err() == nil {
		n, err := events.Wait(tick)
		if err != nil {
			return err
		}
		for i := range n {
			fd := int(events.Event(i).Token)
			if !listening[fd] {
				answerBare(fd, buf, answer)
			} else if err := acceptBare(events, fd); err != nil {
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
	n, errno := eventloop.Read(fd, buf)
	switch {
	case errno == unix.EAGAIN:
	case n == 0 || errno != 0:
		unix.Close(fd)
	default:
		// So short an answer always fits into an idle socket.
		_, _ = eventloop.Write(fd, answer)
	}
}

// The injected latencies are log-normal, as those of real servers roughly are:
// without steps, at the edge of which a percentile would jump.
const (
	slowMedian = 2 * time.Millisecond
	// slowSigma puts p90 at 1.9 times the median and p99 at 3.2 times.
	slowSigma = 0.5
	// slowValues is how many latencies there are, evenly spaced in rank.
	slowValues = 1000
)

// slowLatencies are the injected latencies in an order that is the same every
// time and without pattern, so that any run of them has the distribution.
func slowLatencies() []time.Duration {
	latencies := make([]time.Duration, slowValues)
	for i := range latencies {
		rank := (float64(i) + 0.5) / slowValues
		latencies[i] = time.Duration(float64(slowMedian) * math.Exp(slowSigma*math.Sqrt2*math.Erfinv(2*rank-1)))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(slowValues, func(i, j int) {
		latencies[i], latencies[j] = latencies[j], latencies[i]
	})
	return latencies
}

// startSlow answers in this process, which does nothing else meanwhile: each request
// after the next of the latencies.
func startSlow() (address string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	latencies := slowLatencies()
	var next atomic.Uint64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		latency := latencies[(next.Add(1)-1)%slowValues]
		// The kernel's timer, since Go's wakes up to a millisecond late.
		// Signals of Go's scheduler interrupt it.
		left := unix.NsecToTimespec(latency.Nanoseconds())
		for unix.Nanosleep(&left, &left) == unix.EINTR {
		}
		_, _ = io.WriteString(w, upstream.Body)
	})}
	go func() { _ = server.Serve(ln) }()
	return ln.Addr().String(), func() { server.Close() }, nil
}
