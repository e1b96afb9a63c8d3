package proxycheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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

// errInUse says that a port is taken, errGateway that a gateway has it.
var (
	errInUse   = errors.New("in use")
	errGateway = errors.New("an APISIX gateway")
)

// CheckPorts returns nil if every port is free on 127.0.0.1, and otherwise an
// error that names each that is not, who holds it and the flag that changes it.
// Nothing should be started before it has said so.
func CheckPorts(ctx context.Context, ports []Port) error {
	var errs []error
	var flags []string
	for _, p := range ports {
		err := checkPort(ctx, p)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if !slices.Contains(flags, p.Flag) {
			flags = append(flags, p.Flag)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	err := errors.Join(errs...)
	return process.WithHint(err, portHint(err, strings.Join(flags, ", ")))
}

// portHint says what to do about ports that cannot be had.
func portHint(err error, flags string) string {
	var hints []string
	if errors.Is(err, errInUse) || errors.Is(err, errGateway) {
		hints = append(hints, "stop that process, or use another port with "+flags)
	}
	if errors.Is(err, errGateway) {
		hints = append(hints, "to measure the gateway that runs there, use --gateway attach")
	}
	if errors.Is(err, syscall.EACCES) {
		hints = append(hints, deniedHint(flags))
	}
	if len(hints) == 0 {
		hints = append(hints, "use another port with "+flags)
	}
	return strings.Join(hints, "\n")
}

// deniedHint says what to do about a port that this user may not listen on.
func deniedHint(flags string) string {
	first := "1024"
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil {
		first = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("only root may listen below port %s (net.ipv4.ip_unprivileged_port_start): use a port from there on with %s, or run as root", first, flags)
}

func checkPort(ctx context.Context, p Port) error {
	what := fmt.Sprintf("port %d (%s)", p.Number, p.Name)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number))
	if holders, _ := process.Listeners(os.DirFS("/"), p.Number); len(holders) > 0 {
		if AnswersAsAPISIX(ctx, "http://"+address) {
			return fmt.Errorf("%s is in use by %s, which is %w", what, &holders[0], errGateway)
		}
		return fmt.Errorf("%s is %w by %s", what, errInUse, &holders[0])
	}
	// The holder may be in another network or pid namespace, or hold the
	// port without listening.
	l, err := net.Listen("tcp4", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is %w", what, errInUse)
	case err != nil:
		return fmt.Errorf("listen on %s: %w", what, err)
	}
	return l.Close()
}

// AnswersAsAPISIX says whether the gateway at url calls itself APISIX.
func AnswersAsAPISIX(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ans, err := get(ctx, url)
	return err == nil && strings.HasPrefix(ans.Header.Get("Server"), "APISIX")
}

// ExplainListen says what to do about an address that could not be listened on:
// it names the process that holds it, and the flag that chooses another. It
// returns err where the address is not the reason.
func ExplainListen(err error, flag string, addresses ...string) error {
	if errors.Is(err, syscall.EACCES) && errors.As(err, new(*net.OpError)) {
		return process.WithHint(err, deniedHint(flag))
	}
	for _, address := range addresses {
		_, text, splitErr := net.SplitHostPort(address)
		port, numErr := strconv.Atoi(text)
		if splitErr != nil || numErr != nil || !strings.Contains(err.Error(), address) {
			continue
		}
		if holders, _ := process.Listeners(os.DirFS("/"), port); len(holders) > 0 {
			return process.WithHint(err, fmt.Sprintf("port %d is in use by %s: stop it, or use %s", port, &holders[0], flag))
		}
	}
	return err
}
