package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"armrepro/proxycheck"
	"armrepro/proxycheck/process"
	"armrepro/upstream"
)

const upstreamAbout = `Answers every path with the ten bytes 1234567890, chunked, as the nginx of the published
benchmarks did, and /anything/* as httpbin does, until a signal.`

func runUpstream(ctx context.Context, args []string, s streams) error {
	var (
		cfg  upstream.Config
		logs logFlags
	)
	fs := newFlags("upstream", "", upstreamAbout, s)
	fs.StringSliceVar(&cfg.Listen, "listen", []string{"127.0.0.1:1980"}, "listen on these addresses")
	cfg.Loops = 1
	fs.VarP((*countValue)(&cfg.Loops), "threads", "t", "threads that share the connections")
	logs.add(fs)
	if err := parse(fs, args, 0, 0); err != nil {
		return err
	}
	if cfg.Loops < 1 || cfg.Loops > maxUpstreamThreads {
		return usagef("upstream: --threads must be between 1 and %d", maxUpstreamThreads)
	}
	log, err := logs.logger(s.err)
	if err != nil {
		return err
	}
	if _, err := process.RaiseNoFile(); err != nil {
		log.Warn().Err(err).Msg("could not raise the limit of open files")
	}
	// The loops keep a processor each, and a collection has to wait for them:
	// it happens only when a client's large requests have left much behind.
	runtime.GOMAXPROCS(cfg.Loops + 1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(upstreamMemory)

	server, err := upstream.Start(ctx, cfg)
	if err != nil {
		return explainListen(err, cfg.Listen, "--listen")
	}
	log.Info().Strs("listen", server.Addrs()).Msg("upstream ready")
	select {
	case <-ctx.Done():
		err = nil
	case err = <-server.Err():
	}
	if closeErr := server.Close(); err == nil {
		err = closeErr
	}
	return err
}

const (
	maxUpstreamThreads = 256
	// upstreamMemory is where the upstream begins to collect garbage.
	upstreamMemory = 256 << 20
)

// explainListen names the process that holds an address which could not be
// listened on, and the flag that chooses another.
func explainListen(err error, addresses []string, flag string) error {
	for _, address := range addresses {
		_, port, ok := cutLast(address, ":")
		if !ok || !strings.Contains(err.Error(), address) {
			continue
		}
		var number int
		if _, scanErr := fmt.Sscan(port, &number); scanErr != nil {
			continue
		}
		if holder, holderErr := process.PortHolder(os.DirFS("/"), number); holderErr == nil && holder != nil {
			return &proxycheck.HintError{
				Err:  err,
				Hint: fmt.Sprintf("Port %d is held by %s. Stop it, or choose another with %s.", number, holder, flag),
			}
		}
	}
	return err
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
