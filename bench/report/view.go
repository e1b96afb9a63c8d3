package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"armrepro/assets"
	"armrepro/bench"
)

// grid is a table. Cells that a row lacks at its end are empty.
type grid struct {
	title string
	// gateway says what was measured; notAPISIX that its figures are not
	// APISIX's.
	gateway   string
	notAPISIX bool
	// setup is the settings that a reader compares first.
	setup string
	// marks say why the figures do not count, or not in full.
	marks  []string
	header []string
	// words is the number of leading columns that hold words; all others
	// hold figures.
	words  int
	groups []group
	// notes are lines beneath the table.
	notes []string
}

// group is a block of rows with a title of its own, which may be empty.
type group struct {
	title string
	rows  []row
}

type row struct {
	label string
	cells []string
}

// section is a list of facts under a title.
type section struct {
	title string
	facts []fact
}

type fact struct {
	label string
	value string
}

// writeEach lets write print each result, with the published figures to set beside
// it, and puts a rule between one and the next.
func writeEach(out *strings.Builder, results []bench.Result, opts Options, rule string, write func(bench.Result, []grid)) {
	for i, r := range results {
		var references []grid
		if opts.References {
			references = referenceGrids(r)
		}
		if i > 0 {
			out.WriteString("\n" + rule + "\n\n")
		}
		write(r, references)
	}
}

// tables are those of every scenario.
func tables(r bench.Result) []grid {
	var grids []grid
	for i, s := range r.Scenarios {
		if len(r.Starts) > 0 {
			grids = append(grids, startsGrid(r, s))
		} else {
			grids = append(grids, scenarioGrid(r, s))
		}
		if s.CrossCheck != nil {
			grids = append(grids, crossGrid(r, s))
		}
		if len(s.Sweep) > 0 {
			grids = append(grids, sweepGrid(r, s))
		}
		if len(s.Concurrency) > 0 {
			grids = append(grids, concurrencyGrid(r, s))
		}
		if len(r.Scaling) > 0 {
			grids = append(grids, scalingGrid(r, i))
		}
	}
	return grids
}

// sections are the facts that move the figures.
func sections(r bench.Result) []section {
	return []section{machineSection(r), settingsSection(r)}
}

// legend says how the latencies are meant, and what one start can't show.
func legend(r bench.Result) string {
	text := latencyLegend(r)
	if len(r.Starts) == 0 {
		text += " One start of the gateway: another can differ by up to 10 %. To show a smaller difference, use --restarts."
	}
	return text
}

func latencyLegend(r bench.Result) string {
	if r.Settings.Rate > 0 || r.Settings.RateShare > 0 {
		return "Unless stated, latency counts from when the request was due."
	}
	if r.Tools.Load != nil {
		return "Latencies are those that " + program(r.Tools.Load) + " printed: with samples added for the requests that a slow answer held back."
	}
	text := "Avg latency is the mean that wrk would print; percentiles and max are uncorrected."
	if slices.ContainsFunc(r.Scenarios, func(s bench.ScenarioResult) bool { return slices.ContainsFunc(s.Runs, meansDiffer) }) {
		text += " wrk adds samples for the requests that a slow answer held back; the plain mean is without them."
	}
	return text
}

func heading(r bench.Result) string {
	on := " on "
	if isBuiltin(r.Gateway) {
		on = ", on "
	}
	return gatewayName(r.Gateway) + on + machineName(r)
}

// machineName is the CPU and where it is. A machine of nobody's cloud is known by
// the label that its user gave it.
func machineName(r bench.Result) string {
	where := join(" ", r.Machine.Cloud, r.Machine.Instance)
	if where == "" {
		where = r.Label
	}
	return cmp.Or(join(", ", r.Machine.CPU.Product, where), "an unknown machine")
}

// gatewayName names the gateway so that the built-in one is never taken for
// APISIX.
func gatewayName(g bench.GatewayInfo) string {
	if isBuiltin(g) {
		return "armrepro's built-in gateway, not APISIX"
	}
	return join(" ", known(g.Name), g.Version)
}

func isBuiltin(g bench.GatewayInfo) bool { return g.Kind == "builtin" }

// counts reports whether the figures of r may be compared with others.
func counts(r bench.Result) bool { return r.Standing().Counts() }

// verdict says in words whether the figures count.
func verdict(r bench.Result) string {
	switch v := r.Standing(); {
	case v == bench.Interrupted:
		return "INTERRUPTED: partial figures; not compared."
	case v == bench.Disturbed:
		return "DISTURBED: figures as measured while something else took the gateway's time; not compared."
	case v == bench.Invalid:
		return "INVALID: figures as measured; not compared."
	case len(r.Warnings) == 1:
		return "Valid, with 1 warning (below) that affects how far to trust the figures."
	case len(r.Warnings) > 1:
		return fmt.Sprintf("Valid, with %d warnings (below) that affect how far to trust the figures.", len(r.Warnings))
	}
	return "Valid: nothing found that casts doubt on these figures."
}

// disqualified says that r does not count, and why.
func disqualified(r bench.Result, why string) string {
	return strings.ToUpper(string(r.Standing())) + ": " + why
}

// wholeMark says why r does not count apart from what is about one scenario, whose
// table has that; empty if there is nothing to say.
func wholeMark(r bench.Result) string {
	why := reasons(r, "")
	if len(decisive(r)) == 0 {
		why = "no reason was recorded"
	}
	if counts(r) || r.Verdict == bench.Interrupted || why == "" {
		return ""
	}
	return disqualified(r, why)
}

// reasons are the findings behind a verdict that keeps r from counting, in words:
// those about a scenario, or with an empty name about none.
func reasons(r bench.Result, scenario string) string {
	about := slices.DeleteFunc(decisive(r), func(w bench.Warning) bool { return w.Scenario != scenario })
	return strings.Join(each(about, func(w bench.Warning) string { return w.Text }), "; ")
}

// decisive are the warnings behind the verdict on r; none made it interrupted.
func decisive(r bench.Result) []bench.Warning {
	v := r.Standing()
	return slices.DeleteFunc(slices.Clone(r.Warnings), func(w bench.Warning) bool {
		return v == bench.Invalid && !w.Invalid || v == bench.Disturbed && !w.Disturbed || v == bench.Interrupted
	})
}

// scenarioName is how the posts refer to one of the two built-in scenarios, or
// the name of any other.
func scenarioName(s bench.ScenarioResult) string {
	if i := slices.Index(assets.ScenarioNames(), s.Name); i >= 0 {
		return fmt.Sprintf("scenario %d", i+1)
	}
	return "scenario " + known(s.Name)
}

// controlLine says how far the gateway was from the ceiling.
func controlLine(r bench.Result) string {
	label := "Without the gateway (ceiling): "
	c := r.Control
	switch {
	case c == nil:
		return label + missing + " (not measured)."
	case c.Cut:
		label = "Without the gateway, cut after " + fixed(c.Seconds, 1) + " s (no ceiling): "
	}
	line := fmt.Sprintf("%s%s requests/s, avg latency %s (CPU: upstream %s, load %s).", label,
		rate(c.QPS), figure(c.Latency.MeanWrk, microseconds),
		figure(c.CPU.Upstream, percent), figure(c.CPU.Load, percent))
	// At a fixed rate the gateway reaches what was asked of it.
	if c.Cut || !counts(r) || r.Settings.Rate > 0 || r.Settings.RateShare > 0 {
		return line
	}
	var shares []string
	for _, s := range r.Scenarios {
		if s.QPS != nil && c.QPS > 0 {
			share := percent(*s.QPS / c.QPS)
			if len(shares) == 0 {
				share += " of that"
			}
			shares = append(shares, share+" ("+scenarioName(s)+")")
		}
	}
	if len(shares) == 0 {
		return line
	}
	return line + " Gateway: " + strings.Join(shares, ", ") + "."
}
