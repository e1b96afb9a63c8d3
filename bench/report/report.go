// Package report prints saved results: as tables for a terminal, as Markdown, as
// CSV or as JSON. It measures nothing and decides nothing: what a result says is
// printed, and what it does not say is shown as missing.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"armrepro/bench"
)

// Options are the choices of a reader that do not change what is said.
type Options struct {
	// Color marks the text format with ANSI colors.
	Color bool
	// Width is the terminal's width in columns, for the text format; zero
	// means 80.
	Width int
	// References adds the published figures of the same scenario to text and
	// Markdown, with a ratio where the two can be compared.
	References bool
}

const (
	defaultWidth = 80
	// minWidth is what a table of one column needs.
	minWidth = 40
)

// format prints results in one way.
type format struct {
	name  string
	write func(out *strings.Builder, results []bench.Result, opts Options) error
}

// formats is every format, in the order in which help names them.
var formats = []format{
	{"text", writeText},
	{"markdown", writeMarkdown},
	{"csv", writeCSV},
	{"json", writeJSON},
}

// Formats lists the names that Write takes, the default first.
func Formats() []string {
	return each(formats, func(f format) string { return f.name })
}

// Write prints results one after the other in the given format. It prints all
// of it or, when a result cannot be printed, nothing.
func Write(w io.Writer, format string, results []bench.Result, opts Options) error {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	opts.Width = max(opts.Width, minWidth)
	for _, f := range formats {
		if f.name != format {
			continue
		}
		var out strings.Builder
		if err := f.write(&out, results, opts); err != nil {
			return fmt.Errorf("render %s: %w", format, err)
		}
		if _, err := io.WriteString(w, out.String()); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		return nil
	}
	return fmt.Errorf("unknown format %q; use %s", format, Or(Formats()))
}

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
