package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"armrepro/bench/load"
)

// comparison is a peer and our own, run in turn.
type comparison struct {
	title     string
	peer, own side
	figures   []figure
}

// row is one figure of a comparison, as the table shows it.
type row struct {
	section, name string
	ratios        ratios
	format        string
	bound         bound
	verdict       verdict
	// note says what the reader has to know about it.
	note string
}

type verdict string

const (
	held    verdict = "ok"
	missed  verdict = "MISSED"
	failing verdict = "ERRORS"
	skipped verdict = "skipped"
	// shown is a row without a bound.
	shown verdict = ""
)

// warmUp precedes every comparison on either side and is discarded.
const warmUp = time.Second

// compare measures each comparison, and the peer against itself where a control
// was asked for.
func (s *session) compare(ctx context.Context, section string, usual int, comparisons ...comparison) error {
	for _, c := range comparisons {
		sides := []comparison{c}
		if s.opts.control {
			sides = append(sides, c.control())
		}
		for _, c := range sides {
			if err := s.measurePairs(ctx, section, cmp.Or(s.opts.pairs, usual), c); err != nil {
				return fmt.Errorf("%s: %w", c.title, err)
			}
		}
	}
	return nil
}

// control is the peer against itself, without bounds.
func (c comparison) control() comparison {
	control := comparison{title: c.title + " (control)", peer: c.peer, own: c.peer}
	for _, f := range c.figures {
		control.figures = append(control.figures, f.in(unbound))
	}
	return control
}

// measurePairs runs the pairs of c and adds its rows.
func (s *session) measurePairs(ctx context.Context, section string, pairs int, c comparison) error {
	if _, err := s.runPair(ctx, c, min(warmUp, s.opts.duration)); err != nil {
		return err
	}
	var peers, owns []sample
	for i := range pairs {
		s.progress("%s, %s: pair %d of %d", section, c.title, i+1, pairs)
		pair, err := s.runPair(ctx, c, s.opts.duration)
		if err != nil {
			return err
		}
		peers, owns = append(peers, pair[0]), append(owns, pair[1])
	}
	rows, err := c.rows(section, peers, owns, s.opts.slack)
	s.rows = append(s.rows, rows...)
	return err
}

// runPair measures the peer, then our own.
func (s *session) runPair(ctx context.Context, c comparison, d time.Duration) (pair [2]sample, err error) {
	for i, run := range []side{c.peer, c.own} {
		if pair[i], err = s.runOnce(ctx, run, d); err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// runOnce makes one run, measures what the servers use meanwhile and sees to it
// that every one survived it.
func (s *session) runOnce(ctx context.Context, run side, d time.Duration) (sample, error) {
	upstream, proxy, err := s.serverCPU()
	if err != nil {
		return sample{}, err
	}
	measured, runErr := run(ctx, d)
	for _, server := range s.servers {
		if err := server.alive(); err != nil {
			return sample{}, err
		}
	}
	if runErr != nil {
		return sample{}, runErr
	}
	measured.upstreamCPU, measured.proxyCPU, err = s.serverCPU()
	measured.upstreamCPU -= upstream
	measured.proxyCPU -= proxy
	return measured, err
}

// rows sums the samples up, pair i being peers[i] and owns[i].
func (c comparison) rows(section string, peers, owns []sample, slack float64) ([]row, error) {
	peerErrors, ownErrors := sumErrors(peers), sumErrors(owns)
	var notes []string
	if peerErrors.Total() > 0 || ownErrors.Total() > 0 {
		notes = append(notes, fmt.Sprintf("errors of the peer: %+v; of armrepro: %+v", peerErrors, ownErrors))
	}
	var rows []row
	for _, f := range c.figures {
		r, err := compare(f.values(peers), f.values(owns))
		if err != nil {
			return rows, fmt.Errorf("%s: %w", f.name, err)
		}
		const enough = 90
		if busy := min(r.peer, r.own); f.name == proxyBusy.name && busy < enough {
			notes = append(notes, fmt.Sprintf("the proxy was only "+f.format+" busy: something else was the limit, so these rows say little about the peers", busy))
		}
		row := row{section: section, name: c.title + ": " + f.name, ratios: r, format: f.format, bound: f.bound.widened(slack)}
		switch {
		case f.bound == unbound:
			row.verdict = shown
		case ownErrors.Total() > 0 && peerErrors.Total() == 0:
			// The figures are not of the same thing.
			row.verdict = failing
		case row.bound.holds(r):
			row.verdict = held
		default:
			row.verdict = missed
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].note = strings.Join(notes, "; ")
	}
	return rows, nil
}

func sumErrors(samples []sample) load.Errors {
	var sum load.Errors
	for _, s := range samples {
		sum.Add(s.Errors)
	}
	return sum
}

// figure is one number of a run that is compared.
type figure struct {
	name string
	// of reads it from a sample; NaN or 0 if the run did not measure it.
	of     func(sample) float64
	format string
	bound  bound
}

// in is the figure with a bound.
func (f figure) in(b bound) figure {
	f.bound = b
	return f
}

func (f figure) values(samples []sample) []float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, f.of(s))
	}
	return values
}

// The figures. Times are in microseconds, latencies as wrk corrects them.
var (
	requestRate = figure{"requests/s", func(s sample) float64 { return s.QPS }, "%.0f", unbound}
	meanLatency = latencyFigure("mean latency", func(l load.Latency) *float64 { return l.MeanWrk })
	p50         = latencyFigure("p50", func(l load.Latency) *float64 { return l.P50 })
	p90         = latencyFigure("p90", func(l load.Latency) *float64 { return l.P90 })
	p99         = latencyFigure("p99", func(l load.Latency) *float64 { return l.P99 })

	generatorCost = costFigure("CPU per request", func(s sample) time.Duration { return s.generatorCPU })
	upstreamCost  = costFigure("CPU per request", func(s sample) time.Duration { return s.upstreamCPU })
	proxyCost     = costFigure("proxy CPU per request", func(s sample) time.Duration { return s.proxyCPU })
	// proxyBusy is the share of a core that the proxy used, in per cent.
	proxyBusy = figure{"proxy busy", func(s sample) float64 {
		return 100 * s.proxyCPU.Seconds() * s.QPS / float64(s.Requests)
	}, "%.0f %%", unbound}

	answerSize = figure{"bytes per request", func(s sample) float64 {
		return float64(s.Bytes) / float64(s.Requests)
	}, "%.6g B", exactly}
)

func latencyFigure(name string, of func(load.Latency) *float64) figure {
	return figure{name, func(s sample) float64 {
		if latency := of(s.Latency); latency != nil {
			return *latency
		}
		return math.NaN()
	}, "%.2f µs", unbound}
}

func costFigure(name string, of func(sample) time.Duration) figure {
	return figure{name, func(s sample) float64 {
		return of(s).Seconds() * 1e6 / float64(s.Requests)
	}, "%.2f µs", unbound}
}
