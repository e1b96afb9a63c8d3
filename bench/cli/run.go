package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/assets"
	"armrepro/bench"
	"armrepro/bench/experiment"
	"armrepro/bench/fitness"
	"armrepro/bench/load"
	"armrepro/bench/report"
	"armrepro/bench/wrk"
	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
)

// runOptions are the flags of run and check.
type runOptions struct {
	experiment.Config
	logs   logFlags
	output outputFlags

	scenarioNames []string
	save          string
	force         bool
}

// newRunOptions returns the defaults, which are those of the published
// benchmarks.
func newRunOptions(tool bench.Tool) *runOptions {
	return &runOptions{
		Config: experiment.Config{
			Tool: tool, Gateway: experiment.Auto, Pin: fitness.PinAuto, Ports: experiment.DefaultPorts(),
			LoadTool: experiment.OwnTool, UpstreamTool: experiment.OwnTool,
			Settings: bench.Settings{
				DurationS: 60, WarmupS: 5, Connections: 16, Runs: 2, Workers: 1, Upstreams: 1,
				TimeoutS: load.DefaultTimeout.Seconds(),
			},
		},
	}
}

func newRun(tool bench.Tool) *cobra.Command {
	o := newRunOptions(tool)
	s := &o.Settings
	cmd := &cobra.Command{
		Use:   "run [flags]",
		Short: "measure both scenarios and print the table (the default)",
		Long:  runAbout,
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.ThreadPerWorker = !cmd.Flags().Changed("threads"); o.ThreadPerWorker {
				o.Settings.Threads = min(o.Settings.Workers, o.Settings.Connections)
			}
			return o.run(cmd)
		},
	}
	group(cmd, "Load", func(fs *pflag.FlagSet) {
		addLoadFlags(fs, seconds(&s.DurationS), count(&s.Threads), seconds(&s.TimeoutS), "load generator threads (default: one per gateway worker, see --workers)")
		fs.VarP(counts(&s.Connections, &s.Concurrency, load.MaxConnections), "connections", "c",
			"connections to keep open; further values are measured once each, such as 16,1,4,64,256")
		fs.Var(bounded(&s.Runs, 1000), "runs", "measured runs per scenario")
		fs.Var(seconds(&s.WarmupS), "warmup", "load before the first run of each scenario, not measured")
		fs.VarP(rateOrShare(&s.Rate, &s.RateShare), "rate", "R", "fixed rate in requests/s, or a share of the maximum such as 75% (default: a closed loop)")
		fs.Var(shares(&s.Sweep), "sweep", "also measure at these shares of the maximum, such as 10%,25%,50%,75%,90%")
		fs.Var(bounded(&s.Restarts, 1000), "restarts", "start the gateway this often and measure every time: restarts are what shows small differences")
		fs.Var(share(&s.Precision), "precision", "restart until the 95 % interval of every scenario's requests/s is within this, such as 3%")
		fs.Var(seconds(&s.MaxTimeS), "max-time", "end --precision after this time, reached or not (default: none)")
		fs.BoolVar(&o.EmptyProxy, "empty-proxy", false, "also measure an empty proxy on the same OpenResty, as the third part of run.sh does")
		fs.BoolVar(&o.Memory, "memory", false, "also read the workers' memory after a minute without load")
		fs.Var(newChoice(&o.LoadTool, "tool", experiment.OwnTool, experiment.WrkTool), "load-tool", "load generator: armrepro's own or the installed wrk")
		fs.BoolVar(&o.CrossCheck, "cross-check", false, "also measure each scenario with the installed wrk, and show the ratios")
		o.addScenario(fs)
	})
	o.addGateway(cmd)
	group(cmd, "Output", func(fs *pflag.FlagSet) {
		o.output.add(fs)
		fs.Var(filled(&o.save, "FILE"), "save", "also write the result as JSON to this file")
		fs.Var(filled(&o.Label, "NAME"), "label", "name of this machine in titles, files and comparisons")
		fs.BoolVar(&o.force, "force", false, "allow --save to replace a file")
		o.logs.add(fs)
	})
	o.addPorts(cmd)
	return cmd
}

func (o *runOptions) addScenario(fs *pflag.FlagSet) {
	o.scenarioNames = assets.ScenarioNames()
	fs.Var(several(&o.scenarioNames, "NAME"), "scenario", "scenarios, by name or as YAML files")
}

// addGateway adds the flags that say what is measured, for run and check.
func (o *runOptions) addGateway(cmd *cobra.Command) {
	kinds, s := experiment.Kinds(), &o.Settings
	group(cmd, "Gateway", func(fs *pflag.FlagSet) {
		fs.Var(newChoice(&o.Gateway, "kind", kinds...), "gateway",
			"what to measure: "+report.Or(kinds)+" (auto: native if APISIX is installed, otherwise attach)")
		fs.Var(filled(&o.APISIXHome, "DIR"), "apisix-home", "folder of the installed APISIX (default: search the usual places)")
		fs.Var(filled(&o.GatewayURL, "URL"), "gateway-url", "data plane of the gateway to attach to; implies --gateway attach (default: http://127.0.0.1 on --gateway-port)")
		fs.Var(filled(&o.AdminURL, "URL"), "admin-url", "Admin API of the gateway to attach to (default: on --admin-port, otherwise on the data plane's port)")
		fs.Var(filled(&o.AdminKey, "KEY"), "admin-key", "key of the Admin API (default: $"+proxycheck.AdminKeyEnv+", otherwise a random one); required with attach")
		addEtcd(fs, &o.Etcd, "use this etcd instead of the embedded one (its client URLs)")
		fs.Var(filled(&o.EtcdPrefix, "PREFIX"), "etcd-prefix", "prefix of the gateway's keys in etcd (default: a new one for each run)")
		fs.Var(counts(&s.Workers, &s.Scaling, 1024), "workers",
			"required number of gateway workers; further values are measured on a restarted gateway, such as 1,2,4")
		fs.Var(bounded(&s.Upstreams, 1000), "upstreams", "number of upstreams, on consecutive ports from --upstream-port")
		fs.Var(newChoice(&o.UpstreamTool, "tool", experiment.OwnTool, experiment.NginxTool), "upstream-tool", "upstream: armrepro's own or the installed nginx")
		fs.Var(filled(&o.Pin, "CPUS"), "pin", "pin the processes to separate CPUs: auto (with four or more CPUs), none, or the CPUs for the gateway's workers, such as 2-3")
	})
}

// addEtcd adds the flags that say how to reach an etcd.
func addEtcd(fs *pflag.FlagSet, cfg *proxycheck.Etcd, usage string) {
	fs.Var(endpoints(&cfg.Endpoints), "etcd", usage)
	fs.Var(filled(&cfg.User, "USER"), "etcd-user", "user for that etcd; set its password in $"+proxycheck.EtcdPasswordEnv)
	fs.Var(filled(&cfg.CACert, "FILE"), "etcd-cacert", "CA certificate for that etcd, in PEM (default: the system's CAs)")
	fs.Var(filled(&cfg.Cert, "FILE"), "etcd-cert", "client certificate for that etcd, in PEM")
	fs.Var(filled(&cfg.Key, "FILE"), "etcd-key", "key of the client certificate, in PEM")
}

// completeEtcd takes the password from the environment and checks the flags.
func completeEtcd(cfg *proxycheck.Etcd) error {
	if len(cfg.Endpoints) == 0 {
		if cfg.User+cfg.CACert+cfg.Cert+cfg.Key != "" {
			return usagef("--etcd-user, --etcd-cacert, --etcd-cert and --etcd-key need --etcd")
		}
		return nil
	}
	cfg.Password = os.Getenv(proxycheck.EtcdPasswordEnv)
	var err error
	if *cfg, err = cfg.Normalize(); err != nil {
		return &usageError{text: fmt.Sprintf("--etcd: %v", err), hint: process.Hint(err)}
	}
	return nil
}

// completeKey takes the Admin API's key from the environment if no flag has it.
func completeKey(key *string) error {
	*key = cmp.Or(*key, os.Getenv(proxycheck.AdminKeyEnv))
	if strings.ContainsFunc(*key, unicode.IsControl) {
		return usagef("--admin-key or $%s: a key cannot hold a line break or another control character", proxycheck.AdminKeyEnv)
	}
	return nil
}

// addPorts adds the flags that choose ports.
func (o *runOptions) addPorts(cmd *cobra.Command) {
	group(cmd, "Ports", func(fs *pflag.FlagSet) {
		for _, p := range o.Ports.All() {
			fs.IntVar(p.Number, p.Flag, *p.Number, "`PORT` port of the "+p.Name)
		}
	})
}

// complete checks the flags, reads the scenarios and fills in the Config.
func (o *runOptions) complete() error {
	s := &o.Settings
	if o.Gateway == experiment.Builtin && (s.Workers != 1 || len(s.Scaling) > 0) {
		return usagef("--workers: the built-in gateway has one worker")
	}
	if p := o.EtcdPrefix; p != "" && (!strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/")) {
		return usagef("--etcd-prefix: %q must begin with a slash and not end with one", p)
	}
	switch {
	case s.Precision > 0 && s.Restarts > 0:
		return usagef("--precision makes as many restarts as it needs: use it or --restarts")
	case s.Precision == 0 && s.MaxTimeS > 0:
		return usagef("--max-time needs --precision")
	}
	if err := o.checkPorts(); err != nil {
		return err
	}
	if err := completeKey(&o.AdminKey); err != nil {
		return err
	}
	if err := completeEtcd(&o.Etcd); err != nil {
		return err
	}
	for _, u := range []string{o.GatewayURL, o.AdminURL} {
		if p, err := url.Parse(u); u != "" && (err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
			return usagef("%q is not a URL such as http://127.0.0.1:9080", process.Redact(u))
		}
	}
	if err := o.completeGateway(); err != nil {
		return err
	}
	return o.readScenarios()
}

// completeGateway makes sure that what names a gateway goes with its kind: a flag
// without effect would have another one measured than the user means.
func (o *runOptions) completeGateway() error {
	named, home := o.GatewayURL != "" || o.AdminURL != "", o.APISIXHome != ""
	switch {
	case named && home:
		return usagef("--gateway-url and --admin-url are for a gateway that runs, --apisix-home for one to start: use one of them")
	case named && o.Gateway == experiment.Auto:
		o.Gateway = experiment.Attach
	case named && o.Gateway != experiment.Attach:
		return usagef("--gateway-url and --admin-url need --gateway attach")
	case home && o.Gateway != experiment.Auto && o.Gateway != experiment.Native:
		return usagef("--apisix-home needs --gateway native")
	}
	return nil
}

// checkPorts checks that each port is valid and used once.
func (o *runOptions) checkPorts() error {
	users := map[int]string{}
	take := func(port int, flag string) error {
		if port < 1 || port > 65535 {
			return usagef("--%s: %d is not a port from 1 to 65535", flag, port)
		}
		if other, taken := users[port]; taken {
			return usagef("--%s and --%s: both use port %d", other, flag, port)
		}
		users[port] = flag
		return nil
	}
	for _, p := range o.Ports.All() {
		if err := take(*p.Number, p.Flag); err != nil {
			return err
		}
	}
	for i := 1; i < o.Settings.Upstreams; i++ {
		if err := take(o.Ports.Upstream+i, "upstreams"); err != nil {
			return err
		}
	}
	return nil
}

// readScenarios finds the scenarios by name, otherwise as files.
func (o *runOptions) readScenarios() error {
	for _, name := range o.scenarioNames {
		s, err := readScenario(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.Scenarios, func(have bench.Scenario) bool { return have.Name == s.Name }) {
			return usagef("--scenario: %s is given twice", s.Name)
		}
		o.Scenarios = append(o.Scenarios, s)
	}
	return nil
}

func readScenario(name string) (bench.Scenario, error) {
	if text, err := assets.Scenario(name); err == nil {
		return bench.ReadScenario(strings.NewReader(string(text)))
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		names := assets.ScenarioNames()
		return bench.Scenario{}, &usageError{
			text: fmt.Sprintf("--scenario: %q is neither a file nor a scenario (%s)", name, strings.Join(names, ", ")),
			hint: didYouMean(similar(name, names)...),
		}
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

// checkWrk refuses what wrk can't do where it is to take part.
func (o *runOptions) checkWrk(cfg load.Config) error {
	own := o.LoadTool == experiment.OwnTool
	flag, fixed := "--load-tool wrk", o.Settings.Rate+o.Settings.RateShare > 0
	if own {
		flag = "--cross-check"
	}
	switch {
	case own && !o.CrossCheck:
		return nil
	case !own && o.CrossCheck:
		return usagef("--cross-check compares armrepro's load generator with wrk: leave out --load-tool")
	case fixed || !own && len(o.Settings.Sweep) > 0:
		return usagef("%s: wrk has no fixed rate: leave out --rate and --sweep", flag)
	}
	checks := []load.Config{cfg}
	if !own {
		checks = append(checks, o.furtherLoads(cfg)...)
	}
	for _, cfg := range checks {
		if err := wrk.Check(cfg); err != nil {
			return usagef("%s: %v", flag, err)
		}
	}
	if err := wrk.Check(o.Settings.Load(cfg.URL, o.Settings.WarmupS, 0)); !own && err != nil {
		return usagef("--warmup: %v", err)
	}
	return nil
}

// furtherLoads are those on other numbers of connections and for other numbers of
// workers.
func (o *runOptions) furtherLoads(cfg load.Config) []load.Config {
	var list []load.Config
	for _, n := range o.Settings.Concurrency {
		more := cfg
		more.Connections, more.Threads = n, min(n, cfg.Threads)
		list = append(list, more)
	}
	for _, n := range o.Settings.Scaling {
		if more := cfg; o.ThreadPerWorker {
			more.Threads = min(n, cfg.Connections)
			list = append(list, more)
		}
	}
	return list
}

// run measures, and saves and prints the result.
func (o *runOptions) run(cmd *cobra.Command) error {
	if err := o.complete(); err != nil {
		return err
	}
	check := o.Settings.Load("http://127.0.0.1", o.Settings.DurationS, o.Settings.Rate)
	if err := check.Check(); err != nil {
		return usagef("run: %v", err)
	}
	if err := o.checkWrk(check); err != nil {
		return err
	}
	saved, err := openOut("--save", o.save, o.force)
	if err != nil {
		return err
	}
	status := newProgress(cmd.ErrOrStderr(), &o.logs)
	o.Logger, o.Progress = o.logs.logger(status), status
	status.log = o.Logger
	ctx := cmd.Context()
	result, err := experiment.Run(ctx, o.Config)
	status.clear()
	err = o.explain(ctx, err)
	if result == nil {
		return err
	}
	// Saved first: the result survives a terminal that has gone.
	out := cmd.OutOrStdout()
	outErr := errors.Join(saved.write(func(w io.Writer) error {
		return report.Write(w, "json", []bench.Result{*result}, report.Options{})
	}), o.output.print(out, o.logs.color(out), *result))
	if !o.logs.quiet && o.logs.format == "text" {
		fmt.Fprintln(cmd.ErrOrStderr())
		outErr = errors.Join(outErr, report.Summary(cmd.ErrOrStderr(), *result))
	}
	if outErr != nil {
		return errors.Join(err, outErr)
	}
	if err == nil && result.Verdict == bench.Invalid {
		return &invalidError{invalidReason(result)}
	}
	return err
}

// explain names the flag or signal behind an experiment's error.
func (o *runOptions) explain(ctx context.Context, err error) error {
	if bad, ok := errors.AsType[*experiment.PinError](err); ok {
		return usagef("--pin: %v", bad)
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
