package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	"armrepro/bench/machine"
	"armrepro/proxycheck"
	"armrepro/proxycheck/gateway"
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
		cfg  gateway.Config
		logs logFlags
	)
	fs := newFlags("gateway", "", gatewayAbout, s)
	fs.StringVar(&cfg.Listen, "listen", gateway.DefaultListen, "serve the routes on this address")
	fs.StringVar(&cfg.AdminListen, "admin-listen", gateway.DefaultAdminListen, "serve the Admin API on this address")
	fs.StringVar(&cfg.PrometheusListen, "prometheus-listen", gateway.DefaultPrometheusListen, "serve the metrics here; empty means nowhere")
	addEtcdFlags(fs, &cfg.Etcd, []string{"http://127.0.0.1:2379"}, "URLs of etcd")
	fs.StringVar(&cfg.Prefix, "etcd-prefix", gateway.DefaultPrefix, "prefix of the keys in etcd")
	fs.StringVar(&cfg.AdminKey, "admin-key", "", "key of the Admin API (default: $"+proxycheck.AdminKeyEnv+", else a random one, which is logged)")
	logs.add(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	err := completeEtcd(&cfg.Etcd)
	if err != nil {
		return err
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
	if _, err := machine.RaiseNoFile(); err != nil {
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
	if proxycheck.Hint(err) != "" {
		return err
	}
	return explainListen(err, []string{cfg.Listen, cfg.AdminListen, cfg.PrometheusListen}, "--listen, --admin-listen or --prometheus-listen")
}
