package embed

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"armrepro/proxycheck/process"
)

// splitListen checks a listen address. etcd has no password here, so it is
// only ever offered to this machine.
func splitListen(listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(cmp.Or(listen, DefaultListen))
	var number uint64
	if err == nil {
		number, err = strconv.ParseUint(text, 10, 16)
	}
	if err != nil {
		return "", 0, process.Hintf("give it as host:port, such as "+DefaultListen, "read etcd's address %q: %w", listen, err)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	if !net.ParseIP(host).IsLoopback() {
		return "", 0, process.Hintf("use 127.0.0.1: the embedded etcd has no password and serves this machine only",
			"listen on %s: not a loopback address", listen)
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
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// makeFolder makes the data folder inside parent, or where that is empty inside
// a temporary folder, if at least need bytes are free there.
func makeFolder(parent string, need uint64) (*process.Folder, error) {
	where := "set TMPDIR to a folder"
	if parent != "" {
		where = "name a folder"
	}
	parents, err := process.TempDirs(parent)
	var folder *process.Folder
	if err == nil {
		folder, err = process.NewFolder(process.EtcdData, "", parents...)
	}
	if err != nil {
		return nil, process.Hintf(where+" that exists and can be written to", "start etcd: make its data folder: %w", err)
	}
	free, err := process.FreeDisk(folder.Path())
	if err == nil && free < need {
		err = process.Hintf("free some space there, or "+where+" on another disk",
			"start etcd: %d MiB free in %s, at least %d MiB are needed", free>>20, folder.Path(), need>>20)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Remove())
	}
	return folder, nil
}

// explain names the cause of a failed start and what to do about it.
func explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "stop what listens there, perhaps another etcd, or use another port"
	case errors.Is(err, syscall.ENOSPC):
		hint = "free some space on the disk of its data folder"
	case errors.Is(err, errDied):
		hint = "run again with --log-level debug to see what led to it"
	}
	return process.WithHint(fmt.Errorf("start etcd: %w", err), hint)
}
