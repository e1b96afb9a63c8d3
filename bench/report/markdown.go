package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"armrepro/bench"
)

// markdownPrinter lays views out for an issue or a report. Footnotes are
// numbered over all views, since they share the page.
type markdownPrinter struct {
	out   strings.Builder
	notes int
}

// writeMarkdown prints each result as GitHub-flavored Markdown.
func writeMarkdown(w io.Writer, results []bench.Result, opts Options) error {
	p := &markdownPrinter{}
	for i, r := range results {
		v, err := newView(r, opts)
		if err != nil {
			return err
		}
		if i > 0 {
			p.out.WriteString("\n---\n\n")
		}
		p.view(v)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
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
	fmt.Fprintf(&p.out, format, args...)
}

func (p *markdownPrinter) grid(g grid) {
	p.print("\n### %s\n", markdown(g.title))
	if g.gateway != "" {
		line := markdown(g.gateway)
		if g.notAPISIX {
			line = "**" + line + "**"
		}
		p.print("\n%s: %s\n", line, markdown(g.setup))
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

// markdownTable renders g with its figures aligned to the right.
func markdownTable(g grid) string {
	t := table.NewWriter()
	t.Style().Format = table.FormatOptions{}
	t.Style().Markdown.PadContent = true
	t.SetColumnConfigs(figureColumns(g))
	t.AppendHeader(markdownCells(g.header[0], g.header[1:]))
	for _, group := range g.groups {
		indent := ""
		if group.title != "" {
			t.AppendRow(table.Row{"**" + markdown(group.title) + "**"})
			indent = "&emsp;"
		}
		for _, r := range group.rows {
			cells := markdownCells(r.label, r.cells)
			cells[0] = indent + markdown(r.label)
			t.AppendRow(cells)
		}
	}
	return t.RenderMarkdown()
}

func (p *markdownPrinter) section(s section) {
	p.print("\n### %s\n\n", markdown(s.title))
	for _, f := range s.facts {
		p.print("- %s: %s\n", markdown(f.label), markdown(f.value))
	}
}

func markdownCells(label string, rest []string) table.Row {
	r := table.Row{markdown(label)}
	for _, c := range rest {
		r = append(r, markdown(c))
	}
	return r
}

// markdownEscaper escapes what Markdown or the HTML within it acts upon. The
// bar is left to the table, which escapes it itself.
var markdownEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `~`, `\~`, `#`, `\#`, `$`, `\$`, `!`, `\!`,
)

func markdown(s string) string { return markdownEscaper.Replace(clean(s)) }
