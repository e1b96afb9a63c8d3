package main

import (
	"context"
	"errors"

	"armrepro/embed"
	"armrepro/proxycheck"
)

const etcdAbout = `Runs the embedded etcd until a signal: one member, for this machine only, with data that
is removed at the end.`

func runEtcd(ctx context.Context, args []string, s streams) error {
	var (
		cfg  embed.Config
		logs logFlags
	)
	fs := newFlags("etcd", "", etcdAbout, s)
	fs.StringVar(&cfg.Listen, "listen", embed.DefaultListen, "listen on this loopback address")
	fs.StringVar(&cfg.Dir, "dir", "", "make the data folder in this one (default: the temporary folder)")
	logs.add(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	log, err := logs.logger(s.err)
	if err != nil {
		return err
	}
	cfg.Logger = log
	server, err := startEtcd(ctx, cfg, "--listen")
	if err != nil {
		return err
	}
	log.Info().Str("listen", server.Endpoint()).Str("version", server.Version()).Msg("etcd ready")
	select {
	case <-ctx.Done():
		err = nil
	case err = <-server.Err():
	}
	return errors.Join(err, server.Close())
}

// startEtcd starts the embedded etcd, and passes on what it says to do about a
// failure; flag chooses another port.
func startEtcd(ctx context.Context, cfg embed.Config, flag string) (*embed.Server, error) {
	server, err := embed.Start(ctx, cfg)
	if err == nil {
		return server, nil
	}
	if held := explainListen(err, []string{cfg.Listen}, flag); proxycheck.Hint(held) != "" {
		return nil, held
	}
	if hinted, ok := errors.AsType[*embed.HintError](err); ok {
		return nil, &proxycheck.HintError{Err: err, Hint: hinted.Hint}
	}
	return nil, err
}
