package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// portRange is where the kernel takes the ports of outgoing connections from.
type portRange struct{ low, high int }

func (r portRange) size() int { return r.high - r.low + 1 }

const portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

func readPortRange() (portRange, error) {
	text, err := os.ReadFile(portRangeFile)
	if err != nil {
		return portRange{}, fmt.Errorf("read port range: %w", err)
	}
	return parsePortRange(string(text))
}

func parsePortRange(text string) (portRange, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return portRange{}, fmt.Errorf("parse port range: %d numbers, not 2", len(fields))
	}
	var r portRange
	for i, n := range []*int{&r.low, &r.high} {
		port, err := strconv.ParseUint(fields[i], 10, 16)
		if err != nil {
			return portRange{}, fmt.Errorf("parse port range: %q is no port", fields[i])
		}
		*n = int(port)
	}
	if r.low < 1 || r.high < r.low {
		return portRange{}, fmt.Errorf("parse port range: %d to %d", r.low, r.high)
	}
	return r, nil
}

// addresses finds n free addresses on the loopback. Their ports are below those
// of outgoing connections, or a load run could take one before the server that
// it is for.
func addresses(n int) ([]string, error) {
	ephemeral, err := readPortRange()
	if err != nil {
		return nil, err
	}
	const unprivileged, tries = 1024, 1000
	if ephemeral.low <= unprivileged {
		return nil, fmt.Errorf("find free ports: outgoing connections take any from %d on (%s)", ephemeral.low, portRangeFile)
	}
	taken := map[string]bool{}
	var found []string
	for range tries {
		if len(found) == n {
			return found, nil
		}
		port := unprivileged + rand.IntN(ephemeral.low-unprivileged)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if taken[address] {
			continue
		}
		ln, err := net.Listen("tcp4", address)
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			return nil, fmt.Errorf("find free ports: %w", err)
		}
		taken[address] = true
		found = append(found, address)
	}
	return nil, errors.New("find free ports: hardly any is free on 127.0.0.1")
}

// manyAddresses finds a free port on n addresses of the loopback. The ports of
// connections that have ended stay taken for a minute (TIME_WAIT), but only towards
// the address they led to: a run that has one for itself finds its ports at once,
// whatever the run before has left.
func manyAddresses(n int) ([]string, error) {
	first, err := addresses(1)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(first[0])
	if err != nil {
		return nil, fmt.Errorf("find free ports: %w", err)
	}
	const most = 65536
	var found []string
	for i := range min(n, most) {
		found = append(found, net.JoinHostPort(fmt.Sprintf("127.0.%d.%d", (i+1)/256, (i+1)%256), port))
	}
	return found, nil
}
