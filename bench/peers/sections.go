package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"armrepro/proxycheck/process"
)

// section is a part of the comparison that can be had alone.
type section struct {
	name, about string
	// proxied says that it measures through the proxy.
	proxied bool
	run     func(*session, context.Context) error
}

// sections is every section, in the order in which they run.
func sections() []section {
	return []section{
		{"cost", "CPU time per request of generator and upstream, through one proxy", true, (*session).cost},
		{"pinned", "QPS and latency of the proxy, its worker alone on one CPU, the rest on another", true, (*session).pinned},
		{"unpinned", "the same, all on the two CPUs", true, (*session).unpinned},
		{"straight", "requests/s of the generators straight at a bare echo server", false, (*session).straight},
		{"latency", "percentiles on a server with known latencies", false, (*session).latency},
		{"bytes", "bytes counted per request", true, (*session).bytes},
	}
}

const (
	// usualPairs is enough for figures that hardly depend on what else
	// happens; faithfulPairs is for those that do.
	usualPairs    = 5
	faithfulPairs = 9
)

// The load of the published benchmarks: wrk with its default of two threads.
// `armrepro run` takes one for each of the gateway's workers.
const (
	wrkThreads       = 2
	ownThreads       = 1
	usualConnections = 16
)

// usual is the load of the published benchmarks, and ownUsual what stands for it.
func usual(url string) target {
	return target{url: url, threads: wrkThreads, connections: usualConnections}
}

func ownUsual(url string) target {
	return target{url: url, threads: ownThreads, connections: usualConnections}
}

// comparison fills in what the flags say.
func (s *session) comparison(section, title string, pairs int) comparison {
	if s.opts.pairs > 0 {
		pairs = s.opts.pairs
	}
	return comparison{section: section, title: title, pairs: pairs, duration: s.opts.duration}
}

// withStack calls f while a stack runs.
func (s *session) withStack(ctx context.Context, keepaliveRequests int, f func(*stack) error) error {
	st, err := s.startStack(ctx, keepaliveRequests)
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.stop())
}

func (s *session) cost(ctx context.Context) error {
	return s.withStack(ctx, 0, func(st *stack) error {
		if err := s.generatorCosts(ctx, st); err != nil {
			return err
		}
		return s.upstreamCosts(ctx, st)
	})
}

// generatorCosts compares the generator as run uses it, and with as many threads
// as wrk.
func (s *session) generatorCosts(ctx context.Context, st *stack) error {
	for _, of := range []struct {
		title string
		own   target
		bound bound
	}{
		{"generator", ownUsual(st.viaNginx), atMost(0.85)},
		{"generator, 2 threads", usual(st.viaNginx), bound{}},
	} {
		c := s.comparison("cost", of.title, usualPairs)
		c.servers = st.servers()
		c.peer, c.own = s.wrk(usual(st.viaNginx)), s.load(of.own)
		c.figures = []figure{generatorCost(of.bound)}
		if err := s.compare(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// upstreamCosts compares the upstream, and a server that only echoes: what is
// left between the two is all that the upstream could save.
func (s *session) upstreamCosts(ctx context.Context, st *stack) error {
	for _, of := range []struct {
		title, url string
		upstream   *server
		bound      bound
	}{
		{"upstream", st.viaOwn, st.own, atMost(0.80)},
		{"bare echo server", st.viaBare, st.bare, bound{}},
	} {
		c := s.comparison("cost", of.title, usualPairs)
		c.servers = st.servers()
		c.peer = observed(s.wrk(usual(st.viaNginx)), st.nginx, st.proxy)
		c.own = observed(s.wrk(usual(of.url)), of.upstream, st.proxy)
		c.figures = []figure{upstreamCost(of.bound)}
		if err := s.compare(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) pinned(ctx context.Context) error {
	cores, err := s.twoCPUs("pinned")
	if err != nil || cores == nil {
		return err
	}
	return confined([]int{cores.others}, func() error {
		return s.withStack(ctx, 0, func(st *stack) error {
			workers, err := st.proxy.workers()
			if err != nil {
				return err
			}
			for _, pid := range workers {
				if err := process.SetAffinity(pid, []int{cores.proxy}); err != nil {
					return err
				}
			}
			return s.faithful(ctx, "pinned", st, requestRate(within(0.97, 1.03)), meanLatency(within(0.95, 1.05)))
		})
	})
}

func (s *session) unpinned(ctx context.Context) error {
	cores, err := s.twoCPUs("unpinned")
	if err != nil || cores == nil {
		return err
	}
	return confined([]int{cores.proxy, cores.others}, func() error {
		return s.withStack(ctx, 0, func(st *stack) error {
			return s.faithful(ctx, "unpinned", st, requestRate(within(0.97, 1.05)), meanLatency(within(0.90, 1.05)))
		})
	})
}

// faithful compares what is measured of the proxy with both peers and with both
// of our own. Next to the figures it shows how busy the proxy was, since they say
// something only while it is the bottleneck.
func (s *session) faithful(ctx context.Context, section string, st *stack, figures ...figure) error {
	c := s.comparison(section, "both", faithfulPairs)
	c.servers, c.figures = st.servers(), append(figures, proxyBusy(), proxyCost())
	c.remark = idleProxy
	c.peer = observed(s.wrk(usual(st.viaNginx)), st.nginx, st.proxy)
	c.own = observed(s.load(ownUsual(st.viaOwn)), st.own, st.proxy)
	return s.compare(ctx, c)
}

// idleProxy says so if the proxy was not the bottleneck.
func idleProxy(peers, owns []sample) string {
	const enough = 0.9
	busy := math.Inf(1)
	for _, side := range [][]sample{peers, owns} {
		var shares []float64
		for _, s := range side {
			shares = append(shares, proxyBusy().of(s))
		}
		busy = min(busy, median(shares))
	}
	if busy >= enough {
		return ""
	}
	return fmt.Sprintf("the proxy was only %s busy: something else was the limit, so this says little about the peers", formatShare(busy))
}

// twoCPUs is where to measure faithfulness; nil, with a row that says so, where
// there is only one CPU.
func (s *session) twoCPUs(section string) (*corePair, error) {
	cores, err := findCores()
	if errors.Is(err, errOneCPU) {
		s.skip(section, "both", err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if cores.shared {
		s.progress("%s: CPUs %d and %d are two threads of one core", section, cores.proxy, cores.others)
	}
	return &cores, nil
}

func (s *session) straight(ctx context.Context) error {
	// nginx's two workers and a generator's thread would be three on two
	// CPUs: then it is their placement that is measured.
	pairs := s.comparison("straight", "", usualPairs).pairs
	at, err := manyAddresses(2 * (pairs + 1))
	if err != nil {
		return err
	}
	fast, err := startBare(ctx, at...)
	if err != nil {
		return err
	}
	compareAll := func() error {
		for _, threads := range []int{1, 2} {
			for _, connections := range []int{16, 100, 1000, 10000} {
				title := fmt.Sprintf("-t%d -c%d", threads, connections)
				if why := s.outOfReach(connections); why != "" {
					s.skip("straight", title, why)
					continue
				}
				c := s.comparison("straight", title, usualPairs)
				c.servers = []*server{fast}
				t := target{threads: threads, connections: connections}
				runs := 0
				elsewhere := func(run func(target) side) side {
					return func(ctx context.Context, d time.Duration) (sample, error) {
						t.url = url(at[runs%len(at)])
						runs++
						return run(t)(ctx, d)
					}
				}
				c.peer, c.own = elsewhere(s.wrk), elsewhere(s.load)
				c.figures = []figure{requestRate(atLeast(1))}
				if err := s.compare(ctx, c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return errors.Join(compareAll(), fast.stop())
}

// outOfReach says why so many connections cannot be opened, if they can't.
func (s *session) outOfReach(connections int) string {
	// Beside its connections a process has a few descriptors of its own.
	const besides = 100
	switch {
	case uint64(connections+besides) > s.openFiles:
		return fmt.Sprintf("the limit on open files is %d (ulimit -n)", s.openFiles)
	case connections+besides > s.ephemeral.size():
		return fmt.Sprintf("there are only %d ports for connections (%s)", s.ephemeral.size(), portRangeFile)
	}
	return ""
}

func (s *session) latency(ctx context.Context) error {
	at, err := addresses(1)
	if err != nil {
		return err
	}
	slow, err := startSlow(ctx, at[0])
	if err != nil {
		return err
	}
	near := within(0.95, 1.05)
	c := s.comparison("latency", "--latency", usualPairs)
	c.servers = []*server{slow}
	c.peer, c.own = s.wrk(usual(url(at[0]))), s.load(ownUsual(url(at[0])))
	c.figures = []figure{
		{"p50", func(s sample) float64 { return s.p50 }, formatMicroseconds, near},
		{"p90", func(s sample) float64 { return s.p90 }, formatMicroseconds, near},
		{"p99", func(s sample) float64 { return s.p99 }, formatMicroseconds, near},
	}
	return errors.Join(s.compare(ctx, c), slow.stop())
}

// bytes counts what reaches the generators, behind the proxy as always. Both
// answers have to be as long, too: what a gateway's client sees must not depend
// on the upstream.
func (s *session) bytes(ctx context.Context) error {
	// The last answer before nginx closes a connection says so and is five
	// bytes shorter, so none is to be the last.
	const never = 1_000_000_000
	return s.withStack(ctx, never, func(st *stack) error {
		for _, of := range []struct{ title, own string }{
			{"generator", st.viaNginx},
			{"both", st.viaOwn},
		} {
			c := s.comparison("bytes", of.title, usualPairs)
			c.servers = st.servers()
			c.duration = min(c.duration, time.Second)
			c.peer, c.own = s.wrkExact(usual(st.viaNginx)), s.loadExact(ownUsual(of.own))
			c.figures = []figure{answerSize(exactly())}
			if err := s.compare(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}
