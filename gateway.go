package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"armrepro/proxycheck"
	"armrepro/proxycheck/gateway"
	"armrepro/proxycheck/process"
)

const gatewayAbout = `Runs the built-in gateway until a signal. It does what the two scenarios need in the way
APISIX does it, with one worker: the Admin API, routes kept in etcd, limit-count and
prometheus. It is not APISIX.`

// gatewayGC is how much garbage, in percent of what lives, the built-in gateway
// lets gather. What lives is small, so the usual 100 would have it collect many
// times a second under load.
const gatewayGC = 800

func runGateway(ctx context.Context, args []string, s streams) error {
	var (
		cfg            gateway.Config
		logs           logFlags
		dialect, fault string
	)
	fs := newFlags("gateway", "", gatewayAbout, s)
	fs.StringVar(&cfg.Listen, "listen", gateway.DefaultListen, "serve the routes on this address")
	fs.StringVar(&cfg.AdminListen, "admin-listen", gateway.DefaultAdminListen, "serve the Admin API here; empty means beside the routes, as APISIX 2.x does")
	fs.StringVar(&cfg.PrometheusListen, "prometheus-listen", gateway.DefaultPrometheusListen, "serve the metrics here; empty means nowhere")
	fs.StringSliceVar(&cfg.Etcd, "etcd", []string{"http://127.0.0.1:2379"}, "URLs of etcd")
	fs.StringVar(&cfg.Prefix, "etcd-prefix", gateway.DefaultPrefix, "prefix of the keys in etcd")
	fs.StringVar(&cfg.AdminKey, "admin-key", "", "key of the Admin API (default: $"+proxycheck.AdminKeyEnv+", else a random one, which is logged)")
	fs.StringVar(&dialect, "dialect", gateway.V3.String(), "answer on the Admin API as APISIX 2.x (v2) or 3.x (v3) does")
	fs.StringVar(&fault, "fault", "", "fail on demand, for tests: a list such as slow-start=2s,admin-status=403;\nknown are "+strings.Join(gateway.FaultNames(), ", "))
	logs.add(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	var err error
	if cfg.Dialect, err = gateway.ParseDialect(dialect); err != nil {
		return usagef("gateway: --dialect: %v", err)
	}
	if cfg.Faults, err = gateway.ParseFaults(fault); err != nil {
		return usagef("gateway: --fault: %v", err)
	}
	if cfg.Logger, err = logs.logger(s.err); err != nil {
		return err
	}
	cfg.Version = version
	return serveGateway(ctx, cfg)
}

// serveGateway runs the gateway until ctx ends or it does.
func serveGateway(ctx context.Context, cfg gateway.Config) error {
	log := cfg.Logger
	if _, err := process.RaiseNoFile(); err != nil {
		log.Warn().Err(err).Msg("could not raise the limit of open files")
	}
	cfg.AdminKey = cmp.Or(cfg.AdminKey, os.Getenv(proxycheck.AdminKeyEnv))
	if cfg.AdminKey == "" {
		cfg.AdminKey = rand.Text()
		log.Info().Str("admin-key", cfg.AdminKey).Msg("made an admin key")
	}
	// One worker has one core.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(gatewayGC)

	server, err := gateway.Start(ctx, cfg)
	if err != nil {
		return explainGateway(err, cfg)
	}
	log.Info().Str("listen", server.URL()).Str("admin", server.AdminURL()).
		Str("metrics", server.MetricsURL()).Msg("gateway ready")
	select {
	case <-ctx.Done():
		err = nil
	case err = <-server.Err():
	}
	return errors.Join(err, server.Close())
}

// explainGateway adds what to do about a gateway that does not start.
func explainGateway(err error, cfg gateway.Config) error {
	if errors.Is(err, gateway.ErrEtcd) {
		return &proxycheck.HintError{
			Err:  err,
			Hint: fmt.Sprintf("No etcd answers at %s. Start one with 'armrepro etcd', or name another with --etcd.", strings.Join(cfg.Etcd, ", ")),
		}
	}
	return explainListen(err, []string{cfg.Listen, cfg.AdminListen, cfg.PrometheusListen}, "--listen, --admin-listen or --prometheus-listen")
}
