package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"armrepro/assets"
	"armrepro/bench"
	"armrepro/bench/machine"
)

// reference is one published figure.
type reference struct {
	platform, cloud, cpu, apisix, scenario string
	published, standing, note              string
	// latencyMs is 0 where it was not published.
	qps, latencyMs float64
}

// references are the published figures. The test of package assets has read each.
var references = sync.OnceValue(func() []reference {
	records, err := csv.NewReader(bytes.NewReader(assets.ReferenceResults())).ReadAll()
	if err != nil {
		panic(err)
	}
	var list []reference
	for _, record := range records[1:] {
		field := func(name string) string { return record[slices.Index(records[0], name)] }
		number := func(name string) float64 {
			v, _ := strconv.ParseFloat(field(name), 64)
			return v
		}
		list = append(list, reference{
			platform: field("platform"), cloud: field("cloud"), cpu: field("cpu"),
			apisix: field("apisix"), scenario: field("scenario"),
			published: field("published"), standing: field("standing"), note: field("note"),
			qps: number("qps"), latencyMs: number("latency_ms"),
		})
	}
	return list
})

const referenceTitle = "Published figures"

// referenceGrids sets the published figures of each scenario beside r. A result
// that does not count, or not APISIX's, is set beside nothing.
func referenceGrids(r bench.Result) []grid {
	if isBuiltin(r.Gateway) || r.Gateway.Name != "APISIX" {
		return []grid{{title: referenceTitle + ": none, since they are APISIX's and this is " + gatewayName(r.Gateway)}}
	}
	if !counts(r) {
		return []grid{{title: referenceTitle + ": none, since this result does not count"}}
	}
	var grids []grid
	for _, s := range r.Scenarios {
		if g := referenceGrid(r, s); len(g.groups) > 0 {
			grids = append(grids, g)
		}
	}
	return grids
}

// referenceGrid lists the published figures of one scenario with the ratio of the
// throughputs, where there is one. Its notes say what to bear in mind.
func referenceGrid(r bench.Result, s bench.ScenarioResult) grid {
	g := grid{
		title:  referenceTitle + ", " + scenarioName(s),
		header: []string{"Platform", "CPU", "APISIX", "Req/sec", "Latency", "Year"},
		words:  2,
	}
	unlike := unlike(r, s)
	if unlike == "" {
		g.header = append(g.header, "Yours/theirs")
	}
	var notes footnotes
	var rows []row
	for _, ref := range references() {
		if ref.scenario != s.Name {
			continue
		}
		cells := []string{
			ref.cpu, known(ref.apisix), fixed(ref.qps, 0),
			positive(ref.latencyMs, milliseconds),
			strings.Split(ref.published, "-")[0], // the year
		}
		if unlike == "" {
			cells = append(cells, join(" ", ratioTo(s, ref), notes.marks(caveats(r, ref))))
		}
		rows = append(rows, row{ref.platform, cells})
	}
	if len(rows) == 0 {
		return g
	}
	g.groups = []group{{rows: rows}}
	if unlike != "" {
		g.notes = []string{"Not comparable: " + unlike + "."}
	}
	if unlike == "" && (r.Tools.Load == nil || r.Tools.Upstream == nil) {
		g.notes = append(g.notes, "The published figures were measured with wrk and nginx, yours with "+measuredWith(r.Tools)+".")
	}
	for i, n := range notes {
		g.notes = append(g.notes, "("+letter(i)+") "+n)
	}
	return g
}

// footnotes are notes beneath a table, each there once.
type footnotes []string

// marks adds notes, and returns the letters that stand for them: a,b.
func (f *footnotes) marks(notes []string) string {
	var letters []string
	for _, n := range notes {
		if !slices.Contains(*f, n) {
			*f = append(*f, n)
		}
		letters = append(letters, letter(slices.Index(*f, n)))
	}
	return strings.Join(letters, ",")
}

func letter(i int) string { return string(rune('a' + i%26)) }

// unlike says why no ratio of s to any published figure makes sense; empty if one
// does.
func unlike(r bench.Result, s bench.ScenarioResult) string {
	set := r.Settings
	switch {
	case s.QPS == nil:
		return "this scenario has no average"
	case set.Rate > 0 || set.RateShare > 0:
		return "the published figures are maxima, yours was measured at a fixed rate"
	}
	// The settings of every published figure.
	var yours, theirs []string
	for _, n := range []struct {
		noun            string
		ours, published int
	}{
		{"connection", set.Connections, 16},
		{"worker", set.Workers, 1},
		{"upstream", set.Upstreams, 1},
	} {
		if n.ours != n.published {
			yours = append(yours, plural(n.ours, n.noun))
			theirs = append(theirs, strconv.Itoa(n.published))
		}
	}
	if len(yours) == 0 {
		return ""
	}
	return "yours has " + listed("and", yours) + "; published: " + listed("and", theirs)
}

// ratioTo is the ratio of s to a figure that was published as such.
func ratioTo(s bench.ScenarioResult, ref reference) string {
	if ref.standing != "published" {
		return ratioCell(nil)
	}
	return ratioCell(new(*s.QPS / ref.qps))
}

// caveats say how the measurement of ref was another one than that of r.
func caveats(r bench.Result, ref reference) []string {
	var notes []string
	if !sameCPU(r.Machine, ref) {
		notes = append(notes, "different CPU from yours ("+cmp.Or(r.Machine.CPU.Product, "unknown")+"), or not known")
	}
	if version := minor(r.Gateway.Version); version == "" || minor(ref.apisix) != version {
		notes = append(notes, "different APISIX from yours ("+cmp.Or(version, "unknown")+"), or not known")
	}
	if ref.standing != "published" {
		notes = append(notes, "derived from a text, not published as a figure")
	}
	if ref.note != "" {
		notes = append(notes, ref.platform+": "+ref.note)
	}
	return notes
}

// sameCPU reports whether the figure is of the product in m. Where the machine
// could not tell two products apart (Ampere Altra or Altra Max), the cloud
// decides: those with published figures rent only one of them. On x86 a name without
// a number, such as Intel Xeon, stands for many.
func sameCPU(m machine.Machine, ref reference) bool {
	product := m.CPU.Product
	if m.Arch == "amd64" && !strings.ContainsAny(product, "0123456789") {
		return false
	}
	return product != "" && product == ref.cpu || strings.HasPrefix(product, ref.cpu+" or ") && m.Cloud == ref.cloud
}

// minor is the major and minor part of a version, or empty.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}
