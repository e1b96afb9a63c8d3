package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"armrepro/bench"
	"armrepro/bench/machine"
	"armrepro/embed"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// conductor holds what a run has started, in the order in which it was.
type conductor struct {
	cfg    Config
	log    zerolog.Logger
	result *bench.Result

	fit        *watcher
	etcdConfig proxycheck.Etcd
	etcd       *embed.Server // nil with an external etcd
	tools      tools
	upstream   *runningUpstream
	gateway    proxycheck.Gateway
	plan       *gatewayPlan
	// down takes down what was started.
	down []func() error
	// routes are those that were verified.
	routes []string
}

// setUp starts what the measurement needs: etcd, the upstream and the gateway, in
// this order. Even when it fails, tearDown stops whatever it has started.
func (c *conductor) setUp(ctx context.Context) error {
	if err := checkProc(); err != nil {
		return err
	}
	if err := c.findTools(ctx); err != nil {
		return err
	}
	release, err := process.Lock("measuring")
	if err != nil {
		return err
	}
	c.down = append(c.down, release)
	if err := c.raiseFiles(); err != nil {
		return err
	}
	m, evidence := machine.Detect(os.DirFS("/"), machine.LiveFacts(true))
	c.result.Machine = m
	c.log.Info().Str("cpu", orUnknown(m.CPU.Product)).Str("core", orUnknown(m.CPU.CoreName())).Int("cores", m.Cores).Bool("emulated", m.Emulated).Msg("machine")
	if c.fit, err = newWatcher(m, evidence, c.cfg.Settings.Workers, c.cfg.Pin); err != nil {
		return err
	}

	// The gateway of a killed run holds its ports while it is still ending.
	if err := proxycheck.Sweep(ctx, ""); err != nil {
		return err
	}
	// An etcd that can't be reached now may be reachable in the next run.
	err = proxycheck.SweepKeys("")
	left := process.AllLeft(err)
	if err != nil && len(left) == 0 {
		return err
	}
	for _, left := range left {
		c.log.Warn().Str("remove", left.How).Msg("could not remove what a killed run left: " + left.What)
	}
	plan, err := c.planGateway(ctx)
	if err != nil {
		return err
	}
	c.plan = plan
	c.tellUser(os.Geteuid())
	if err := c.checkParts(plan); err != nil {
		return err
	}
	if err := proxycheck.CheckPorts(ctx, c.ports(plan)); err != nil {
		return err
	}
	if err := c.fit.quiet(ctx, c.result); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *gatewayPlan) error{c.startEtcd, c.startUpstream, c.startGateway} {
		if err := step(ctx, plan); err != nil {
			return err
		}
	}
	// Whoever needs the workers reports it if they cannot be seen.
	workers, _ := c.gateway.Workers()
	if err := c.pin(workers); err != nil {
		return err
	}
	c.fit.begin(c, workers)
	return c.watchEtcd(ctx)
}

// tellUser says what a run of a user other than root can't do. All else works.
func (c *conductor) tellUser(uid int) {
	if uid == 0 {
		return
	}
	lacks := "only root can use ports below 1024, raise the hard limit on open files, and name processes of other users"
	if c.plan.kind == Attach {
		lacks = "only root and the gateway's own user can see its workers: without them their number and CPU time stay unknown"
	}
	c.log.Info().Int("uid", uid).Msg("not root: " + lacks)
}

// checkProc checks that /proc belongs to this pid namespace: the gateway's workers
// and the holders of ports are found there.
func checkProc() error {
	self, err := os.Readlink("/proc/self")
	if err != nil || self == strconv.Itoa(os.Getpid()) {
		return nil // Whoever needs an unreadable file names it.
	}
	return process.Hintf("mount /proc for this namespace, for example with 'unshare --pid --fork --mount-proc'",
		"/proc belongs to another pid namespace: it lists this process as %s instead of %d", self, os.Getpid())
}

// spareFiles are the open files that a run needs in addition to connections.
const spareFiles = 256

// raiseFiles raises the limit on open files and checks that it is enough for every
// process of the run: children inherit it.
func (c *conductor) raiseFiles() error {
	files, err := process.RaiseNoFile()
	if err != nil {
		c.log.Warn().Err(err).Uint64("limit", files).Msg("could not raise the limit on open files")
	}
	s := c.cfg.Settings
	most := slices.Max(append([]int{s.Connections}, s.Concurrency...))
	if need := uint64(most + spareFiles); files > 0 && files < need {
		advice := fmt.Sprintf("raise the limit with 'ulimit -n %d', as root if the hard limit is lower", need)
		if most > spareFiles {
			advice += ", or use fewer --connections"
		}
		return process.Hintf(advice,
			"only %d files may be open at once, and this run needs %d", files, need)
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// ports lists the ports that must be free before anything is started.
func (c *conductor) ports(plan *gatewayPlan) []proxycheck.Port {
	var ports []proxycheck.Port
	for i := range c.cfg.Settings.Upstreams {
		ports = append(ports, proxycheck.Port{Name: "upstream", Number: c.cfg.Ports.Upstream + i, Flag: "--upstream-port"})
	}
	if plan.needsEtcd() && len(c.cfg.Etcd.Endpoints) == 0 {
		ports = append(ports, proxycheck.Port{Name: "etcd", Number: c.cfg.Ports.Etcd, Flag: "--etcd-port"})
	}
	return append(ports, plan.ports(c.cfg.Ports)...)
}

// startEtcd starts the embedded etcd, or checks the external one.
func (c *conductor) startEtcd(ctx context.Context, plan *gatewayPlan) error {
	if !plan.needsEtcd() {
		return nil
	}
	if len(c.cfg.Etcd.Endpoints) > 0 {
		c.etcdConfig = c.cfg.Etcd
		version, err := proxycheck.CheckEtcd(ctx, c.etcdConfig, c.cfg.EtcdPrefix)
		if err != nil {
			return err
		}
		c.result.Etcd = bench.EtcdInfo{Version: version}
		return nil
	}
	begin := time.Now()
	listen := loopback(c.cfg.Ports.Etcd)
	server, err := embed.Start(ctx, embed.Config{Listen: listen, Logger: c.log})
	if err != nil {
		return proxycheck.ExplainListen(err, "--etcd-port", listen)
	}
	c.etcd = server
	c.down = append(c.down, server.Close)
	c.etcdConfig.Endpoints = []string{server.Endpoint()}
	c.result.Etcd = bench.EtcdInfo{Version: embed.Version, Embedded: true}
	c.log.Info().Str("version", embed.Version).Str("url", server.Endpoint()).Stringer("in", time.Since(begin).Round(time.Millisecond)).Msg("etcd ready")
	return nil
}

// watchEtcd watches an external etcd until everything is taken down.
func (c *conductor) watchEtcd(ctx context.Context) error {
	if len(c.etcdConfig.Endpoints) == 0 || c.etcd != nil {
		return nil
	}
	watch, err := proxycheck.WatchEtcd(ctx, c.etcdConfig, c.cfg.EtcdPrefix)
	if err != nil {
		return err
	}
	c.down = append(c.down, func() error {
		for _, w := range watch.Close() {
			c.log.Warn().Str("code", w.Code).Str("hint", w.Hint).Msg(w.Text)
			c.result.Warn(bench.Warning{Code: w.Code, Text: w.Text, Hint: w.Hint})
		}
		return nil
	})
	return nil
}

// whileUp returns a context that ends when etcd, the upstream or the gateway ends
// unexpectedly; its cause says which and how.
func (c *conductor) whileUp(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var etcd <-chan error
	if c.etcd != nil {
		etcd = c.etcd.Err()
	}
	gateway := c.gateway // the next one may replace it
	go func() {
		select {
		case <-ctx.Done():
		case err := <-etcd:
			cancel(fmt.Errorf("etcd ended: %w", err))
		case <-c.upstream.Done():
			cancel(fmt.Errorf("the upstream ended: %w", ending(c.upstream.Process)))
		case <-gateway.Done():
			cancel(gateway.Err())
		}
	}()
	return ctx, func() { cancel(nil) }
}

// ending says how a child ended.
func ending(p *process.Process) error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w %s", err, p.Tail())
	}
	return errors.New("exit code 0")
}

// tearDown takes everything down in reverse order: the gateway needs etcd to
// remove its route. Something left behind is an error; other trouble is logged.
func (c *conductor) tearDown() error {
	errs := []error{c.closeGateway()}
	for _, down := range slices.Backward(c.down) {
		errs = append(errs, down())
	}
	c.down = nil
	err := errors.Join(errs...)
	if len(process.AllLeft(err)) > 0 {
		return err
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("stopped everything, but not cleanly")
	}
	return nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
