// Package eventloop waits for sockets with epoll without telling Go's scheduler
// that it blocks.
//
// An ordinary blocking system call hands the processor to another goroutine
// and takes it back afterwards; at tens of thousands of short calls a second
// that hand-off is most of the cost. These calls skip it. The price: while a
// loop waits, a garbage collection cannot begin and GOMAXPROCS has one slot
// less. So a loop belongs in a process that does little else, allocates nothing
// while it runs, and waits with a bounded timeout. Its goroutine is better not
// locked to a thread: the runtime preempts it every 10 ms, and a locked one then
// has to wake its thread again.
package eventloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Interest in a descriptor, and what Wait reports about it.
const (
	Readable = unix.EPOLLIN
	Writable = unix.EPOLLOUT
	// Exclusive wakes only one of the loops that wait for the same listener.
	Exclusive = unix.EPOLLEXCLUSIVE
	// Connection is registered once for the life of a connection:
	// edge-triggered, so that no further call is needed to change it. A hang-up
	// is asked for because an edge may stand for data and the end of the stream
	// together.
	Connection = Readable | Writable | unix.EPOLLRDHUP | unix.EPOLLET
	// HangUp are the events after which a socket has to be read to its end.
	HangUp = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

// maxEvents bounds one Wait. More would only delay the first event's answer.
const maxEvents = 256

// Loop is one epoll instance. It is not safe for concurrent use.
type Loop struct {
	// Collectable makes Wait an ordinary blocking call, for which a garbage
	// collection need not wait.
	Collectable bool

	fd     int
	events [maxEvents]unix.EpollEvent
}

// Event says that the descriptor registered with Token is ready. Ready holds
// the epoll bits; errors and hang-ups are reported as Readable too, so that
// reading finds out what happened.
type Event struct {
	Token int32
	Ready uint32
}

// New creates an epoll instance.
func New() (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll instance: %w", err)
	}
	return &Loop{fd: fd}, nil
}

// Close closes the epoll instance, not the descriptors in it.
func (l *Loop) Close() error { return unix.Close(l.fd) }

// Add begins to watch fd. Wait reports it by token.
func (l *Loop) Add(fd int, interest uint32, token int32) error {
	return l.control(unix.EPOLL_CTL_ADD, fd, interest, token)
}

// Rearm makes Wait report fd again if it is still ready, although an
// edge-triggered interest has been reported before.
func (l *Loop) Rearm(fd int, interest uint32, token int32) error {
	return l.control(unix.EPOLL_CTL_MOD, fd, interest, token)
}

// Remove ends watching fd.
func (l *Loop) Remove(fd int) error {
	return l.control(unix.EPOLL_CTL_DEL, fd, 0, 0)
}

func (l *Loop) control(op, fd int, interest uint32, token int32) error {
	ev := unix.EpollEvent{Events: interest, Fd: token}
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(l.fd), uintptr(op),
		uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	if errno != 0 {
		return fmt.Errorf("watch descriptor %d: %w", fd, errno)
	}
	return nil
}

// Wait blocks until a descriptor is ready or timeout has passed, and returns
// how many events there are. A signal counts as a timeout.
func (l *Loop) Wait(timeout time.Duration) (int, error) {
	// Rounded up: a zero would spin through the last millisecond.
	ms := max(0, (timeout+time.Millisecond-1)/time.Millisecond)
	call := syscall.RawSyscall6
	if l.Collectable {
		call = syscall.Syscall6
	}
	n, _, errno := call(unix.SYS_EPOLL_PWAIT, uintptr(l.fd),
		uintptr(unsafe.Pointer(&l.events[0])), maxEvents, uintptr(ms), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("wait for events: %w", errno)
}

// Event returns the i-th event of the last Wait.
func (l *Loop) Event(i int) Event {
	ev := &l.events[i]
	ready := ev.Events
	if ready&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ready |= Readable
	}
	return Event{Token: ev.Fd, Ready: ready}
}

// Listen opens a listening TCP socket, whose connections have TCP_NODELAY, and
// returns its address.
func Listen(ctx context.Context, address string) (fd int, at net.Addr, err error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return -1, nil, fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	// The duplicate is out of the Go runtime's own epoll.
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err == nil {
		control := raw.Control(func(ours uintptr) { fd, err = unix.FcntlInt(ours, unix.F_DUPFD_CLOEXEC, 0) })
		err = errors.Join(control, err)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err != nil {
		return -1, nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return fd, ln.Addr(), nil
}

// Read receives from a non-blocking socket. The end of the stream is io.EOF.
func Read(fd int, p []byte) (int, error) {
	n, err := transfer(unix.SYS_RECVFROM, fd, p, 0)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write sends on a non-blocking socket and never raises SIGPIPE.
func Write(fd int, p []byte) (int, error) { return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_NOSIGNAL) }

// transfer makes a system call that sends or receives. Its error is an Errno,
// which the interface holds without an allocation.
func transfer(call uintptr, fd int, p []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(call, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
