package proxycheck

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"armrepro/bench/machine"
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
	seen := map[int]Port{}
	for _, p := range ports {
		if first, twice := seen[p.Number]; twice {
			errs = append(errs, &HintError{
				Err:  fmt.Errorf("use port %d: both %s and %s want it", p.Number, first.Name, p.Name),
				Hint: fmt.Sprintf("choose another with %s or %s", first.Flag, p.Flag),
			})
			continue
		}
		seen[p.Number] = p
		if err := checkPort(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkPort(p Port) error {
	if p.Number < 1 || p.Number > 65535 {
		return fmt.Errorf("use port %d for %s: out of range", p.Number, p.Name)
	}
	holder, err := machine.PortHolder(os.DirFS("/"), p.Number)
	if err == nil && holder != nil {
		return &HintError{
			Err:  fmt.Errorf("use port %d for %s: %s listens on it", p.Number, p.Name, holder),
			Hint: fmt.Sprintf("end that process, or choose another port with %s", p.Flag),
		}
	}
	// The holder may be in another network or pid namespace, or hold the
	// port without listening.
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)))
	if err != nil {
		return &HintError{
			Err:  fmt.Errorf("use port %d for %s: %w", p.Number, p.Name, err),
			Hint: fmt.Sprintf("choose another port with %s", p.Flag),
		}
	}
	return l.Close()
}
