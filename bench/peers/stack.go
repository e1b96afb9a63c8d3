package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"armrepro/proxycheck/process"
)

// stack is a proxy with one upstream of each kind behind it: one and the same
// worker for all. The addresses are the proxy's that lead there.
type stack struct{ viaNginx, viaOwn, viaBare string }

const proxyName = "nginx as proxy"

// usualKeepalive is nginx's default for the requests after which it closes a
// client's connection.
const usualKeepalive = 1000

// startCalibrated starts a stack whose proxy has as much work as the options ask
// for. The proxy's worker runs on some CPUs, everything else of the section on
// others. The proxy is calibrated each time, since the machine's speed moves.
func (s *session) startCalibrated(ctx context.Context, keepaliveRequests int, others, proxys []int) (*stack, error) {
	if err := s.calibrate(ctx); err != nil {
		return nil, err
	}
	if err := process.SetAffinity(os.Getpid(), others); err != nil {
		return nil, err
	}
	st, err := s.startStack(ctx, keepaliveRequests)
	if err != nil {
		return nil, err
	}
	proxy := s.servers[len(s.servers)-1]
	workers, err := proxy.workers()
	for _, pid := range workers {
		err = errors.Join(err, process.SetAffinity(pid, proxys))
	}
	return st, err
}

// startStack starts the upstreams, then the proxy. keepaliveRequests is the
// proxy's.
func (s *session) startStack(ctx context.Context, keepaliveRequests int) (*stack, error) {
	at, err := addresses(6)
	if err != nil {
		return nil, err
	}
	nginx, own, bare := at[0], at[1], at[2]
	if _, err := s.startNginx(ctx, "nginx as upstream", nginxConfig{
		Modules: s.tools.echo, Workers: 2, KeepaliveRequests: usualKeepalive, Servers: []nginxServer{{Listen: nginx}},
	}); err != nil {
		return nil, err
	}
	if _, err := s.start(ctx, "armrepro upstream", []string{own}, s.tools.armrepro, "upstream", "--quiet", "--listen", own); err != nil {
		return nil, err
	}
	if _, err := s.startBare(ctx, bare); err != nil {
		return nil, err
	}
	if _, err := s.startNginx(ctx, proxyName, nginxConfig{
		Modules: s.tools.lua, Workers: 1, KeepaliveRequests: keepaliveRequests, Rounds: s.rounds,
		Servers: []nginxServer{{at[3], nginx}, {at[4], own}, {at[5], bare}},
	}); err != nil {
		return nil, err
	}
	return &stack{at[3], at[4], at[5]}, nil
}

// probeRounds are enough to tell what one takes.
const probeRounds = 100

// calibrate finds how many rounds of MD5 make a request take the proxy as much
// CPU time as the options ask for, so that it is the same bottleneck on a fast
// machine as on a slow one.
func (s *session) calibrate(ctx context.Context) error {
	var costs [2]time.Duration
	for i, rounds := range []int{0, probeRounds} {
		s.rounds = rounds
		st, err := s.startStack(ctx, usualKeepalive)
		var measured sample
		if err == nil {
			measured, err = s.runOnce(ctx, s.wrk(usual(st.viaNginx)), warmUp)
		}
		if err := errors.Join(err, s.stopServers()); err != nil {
			return fmt.Errorf("calibrate the proxy: %w", err)
		}
		costs[i] = measured.proxyCPU / time.Duration(max(1, measured.Requests))
	}
	var err error
	s.rounds, err = roundsFor(s.opts.proxyWork, costs[0], costs[1])
	s.progress("the proxy: %d rounds of MD5 for %s a request, of which nginx itself takes %s",
		s.rounds, s.opts.proxyWork, costs[0].Round(time.Microsecond/10))
	return err
}

// roundsFor is how many rounds take the time that is left of want, given the
// cost of a request without any and with probeRounds. It is 0 where nginx itself
// takes longer.
func roundsFor(want, bare, probed time.Duration) (int, error) {
	if probed <= bare {
		return 0, errors.New("calibrate the proxy: the machine is too noisy: a request took longer without its work than with it")
	}
	rounds := probeRounds * (want - bare).Seconds() / (probed - bare).Seconds()
	return max(0, int(rounds+0.5)), nil
}
