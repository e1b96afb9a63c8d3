package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"armrepro/proxycheck/process"
)

// maxConnections is what an nginx worker may have open: all of the largest
// load, should one worker get them.
const maxConnections = 20480

// stack is a proxy with one upstream of each kind behind it: one and the same
// worker for all, on ports of their own.
type stack struct {
	nginx, own, bare, proxy *server
	// viaNginx, viaOwn and viaBare lead through the proxy.
	viaNginx, viaOwn, viaBare string
}

// startStack starts both upstreams, then the proxy. keepaliveRequests is as in
// nginxConfig.
func (s *session) startStack(ctx context.Context, keepaliveRequests int) (st *stack, err error) {
	st = &stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.stop())
		}
	}()
	at, err := addresses(6)
	if err != nil {
		return st, err
	}
	toNginx, toOwn, toBare, byNginx, byOwn, byBare := at[0], at[1], at[2], at[3], at[4], at[5]
	if st.nginx, err = s.startUpstream(ctx, byNginx); err != nil {
		return st, err
	}
	if st.own, err = startServer(ctx, "armrepro upstream", process.Config{
		Path: s.tools.armrepro, Args: []string{"upstream", "--quiet", "--listen", byOwn},
	}, byOwn); err != nil {
		return st, err
	}
	if st.bare, err = startBare(ctx, byBare); err != nil {
		return st, err
	}
	st.proxy, err = startNginx(ctx, s.tools.nginx, s.dir, "proxy", nginxConfig{
		Modules: s.tools.lua, Workers: 1, Connections: s.nginxConnections(),
		KeepaliveRequests: keepaliveRequests, Rounds: s.rounds,
		Pairs: []nginxPair{{Listen: toNginx, To: byNginx}, {Listen: toOwn, To: byOwn}, {Listen: toBare, To: byBare}},
	})
	st.viaNginx, st.viaOwn, st.viaBare = url(toNginx), url(toOwn), url(toBare)
	return st, err
}

// startUpstream starts the nginx of the published benchmarks.
func (s *session) startUpstream(ctx context.Context, address string) (*server, error) {
	return startNginx(ctx, s.tools.nginx, s.dir, "upstream", nginxConfig{
		Modules: s.tools.echo, Workers: 2, Connections: s.nginxConnections(),
		Pairs: []nginxPair{{Listen: address}},
	})
}

// startSlow starts the server with the injected latencies.
func startSlow(ctx context.Context, address string) (*server, error) {
	return startSelf(ctx, slowCommand, address)
}

// startSelf starts this program as one of its own servers.
func startSelf(ctx context.Context, command string, at ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return startServer(ctx, command, process.Config{Path: self, Args: append([]string{command}, at...)}, at...)
}

func url(address string) string { return "http://" + address + "/" }

// nginxConnections is as many as the limit on open files allows.
func (s *session) nginxConnections() int { return int(min(s.openFiles, maxConnections)) }

// servers lists those that were started, the proxy first: it is to be stopped
// before what it leads to.
func (st *stack) servers() []*server {
	all := []*server{st.proxy, st.bare, st.own, st.nginx}
	return slices.DeleteFunc(all, func(s *server) bool { return s == nil })
}

func (st *stack) stop() error { return stopAll(st.servers()) }

func stopAll(servers []*server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}
