package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// writeTable prints the rows and, below, the notes to them.
func writeTable(w io.Writer, rows []row) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Options.SeparateHeader = true
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"section", "figure", "peer", "armrepro", "ratio", "lowest–highest", "bound", ""})
	var columns []table.ColumnConfig
	for number := 3; number <= 6; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	var notes []string
	section := ""
	for _, r := range rows {
		mark := ""
		if r.note != "" {
			// The rows of one comparison share their note.
			if !slices.Contains(notes, r.note) {
				notes = append(notes, r.note)
			}
			mark = fmt.Sprintf(" [%d]", slices.Index(notes, r.note)+1)
		}
		name := r.section
		if name == section {
			name = ""
		}
		section = r.section
		t.AppendRow(append(append(table.Row{name, r.name}, r.cells()...), string(r.verdict)+mark))
	}
	var b strings.Builder
	// The last column is padded, which nobody sees but a diff.
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	for i, note := range notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells are the columns of figures, empty for a row without any.
func (r row) cells() []any {
	if r.verdict == skipped {
		return []any{"", "", "", "", ""}
	}
	x := r.ratios
	return []any{
		fmt.Sprintf(r.format, x.peer), fmt.Sprintf(r.format, x.own), fmt.Sprintf("%.3f", x.median),
		fmt.Sprintf("%.3f–%.3f", x.low, x.high), r.bound.String(),
	}
}

// median is the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios is what the pairs of a comparison say: each ratio is between two runs
// that followed each other, so that a machine that slows down or speeds up in
// between weighs on both.
type ratios struct {
	// median, low and high are of the pairs' ratios, peer below.
	median, low, high float64
	// peer and own are the medians of either side.
	peer, own float64
}

// compare divides own by peer, pair by pair, of which there is at least one. A value
// that is missing, or a peer's that is zero, is an error.
func compare(peer, own []float64) (ratios, error) {
	var quotients []float64
	for i := range peer {
		q := own[i] / peer[i]
		if math.IsNaN(q) || math.IsInf(q, 0) {
			return ratios{}, fmt.Errorf("compare: pair %d: %v against %v", i+1, own[i], peer[i])
		}
		quotients = append(quotients, q)
	}
	return ratios{median(quotients), slices.Min(quotients), slices.Max(quotients), median(peer), median(own)}, nil
}

// bound is where a ratio has to lie, both limits included.
type bound struct{ low, high float64 }

var (
	// unbound holds always.
	unbound = atLeast(0)
	// exactly wants 1 in every pair, whatever the slack.
	exactly = within(1, 1)
)

func atMost(high float64) bound      { return bound{0, high} }
func atLeast(low float64) bound      { return bound{low, math.Inf(1)} }
func within(low, high float64) bound { return bound{low, high} }

// widened is the bound with slack, 1 leaving it as it is: slack multiplies a cost
// and divides a yield; of a bound on either side it multiplies the distances from 1.
func (b bound) widened(slack float64) bound {
	switch {
	case math.IsInf(b.high, 1):
		return atLeast(b.low / slack)
	case b.low == 0:
		return atMost(b.high * slack)
	}
	return within(1-(1-b.low)*slack, 1+(b.high-1)*slack)
}

// holds reports whether the median lies within the bound.
func (b bound) holds(r ratios) bool {
	if b == exactly {
		return r.low == 1 && r.high == 1
	}
	return r.median >= b.low && r.median <= b.high
}

func (b bound) String() string {
	switch {
	case b == unbound:
		return ""
	case b == exactly:
		return "equal"
	case math.IsInf(b.high, 1):
		return fmt.Sprintf("≥ %.3g", b.low)
	case b.low == 0:
		return fmt.Sprintf("≤ %.3g", b.high)
	}
	return fmt.Sprintf("%.2f–%.2f", b.low, b.high)
}
