package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"armrepro/bench"
)

// markdownPrinter lays views out for an issue or a report. Footnotes are
// numbered over all views, since they share the page.
type markdownPrinter struct {
	out   *strings.Builder
	notes int
}

// writeMarkdown prints each result as GitHub-flavored Markdown.
func writeMarkdown(out *strings.Builder, results []bench.Result, opts Options) error {
	p := &markdownPrinter{out: out}
	return printViews(out, results, opts, "---", p.view)
}

func (p *markdownPrinter) view(v view) {
	p.print("## %s\n", markdown(v.heading))
	first := p.notes + 1
	p.notes += len(v.warnings)
	for _, g := range v.tables {
		p.grid(g)
	}
	p.print("\n%s\n\n%s\n", markdown(v.control), markdown(v.legend))
	p.print("\n**%s**", markdown(v.verdict))
	for i := range v.warnings {
		p.print(" [^%d]", first+i)
	}
	p.print("\n")
	for _, g := range v.references {
		p.grid(g)
	}
	for _, s := range v.sections {
		p.section(s)
	}
	for i, w := range v.warnings {
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
		p.print("\n> **%s**\n", markdown(m))
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
	t.Style().Format = table.FormatOptions{}
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
