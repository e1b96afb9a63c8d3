package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"armrepro/assets"
	"armrepro/bench"
	"armrepro/bench/load"
	"armrepro/bench/machine"
	"armrepro/proxycheck"
)

const runAbout = `Measures the gateway in both scenarios of the published benchmark and prints the table.

It starts an etcd, the upstream and, in a private home, the installed APISIX; puts the route
of each scenario, proves that it is live, warms up, measures, and takes everything down
again. The installed files are not touched.`

// runOptions are the flags of run and check.
type runOptions struct {
	logs   logFlags
	output outputFlags
	load   load.Config

	gateway    string
	apisixHome string
	gatewayURL string
	adminURL   string
	adminKey   string
	etcd       proxycheck.Etcd
	etcdPrefix string

	rate          runRate
	sweep         sharesValue
	runs          int
	warmup        time.Duration
	workers       int
	upstreams     int
	scenarioNames []string
	scenarios     []bench.Scenario
	save          string
	pin           string

	upstreamPort, gatewayPort, adminPort           int
	etcdPort, controlPort, prometheusPort, tlsPort int
}

// addEnvironment adds the flags that run and check share.
func (o *runOptions) addEnvironment(fs *pflag.FlagSet) {
	fs.StringVar(&o.gateway, "gateway", kindAuto, "what to measure: "+strings.Join(gatewayKinds(), ", ")+" (auto: an installed APISIX, else one that answers)")
	fs.StringVar(&o.apisixHome, "apisix-home", "", "folder of the installed APISIX (default: the usual places)")
	fs.StringVar(&o.gatewayURL, "gateway-url", "", "data plane of the gateway to attach to (default http://127.0.0.1 with --gateway-port)")
	fs.StringVar(&o.adminURL, "admin-url", "", "Admin API of the gateway to attach to (default: port 9180, else the gateway's)")
	fs.StringVar(&o.adminKey, "admin-key", "", "key of the Admin API (default: $"+proxycheck.AdminKeyEnv+", else a random one; needed to attach)")
	addEtcdFlags(fs, &o.etcd, nil, "client URLs of an existing etcd to use instead of the embedded one")
	fs.StringVar(&o.etcdPrefix, "etcd-prefix", "", "prefix of the gateway's keys in etcd (default: a new one)")
	fs.VarP((*countValue)(&o.workers), "workers", "", "worker processes that the gateway has to run")
	fs.VarP((*countValue)(&o.upstreams), "upstreams", "", "ports that the upstream listens on, counting up")
	fs.StringVar(&o.pin, "pin", machine.PinAuto, "keep the processes on CPUs of their own: auto (where there are four or more), none, or a list for the gateway's workers, such as 2-3")
	fs.StringSliceVar(&o.scenarioNames, "scenario", assets.ScenarioNames(), "scenarios to use: names, or YAML files")
	for _, p := range o.portFlags() {
		fs.IntVar(p.port, p.flag, *p.port, p.usage)
	}
	o.logs.add(fs)
}

// portFlag is a port that can be chosen.
type portFlag struct {
	port  *int
	flag  string
	usage string
}

func (o *runOptions) portFlags() []portFlag {
	return []portFlag{
		{&o.upstreamPort, "upstream-port", "first port of the upstream"},
		{&o.gatewayPort, "gateway-port", "port of the gateway"},
		{&o.adminPort, "admin-port", "port of the Admin API (APISIX 3 and built-in)"},
		{&o.etcdPort, "etcd-port", "port of the embedded etcd"},
		{&o.controlPort, "control-port", "port of APISIX's control API"},
		{&o.prometheusPort, "prometheus-port", "port of the gateway's metrics"},
		{&o.tlsPort, "tls-port", "port of APISIX's TLS listener"},
	}
}

// newRunOptions returns the defaults, which are those of the published
// benchmarks.
func newRunOptions() *runOptions {
	return &runOptions{
		load: load.Config{
			Connections: 16,
			Duration:    time.Minute,
			Timeout:     load.DefaultTimeout,
		},
		runs: 2, warmup: 5 * time.Second, workers: 1, upstreams: 1,
		upstreamPort: 1980, gatewayPort: 9080, adminPort: 9180, etcdPort: 2379,
		controlPort: 9090, prometheusPort: 9091, tlsPort: 9443,
	}
}

// gatewayAddress is the URL of the data plane to attach to.
func (o *runOptions) gatewayAddress() string {
	if o.gatewayURL != "" {
		return strings.TrimSuffix(o.gatewayURL, "/")
	}
	return "http://" + loopback(o.gatewayPort)
}

// check says whether the flags can be meant, and reads the scenarios.
func (o *runOptions) check() error {
	o.adminKey = cmp.Or(o.adminKey, os.Getenv(proxycheck.AdminKeyEnv))
	if !slices.Contains(gatewayKinds(), o.gateway) {
		return usagef("--gateway: %q is none of %s", o.gateway, strings.Join(gatewayKinds(), ", "))
	}
	for _, n := range []struct {
		flag     string
		n, limit int
	}{{"--workers", o.workers, 1024}, {"--upstreams", o.upstreams, 1000}, {"--runs", o.runs, 1000}} {
		if n.n < 1 || n.n > n.limit {
			return usagef("%s: %d is not between 1 and %d", n.flag, n.n, n.limit)
		}
	}
	if o.gateway == kindBuiltin && o.workers != 1 {
		return usagef("--workers: the built-in gateway has one")
	}
	if p := o.etcdPrefix; p != "" && (!strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/")) {
		return usagef("--etcd-prefix: %q has to begin with a slash and not to end with one", p)
	}
	if err := o.checkPorts(); err != nil {
		return err
	}
	if err := completeEtcd(&o.etcd); err != nil {
		return err
	}
	for _, u := range []string{o.gatewayURL, o.adminURL} {
		if p, err := url.Parse(u); u != "" && (err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
			return usagef("%q is not a URL such as http://127.0.0.1:9080", u)
		}
	}
	return o.readScenarios()
}

func (o *runOptions) checkPorts() error {
	users := map[int]string{}
	take := func(port int, flag string) error {
		if port < 1 || port > 65535 {
			return usagef("--%s: %d is not a port", flag, port)
		}
		if other, taken := users[port]; taken {
			return usagef("--%s and --%s: both are port %d", other, flag, port)
		}
		users[port] = flag
		return nil
	}
	for _, p := range o.portFlags() {
		if err := take(*p.port, p.flag); err != nil {
			return err
		}
	}
	for i := 1; i < o.upstreams; i++ {
		if err := take(o.upstreamPort+i, "upstreams"); err != nil {
			return err
		}
	}
	return nil
}

// readScenarios finds the scenarios by name, or else as files.
func (o *runOptions) readScenarios() error {
	for _, name := range o.scenarioNames {
		s, err := readScenario(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.scenarios, func(have bench.Scenario) bool { return have.Name == s.Name }) {
			return usagef("--scenario: %s is there twice", s.Name)
		}
		o.scenarios = append(o.scenarios, s)
	}
	if len(o.scenarios) == 0 {
		return usagef("--scenario: there is none")
	}
	return nil
}

func readScenario(name string) (bench.Scenario, error) {
	if text, err := assets.Scenario(name); err == nil {
		return bench.ReadScenario(strings.NewReader(string(text)))
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return bench.Scenario{}, usagef("--scenario: %q is neither a file nor one of %s", name, strings.Join(assets.ScenarioNames(), ", "))
	}
	if err != nil {
		return bench.Scenario{}, usagef("--scenario: %v", err)
	}
	defer f.Close()
	s, err := bench.ReadScenario(f)
	if err != nil {
		return bench.Scenario{}, usagef("--scenario: %s: %v", name, err)
	}
	return s, nil
}

func runRun(ctx context.Context, args []string, s streams) error {
	o := newRunOptions()
	fs := newFlags("run", "", runAbout, s)
	addLoadFlags(fs, &o.load, "threads of the load generator (default: one for each of --workers)")
	fs.VarP((*countValue)(&o.runs), "runs", "", "measured runs of each scenario")
	fs.VarP((*timeValue)(&o.warmup), "warmup", "", "load before the first run of each scenario that is not measured")
	fs.VarP(&o.rate, "rate", "R", "requests a second of the runs, or a share of the maximum such as 75%, whatever the answers do (default: a closed loop)")
	fs.Var(&o.sweep, "sweep", "measure at these shares of the maximum besides, such as 10%,25%,50%,75%,90%")
	o.output.add(fs)
	fs.StringVar(&o.save, "save", "", "write the result as JSON to this file as well")
	o.addEnvironment(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if !fs.Changed("threads") {
		o.load.Threads = min(o.workers, o.load.Connections)
	}
	o.load.URL, o.load.Rate = o.gatewayAddress(), float64(o.rate.rate)
	if err := o.load.Check(); err != nil {
		return usagef("run: %v", err)
	}
	saved, err := createSave(o.save)
	if err != nil {
		return err
	}
	result, err := o.measure(ctx, s)
	if result == nil {
		return interruption(ctx, err)
	}
	// Saved first: what was measured survives a terminal that has gone.
	saveErr := saved.write(*result)
	if outErr := errors.Join(saveErr, o.output.print(s.out, o.logs.color(s.out), *result)); outErr != nil {
		return errors.Join(err, outErr)
	}
	if err == nil && result.Verdict == bench.Invalid {
		return &invalidError{invalidReason(result)}
	}
	return interruption(ctx, err)
}

// invalidReason is the first warning that makes the result invalid.
func invalidReason(r *bench.Result) string {
	for _, w := range r.Warnings {
		if w.Invalid {
			return w.Text
		}
	}
	return string(r.Verdict)
}

// measure sets up, measures and takes down. The result is nil if nothing was
// measured.
func (o *runOptions) measure(ctx context.Context, s streams) (*bench.Result, error) {
	status := newProgress(s.err, &o.logs)
	log, err := o.logs.logger(status)
	if err != nil {
		return nil, err
	}
	status.log = log
	c := &conductor{opts: o, log: log, result: o.newResult()}
	err = c.setUp(ctx)
	if err == nil {
		running, stop := c.whileUp(ctx)
		err = bench.Measure(running, c.benchConfig(status), c.result)
		stop()
		workers, _ := c.gateway.Workers()
		c.fit.end(c, workers)
	}
	status.clear()
	if downErr := c.tearDown(); downErr != nil {
		log.Warn().Err(downErr).Msg("could not take everything down cleanly")
	}
	if len(c.result.Scenarios) == 0 {
		return nil, err
	}
	c.result.Judge(err != nil)
	return c.result, err
}

// newResult is the result before anything is known.
func (o *runOptions) newResult() *bench.Result {
	return &bench.Result{
		Schema:  bench.Schema,
		Tool:    bench.Tool{Name: "armrepro", Version: version},
		Started: time.Now().UTC().Truncate(time.Second),
		Settings: bench.Settings{
			DurationS:   o.load.Duration.Seconds(),
			WarmupS:     o.warmup.Seconds(),
			Connections: o.load.Connections,
			Threads:     o.load.Threads,
			Runs:        o.runs,
			Workers:     o.workers,
			Upstreams:   o.upstreams,
			TimeoutS:    o.load.Timeout.Seconds(),
			Rate:        float64(o.rate.rate),
			RateShare:   o.rate.share,
			Sweep:       o.sweep,
		},
		Scenarios: []bench.ScenarioResult{},
		Warnings:  []bench.Warning{},
	}
}

// benchConfig is what the conductor has set up, as package bench needs it.
func (c *conductor) benchConfig(status bench.Progress) bench.Config {
	return bench.Config{
		Settings:     c.result.Settings,
		Scenarios:    c.opts.scenarios,
		Gateway:      benchGateway{c.gateway, c.nodes()},
		Generator:    childGenerator{cpus: c.fit.pins.Load},
		UpstreamURL:  "http://" + c.nodes()[0] + c.opts.scenarios[0].Path,
		UpstreamPID:  c.upstream.Pid(),
		EtcdEmbedded: c.etcd != nil,
		Progress:     status,
		Root:         os.DirFS("/"),
	}
}

// nodes are the addresses of the upstream.
func (c *conductor) nodes() []string {
	var nodes []string
	for i := range c.opts.upstreams {
		nodes = append(nodes, loopback(c.opts.upstreamPort+i))
	}
	return nodes
}
