package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"armrepro/bench"
)

// ANSI sequences, as SGR parameters.
const (
	bold   = "1"
	red    = "1;31"
	green  = "32"
	yellow = "33"
)

// textPrinter lays a view out for a terminal.
type textPrinter struct {
	out   strings.Builder
	width int
	color bool
}

// writeText prints each result as tables and lists for a terminal.
func writeText(w io.Writer, results []bench.Result, opts Options) error {
	p := &textPrinter{width: opts.Width, color: opts.Color}
	for i, r := range results {
		v, err := newView(r, opts)
		if err != nil {
			return err
		}
		if i > 0 {
			p.out.WriteString("\n" + strings.Repeat("═", p.width) + "\n\n")
		}
		p.view(v)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

func (p *textPrinter) view(v view) {
	p.lines(v.heading, 0, bold)
	for _, g := range v.tables {
		p.out.WriteByte('\n')
		p.grid(g)
	}
	p.out.WriteByte('\n')
	p.lines(v.control, 0, "")
	p.out.WriteByte('\n')
	p.lines(v.legend, 0, "")
	p.out.WriteByte('\n')
	p.lines(v.verdict, 0, levelColor(v.level))
	for i, w := range v.warnings {
		p.warning(i+1, w)
	}
	for _, g := range v.references {
		p.out.WriteByte('\n')
		p.reference(g)
	}
	for _, s := range v.sections {
		p.out.WriteByte('\n')
		p.section(s)
	}
}

func levelColor(l level) string {
	switch l {
	case good:
		return green
	case caution:
		return yellow
	case bad:
		return red
	}
	return ""
}

// paint puts s in a color, if colors are wanted.
func (p *textPrinter) paint(color, s string) string {
	if !p.color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// lines prints s wrapped to the width; every line but the first is indented.
func (p *textPrinter) lines(s string, indent int, color string) {
	for i, line := range wrap(s, p.width-indent) {
		if i > 0 {
			p.out.WriteString(strings.Repeat(" ", indent))
		}
		p.out.WriteString(p.paint(color, line) + "\n")
	}
}

func (p *textPrinter) warning(n int, w bench.Warning) {
	mark := fmt.Sprintf("[%d] ", n)
	p.out.WriteString(mark)
	color := yellow
	if w.Invalid {
		color = red
	}
	p.lines(join(": ", w.Code, w.Text), len(mark), color)
	if w.Hint != "" {
		p.out.WriteString(strings.Repeat(" ", len(mark)))
		p.lines(w.Hint, len(mark), "")
	}
}

// section prints facts in two columns.
func (p *textPrinter) section(s section) {
	const indent, gap = 2, 2
	p.lines(s.title, 0, bold)
	labels := 0
	for _, f := range s.facts {
		labels = max(labels, text.StringWidth(f.label))
	}
	for _, f := range s.facts {
		p.out.WriteString(strings.Repeat(" ", indent) + text.Pad(f.label, labels+gap, ' '))
		p.lines(f.value, indent+labels+gap, "")
	}
}

// grid prints a table. One with more runs than fit beside each other is
// continued in a further table.
func (p *textPrinter) grid(g grid) {
	parts := split(g, p.width)
	for i, part := range parts {
		if i > 0 {
			p.out.WriteByte('\n')
			part.title += ", continued"
		}
		p.out.WriteString(p.table(part) + "\n")
	}
	for _, n := range g.notes {
		p.lines(n, 0, "")
	}
}

// table renders a grid that fits. It is as wide as its head needs, if there is
// room.
func (p *textPrinter) table(g grid) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format = table.FormatOptions{}
	style.Size.WidthMin = tableWidth(g)
	const borders = 4
	for _, s := range []string{g.title, g.gateway, g.setup} {
		style.Size.WidthMin = max(style.Size.WidthMin, min(text.StringWidth(clean(s))+borders, p.width))
	}
	t.SetStyle(style)
	t.SetTitle("%s", strings.Join(p.title(g, style.Size.WidthMin-borders), "\n"))
	t.AppendHeader(cells(g.header[0], g.header[1:]))
	t.SetColumnConfigs(figureColumns(g))
	for i, group := range g.groups {
		indent := ""
		if i > 0 {
			t.AppendSeparator()
		}
		if group.title != "" {
			t.AppendRow(cells(group.title, nil))
			indent = "  "
		}
		for _, r := range group.rows {
			t.AppendRow(cells(indent+r.label, r.cells))
		}
	}
	return t.Render()
}

// title is the head of a table: what was measured, on which gateway, and what
// is wrong with it.
func (p *textPrinter) title(g grid, width int) []string {
	var lines []string
	add := func(s, color string) {
		for _, line := range wrap(s, width) {
			lines = append(lines, p.paint(color, line))
		}
	}
	add(g.title, bold)
	if g.notAPISIX {
		add(g.gateway, yellow)
	} else {
		add(g.gateway, "")
	}
	add(g.setup, "")
	for _, m := range g.marks {
		add(m, red)
	}
	return lines
}

// figureColumns aligns the columns with figures to the right.
func figureColumns(g grid) []table.ColumnConfig {
	var config []table.ColumnConfig
	for n := g.words + 1; n <= len(g.header); n++ {
		config = append(config, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return config
}

func cells(label string, rest []string) table.Row {
	r := table.Row{label}
	for _, c := range rest {
		r = append(r, c)
	}
	return r
}

// split cuts g into tables of nearly the same number of columns that fit into
// width.
func split(g grid, width int) []grid {
	if tableWidth(g) <= width {
		return []grid{g}
	}
	columns := len(g.header) - 1
	for n := 2; n < columns; n++ {
		parts := deal(g, n)
		fits := true
		for _, part := range parts {
			fits = fits && tableWidth(part) <= width
		}
		if fits {
			return parts
		}
	}
	return deal(g, columns)
}

// deal deals the columns of g, less the labels, out to n tables.
func deal(g grid, n int) []grid {
	columns := len(g.header) - 1
	var parts []grid
	for i := range n {
		from, to := i*columns/n, (i+1)*columns/n
		part := g
		part.header = append([]string{g.header[0]}, g.header[1+from:1+to]...)
		part.groups = nil
		for _, old := range g.groups {
			cutGroup := group{title: old.title}
			for _, r := range old.rows {
				cutGroup.rows = append(cutGroup.rows, row{r.label, r.cells[from:to]})
			}
			part.groups = append(part.groups, cutGroup)
		}
		parts = append(parts, part)
	}
	return parts
}

// tableWidth is the width of g on a terminal, with borders and padding.
func tableWidth(g grid) int {
	widths := make([]int, len(g.header))
	grow := func(i int, s string) { widths[i] = max(widths[i], text.StringWidth(s)) }
	for i, h := range g.header {
		grow(i, h)
	}
	for _, group := range g.groups {
		grow(0, group.title)
		for _, r := range group.rows {
			grow(0, "  "+r.label)
			for i, c := range r.cells {
				grow(i+1, c)
			}
		}
	}
	total := 1
	for _, w := range widths {
		total += w + 3
	}
	return total
}

// wrap breaks s, made safe for a terminal, into lines of at most width columns.
func wrap(s string, width int) []string {
	lines := strings.Split(text.WrapSoft(clean(s), max(width, 1)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// reference prints published figures: as a table without borders, or, where that
// is too wide for the terminal, as a line for each figure.
func (p *textPrinter) reference(g grid) {
	p.lines(g.title, 0, bold)
	if len(g.groups) > 0 {
		rendered := borderless(g)
		if narrow := text.LongestLineLen(rendered) > p.width; narrow {
			p.inWords(g)
		} else {
			p.out.WriteString(rendered)
		}
	}
	for _, n := range g.notes {
		p.lines(n, 4, "")
	}
}

func borderless(g grid) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format = table.FormatOptions{}
	style.Options = table.OptionsNoBordersAndSeparators
	t.SetStyle(style)
	t.AppendHeader(cells(g.header[0], g.header[1:]))
	t.SetColumnConfigs(figureColumns(g))
	for _, r := range g.groups[0].rows {
		t.AppendRow(cells(r.label, r.cells))
	}
	var b strings.Builder
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// inWords prints each row of g as a sentence with the names of its columns.
func (p *textPrinter) inWords(g grid) {
	for _, r := range g.groups[0].rows {
		var parts []string
		for i, c := range r.cells {
			parts = append(parts, g.header[i+1]+" "+c)
		}
		p.lines(r.label+": "+strings.Join(parts, ", "), 2, "")
	}
}
