package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"text/template"

	"github.com/rs/zerolog"

	"armrepro/assets"
	"armrepro/proxycheck/process"
)

// EmptyProxyName is what the empty proxy is called.
const EmptyProxyName = "empty proxy"

// EmptyProxyConfig says how to start an empty proxy.
type EmptyProxyConfig struct {
	// OpenResty is what it runs on.
	OpenResty *OpenResty
	// Workers is the number of worker processes; zero means 1.
	Workers int
	// Port is what it listens on; zero means 9080.
	Port int
	// Upstreams are the addresses that requests go to in turn.
	Upstreams []netip.AddrPort
	// RunDir is where its folder is made; empty means the temporary folders.
	RunDir   string
	Logger   zerolog.Logger
	Timeouts Timeouts
}

// emptyProxy is an nginx that passes requests on through the phases in which
// APISIX works, and does nothing in them: what OpenResty itself costs. It is the
// third part of APISIX's benchmark/run.sh.
type emptyProxy struct {
	core
	cfg       EmptyProxyConfig
	folder    *process.Folder
	master    *process.Process
	closeOnce sync.Once
	closeErr  error
}

// StartEmptyProxy starts the proxy and returns when it listens.
func StartEmptyProxy(ctx context.Context, cfg EmptyProxyConfig) (Gateway, error) {
	cfg.Workers, cfg.Port = cmp.Or(cfg.Workers, 1), cmp.Or(cfg.Port, 9080)
	cfg.Timeouts.setDefaults()
	e := &emptyProxy{cfg: cfg}
	e.core = core{
		info:     Info{Kind: "native", Name: EmptyProxyName, Version: cfg.OpenResty.Version, OpenResty: cfg.OpenResty},
		prove:    prover{url: baseURL(cfg.Port), client: newHTTPClient()},
		timeouts: cfg.Timeouts,
		log:      cfg.Logger,
		expected: cfg.Workers,
		done:     make(chan struct{}),
		ended:    e.howEnded,
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start an empty proxy: %w", err), e.Close())
	}
	return e, nil
}

var emptyProxyTemplate = template.Must(template.New("").Parse(string(assets.EmptyProxy())))

func (e *emptyProxy) start(ctx context.Context) error {
	if err := e.makeFolder(); err != nil {
		return err
	}
	var err error
	e.master, err = process.Start(process.Config{
		Path:        e.cfg.OpenResty.Path,
		Args:        []string{"-p", e.folder.Path(), "-c", "nginx.conf", "-g", "daemon off;"},
		Env:         os.Environ(),
		Dir:         e.folder.Path(),
		DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	go e.watch(e.master)
	if err := e.folder.Own(e.master); err != nil {
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
		return checkOwner(e.cfg.Port, e.master.Pid())
	})
}

// makeFolder makes the proxy's folder with its configuration.
func (e *emptyProxy) makeFolder() error {
	parents, err := tempDirs(e.cfg.RunDir)
	if err != nil {
		return err
	}
	if e.folder, err = process.NewFolder(homeKind, "", parents...); err != nil {
		return err
	}
	var conf strings.Builder
	if err := emptyProxyTemplate.Execute(&conf, e.cfg); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.folder.Path(), "nginx.conf"), []byte(conf.String()), 0o600)
}

func (e *emptyProxy) howEnded() error {
	return fmt.Errorf("the empty proxy has ended: %w; it printed: %s",
		cmp.Or(e.master.Err(), errors.New("exit status 0")), cmp.Or(lastLines(e.master.Tail(), 3), "nothing"))
}

// Apply waits until the proxy answers as the route should; it passes every path on.
func (e *emptyProxy) Apply(ctx context.Context, r Route) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeouts.Route)
	defer cancel()
	if err := e.prove.route(ctx, r, e.expected); err != nil {
		return err
	}
	return checkOwner(e.cfg.Port, e.master.Pid())
}

// Workers lists the worker processes.
func (e *emptyProxy) Workers() ([]int, error) { return nginxWorkers(e.master.Pid()) }

// Close stops the proxy and removes its folder.
func (e *emptyProxy) Close() error {
	e.closeOnce.Do(func() {
		var errs []error
		if e.master != nil {
			e.closing.Store(true)
			errs = append(errs, e.master.Stop(syscall.SIGTERM, e.cfg.Timeouts.Stop))
		}
		if e.folder != nil {
			errs = append(errs, e.folder.Remove())
		}
		if err := errors.Join(errs...); err != nil {
			e.closeErr = fmt.Errorf("stop the empty proxy: %w", err)
		}
	})
	return e.closeErr
}
