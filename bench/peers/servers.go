package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

const (
	// readyTimeout bounds the start of a server, far above the 0.1 s it takes.
	readyTimeout = 15 * time.Second
	readyPoll    = 20 * time.Millisecond
	// stopGrace is how long a server may take to end before it is killed.
	stopGrace = 5 * time.Second
)

// server is a program that answers HTTP until it is stopped.
type server struct {
	name  string
	child *process.Process
}

// start starts a program, which runs until stopServers, and waits until it answers
// at every address.
func (s *session) start(ctx context.Context, name string, at []string, path string, args ...string) (*server, error) {
	// A master has to tell its own children.
	child, err := process.Start(process.Config{Path: path, Args: args, DeathSignal: syscall.SIGTERM})
	if err != nil {
		return nil, err
	}
	started := &server{name: name, child: child}
	s.servers = append(s.servers, started)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, address := range at {
		err := process.Poll(ctx, readyPoll, func() error { return started.answers(ctx, address) })
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
	}
	return started, nil
}

// startBare starts this program as the bare server.
func (s *session) startBare(ctx context.Context, at ...string) (*server, error) {
	return s.start(ctx, "bare server", at, process.Self, append([]string{bareCommand}, at...)...)
}

// stopServers stops the servers in the reverse order: a proxy before what it leads
// to.
func (s *session) stopServers() error {
	var errs []error
	for _, started := range slices.Backward(s.servers) {
		if err := started.child.Stop(syscall.SIGTERM, stopGrace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", started.name, err))
		}
	}
	s.servers = nil
	return errors.Join(errs...)
}

// answers is an error unless the address answers as an upstream does.
func (s *server) answers(ctx context.Context, address string) error {
	if err := s.alive(); err != nil {
		return process.Permanent(err)
	}
	body, err := process.Fetch(ctx, http.MethodGet, url(address), "")
	if err == nil && body != upstream.Body {
		err = fmt.Errorf("%s answers %q", url(address), body)
	}
	return err
}

// alive is an error that says what the server printed last if it has ended.
func (s *server) alive() error {
	select {
	case <-s.child.Done():
		return fmt.Errorf("%s has ended: %s", s.name, s.child.Tail())
	default:
		return nil
	}
}

// workers lists the processes that the server started.
func (s *server) workers() ([]int, error) {
	children, err := process.Children(os.DirFS("/"), s.child.Pid())
	var pids []int
	for _, c := range children {
		pids = append(pids, c.PID)
	}
	return pids, err
}

// serverCPU is the processor time that the proxy has used, and the upstreams
// together: those without a load use next to nothing.
func (s *session) serverCPU() (upstreams, proxy time.Duration, err error) {
	for _, server := range s.servers {
		pids, err := server.workers()
		if err != nil {
			return 0, 0, err
		}
		sum := &upstreams
		if server.name == proxyName {
			sum = &proxy
		}
		for _, pid := range append(pids, server.child.Pid()) {
			used, err := process.CPUTime(pid)
			if err != nil {
				return 0, 0, err
			}
			*sum += used
		}
	}
	return upstreams, proxy, nil
}

func url(address string) string { return "http://" + address + "/" }

// addresses are n addresses of the loopback, with a port that is free on all. None
// is 127.0.0.1, which connections leave from: one of them could take the port before
// the server that it is for.
func addresses(n int) ([]string, error) {
	block, port := 1+rand.IntN(254), "0"
	var found []string
	for i := range n {
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.%d.0.%d:%s", block, 1+i, port))
		if err != nil {
			return nil, fmt.Errorf("find free addresses: %w", err)
		}
		defer ln.Close()
		found = append(found, ln.Addr().String())
		_, port, _ = strings.Cut(found[i], ":")
	}
	return found, nil
}
