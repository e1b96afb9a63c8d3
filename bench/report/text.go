package report

import (
	"fmt"
	"slices"
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

// colors are those of every verdict.
var colors = map[bench.Verdict]string{
	bench.Valid: green, bench.ValidWithWarnings: yellow, bench.Disturbed: yellow,
	bench.Interrupted: red, bench.Invalid: red,
}

// textPrinter lays results out for a terminal.
type textPrinter struct {
	out   *strings.Builder
	width int
	color bool
}

// writeText prints each result as tables and lists for a terminal.
func writeText(out *strings.Builder, results []bench.Result, opts Options) error {
	p := &textPrinter{out, opts.Width, opts.Color}
	writeEach(out, results, opts, strings.Repeat("═", p.width), p.result)
	return nil
}

func (p *textPrinter) result(r bench.Result, references []grid) {
	p.lines(heading(r), 0, bold)
	if mark := wholeMark(r); mark != "" {
		p.lines(mark, 0, red)
	}
	for _, g := range tables(r) {
		p.out.WriteByte('\n')
		p.grid(g)
	}
	p.out.WriteByte('\n')
	p.lines(controlLine(r), 0, "")
	for _, line := range partLines(r) {
		p.lines(line, 0, "")
	}
	p.out.WriteByte('\n')
	p.lines(legend(r), 0, "")
	p.out.WriteByte('\n')
	p.lines(verdict(r), 0, colors[r.Standing()])
	for i, w := range r.Warnings {
		p.warning(i+1, w)
	}
	for _, g := range references {
		p.out.WriteByte('\n')
		p.reference(g)
	}
	for _, s := range sections(r) {
		p.out.WriteByte('\n')
		p.section(s)
	}
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

// section prints facts under their title.
func (p *textPrinter) section(s section) {
	p.lines(s.title, 0, bold)
	p.facts(s.facts, 2)
}

// facts prints labels and values in two columns.
func (p *textPrinter) facts(facts []fact, indent int) {
	const gap = 2
	labels := 0
	for _, f := range facts {
		labels = max(labels, text.StringWidth(f.label))
	}
	for _, f := range facts {
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
	t := newTable(g, "  ", clean, clean)
	width := tableWidth(t)
	const borders = 4
	for _, s := range []string{g.title, g.gateway, g.setup} {
		width = max(width, min(text.StringWidth(clean(s))+borders, p.width))
	}
	t.Style().Size.WidthMin = width
	t.SetTitle("%s", strings.Join(p.title(g, width-borders), "\n"))
	return t.Render()
}

// newTable is g with its figures aligned to the right. safe makes a text fit for
// the format, strong the title of a group; indent stands before the labels below
// such a title.
func newTable(g grid, indent string, safe, strong func(string) string) table.Writer {
	line := func(label string, rest []string) table.Row {
		r := table.Row{label}
		for _, c := range rest {
			r = append(r, safe(c))
		}
		return r
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format = table.FormatOptions{}
	var right []table.ColumnConfig
	for n := g.words + 1; n <= len(g.header); n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	t.AppendHeader(line(safe(g.header[0]), g.header[1:]))
	for _, group := range g.groups {
		before := ""
		if group.title != "" {
			t.AppendSeparator()
			t.AppendRow(table.Row{strong(group.title)})
			before = indent
		}
		for _, r := range group.rows {
			t.AppendRow(line(before+safe(r.label), r.cells))
		}
	}
	return t
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
	gateway := ""
	if g.notAPISIX {
		gateway = yellow
	}
	add(g.title, bold)
	add(g.gateway, gateway)
	add(g.setup, "")
	for _, m := range g.marks {
		add(m, red)
	}
	return lines
}

// split cuts g into the fewest tables that fit into width, each with nearly the
// same number of columns.
func split(g grid, width int) []grid {
	tooWide := func(part grid) bool { return tableWidth(newTable(part, "  ", clean, clean)) > width }
	for n := 1; ; n++ {
		if parts := deal(g, n); n >= len(g.header)-1 || !slices.ContainsFunc(parts, tooWide) {
			return parts
		}
	}
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
				// Few rows have an average.
				if have := len(r.cells); from < have {
					cutGroup.rows = append(cutGroup.rows, row{r.label, r.cells[from:min(to, have)]})
				}
			}
			if len(cutGroup.rows) > 0 {
				part.groups = append(part.groups, cutGroup)
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// wrap breaks s, made safe for a terminal, into lines of at most width columns.
func wrap(s string, width int) []string {
	lines := strings.Split(text.WrapSoft(clean(s), max(width, 1)), "\n")
	return each(lines, func(line string) string { return strings.TrimRight(line, " ") })
}

// reference prints published figures: as a table without borders, or, where that
// is too wide for the terminal, as a line for each figure.
func (p *textPrinter) reference(g grid) {
	p.lines(g.title, 0, bold)
	if len(g.groups) > 0 {
		rendered := borderless(g)
		if text.LongestLineLen(rendered) > p.width {
			p.inWords(g)
		} else {
			p.out.WriteString(rendered)
		}
	}
	for _, n := range g.notes {
		p.lines(n, 4, "")
	}
}

// tableWidth is how many columns of a terminal t takes without a title.
func tableWidth(t table.Writer) int { return text.LongestLineLen(t.Render()) }

func borderless(g grid) string {
	t := newTable(g, "", clean, clean)
	t.Style().Options = table.OptionsNoBordersAndSeparators
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
