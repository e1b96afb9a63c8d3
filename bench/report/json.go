package report

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"armrepro/bench"
)

// writeJSON prints one indented document: the result, or a list of several. A
// list that is absent is printed empty, except the plugin list, where absent
// means unknown.
func writeJSON(out *strings.Builder, results []bench.Result, _ Options) error {
	list := make([]bench.Result, len(results))
	for i, r := range results {
		list[i] = withLists(r)
	}
	var doc any = list
	if len(list) == 1 {
		doc = list[0]
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return err
	}
	// Left by encoding/json are runes that a terminal acts upon, such as the
	// C1 control characters. They can only stand within strings. It escapes
	// what stands for invalid UTF-8, but not the same rune when it reads that
	// back.
	out.WriteString(escaped(plain.String(), func(r rune) bool {
		return r != '\n' && (unprintable(r) || r == utf8.RuneError)
	}))
	return nil
}

func withLists(r bench.Result) bench.Result {
	if r.Warnings == nil {
		r.Warnings = []bench.Warning{}
	}
	scenarios := make([]bench.ScenarioResult, len(r.Scenarios))
	for i, s := range r.Scenarios {
		if s.Runs == nil {
			s.Runs = []bench.Run{}
		}
		scenarios[i] = s
	}
	r.Scenarios = scenarios
	return r
}
