package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"text/template"

	"armrepro/assets"
	"armrepro/proxycheck/process"
)

// EmptyProxyName is what the empty proxy is called.
const EmptyProxyName = "empty proxy"

// emptyProxy is an nginx that passes requests on through the phases in which
// APISIX works, and does nothing in them: what OpenResty itself costs. It is the
// third part of APISIX's benchmark/run.sh.
type emptyProxy struct{ core }

// StartEmptyProxy starts such a proxy to upstreams on the install's OpenResty, and
// returns when it listens on the data plane's port.
func StartEmptyProxy(ctx context.Context, cfg Config, upstreams ...netip.AddrPort) (Gateway, error) {
	cfg = cfg.complete()
	or := cfg.Install.OpenResty
	e := &emptyProxy{}
	e.core = newCore(cfg, Info{Kind: "native", Name: EmptyProxyName, Version: or.Version, OpenResty: or}, e.howEnded)
	e.expected = cfg.Workers
	e.prove = prover{url: baseURL(cfg.Ports.Data)}
	err := e.makeHome(upstreams)
	if err == nil {
		err = e.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start an empty proxy: %w", err), e.Close())
	}
	return e, nil
}

var emptyProxyTemplate = template.Must(template.New("").Parse(string(assets.EmptyProxy())))

// makeHome makes the proxy's folder with its configuration.
func (e *emptyProxy) makeHome(upstreams []netip.AddrPort) error {
	parents, err := process.TempDirs(e.cfg.RunDir)
	if err != nil {
		return err
	}
	folder, err := process.NewFolder(homeKind, "", parents...)
	if err != nil {
		return err
	}
	e.home = &home{Folder: folder, dir: folder.Path()}
	var conf strings.Builder
	if err := emptyProxyTemplate.Execute(&conf, map[string]any{
		"Workers": e.cfg.Workers, "Port": e.cfg.Ports.Data, "Upstreams": upstreams,
	}); err != nil {
		return err
	}
	return os.WriteFile(e.home.path("nginx.conf"), []byte(conf.String()), 0o600)
}

func (e *emptyProxy) start(ctx context.Context) error {
	err := e.core.start(process.Config{
		Path: e.cfg.Install.OpenResty.Path,
		Args: []string{"-p", e.home.dir, "-c", "nginx.conf", "-g", "daemon off;"},
		Env:  os.Environ(),
		Dir:  e.home.dir,
		// The master ends its workers.
		DeathSignal: syscall.SIGTERM,
	})
	if err == nil {
		err = e.home.Own(e.child)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeouts.Start)
	defer cancel()
	ctx, cancelAlive := e.whileAlive(ctx)
	defer cancelAlive()
	return process.Poll(ctx, pollEvery, func() error {
		if pids, err := e.Workers(); err != nil || len(pids) != e.cfg.Workers {
			return cmp.Or(err, fmt.Errorf("%d worker processes run and %d are wanted", len(pids), e.cfg.Workers))
		}
		return checkOwner(e.cfg.Ports.Data, e.child.Pid())
	})
}

func (e *emptyProxy) howEnded() error {
	return fmt.Errorf("the empty proxy has ended: %w; it printed: %s",
		cmp.Or(e.child.Err(), errors.New("exit status 0")), cmp.Or(lastLines(e.child.Tail(), 3), "nothing"))
}

// Apply waits until the proxy answers as the route should; it passes every path on.
func (e *emptyProxy) Apply(ctx context.Context, r Route) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeouts.Route)
	defer cancel()
	if err := e.prove.route(ctx, r, e.expected); err != nil {
		return err
	}
	return checkOwner(e.cfg.Ports.Data, e.child.Pid())
}

// Workers lists the worker processes.
func (e *emptyProxy) Workers() ([]int, error) { return nginxWorkers(e.child.Pid()) }
