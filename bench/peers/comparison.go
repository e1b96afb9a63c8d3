package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"armrepro/bench/load"
)

// comparison is a peer and our own, run in turn.
type comparison struct {
	section, title string
	peer, own      side
	// servers must still run after each run.
	servers  []*server
	figures  []figure
	pairs    int
	duration time.Duration
	// remark, if there is one, says what the samples themselves tell against
	// the figures.
	remark func(peers, owns []sample) string
}

// row is one figure of a comparison, as the table shows it.
type row struct {
	section, name string
	ratios        ratios
	format        func(float64) string
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

// failed says whether the row is what exit code 3 stands for.
func (v verdict) failed() bool { return v == missed || v == failing }

// warmUp precedes every comparison on either side and is discarded.
const warmUp = time.Second

// compare measures c, and the peer against itself where a control was asked
// for.
func (s *session) compare(ctx context.Context, c comparison) error {
	if err := s.measure(ctx, c); err != nil {
		return fmt.Errorf("%s, %s: %w", c.section, c.title, err)
	}
	if !s.opts.control {
		return nil
	}
	c.title += " (control)"
	c.own = c.peer
	c.figures = slices.Clone(c.figures)
	for i := range c.figures {
		c.figures[i].bound = bound{}
	}
	if err := s.measure(ctx, c); err != nil {
		return fmt.Errorf("%s, %s: %w", c.section, c.title, err)
	}
	return nil
}

// measure runs the pairs of c and adds its rows.
func (s *session) measure(ctx context.Context, c comparison) error {
	for _, run := range []side{c.peer, c.own} {
		if _, err := c.run(ctx, run, min(warmUp, c.duration)); err != nil {
			return err
		}
	}
	var peers, owns []sample
	for i := range c.pairs {
		peer, err := c.run(ctx, c.peer, c.duration)
		if err != nil {
			return err
		}
		own, err := c.run(ctx, c.own, c.duration)
		if err != nil {
			return err
		}
		peers, owns = append(peers, peer), append(owns, own)
		s.progress("%s, %s: pair %d of %d:%s", c.section, c.title, i+1, c.pairs, c.quotients(peer, own))
	}
	rows, err := c.rows(peers, owns, s.opts.slack)
	s.rows = append(s.rows, rows...)
	return err
}

// run makes one run and sees to it that every server survived it.
func (c comparison) run(ctx context.Context, run side, d time.Duration) (sample, error) {
	measured, err := run(ctx, d)
	for _, server := range c.servers {
		if ended := server.alive(); ended != nil {
			return sample{}, ended
		}
	}
	return measured, err
}

// quotients words the ratios of one pair.
func (c comparison) quotients(peer, own sample) string {
	var b strings.Builder
	for i, f := range c.figures {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s %.3f", f.name, f.of(own)/f.of(peer))
	}
	return b.String()
}

// rows sums the samples up, pair i being peers[i] and owns[i].
func (c comparison) rows(peers, owns []sample, slack float64) ([]row, error) {
	note, failures := errorNote(peers, owns)
	if c.remark != nil {
		note = joinNotes(note, c.remark(peers, owns))
	}
	var rows []row
	for _, f := range c.figures {
		values := [2][]float64{}
		for i := range peers {
			values[0] = append(values[0], f.of(peers[i]))
			values[1] = append(values[1], f.of(owns[i]))
		}
		r, err := compare(values[0], values[1])
		if err != nil {
			return rows, fmt.Errorf("%s: %w", f.name, err)
		}
		b := f.bound.widened(slack)
		row := row{section: c.section, name: c.title + ": " + f.name, ratios: r, format: f.format, bound: b, note: note}
		switch {
		case b.kind == unbound:
			row.verdict = shown
		case failures:
			row.verdict = failing
		case b.holds(r):
			row.verdict = held
		default:
			row.verdict = missed
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// errorNote words the errors that the generators counted. failures says that
// only our own side had any, so that the figures aren't of the same thing.
func errorNote(peers, owns []sample) (note string, failures bool) {
	peer, own := sumErrors(peers), sumErrors(owns)
	if peer.Total() == 0 && own.Total() == 0 {
		return "", false
	}
	return fmt.Sprintf("errors on the left: %s; on the right: %s", wordErrors(peer), wordErrors(own)), peer.Total() == 0
}

func sumErrors(samples []sample) load.Errors {
	var sum load.Errors
	for _, s := range samples {
		sum.Connect += s.errors.Connect
		sum.Read += s.errors.Read
		sum.Write += s.errors.Write
		sum.Timeout += s.errors.Timeout
		sum.Status += s.errors.Status
	}
	return sum
}

func wordErrors(e load.Errors) string {
	if e.Total() == 0 {
		return "none"
	}
	var words []string
	for _, kind := range []struct {
		name  string
		count uint64
	}{{"connect", e.Connect}, {"read", e.Read}, {"write", e.Write}, {"timeout", e.Timeout}, {"status", e.Status}} {
		if kind.count > 0 {
			words = append(words, fmt.Sprintf("%s %d", kind.name, kind.count))
		}
	}
	return strings.Join(words, ", ")
}
