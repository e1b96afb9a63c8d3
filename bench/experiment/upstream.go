package experiment

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

// runningUpstream is the upstream's process.
type runningUpstream struct {
	*process.Process
	// workers are the processes that answer, once it does.
	workers func() ([]int, error)
	// answered is how many responses it has sent so far; nil where it can't tell.
	answered func() (uint64, error)
	// pids are the workers, as they were found.
	pids []int
}

// all are its processes.
func (u *runningUpstream) all() []int { return append([]int{u.Pid()}, u.pids...) }

// startUpstream starts the upstream as a child and waits until it answers.
func (c *conductor) startUpstream(ctx context.Context, _ *gatewayPlan) error {
	start, ready := c.startOwn, c.log.Info()
	if c.tools.nginx != nil {
		start, ready = c.startNginx, ready.Str("nginx", c.tools.nginx.Version)
	}
	u, err := start(c.nodes())
	if err != nil {
		return fmt.Errorf("start the upstream: %w", err)
	}
	c.upstream = u
	for _, address := range c.nodes() {
		if err := waitForUpstream(ctx, u, "http://"+address+"/"); err != nil {
			return err
		}
	}
	if u.pids, err = u.workers(); err != nil {
		return fmt.Errorf("start the upstream: %w", err)
	}
	ready.Strs("listen", c.nodes()).Msg("upstream ready")
	return nil
}

// startOwn starts armrepro's own upstream.
func (c *conductor) startOwn(listen []string) (*runningUpstream, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	c.down = append(c.down, ours.Close)
	defer theirs.Close()
	child, err := process.Start(process.Config{
		Path: process.Self,
		Args: []string{
			"upstream", "--listen", strings.Join(listen, ","), "--threads", strconv.Itoa(slices.Max(append([]int{c.cfg.Settings.Workers}, c.cfg.Settings.Scaling...))),
			"--log-level", "warn", "--log-format", "json", "--control-fd", "3",
		},
		ExtraFiles: []*os.File{theirs},
	})
	if err != nil {
		return nil, err
	}
	c.down = append(c.down, func() error { return child.Stop(syscall.SIGTERM, upstreamStop) })
	return &runningUpstream{
		Process:  child,
		workers:  func() ([]int, error) { return []int{child.Pid()}, nil },
		answered: func() (uint64, error) { return askAnswered(ours) },
	}, nil
}

// upstreamStop bounds the wait for the upstream to end after SIGTERM.
const upstreamStop = 3 * time.Second

// upstreamTimeout bounds the wait for the upstream, which takes some
// milliseconds.
const upstreamTimeout = 10 * time.Second

// waitForUpstream polls url until the child's response is right.
func waitForUpstream(ctx context.Context, child *runningUpstream, url string) error {
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	const pause = 2 * time.Millisecond
	err := process.Poll(ctx, pause, func() error {
		select {
		case <-child.Done():
			return process.Permanent(fmt.Errorf("it ended: %s", child.Tail()))
		default:
		}
		body, err := process.Fetch(ctx, http.MethodGet, url, "")
		if err == nil && body != upstream.Body {
			err = fmt.Errorf("%s answered %q", url, body)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("start the upstream: %w", err)
	}
	return nil
}

// controlTimeout bounds how long the upstream may take to report its count of
// responses: it may have to wait for a core.
const controlTimeout = 5 * time.Second

// askAnswered asks the upstream how many responses it has sent. See ServeControl.
func askAnswered(control net.Conn) (uint64, error) {
	var line string
	err := control.SetDeadline(time.Now().Add(controlTimeout))
	if err == nil {
		_, err = io.WriteString(control, "answered\n")
	}
	if err == nil {
		line, err = bufio.NewReader(control).ReadString('\n')
	}
	var n uint64
	if err == nil {
		n, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("ask the upstream for its count of responses: %w", err)
	}
	return n, nil
}

// ServeControl is the upstream's end: it answers each line with the count, and
// returns when the other end is closed.
func ServeControl(control io.ReadWriter, answered func() uint64) {
	lines := bufio.NewScanner(control)
	for lines.Scan() {
		if _, err := fmt.Fprintln(control, answered()); err != nil {
			return
		}
	}
}

// socketPair is a connection to a child: our end, and the one that it inherits.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}
