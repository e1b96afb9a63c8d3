package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/upstream/eventloop"
)

// bareCommand is the word that makes this program the bare server.
const bareCommand = "bare-server"

// bareAnswer is what nginx answers for the published benchmarks, at one moment.
const bareAnswer = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 05 Jan 2026 00:00:00 GMT\r\n" +
	"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" +
	"a\r\n" + answerBody + "\r\n0\r\n\r\n"

// startBare starts the bare server.
func startBare(ctx context.Context, at ...string) (*server, error) {
	return startSelf(ctx, bareCommand, at...)
}

// serveBare answers whatever it reads with the same bytes, on one thread: the
// least that a server of three system calls a request costs on this machine. It
// shows what part of the upstream's cost is the kernel's.
func serveBare(ctx context.Context, listeners []net.Listener) error {
	events, err := eventloop.New()
	if err != nil {
		return err
	}
	defer events.Close()
	const tick = 100 * time.Millisecond
	listening := map[int]bool{}
	for _, ln := range listeners {
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
			if listening[fd] {
				err = acceptBare(events, fd)
			} else {
				answerBare(fd, buf, answer)
			}
			if err != nil {
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
