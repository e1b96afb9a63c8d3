package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"armrepro/bench/machine"
)

// section is a part of the comparison that can be had alone.
type section struct {
	name, about string
	measure     func(*session, context.Context) error
}

// sections are in the order in which they run.
var sections = []section{
	{"cost", "CPU time per request of generator and upstream, through one proxy", (*session).cost},
	{"pinned", "QPS and latency of the proxy, its worker alone on one CPU, the rest on another", (*session).pinned},
	{"unpinned", "the same, all on the two CPUs", (*session).unpinned},
	{"straight", "requests/s of the generators straight at a bare echo server", (*session).straight},
	{"latency", "percentiles on a server with known latencies", (*session).latency},
	{"bytes", "bytes counted per request", (*session).bytes},
}

const (
	// usualPairs is enough for figures that hardly depend on what else
	// happens; faithfulPairs is for those that do.
	usualPairs    = 5
	faithfulPairs = 9
)

// usual is the load of the published benchmarks: wrk with its default of two
// threads. `armrepro run` takes one for each of the gateway's workers.
func usual(address string) target    { return target{[]string{address}, 2, 16} }
func ownUsual(address string) target { return target{[]string{address}, 1, 16} }

func (s *session) cost(ctx context.Context) error {
	st, err := s.startCalibrated(ctx, usualKeepalive, s.cpus, s.cpus)
	if err != nil {
		return err
	}
	wrk := s.wrk(usual(st.viaNginx))
	// What is left between the upstream and a server that only echoes is all
	// that the upstream could save.
	return s.compare(ctx, "cost", usualPairs,
		comparison{"generator", wrk, s.load(ownUsual(st.viaNginx)), []figure{generatorCost.in(atMost(0.85))}},
		comparison{"generator, 2 threads", wrk, s.load(usual(st.viaNginx)), []figure{generatorCost}},
		comparison{"upstream", wrk, s.wrk(usual(st.viaOwn)), []figure{upstreamCost.in(atMost(0.80))}},
		comparison{"bare echo server", wrk, s.wrk(usual(st.viaBare)), []figure{upstreamCost}},
	)
}

func (s *session) pinned(ctx context.Context) error {
	cpus := s.twoCPUs("pinned")
	if cpus == nil {
		return nil
	}
	st, err := s.startCalibrated(ctx, usualKeepalive, cpus[:1], cpus[1:])
	if err != nil {
		return err
	}
	return s.compare(ctx, "pinned", faithfulPairs,
		s.faithful(st, requestRate.in(within(0.97, 1.03)), meanLatency.in(within(0.95, 1.05))),
		// Two threads that share a core with the upstream get in its way.
		comparison{"generator, 2 threads", s.wrk(usual(st.viaNginx)), s.load(usual(st.viaNginx)), []figure{
			generatorCost.in(atMost(0.85)), requestRate.in(atLeast(0.98)), meanLatency, proxyBusy,
		}},
	)
}

func (s *session) unpinned(ctx context.Context) error {
	cpus := s.twoCPUs("unpinned")
	if cpus == nil {
		return nil
	}
	st, err := s.startCalibrated(ctx, usualKeepalive, cpus, cpus)
	if err != nil {
		return err
	}
	return s.compare(ctx, "unpinned", faithfulPairs,
		s.faithful(st, requestRate.in(within(0.97, 1.05)), meanLatency.in(within(0.90, 1.05))))
}

// faithful compares what is measured of the proxy with both peers and with both
// of our own. It shows how busy the proxy was, since the figures say something only
// while it is the bottleneck.
func (s *session) faithful(st *stack, figures ...figure) comparison {
	return comparison{"both", s.wrk(usual(st.viaNginx)), s.load(ownUsual(st.viaOwn)), append(figures, proxyBusy, proxyCost)}
}

// twoCPUs is where a section measures, however many there are: the share of the
// machine that a cheaper peer leaves to the gateway depends on their number. Where
// there is only one, a row says so.
func (s *session) twoCPUs(section string) []int {
	cpus := pickTwo(machine.LogicalCPUs(os.DirFS("/"), s.cpus))
	if cpus == nil {
		s.skip(section, "both", "it takes two CPUs")
	}
	return cpus
}

// pickTwo picks two CPUs, of different cores where possible; nil where there is
// only one.
func pickTwo(cpus []machine.LogicalCPU) []int {
	if len(cpus) < 2 {
		return nil
	}
	first := cpus[0]
	other := slices.IndexFunc(cpus, func(c machine.LogicalCPU) bool { return !slices.Contains(first.Siblings, c.ID) })
	return []int{first.ID, cpus[max(1, other)].ID}
}

func (s *session) straight(ctx context.Context) error {
	// The ports of connections that have ended stay taken for a minute
	// (TIME_WAIT), but only towards the address they led to: so each run has
	// one to itself. The server is not nginx, whose two workers and a
	// generator's thread would be three on two CPUs: then it is their
	// placement that is measured.
	at, err := addresses(250)
	if err != nil {
		return err
	}
	if _, err := s.startBare(ctx, at...); err != nil {
		return err
	}
	// A process has a few descriptors beyond its connections.
	const others = 100
	for _, threads := range []int{1, 2} {
		for _, connections := range []int{16, 100, 1000, 10000} {
			title := fmt.Sprintf("-t%d -c%d", threads, connections)
			if uint64(connections+others) > s.openFiles {
				s.skip("straight", title, fmt.Sprintf("the limit on open files is %d (ulimit -n)", s.openFiles))
				continue
			}
			t := target{at, threads, connections}
			c := comparison{title, s.wrk(t), s.load(t), []figure{requestRate.in(atLeast(1))}}
			if err := s.compare(ctx, "straight", usualPairs, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) latency(ctx context.Context) error {
	at, stop, err := startSlow()
	if err != nil {
		return err
	}
	defer stop()
	near := within(0.95, 1.05)
	return s.compare(ctx, "latency", usualPairs,
		comparison{"--latency", s.wrk(usual(at)), s.loadPrinted(ownUsual(at)), []figure{p50.in(near), p90.in(near), p99.in(near)}})
}

// bytes counts what reaches the generators, behind the proxy as always. Both
// answers have to be as long, too: what a gateway's client sees must not depend
// on the upstream.
func (s *session) bytes(ctx context.Context) error {
	// The last answer before nginx closes a connection says so and is five
	// bytes shorter, so none is to be the last.
	const never = 1_000_000_000
	st, err := s.startCalibrated(ctx, never, s.cpus, s.cpus)
	if err != nil {
		return err
	}
	wrk := s.wrk(usual(st.viaNginx))
	return s.compare(ctx, "bytes", usualPairs,
		comparison{"generator", wrk, s.load(ownUsual(st.viaNginx)), []figure{answerSize}},
		comparison{"both", wrk, s.load(ownUsual(st.viaOwn)), []figure{answerSize}})
}
