package embed

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"

	"armrepro/proxycheck/process"
)

// splitListen checks a listen address. etcd has no password here, so it is
// only ever offered to this machine.
func splitListen(listen string) (host string, port int, err error) {
	if listen == "" {
		listen = DefaultListen
	}
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, &HintError{
			Err:  fmt.Errorf("read etcd's address %q: %w", listen, err),
			Hint: "Give it as host:port, such as " + DefaultListen + ".",
		}
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, &HintError{
			Err:  fmt.Errorf("read etcd's address %q: port %q is not a number from 0 to 65535", listen, text),
			Hint: "Give it as host:port, such as " + DefaultListen + ".",
		}
	}
	switch host {
	case "", "localhost":
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", 0, &HintError{
			Err:  fmt.Errorf("listen on %s: not a loopback address", listen),
			Hint: "The embedded etcd has no password and serves this machine only: use 127.0.0.1.",
		}
	}
	return host, int(number), nil
}

// freePort finds a port that is free at this moment. etcd cannot be given port
// 0: its JSON gateway would dial that.
func freePort(host string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// makeDir makes a data folder inside parent if at least need bytes are free
// there.
func makeDir(parent string, need uint64) (string, error) {
	dir, err := os.MkdirTemp(parent, "armrepro-etcd-")
	if err != nil {
		return "", explain(fmt.Errorf("make its data folder: %w", err), "")
	}
	free, err := process.FreeDisk(dir)
	if err == nil && free < need {
		err = &HintError{
			Err: fmt.Errorf("start etcd: %d MiB free in %s, at least %d MiB are needed",
				free>>20, dir, need>>20),
			Hint: "Free some space there, or set TMPDIR to a folder on another disk.",
		}
	}
	if err != nil {
		return "", errors.Join(err, removeDir(dir))
	}
	return dir, nil
}

// explain names the cause of a failed start and what to do about it.
func explain(err error, address string) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		_, port, _ := net.SplitHostPort(address)
		hint = "Port " + port + " is taken, perhaps by an etcd that already runs: stop it, or choose another port."
	case errors.As(err, new(*net.OpError)) && errors.Is(err, fs.ErrPermission):
		hint = "Ports below 1024 are for root only: choose another port."
	case errors.Is(err, syscall.ENOSPC):
		hint = "Free some space there, or set TMPDIR to a folder on another disk."
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS),
		errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		hint = "Set TMPDIR to a folder that exists and can be written to."
	case errors.Is(err, errDied):
		hint = "Run again with --log-level debug to see what led to it."
	}
	err = fmt.Errorf("start etcd: %w", err)
	if hint == "" {
		return err
	}
	return &HintError{Err: err, Hint: hint}
}
