package report

import (
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"armrepro/bench"
)

// writeJSON prints each result as an indented document with a line break at
// its end. A list that is absent is printed empty, except the plugin list,
// where absent means unknown.
func writeJSON(w io.Writer, results []bench.Result, _ Options) error {
	for _, r := range results {
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(withLists(r)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, escapeJSON(out.String())); err != nil {
			return err
		}
	}
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

// escapeJSON escapes what encoding/json leaves as it is and a terminal acts
// upon, such as the C1 control characters. They can only stand within strings.
func escapeJSON(s string) string {
	// encoding/json escapes what stands for invalid UTF-8, but not the same
	// rune when it reads it back.
	unsafe := func(r rune) bool { return r != '\n' && (unprintable(r) || r == utf8.RuneError) }
	if strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unsafe(r) {
			escape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
