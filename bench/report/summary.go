package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"armrepro/bench"
)

// summaryLines is the most that Summary prints: with the prompt it leaves room on
// a small terminal for what is above it.
const summaryLines = 6

// Summary summarizes r for the end of a run: at most six lines of at most
// 80 columns.
func Summary(w io.Writer, r bench.Result) error {
	lines := []string{heading(r)}
	for i, s := range r.Scenarios {
		if room := summaryLines - 2; len(lines) == room && i < len(r.Scenarios)-1 {
			lines = append(lines, "and "+plural(len(r.Scenarios)-i, "more scenario"))
			break
		}
		lines = append(lines, summaryLine(r, s))
	}
	lines = append(lines, summaryVerdict(r))
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(text.Snip(clean(line), defaultWidth, "…") + "\n")
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

func summaryLine(r bench.Result, s bench.ScenarioResult) string {
	sample := plural(len(bench.Complete(s.Runs)), "run") + ", spread " + figure(bench.Spread(s.Runs, (*bench.Run).Throughput), percent)
	if len(r.Starts) > 0 {
		e := estimate(r, s, (*bench.Run).Throughput)
		sample = fmt.Sprintf("%d of %s, ± %s", r.CountedStarts(), plural(len(r.Starts), "start"), figure(e.halfWidth(), percent))
	}
	return fmt.Sprintf("%s: %s requests/s, avg latency %s (%s)", scenarioName(s),
		figure(s.QPS, rate), figure(s.LatencyMs, milliseconds), sample)
}

// summaryVerdict is the verdict with the codes of the warnings behind it.
func summaryVerdict(r bench.Result) string {
	var codes []string
	for _, w := range decisive(r) {
		if !slices.Contains(codes, w.Code) {
			codes = append(codes, w.Code)
		}
	}
	word := strings.ReplaceAll(string(r.Standing()), "-", " ")
	return join(": ", strings.ToUpper(word[:1])+word[1:], strings.Join(codes, ", "))
}
