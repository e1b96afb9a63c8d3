package load

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullListener returns the address of a listener whose backlog is full, so that
// connecting to it never ends.
func fullListener(t *testing.T) (address string, free func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}
	var filled []net.Conn
	free = func() {
		for _, c := range filled {
			c.Close()
		}
		unix.Close(fd)
	}
	for range 10 {
		c, err := net.DialTimeout("tcp", bound.String(), 50*time.Millisecond)
		if err != nil {
			return bound.String(), free
		}
		filled = append(filled, c)
	}
	free()
	t.Fatal("a listener with a backlog of 0 took 10 connections")
	return "", nil
}
