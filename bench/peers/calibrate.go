package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// probeRounds are enough to tell what one takes.
const probeRounds = 100

// calibrate finds how many rounds of MD5 make a request take the proxy as much
// CPU time as the options ask for, so that it is the same bottleneck on a fast
// machine as on a slow one.
func (s *session) calibrate(ctx context.Context) error {
	bare, err := s.proxyCost(ctx, 0)
	if err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	probed, err := s.proxyCost(ctx, probeRounds)
	if err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	if s.rounds, err = roundsFor(s.opts.proxyWork, bare, probed); err != nil {
		return fmt.Errorf("calibrate the proxy: %w", err)
	}
	s.progress("the proxy: %d rounds of MD5 for %s a request, of which nginx itself takes %s",
		s.rounds, s.opts.proxyWork, bare.Round(time.Microsecond/10))
	return nil
}

// roundsFor is how many rounds take the time that is left of want, given the
// cost of a request without any and with probeRounds. It is 0 where nginx itself
// takes longer.
func roundsFor(want, bare, probed time.Duration) (int, error) {
	if probed <= bare {
		return 0, errors.New("the machine is too noisy: a request took longer without its work than with it")
	}
	rounds := probeRounds * (want - bare).Seconds() / (probed - bare).Seconds()
	return max(0, int(rounds+0.5)), nil
}

// proxyCost is the CPU time that a request takes the proxy with so many rounds.
func (s *session) proxyCost(ctx context.Context, rounds int) (time.Duration, error) {
	s.rounds = rounds
	var cost time.Duration
	err := s.withStack(ctx, 0, func(st *stack) error {
		measured, err := observed(s.wrk(usual(st.viaNginx)), st.nginx, st.proxy)(ctx, warmUp)
		if err != nil {
			return err
		}
		if measured.requests == 0 {
			return errors.New("nothing was answered through the proxy")
		}
		cost = measured.proxyCPU / time.Duration(measured.requests)
		return nil
	})
	return cost, err
}
