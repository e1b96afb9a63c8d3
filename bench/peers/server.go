package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// answerBody is what the upstreams answer.
const answerBody = "1234567890"

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

// startServer starts a program and waits until it answers at every address.
func startServer(ctx context.Context, name string, cfg process.Config, at ...string) (*server, error) {
	// A master has to tell its own children.
	cfg.DeathSignal = syscall.SIGTERM
	child, err := process.Start(cfg)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, child: child}
	for _, address := range at {
		if err := s.ready(ctx, address); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

// ready polls the address until this server, and no other, answers there as an
// upstream does.
func (s *server) ready(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return process.Poll(ctx, readyPoll, func() error {
		if err := s.alive(); err != nil {
			return process.Permanent(err)
		}
		if err := get(ctx, client, url(address)); err != nil {
			return fmt.Errorf("start %s: %w", s.name, err)
		}
		return s.listens(address)
	})
}

// listens is an error if the address is somebody else's.
func (s *server) listens(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("find who listens on %s: %w", address, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("find who listens on %s: %w", address, err)
	}
	holder, err := process.PortHolder(os.DirFS("/"), number)
	if err != nil {
		return err
	}
	if holder == nil || holder.PID != s.child.Pid() {
		return fmt.Errorf("listen on %s: it is held by %v", address, holder)
	}
	return nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 1 << 10
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK || string(body) != answerBody {
		return fmt.Errorf("get %s: %s with body %q", url, resp.Status, body)
	}
	return nil
}

// alive is an error that says how the server ended if it did.
func (s *server) alive() error {
	select {
	case <-s.child.Done():
		return fmt.Errorf("%s has ended: %w: %s", s.name, errEnded(s.child), s.child.Tail())
	default:
		return nil
	}
}

var errExitZero = errors.New("exit status 0")

// errEnded is how a child ended, which is no success for one that ought to run
// on.
func errEnded(p *process.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errExitZero
}

// workers lists the processes that the server started.
func (s *server) workers() ([]int, error) {
	children, err := process.Children(os.DirFS("/"), s.child.Pid())
	if err != nil {
		return nil, err
	}
	pids := make([]int, len(children))
	for i, c := range children {
		pids[i] = c.PID
	}
	return pids, nil
}

// cpuTime is the processor time that the server and its workers have used.
func (s *server) cpuTime() (time.Duration, error) {
	pids, err := s.workers()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range append(pids, s.child.Pid()) {
		used, err := process.CPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func (s *server) stop() error {
	if err := s.child.Stop(syscall.SIGTERM, stopGrace); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	return nil
}
