package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// table prints one aligned line a guest, then one a measurement.
type table struct {
	w      *tabwriter.Writer
	headed bool
	runs   []string
}

func newTable(w io.Writer) *table {
	return &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
}

func (t *table) add(g guest, seen outcome, took time.Duration) {
	if !t.headed {
		fmt.Fprintln(t.w, "guest\tCPU model\tcore\tproduct\tcloud\tinstance\temulated\ttime\tas expected")
		t.headed = true
	}
	m := seen.machine
	fmt.Fprintf(t.w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f s\t%s\n", g.name, g.cpu,
		orUnknown(m.CPU.Core), orUnknown(m.CPU.Product), orUnknown(m.Cloud), orUnknown(m.Instance),
		yesNo(m.Emulated), took.Seconds(), yesNo(len(seen.wrong) == 0))
	if seen.result == nil {
		return
	}
	for _, s := range seen.result.Scenarios {
		rate := "no figure"
		if s.QPS != nil {
			rate = fmt.Sprintf("%.0f requests/s", *s.QPS)
		}
		t.runs = append(t.runs, fmt.Sprintf("%s, %s on %s: %s, verdict %s",
			g.name, s.Name, seen.result.Gateway.Name, rate, seen.result.Verdict))
	}
}

// close prints the measurements and a last line. There is nobody to tell where
// the output cannot be written to.
func (t *table) close(format string, args ...any) {
	if t.headed {
		fmt.Fprintln(t.w)
	}
	for _, run := range t.runs {
		fmt.Fprintln(t.w, run)
	}
	fmt.Fprintf(t.w, format+"\n", args...)
	_ = t.w.Flush()
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
