package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"armrepro/bench/experiment"
	"armrepro/embed"
	"armrepro/proxycheck"
	"armrepro/proxycheck/gateway"
	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

// server is a part that runs alone.
type server interface {
	Err() <-chan error
	Close() error
}

// serve waits until ctx or the server ends, then closes the server. A signal is
// the normal end, not an error.
func serve(ctx context.Context, s server) error {
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.Err():
	}
	return errors.Join(err, s.Close())
}

// newPart is the command of a part that runs alone.
func newPart(name, short, long string, add func(*pflag.FlagSet), run func(context.Context, zerolog.Logger) error) *cobra.Command {
	var logs logFlags
	cmd := &cobra.Command{
		Use: name + " [flags]", Short: short, Long: long,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return interruption(cmd.Context(), run(cmd.Context(), logs.logger(cmd.ErrOrStderr())))
		},
	}
	group(cmd, "Flags", add)
	group(cmd, "Output", logs.add)
	return cmd
}

func newEtcd() *cobra.Command {
	cfg := embed.Config{Listen: embed.DefaultListen}
	return newPart("etcd", "the embedded etcd alone, until Ctrl-C", etcdAbout, func(fs *pflag.FlagSet) {
		fs.Var(filled(&cfg.Listen, "ADDRESS"), "listen", "listen on this loopback address")
		fs.Var(filled(&cfg.Dir, "DIR"), "dir", "put the data folder in this one (default: the temporary folder)")
	}, func(ctx context.Context, log zerolog.Logger) error {
		cfg.Logger = log
		s, err := embed.Start(ctx, cfg)
		if err != nil {
			return proxycheck.ExplainListen(err, "--listen", cfg.Listen)
		}
		if err := proxycheck.Sweep(ctx, cfg.Dir); err != nil {
			return errors.Join(err, s.Close())
		}
		log.Info().Str("listen", s.Endpoint()).Str("version", embed.Version).Msg("etcd ready")
		return serve(ctx, s)
	})
}

const (
	maxUpstreamThreads = 256
	// upstreamMemory is the heap in bytes at which the upstream starts to
	// collect garbage. Only large requests leave that much.
	upstreamMemory = 256 << 20
)

func newUpstream() *cobra.Command {
	cfg := upstream.Config{Listen: []string{"127.0.0.1:1980"}, Loops: 1}
	controlFD := -1
	return newPart("upstream", "the upstream alone, until Ctrl-C", upstreamAbout, func(fs *pflag.FlagSet) {
		fs.Var(several(&cfg.Listen, "ADDRESS"), "listen", "listen on these addresses")
		fs.VarP(bounded(&cfg.Loops, maxUpstreamThreads), "threads", "t", "threads that share the connections")
		fs.IntVar(&controlFD, "control-fd", controlFD, "file descriptor of a socket for the number of responses sent")
		_ = fs.MarkHidden("control-fd")
	}, func(ctx context.Context, log zerolog.Logger) error {
		raiseFiles(log)
		// Each loop keeps a processor, and a collection has to wait for it.
		runtime.GOMAXPROCS(cfg.Loops + 1)
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(upstreamMemory)
		s, err := upstream.Start(ctx, cfg)
		if err != nil {
			return proxycheck.ExplainListen(err, "--listen", cfg.Listen...)
		}
		log.Info().Strs("listen", s.Addrs()).Msg("upstream ready")
		if controlFD >= 0 {
			go experiment.ServeControl(os.NewFile(uintptr(controlFD), "control"), s.Answered)
		}
		return serve(ctx, s)
	})
}

func raiseFiles(log zerolog.Logger) {
	if _, err := process.RaiseNoFile(); err != nil {
		log.Warn().Err(err).Msg("could not raise the limit on open files")
	}
}

// gatewayGC is the built-in gateway's GOGC. Its live heap is small, so the
// default of 100 would collect many times a second under load.
const gatewayGC = 800

func newGateway(version string) *cobra.Command {
	cfg := gateway.Config{
		Listen: gateway.DefaultListen, AdminListen: gateway.DefaultAdminListen, PrometheusListen: gateway.DefaultPrometheusListen,
		Etcd: proxycheck.Etcd{Endpoints: []string{"http://127.0.0.1:2379"}}, Prefix: gateway.DefaultPrefix, Version: version,
	}
	return newPart("gateway", "the built-in gateway alone, until Ctrl-C", gatewayAbout, func(fs *pflag.FlagSet) {
		fs.Var(filled(&cfg.Listen, "ADDRESS"), "listen", "address of the data plane")
		fs.Var(filled(&cfg.AdminListen, "ADDRESS"), "admin-listen", "address of the Admin API")
		fs.Var(filled(&cfg.PrometheusListen, "ADDRESS"), "prometheus-listen", "address of the metrics")
		addEtcd(fs, &cfg.Etcd, "client URLs of etcd")
		fs.Var(filled(&cfg.Prefix, "PREFIX"), "etcd-prefix", "prefix of the keys in etcd")
		fs.Var(filled(&cfg.AdminKey, "KEY"), "admin-key", "key of the Admin API (default: $"+proxycheck.AdminKeyEnv+", otherwise a random one, shown in the log)")
	}, func(ctx context.Context, log zerolog.Logger) error {
		cfg.Logger = log
		if err := errors.Join(completeEtcd(&cfg.Etcd), completeKey(&cfg.AdminKey)); err != nil {
			return err
		}
		return runGateway(ctx, cfg)
	})
}

// runGateway runs the built-in gateway until ctx ends or it does.
func runGateway(ctx context.Context, cfg gateway.Config) error {
	log := cfg.Logger
	raiseFiles(log)
	if cfg.AdminKey == "" {
		cfg.AdminKey = rand.Text()
		log.Info().Str("admin-key", cfg.AdminKey).Msg("created an admin key")
	}
	// One worker has one core.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(gatewayGC)
	s, err := gateway.Start(ctx, cfg)
	if errors.Is(err, gateway.ErrEtcd) {
		return err
	}
	if err != nil {
		return proxycheck.ExplainListen(err, "--listen, --admin-listen or --prometheus-listen", cfg.Listen, cfg.AdminListen, cfg.PrometheusListen)
	}
	log.Info().Str("listen", s.URL).Str("admin", s.AdminURL).Str("metrics", s.MetricsURL).Msg("gateway ready")
	return serve(ctx, s)
}
