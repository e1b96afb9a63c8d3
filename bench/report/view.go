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
		return "Latencies count from when a request was due, if not said otherwise."
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

// counts reports whether the figures of r may be compared with others.
func counts(r bench.Result) bool {
	if slices.ContainsFunc(r.Warnings, func(w bench.Warning) bool { return w.Invalid }) {
		return false
	}
	return r.Verdict == bench.Valid || r.Verdict == bench.ValidWithWarnings
}

// verdict says in words whether the figures count.
func verdict(r bench.Result) (level, string) {
	switch {
	case r.Verdict == bench.Interrupted:
		return bad, "INTERRUPTED: the measurement was stopped before its end. " +
			"What was measured is shown and compared with nothing."
	case !counts(r):
		return bad, "INVALID: the figures are shown as they were measured and compared with nothing."
	case len(r.Warnings) == 1:
		return caution, "Valid, with 1 warning: read the figures together with it."
	case len(r.Warnings) > 1:
		return caution, fmt.Sprintf("Valid, with %d warnings: read the figures together with them.", len(r.Warnings))
	}
	return good, "Valid: nothing was found that speaks against these figures."
}

// invalidReasons are the findings that make r invalid, in words.
func invalidReasons(r bench.Result) string {
	var reasons []string
	for _, w := range r.Warnings {
		if w.Invalid {
			reasons = append(reasons, w.Text)
		}
	}
	if len(reasons) == 0 {
		return "no reason was recorded"
	}
	return strings.Join(reasons, "; ")
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
	if r.Control == nil {
		return "Straight to the upstream: " + missing + " (not measured)."
	}
	c := r.Control
	line := fmt.Sprintf("Straight to the upstream: %s requests/s, avg latency %s (CPU: upstream %s, load %s).",
		rate(c.QPS), figure(c.Latency.MeanWrk, milliseconds),
		figure(c.CPU.Upstream, cores), figure(c.CPU.Load, cores))
	// At a fixed rate the gateway reaches what was asked of it.
	if !counts(r) || r.Settings.Rate > 0 || r.Settings.RateShare > 0 {
		return line
	}
	var shares []string
	for _, s := range r.Scenarios {
		if s.QPS != nil && c.QPS > 0 {
			shares = append(shares, percent(*s.QPS/c.QPS)+" of it in "+scenarioName(s))
		}
	}
	if len(shares) == 0 {
		return line
	}
	return line + " The gateway reached " + strings.Join(shares, " and ") + "."
}
