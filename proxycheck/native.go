package proxycheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"armrepro/proxycheck/process"
)

// native is an installed APISIX that runs in a home of its own.
type native struct {
	core
	// workers are the pids that were seen at the start.
	workers []int
}

// StartNative gives the install a private home and starts it there, as the
// official image does: apisix init, apisix init_etcd, openresty. It returns
// when the Admin API answers, the workers are counted and the ports are proved
// to be its own.
func StartNative(ctx context.Context, cfg Config) (Gateway, error) {
	cfg = cfg.complete()
	n := &native{}
	n.core = newCore(cfg, Info{Kind: "native", Name: apisixName, Version: cfg.Install.Version.String(), OpenResty: cfg.Install.OpenResty}, n.howEnded)
	n.expected = cfg.Workers
	adminPort := cfg.Ports.Data
	if cfg.Install.Version.isV3() {
		adminPort = cfg.Ports.Admin
	}
	err := n.reach(adminPort)
	n.prove.server = apisixName + "/" + n.info.Version
	if err == nil {
		err = checkForAPISIX(n.cfg.Etcd, cfg.Install)
	}
	if err == nil {
		err = n.start(ctx, adminPort)
	}
	if err != nil {
		return nil, errors.Join(n.mask(fmt.Errorf("start APISIX %s: %w", n.info.Version, err)), n.Close())
	}
	return n, nil
}

// start goes through the phases, each bounded and each logged, so that a user
// who waits can see for what.
func (n *native) start(ctx context.Context, adminPort int) error {
	t := n.cfg.Timeouts
	phases := []struct {
		name    string
		timeout time.Duration
		run     func(ctx context.Context) error
	}{
		{"home", findTimeout(), n.makeHome},
		{"init", t.Init, n.init},
		{"init_etcd", t.InitEtcd, n.initEtcd},
		{"start", t.Start, n.startMaster},
		{"ports", t.Start, func(ctx context.Context) error { return n.awaitPorts(ctx, adminPort) }},
		{"admin", t.Start, func(ctx context.Context) error { return n.await(ctx, "wait for the Admin API", n.admin.answers) }},
		{"workers", t.Start, n.awaitWorkers},
	}
	for _, p := range phases {
		began := time.Now()
		n.log.Debug().Str("phase", p.name).Msg("starting APISIX")
		phaseCtx, cancel := context.WithTimeout(ctx, p.timeout)
		err := p.run(phaseCtx)
		cancel()
		if err != nil {
			return fmt.Errorf("phase %s: %w", p.name, err)
		}
		n.log.Debug().Str("phase", p.name).Dur("took", time.Since(began)).Msg("done")
	}
	return nil
}

// makeHome makes the home and writes its config.yaml.
func (n *native) makeHome(ctx context.Context) error {
	plugins, err := n.cfg.Install.plugins(ctx)
	if err != nil {
		return err
	}
	n.info.Plugins = plugins
	if n.home, err = newHome(n.cfg.RunDir, n.cfg.Install); err != nil {
		return err
	}
	if err := n.cfg.Install.checkWritesTo(ctx, n.home.dir); err != nil {
		return err
	}
	n.checkLogSpace()
	n.checkOpenResty()
	inHome := n.cfg
	if inHome.Etcd, err = n.home.copyCertificates(n.cfg.Etcd); err != nil {
		return err
	}
	config, err := inHome.configYAML(n.home.dir, plugins)
	if err != nil {
		return err
	}
	return n.home.write("conf/config.yaml", config)
}

// checkOpenResty warns of an OpenResty that this release wasn't made for.
func (n *native) checkOpenResty() {
	v, or := n.cfg.Install.Version, n.cfg.Install.OpenResty
	if _, newest := v.openRestyRange(); or.number().Compare(newest) > 0 {
		n.warn("openresty", fmt.Sprintf("APISIX %s runs on OpenResty %s, which is newer than the one it was made for (%s)", v, or.Version, newest),
			fmt.Sprintf("install the OpenResty that belongs to this release beside it, or put its bin folder first in PATH; now it is %s", or.Path))
	}
}

// The access log grows by about 200 bytes a request; the fastest core known
// serves about 40000 requests a second.
const logBytesPerSecond = 200 * 40000

// checkLogSpace warns when a scenario's access log may not fit on the disk.
func (n *native) checkLogSpace() {
	need := uint64(n.cfg.Load.Seconds()) * logBytesPerSecond * uint64(n.cfg.Workers)
	free, err := process.FreeDisk(n.home.dir)
	if err != nil || need == 0 || need < free {
		return
	}
	n.warn("log-space",
		fmt.Sprintf("the gateway's access log may grow to %d MB and %s has %d MB free", need>>20, n.home.dir, free>>20),
		"free some space, measure for a shorter time, or set TMPDIR to a larger file system")
}

// init writes nginx.conf. Its exit code proves nothing: a configuration that
// 2.15 can't read is replaced by the default without a word.
func (n *native) init(ctx context.Context) error {
	out, err := n.cli(ctx, "init")
	if err != nil {
		return err
	}
	conf, err := process.ReadPath(n.home.path("conf/nginx.conf"))
	if err != nil {
		return fmt.Errorf("apisix init wrote no nginx.conf; it printed: %s", out)
	}
	if strings.Contains(out, "number of open file descriptors") {
		n.warn("gateway-nofile", "APISIX says that its limit of open files is too low for full performance", "raise it before the run: ulimit -n 65536")
	}
	if err := checkNginxConf(conf, n.cfg.Ports.Data, n.cfg.Workers); err != nil {
		return fmt.Errorf("%w; apisix init printed: %s", err, out)
	}
	return nil
}

// initEtcd lays the directories of the prefix in etcd.
func (n *native) initEtcd(ctx context.Context) error {
	var err error
	if err = n.markKeys(); err != nil {
		return err
	}
	_, err = n.cli(ctx, "init_etcd")
	if err != nil && n.keys != nil {
		err = errors.Join(err, n.keys.abandon())
		n.keys = nil
	}
	if err == nil || process.Hint(err) != "" {
		return err
	}
	return process.WithHint(err, fmt.Sprintf("see that etcd answers: curl %s/version", n.cfg.Etcd.Endpoints[0]))
}

// cli runs one command of the apisix CLI in the home and returns what it
// printed.
func (n *native) cli(ctx context.Context, command string) (string, error) {
	out, err := n.cfg.Install.lua(ctx, n.home.dir, cliLua, command)
	return summary(out), err
}

// mask hides the keys and passwords in what err says.
func (n *native) mask(err error) error {
	return process.Mask(err, n.cfg.AdminKey, n.cfg.Etcd.Password)
}

// startMaster starts the nginx master as a child. SIGKILL at our death would
// orphan its workers, so it gets SIGTERM.
func (n *native) startMaster(context.Context) error {
	err := n.core.start(process.Config{
		Path:        n.cfg.Install.OpenResty.Path,
		Args:        []string{"-p", n.home.dir, "-c", n.home.path("conf/nginx.conf"), "-g", "daemon off;"},
		Env:         n.cfg.Install.environ(n.home.dir),
		Dir:         n.home.dir,
		DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	return n.home.Own(n.child)
}

// howEnded says how the master ended, with the end of its error log.
func (n *native) howEnded() error {
	err := fmt.Errorf("APISIX has ended: %w", cmp.Or(n.child.Err(), errors.New("exit status 0")))
	printed := lastLines(n.child.Tail(), 3)
	if printed != "" {
		err = fmt.Errorf("%w; it printed: %s", err, printed)
	}
	if strings.Contains(printed, "unknown directive") {
		_, newest := n.cfg.Install.Version.openRestyRange()
		err = process.WithHint(err, fmt.Sprintf("OpenResty %s (%s) lacks what APISIX %s uses: install OpenResty %s, or apisix-runtime, and put its bin folder first in PATH",
			n.info.OpenResty.Version, n.info.OpenResty.Path, n.info.Version, newest))
	}
	return n.withLog(err)
}

// awaitPorts waits until the master listens, and proves that nobody else does:
// one who shares a port would get, and might swallow, some of our requests.
func (n *native) awaitPorts(ctx context.Context, adminPort int) error {
	return n.await(ctx, "wait for the ports to open", func(context.Context) error {
		// nginx writes it once it listens; to look for that costs less.
		if !exists(n.home.path("logs/nginx.pid")) {
			return fmt.Errorf("nothing listens on port %d", n.cfg.Ports.Data)
		}
		if err := checkOwner(n.cfg.Ports.Data, n.child.Pid()); err != nil {
			return err
		}
		return checkOwner(adminPort, n.child.Pid())
	})
}

// awaitWorkers waits for the wanted number of workers.
func (n *native) awaitWorkers(ctx context.Context) error {
	return n.await(ctx, "count the workers", func(context.Context) error {
		pids, err := n.Workers()
		if err != nil {
			return err
		}
		n.workers = pids
		if len(pids) == n.cfg.Workers {
			return nil
		}
		err = fmt.Errorf("%d worker processes run and %d are wanted", len(pids), n.cfg.Workers)
		if len(pids) > n.cfg.Workers {
			return process.Permanent(err) // they are started once and for all
		}
		return err
	})
}

// await polls while the master lives. The error says what for, and what the
// error log has on it.
func (n *native) await(ctx context.Context, what string, try func(ctx context.Context) error) error {
	ctx, cancel := n.whileAlive(ctx)
	defer cancel()
	err := process.Poll(ctx, pollEvery, func() error { return try(ctx) })
	switch {
	case err == nil:
		return nil
	case isClosed(n.done):
		return fmt.Errorf("%s: %w", what, n.howEnded())
	}
	return n.withLog(fmt.Errorf("%s: %w", what, err))
}

// withLog adds to an error the end of the error log, since that goes with its folder,
// and what to do about a cause that is known.
func (n *native) withLog(err error) error {
	switch log := n.home.errorLog(5); {
	case !exists(n.home.dir):
		err = process.Hintf(removedHint, "%w; its folder %s was removed", err, n.home.dir)
	case log != "":
		err = fmt.Errorf("%w; its error log ends: %s", err, log)
	}
	if process.Hint(err) == "" {
		err = process.WithHint(err, causeHint(err.Error()))
	}
	return n.mask(err)
}

const removedHint = "something cleans the temporary folder: set TMPDIR to another one"

// Apply makes the route live and makes sure that it is the same workers that
// serve it.
func (n *native) Apply(ctx context.Context, r Route) error {
	if !exists(n.home.dir) {
		return process.Hintf(removedHint, "apply the route %s: the gateway's folder %s was removed", r.Path, n.home.dir)
	}
	if err := n.home.emptyAccessLog(); err != nil {
		return fmt.Errorf("empty the access log: %w", err)
	}
	if err := n.apply(ctx, r); err != nil {
		if isClosed(n.done) {
			return err // it says how the gateway has ended
		}
		return n.withLog(err)
	}
	pids, err := n.Workers()
	if err != nil {
		return err
	}
	if !slices.Equal(pids, n.workers) {
		return n.withLog(fmt.Errorf("apply the route %s: the worker processes were restarted, %v are now %v", r.Path, n.workers, pids))
	}
	return checkOwner(n.cfg.Ports.Data, n.child.Pid())
}

// Workers lists the worker processes.
func (n *native) Workers() ([]int, error) { return nginxWorkers(n.child.Pid()) }
