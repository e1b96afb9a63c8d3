package report

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"armrepro/bench"
)

// writeJSON prints one indented document: the result, or a list of several.
func writeJSON(out *strings.Builder, results []bench.Result, _ Options) error {
	var doc any = results
	if len(results) == 1 {
		doc = results[0]
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
