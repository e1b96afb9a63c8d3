package report

import (
	"fmt"
	"slices"
	"strings"

	"armrepro/assets"
	"armrepro/bench"
)

// view is a result in words and formatted figures, without any layout. Text
// and Markdown are two layouts of it.
type view struct {
	heading string
	tables  []grid
	// legend says how the figures of the tables are meant.
	legend  string
	control string
	level   level
	verdict string
	// warnings are numbered from 1 in the order in which they are listed.
	warnings   []bench.Warning
	references []grid
	sections   []section
}

// level is how much weight a line has.
type level int

const (
	plain level = iota
	good
	caution
	bad
)

// grid is a table. Every row has as many cells as the header has.
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

// newView puts r into words.
func newView(r bench.Result, opts Options) (view, error) {
	r = printable(r)
	v := view{
		heading:  heading(r),
		control:  controlLine(r),
		warnings: r.Warnings,
		sections: []section{machineSection(r), settingsSection(r)},
		legend:   legend(r.Settings),
	}
	v.level, v.verdict = verdict(r)
	for _, s := range r.Scenarios {
		v.tables = append(v.tables, scenarioGrid(r, s))
		if len(s.Sweep) > 0 {
			v.tables = append(v.tables, sweepGrid(r, s))
		}
	}
	if opts.References {
		var err error
		if v.references, err = referenceGrids(r); err != nil {
			return view{}, err
		}
	}
	return v, nil
}

// legend says how the latencies are meant.
func legend(s bench.Settings) string {
	if s.Rate > 0 || s.RateShare > 0 {
		return "Unless stated, latency counts from when the request was due."
	}
	return "Avg latency is the mean that wrk would print; percentiles and max are uncorrected."
}

func heading(r bench.Result) string {
	where := join(", ", r.Machine.CPU.Product, join(" ", r.Machine.Cloud, r.Machine.Instance))
	if where == "" {
		where = "an unknown machine"
	}
	on := " on "
	if isBuiltin(r.Gateway) {
		on = ", on "
	}
	return gatewayName(r.Gateway) + on + where
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

// standing is the verdict on r, or a worse one if that is what its warnings say or
// its verdict is none.
func standing(r bench.Result) bench.Verdict {
	any := func(marked func(bench.Warning) bool) bool { return slices.ContainsFunc(r.Warnings, marked) }
	switch r.Verdict {
	case bench.Valid, bench.ValidWithWarnings, bench.Disturbed, bench.Interrupted:
		if any(func(w bench.Warning) bool { return w.Invalid }) {
			return bench.Invalid
		}
		if r.Verdict != bench.Interrupted && any(func(w bench.Warning) bool { return w.Disturbed }) {
			return bench.Disturbed
		}
		return r.Verdict
	}
	return bench.Invalid
}

// counts reports whether the figures of r may be compared with others.
func counts(r bench.Result) bool {
	s := standing(r)
	return s == bench.Valid || s == bench.ValidWithWarnings
}

// verdict says in words whether the figures count.
func verdict(r bench.Result) (level, string) {
	switch standing(r) {
	case bench.Interrupted:
		return bad, "INTERRUPTED: the measurement was stopped before its end. Partial figures; not compared."
	case bench.Disturbed:
		return bad, "DISTURBED: something else took this machine's time during the measurement. Figures shown as measured; not compared."
	case bench.Invalid:
		return bad, "INVALID: figures shown as measured; not compared."
	}
	switch n := len(r.Warnings); n {
	case 0:
		return good, "Valid: no check found anything wrong with these figures."
	case 1:
		return caution, "Valid, with 1 warning (below) that affects how far to trust the figures."
	default:
		return caution, fmt.Sprintf("Valid, with %d warnings (below) that affect how far to trust the figures.", n)
	}
}

// reasons are the marked findings, in words.
func reasons(r bench.Result, marked func(bench.Warning) bool) string {
	var texts []string
	for _, w := range r.Warnings {
		if marked(w) {
			texts = append(texts, w.Text)
		}
	}
	if len(texts) == 0 {
		return "no reason was recorded"
	}
	return strings.Join(texts, "; ")
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
	const label = "Without the gateway (ceiling): "
	if r.Control == nil {
		return label + missing + " (not measured)."
	}
	c := r.Control
	line := fmt.Sprintf("%s%s requests/s, avg latency %s (CPU: upstream %s, load %s).",
		label, rate(c.QPS), figure(c.Latency.MeanWrk, milliseconds),
		figure(c.CPU.Upstream, cores), figure(c.CPU.Load, cores))
	if c.Cut {
		return line + fmt.Sprintf(" Cut after %s s: not compared.", fixed(c.Seconds, 1))
	}
	// At a fixed rate the gateway reaches what was asked of it.
	if !counts(r) || r.Settings.Rate > 0 || r.Settings.RateShare > 0 {
		return line
	}
	var shares []string
	for _, s := range r.Scenarios {
		if s.QPS != nil && c.QPS > 0 {
			shares = append(shares, fmt.Sprintf("%s (%s)", percent(*s.QPS/c.QPS), scenarioName(s)))
		}
	}
	if len(shares) == 0 {
		return line
	}
	shares[0] = strings.Replace(shares[0], " (", " of that (", 1)
	return line + " Gateway: " + strings.Join(shares, ", ") + "."
}
