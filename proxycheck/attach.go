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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"

	"armrepro/proxycheck/process"
)

// attached is a gateway that ran before and will run after.
type attached struct {
	core
	port int
	// master is the pid of its nginx master, 0 where it can't be seen.
	master int
	unseen error
	// prefix is the folder that it runs in, empty where it can't be seen.
	prefix string
}

// Attach attaches to a running gateway. It changes nothing yet; Apply will put
// one route with an id of its own, which Close removes again.
func Attach(ctx context.Context, cfg Config) (Gateway, error) {
	cfg = cfg.complete()
	cfg.GatewayURL = cmp.Or(cfg.GatewayURL, baseURL(cfg.Ports.Data))
	a, err := attach(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("attach to the gateway at %s: %w", cfg.GatewayURL, err)
	}
	return a, nil
}

func attach(ctx context.Context, cfg Config) (*attached, error) {
	gateway, err := parseBase(cfg.GatewayURL)
	if err != nil {
		return nil, err
	}
	a := &attached{port: portOf(gateway)}
	a.core = newCore(cfg, Info{Kind: "attach"}, func() error { return errGone })
	a.prove.url, a.metricOptional = gateway.String(), true
	if err := a.identify(ctx); err != nil {
		return nil, err
	}
	a.findMaster(gateway)
	if err := a.findAdmin(ctx, cfg, gateway); err != nil {
		return nil, err
	}
	a.store, a.removal = a.admin.base, a.admin.curlDelete
	prometheus, err := parseBase(cmp.Or(cfg.PrometheusURL, withPort(gateway, cfg.Ports.Prometheus)))
	if err != nil {
		return nil, err
	}
	a.prove.metrics = prometheus.String() + metricsPath
	a.checkPlugins(ctx)
	if pids, err := a.Workers(); err == nil {
		a.expected = max(1, len(pids))
	} else {
		a.warn("workers-unseen", err.Error(), "run armrepro on the gateway's machine, as root, outside of containers")
	}
	if a.master != 0 {
		go a.watchMaster()
	}
	return a, nil
}

// checkPlugins learns which plugins are loaded, and warns of those that the
// published figures were measured without.
func (a *attached) checkPlugins(ctx context.Context) {
	list, err := a.admin.plugins(ctx)
	a.info.Plugins = list
	costly := slices.DeleteFunc(slices.Clone(droppedPlugins), func(p string) bool { return err == nil && !slices.Contains(list, p) })
	if len(costly) == 0 || a.info.Name != apisixName {
		return
	}
	names := strings.Join(costly, " and ")
	code, text := "costly-plugins", "the gateway has loaded "+names+", which the published figures were measured without"
	if err != nil { // 2.15 may answer 500
		code, text = "plugins-unknown", "could not see whether the gateway has loaded "+names+": it answers "+cmp.Or(http.StatusText(adminStatus(err)), err.Error())
	}
	a.warn(code, text+"; both together cost about 12 % of the requests/s",
		"to measure what the posts did, take them out of plugins in its conf/config.yaml and reload it")
}

// parseBase reads a base URL: a scheme and a host, no path.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, process.Hintf("write it as http://127.0.0.1:9080",
			"parse URL %q: want a scheme and a host", s)
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
		return process.WithHint(err, "see that the gateway runs and that --gateway-url is right, or leave --gateway-url and --gateway out to start one")
	}
	name, version, _ := strings.Cut(server, "/")
	if name != apisixName && name != BuiltinName {
		return process.Hintf("pass the URL of an APISIX as --gateway-url",
			"identify it: it calls itself %q, not APISIX", server)
	}
	a.info.Name, a.info.Version, a.prove.server = name, foreign(version), server
	return nil
}

// findAdmin finds the Admin API: where the user says, or else on 9180, where
// 3.x has it, or on the data plane's port, where 2.x has it.
func (a *attached) findAdmin(ctx context.Context, cfg Config, gateway *url.URL) error {
	candidates := []string{withPort(gateway, cfg.Ports.Admin), gateway.String()}
	if cfg.AdminURL != "" {
		u, err := parseBase(cfg.AdminURL)
		if err != nil {
			return err
		}
		candidates = []string{u.String()}
	}
	var errs []error
	for _, base := range candidates {
		a.admin = &admin{base: base, key: cfg.AdminKey}
		found, err := a.admin.recognize(ctx)
		if found {
			if other := a.checkSame(ctx, gateway.String(), cfg.AdminURL != ""); other != nil {
				found, err = false, other
			}
		}
		if found && err == nil {
			_, err = a.admin.routes(ctx)
		}
		if found {
			return err
		}
		errs = append(errs, err)
	}
	why, hint := a.noAdmin()
	return process.WithHint(fmt.Errorf("find its Admin API: %w", errors.Join(append(errs, why)...)), hint)
}

// checkSame makes sure that an Admin API is this gateway's before it gets the key:
// not that of an upstream behind a route of the gateway nor, unless it was named
// by the user, of another gateway on the same machine.
func (a *attached) checkSame(ctx context.Context, gateway string, named bool) error {
	if a.admin.base == gateway {
		return a.checkOwnAdmin(ctx, named)
	}
	if named {
		return nil
	}
	if s := a.admin.server; s != "" && s != a.prove.server {
		return fmt.Errorf("%s is another gateway's Admin API: it calls itself %q and the gateway %q", a.admin.base, s, a.prove.server)
	}
	holders := a.admin.holders()
	ours := func(h process.Holder) bool { return h.PID == a.master || h.PID == 0 }
	if a.master == 0 || len(holders) == 0 || slices.ContainsFunc(holders, ours) {
		return nil
	}
	return fmt.Errorf("%s is another gateway's Admin API: %s listens there, and process %d on port %d", a.admin.base, &holders[0], a.master, a.port)
}

// checkOwnAdmin makes sure that what answers as an Admin API on the data plane's
// port is no upstream's, to which a route leads. 3.x has its own elsewhere, and
// 2.x may have it switched off.
func (a *attached) checkOwnAdmin(ctx context.Context, named bool) error {
	if v, err := ParseVersion(a.info.Version); err == nil && v.isV3() {
		return fmt.Errorf("%s is the data plane of an APISIX %s, whose Admin API has a port of its own", a.admin.base, v)
	}
	if named {
		return nil
	}
	nowhere, err := get(ctx, a.prove.url+"/"+newRouteID())
	if err == nil && nowhere.Status == http.StatusNotFound && adminMessage(nowhere) == "404 Route Not Found" {
		return nil
	}
	return process.Hintf("if it is the gateway's own, pass --admin-url "+a.admin.base,
		"a route of the gateway takes every path, so the Admin API at %s may be that of its upstream", a.admin.base)
}

// standaloneHint is for gateways whose routes don't come from an Admin API.
const standaloneHint = "attach needs routes that are kept in etcd (config_provider: etcd); or leave --gateway out to start an installed APISIX"

// noAdmin says why there is no Admin API, where the gateway's configuration can
// be read and says so, and what to do.
func (a *attached) noAdmin() (why error, hint string) {
	file := filepath.Join(a.prefix, "conf/config.yaml")
	text, err := process.ReadPath(file)
	var c struct {
		APISIX struct {
			ConfigCenter string `yaml:"config_center"`
		} `yaml:"apisix"`
		Deployment struct {
			Role        string `yaml:"role"`
			Traditional struct {
				ConfigProvider string `yaml:"config_provider"`
			} `yaml:"role_traditional"`
			DataPlane struct {
				ConfigProvider string `yaml:"config_provider"`
			} `yaml:"role_data_plane"`
		} `yaml:"deployment"`
	}
	if a.prefix != "" && err == nil && yaml.Unmarshal(text, &c) == nil {
		provider := c.Deployment.Traditional.ConfigProvider
		if c.Deployment.Role == "data_plane" {
			provider = c.Deployment.DataPlane.ConfigProvider
		}
		provider = cmp.Or(c.APISIX.ConfigCenter, provider, "etcd")
		switch {
		case provider != "etcd":
			return fmt.Errorf("the gateway is standalone: %s says config_provider %s, so it has no Admin API for routes", file, provider), standaloneHint
		case c.Deployment.Role == "data_plane":
			return fmt.Errorf("the gateway is a data plane alone: %s says role data_plane", file), "pass the address of its control plane as --admin-url"
		}
	}
	return nil, "pass its address as --admin-url: 3.x has it on port 9180 by default, 2.x on the gateway's own port; " +
		"a standalone gateway (config_provider: yaml) has none for routes and can't be attached to"
}

// findMaster finds the process that listens on the gateway's port, if it runs
// on this machine and can be seen, and the folder it runs in.
func (a *attached) findMaster(gateway *url.URL) {
	if !isLocal(gateway.Hostname()) {
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
		// nginx: master process openresty -p /usr/local/apisix -c …
		args := strings.Fields(holders[0].CommandLine)
		if i := slices.Index(args, "-p"); i >= 0 && i+1 < len(args) {
			a.prefix = args[i+1]
		}
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

// isLocal says whether host is this machine.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	if host == "localhost" || ip.IsLoopback() {
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

// Apply makes the route live. A route that the gateway doesn't serve went to
// another gateway, where it must not stay.
func (a *attached) Apply(ctx context.Context, r Route) error {
	err := a.apply(ctx, r)
	if _, unserved := errors.AsType[*unservedError](err); !unserved {
		return err
	}
	who := foreign(a.admin.server)
	if holders := a.admin.holders(); len(holders) > 0 {
		who += ", " + holders[0].String()
	}
	return errors.Join(process.Hintf("if these are two gateways, pass the address of this one's Admin API as --admin-url; if they are one, see its error log: a Lua library may be missing",
		"the Admin API at %s (%s) took the route, and the gateway at %s doesn't serve it: %w", a.admin.base, who, a.prove.url, err), a.removeRoute())
}

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
