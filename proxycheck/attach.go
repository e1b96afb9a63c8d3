package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"armrepro/proxycheck/process"
)

// AttachConfig says which running gateway to measure.
type AttachConfig struct {
	// GatewayURL is the data plane; empty means http://127.0.0.1:9080.
	GatewayURL string
	// AdminURL is the Admin API's; empty means port 9180 of the same host,
	// then the data plane's own port.
	AdminURL string
	// PrometheusURL is the metrics'; empty means port 9091 of the same host.
	PrometheusURL string
	// AdminKey is the Admin API's key.
	AdminKey string
	// RunDir is where runs leave things; empty means the temporary folders.
	RunDir   string
	Logger   zerolog.Logger
	Timeouts Timeouts
}

// attached is a gateway that ran before and will run after.
type attached struct {
	core
	port int
	// closed is closed by Close.
	closed chan struct{}
	// master is the pid of its nginx master, 0 where it can't be seen.
	master    int
	unseen    error
	closeOnce sync.Once
	closeErr  error
}

// Attach attaches to a running gateway. It changes nothing yet; Apply will put
// one route with an id of its own, which Close removes again.
func Attach(ctx context.Context, cfg AttachConfig) (Gateway, error) {
	cfg.Timeouts.setDefaults()
	a, err := attach(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("attach to the gateway at %s: %w", cmp.Or(cfg.GatewayURL, defaultGatewayURL), err)
	}
	return a, nil
}

const defaultGatewayURL = "http://127.0.0.1:9080"

func attach(ctx context.Context, cfg AttachConfig) (*attached, error) {
	gateway, err := parseBase(cmp.Or(cfg.GatewayURL, defaultGatewayURL))
	if err != nil {
		return nil, err
	}
	client := newHTTPClient()
	a := &attached{port: portOf(gateway), closed: make(chan struct{})}
	a.core = core{
		info:     Info{Kind: "attach"},
		prove:    prover{url: gateway.String(), client: client},
		routeID:  newRouteID(),
		timeouts: cfg.Timeouts,
		log:      cfg.Logger,
		expected: 1,
		done:     make(chan struct{}),
		ended:    func() error { return errGone },
		runDir:   cfg.RunDir,
		shared:   true,

		metricOptional: true,
	}
	if err := a.identify(ctx); err != nil {
		return nil, err
	}
	if err := a.findAdmin(ctx, cfg, gateway); err != nil {
		return nil, err
	}
	prometheus, err := parseBase(cmp.Or(cfg.PrometheusURL, withPort(gateway, 9091)))
	if err != nil {
		return nil, err
	}
	a.prove.metrics = prometheus.String() + "/apisix/prometheus/metrics"
	// Where the list can't be had, 2.15 answers 500, it stays unknown.
	a.info.Plugins, _ = a.admin.plugins(ctx)
	a.findMaster(gateway)
	if pids, err := a.Workers(); err == nil {
		a.expected = max(1, len(pids))
	} else {
		a.warn("workers-unseen", err.Error(), "run armrepro on the gateway's machine, as root, outside of containers")
	}
	return a, nil
}

// parseBase reads a base URL: a scheme and a host, no path.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, &HintError{
			Err:  fmt.Errorf("parse URL %q: want a scheme and a host", s),
			Hint: "write it as http://127.0.0.1:9080",
		}
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

func portOf(u *url.URL) int {
	if p, err := strconv.Atoi(u.Port()); err == nil {
		return p
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// withPort is u's host on another port. The Admin API and the metrics are
// plain HTTP by default, whatever the data plane is.
func withPort(u *url.URL, port int) string {
	return "http://" + net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
}

// identify learns name and version from the Server header.
func (a *attached) identify(ctx context.Context) error {
	server, err := a.prove.serverHeader(ctx)
	if err != nil {
		return &HintError{Err: err, Hint: "see that the gateway runs and that --gateway-url is right, or leave --gateway-url and --gateway out to start one"}
	}
	name, version, _ := strings.Cut(server, "/")
	if name != apisixName && name != BuiltinName {
		return &HintError{
			Err:  fmt.Errorf("identify it: it calls itself %q, not APISIX", server),
			Hint: "pass the URL of an APISIX as --gateway-url",
		}
	}
	a.info.Name, a.info.Version, a.prove.server = name, version, server
	return nil
}

// findAdmin finds the Admin API: where the user says, or else on 9180, where
// 3.x has it, or on the data plane's port, where 2.x has it.
func (a *attached) findAdmin(ctx context.Context, cfg AttachConfig, gateway *url.URL) error {
	candidates := []string{withPort(gateway, 9180), gateway.String()}
	if cfg.AdminURL != "" {
		u, err := parseBase(cfg.AdminURL)
		if err != nil {
			return err
		}
		candidates = []string{u.String()}
	}
	var errs []error
	for _, base := range candidates {
		a.admin = &admin{base: base, key: cfg.AdminKey, client: a.prove.client}
		_, err := a.admin.routes(ctx)
		switch adminStatus(err) {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable:
			return err // it is the Admin API, and it says no
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return &HintError{
		Err:  fmt.Errorf("find its Admin API: %w", errors.Join(errs...)),
		Hint: "pass its address as --admin-url: 3.x has it on port 9180 by default, 2.x on the gateway's own port",
	}
}

// findMaster finds the process that listens on the gateway's port, if it runs
// on this machine and can be seen.
func (a *attached) findMaster(gateway *url.URL) {
	if ip := net.ParseIP(gateway.Hostname()); gateway.Hostname() != "localhost" && (ip == nil || !isLocal(ip)) {
		a.unseen = fmt.Errorf("see the gateway's processes: it runs on another machine (%s)", gateway.Hostname())
		return
	}
	holders, err := process.Listeners(os.DirFS("/"), a.port)
	switch {
	case err != nil:
		a.unseen = err
	case len(holders) == 0 || holders[0].PID == 0:
		a.unseen = fmt.Errorf("see the gateway's processes: whoever listens on port %d is in another container or belongs to another user", a.port)
	default:
		a.master = holders[0].PID
		go a.watchMaster()
	}
}

// watchEvery is how often a gateway that isn't our child is looked after.
const watchEvery = time.Second / 2

// watchMaster closes done when the gateway's master has ended.
func (a *attached) watchMaster() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-a.closed:
			return
		case <-ticker.C:
			if errors.Is(syscall.Kill(a.master, 0), syscall.ESRCH) {
				close(a.done)
				return
			}
		}
	}
}

// isLocal says whether ip is an address of this machine.
func isLocal(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, addr := range addrs {
		if n, ok := addr.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// Apply makes the route live.
func (a *attached) Apply(ctx context.Context, r Route) error { return a.apply(ctx, r) }

// Workers lists the gateway's worker processes, where they can be seen.
func (a *attached) Workers() ([]int, error) {
	if a.master == 0 {
		return nil, a.unseen
	}
	if a.info.Name == BuiltinName {
		return []int{a.master}, nil
	}
	pids, err := nginxWorkers(a.master)
	if err == nil && len(pids) == 0 {
		err = fmt.Errorf("see the gateway's processes: process %d listens on port %d and has no nginx workers", a.master, a.port)
	}
	return pids, err
}

// Close removes the route. The gateway itself is left running.
func (a *attached) Close() error {
	a.closeOnce.Do(func() {
		close(a.closed)
		if err := a.removeRoute(); err != nil {
			a.closeErr = fmt.Errorf("leave the gateway as it was: %w", err)
		}
	})
	return a.closeErr
}
