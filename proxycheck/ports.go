package proxycheck

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"armrepro/proxycheck/process"
)

// Port is a TCP port that a run needs.
type Port struct {
	// Name says what for, such as "gateway".
	Name string
	// Number is the port.
	Number int
	// Flag changes it, such as --gateway-port.
	Flag string
}

// CheckPorts returns nil if every port is free on 127.0.0.1, and otherwise an
// error that names each busy one, who holds it and the flag that changes it.
// Nothing should be started before it has said so.
func CheckPorts(ports []Port) error {
	var errs []error
	var hints []string
	seen := map[int]Port{}
	for _, p := range ports {
		err := checkPort(p)
		if first, twice := seen[p.Number]; twice {
			err = fmt.Errorf("use port %d: both %s and %s want it", p.Number, first.Name, p.Name)
		}
		seen[p.Number] = p
		if err != nil {
			errs = append(errs, err)
			hints = append(hints, p.Flag)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &HintError{
		Err:  errors.Join(errs...),
		Hint: "end what holds it, or choose another port with " + strings.Join(hints, ", "),
	}
}

func checkPort(p Port) error {
	if p.Number < 1 || p.Number > 65535 {
		return fmt.Errorf("use port %d for %s: out of range", p.Number, p.Name)
	}
	holder, err := process.PortHolder(os.DirFS("/"), p.Number)
	if err == nil && holder != nil {
		return fmt.Errorf("use port %d for %s: %s listens on it", p.Number, p.Name, holder)
	}
	// The holder may be in another network or pid namespace, or hold the
	// port without listening.
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)))
	if err != nil {
		return fmt.Errorf("use port %d for %s: %w", p.Number, p.Name, err)
	}
	return l.Close()
}
