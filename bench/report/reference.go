package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
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
	qps                                    float64
	latencyMs                              *float64
}

// The settings of every published figure.
const (
	publishedConnections = 16
	publishedWorkers     = 1
	publishedUpstreams   = 1
)

// readReferences parses the published figures.
func readReferences(data []byte) ([]reference, error) {
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read published figures: %w", err)
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("read published figures: no header")
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	for _, name := range []string{"platform", "cloud", "cpu", "apisix", "scenario", "qps", "latency_ms", "published", "standing", "note"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("read published figures: no column %q", name)
		}
	}
	var list []reference
	for i, rec := range records[1:] {
		get := func(name string) string { return rec[column[name]] }
		ref := reference{
			platform: get("platform"), cloud: get("cloud"), cpu: get("cpu"),
			apisix: get("apisix"), scenario: get("scenario"),
			published: get("published"), standing: get("standing"), note: get("note"),
		}
		if ref.qps, err = strconv.ParseFloat(get("qps"), 64); err != nil {
			return nil, fmt.Errorf("read published figures, line %d: %w", i+2, err)
		}
		if s := get("latency_ms"); s != "" {
			ms, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, fmt.Errorf("read published figures, line %d: %w", i+2, err)
			}
			ref.latencyMs = &ms
		}
		list = append(list, ref)
	}
	return list, nil
}

const referenceTitle = "Published figures for comparison"

// referenceGrids sets the published figures of each scenario beside r, with
// the ratio of the throughputs where that is fair. A result that is not valid
// or not APISIX's is set beside nothing.
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

// referenceGrid lists the published figures of one scenario. Its notes say why
// a figure is not compared.
func referenceGrid(r bench.Result, s bench.ScenarioResult, all []reference) grid {
	g := grid{
		title:  referenceTitle + ", " + scenarioName(s),
		header: []string{"Platform", "CPU", "APISIX", "Req/sec", "Latency", "Year", "This/theirs"},
		words:  2,
	}
	var footnotes []string
	var rows []row
	for _, ref := range all {
		if ref.scenario != s.Name {
			continue
		}
		cell := "n/a"
		notes := unfair(r, s, ref)
		if len(notes) == 0 {
			cell = fixed(*s.QPS/ref.qps, 2) + "×"
		}
		if ref.note != "" {
			notes = append(notes, ref.platform+": "+ref.note)
		}
		var letters []string
		for _, n := range notes {
			if !slices.Contains(footnotes, n) {
				footnotes = append(footnotes, n)
			}
			letters = append(letters, letter(slices.Index(footnotes, n)))
		}
		cell = join(" ", cell, strings.Join(letters, ","))
		rows = append(rows, row{ref.platform, []string{
			ref.cpu, known(ref.apisix), fixed(ref.qps, 0),
			figure(ref.latencyMs, func(ms float64) string { return milliseconds(ms * 1000) }),
			year(ref.published), cell,
		}})
	}
	if len(rows) == 0 {
		return g
	}
	g.groups = []group{{rows: rows}}
	for i, n := range footnotes {
		g.notes = append(g.notes, "("+letter(i)+") "+n)
	}
	return g
}

func letter(i int) string { return string(rune('a' + i%26)) }

func year(date string) string {
	y, _, _ := strings.Cut(date, "-")
	return y
}

// unfair says why s cannot be compared with ref; nil if it can.
func unfair(r bench.Result, s bench.ScenarioResult, ref reference) []string {
	var why []string
	set := r.Settings
	if set.Connections != publishedConnections || set.Workers != publishedWorkers || set.Upstreams != publishedUpstreams {
		why = append(why, fmt.Sprintf("published with %d connections, %s and %s; this is %d, %d and %d",
			publishedConnections, plural(publishedWorkers, "worker"), plural(publishedUpstreams, "upstream"),
			set.Connections, set.Workers, set.Upstreams))
	}
	if set.Rate > 0 || set.RateShare > 0 {
		why = append(why, "published at the gateway's maximum, not at a fixed rate")
	}
	if s.QPS == nil {
		why = append(why, "this scenario has no average")
	}
	if product := r.Machine.CPU.Product; product == "" {
		why = append(why, "the CPU product of this machine is unknown")
	} else if !sameCPU(r.Machine, ref) {
		why = append(why, "not known to be the same CPU as here: "+product)
	}
	if minor(r.Gateway.Version) == "" || minor(ref.apisix) != minor(r.Gateway.Version) {
		why = append(why, "another APISIX than "+known(minor(r.Gateway.Version)))
	}
	if ref.standing != "published" {
		why = append(why, "derived from a text, not published as a figure")
	}
	return why
}

// sameCPU reports whether the figure is of the product in m. Where the machine
// could not tell two products apart (Ampere Altra or Altra Max), the cloud
// decides: those with published figures rent only one of them.
func sameCPU(m machine.Machine, ref reference) bool {
	product := m.CPU.Product
	return product == ref.cpu || strings.HasPrefix(product, ref.cpu+" or ") && m.Cloud == ref.cloud
}

// minor is the major and minor part of a version, or empty.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}
