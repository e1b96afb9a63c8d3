package report

import (
	"fmt"
	"strings"

	"armrepro/bench"
)

// markdownPrinter lays results out for an issue or a report. Footnotes are
// numbered over all results, since they share the page.
type markdownPrinter struct {
	out   *strings.Builder
	notes int
}

// writeMarkdown prints each result as GitHub-flavored Markdown.
func writeMarkdown(out *strings.Builder, results []bench.Result, opts Options) error {
	p := &markdownPrinter{out: out}
	writeEach(out, results, opts, "---", p.result)
	return nil
}

func (p *markdownPrinter) result(r bench.Result, references []grid) {
	p.print("## %s\n", markdown(heading(r)))
	if mark := wholeMark(r); mark != "" {
		p.mark(mark)
	}
	first := p.notes + 1
	p.notes += len(r.Warnings)
	for _, g := range tables(r) {
		p.grid(g)
	}
	for _, line := range append(append([]string{controlLine(r)}, partLines(r)...), legend(r)) {
		p.print("\n%s\n", markdown(line))
	}
	p.print("\n**%s**", markdown(verdict(r)))
	for i := range r.Warnings {
		p.print(" [^%d]", first+i)
	}
	p.print("\n")
	for _, g := range references {
		p.grid(g)
	}
	for _, s := range sections(r) {
		p.section(s)
	}
	for i, w := range r.Warnings {
		p.print("\n[^%d]: %s", first+i, markdown(join(": ", w.Code, w.Text)))
		if w.Hint != "" {
			p.print(" — %s", markdown(w.Hint))
		}
		p.print("\n")
	}
}

func (p *markdownPrinter) print(format string, args ...any) {
	fmt.Fprintf(p.out, format, args...)
}

func (p *markdownPrinter) mark(s string) { p.print("\n> **%s**\n", markdown(s)) }

func (p *markdownPrinter) grid(g grid) {
	p.print("\n### %s\n", markdown(g.title))
	if g.gateway != "" {
		stars := ""
		if g.notAPISIX {
			stars = "**"
		}
		p.print("\n%s%s%s: %s\n", stars, markdown(g.gateway), stars, markdown(g.setup))
	}
	for _, m := range g.marks {
		p.mark(m)
	}
	if len(g.groups) > 0 {
		p.print("\n%s\n", markdownTable(g))
	}
	for _, n := range g.notes {
		p.print("\n%s\n", markdown(n))
	}
}

func markdownTable(g grid) string {
	t := newTable(g, "&emsp;", markdown, func(title string) string { return "**" + markdown(title) + "**" })
	t.Style().Markdown.PadContent = true
	return t.RenderMarkdown()
}

func (p *markdownPrinter) section(s section) {
	p.print("\n### %s\n\n", markdown(s.title))
	for _, f := range s.facts {
		p.print("- %s: %s\n", markdown(f.label), markdown(f.value))
	}
}

// markdownEscaper escapes what Markdown or the HTML within it acts upon. The
// bar is left to the table, which escapes it itself.
var markdownEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `~`, `\~`, `#`, `\#`, `$`, `\$`, `!`, `\!`,
)

func markdown(s string) string { return markdownEscaper.Replace(clean(s)) }
