package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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

// readReferences parses the published figures.
func readReferences(data []byte) ([]reference, error) {
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(records) == 0 {
		return nil, fmt.Errorf("read published figures: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	var list []reference
	for i, rec := range records[1:] {
		field := map[string]string{}
		for column, name := range records[0] {
			field[name] = rec[column]
		}
		qps, err := strconv.ParseFloat(field["qps"], 64)
		latency, latencyErr := strconv.ParseFloat(cmp.Or(field["latency_ms"], "0"), 64)
		if err := cmp.Or(err, latencyErr); err != nil {
			return nil, fmt.Errorf("read published figures, line %d: %w", i+2, err)
		}
		list = append(list, reference{
			platform: field["platform"], cloud: field["cloud"], cpu: field["cpu"],
			apisix: field["apisix"], scenario: field["scenario"],
			published: field["published"], standing: field["standing"], note: field["note"],
			qps: qps, latencyMs: latency,
		})
	}
	return list, nil
}

const referenceTitle = "Published figures"

// referenceGrids sets the published figures of each scenario beside r. A result
// that does not count, or not APISIX's, is set beside nothing.
func referenceGrids(r bench.Result) ([]grid, error) {
	if isBuiltin(r.Gateway) || r.Gateway.Name != "APISIX" {
		return []grid{{title: referenceTitle + ": none, since they are APISIX's and this is " +
			gatewayName(r.Gateway)}}, nil
	}
	if !counts(r) {
		return []grid{{title: referenceTitle + ": none, since this result does not count"}}, nil
	}
	all, err := readReferences(assets.ReferenceResults())
	if err != nil {
		return nil, err
	}
	var grids []grid
	for _, s := range r.Scenarios {
		if g := referenceGrid(r, s, all); len(g.groups) > 0 {
			grids = append(grids, g)
		}
	}
	return grids, nil
}

// referenceGrid lists the published figures of one scenario with the ratio of the
// throughputs, where there is one. Its notes say what to bear in mind.
func referenceGrid(r bench.Result, s bench.ScenarioResult, all []reference) grid {
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
	for _, ref := range all {
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
		return "n/a"
	}
	return fixed(*s.QPS/ref.qps, 2) + "×"
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
// decides: those with published figures rent only one of them.
func sameCPU(m machine.Machine, ref reference) bool {
	product := m.CPU.Product
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
