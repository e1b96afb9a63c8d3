package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// writeTable prints the rows and, below, the notes to them.
func writeTable(w io.Writer, rows []row) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Options.SeparateHeader = true
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"section", "figure", "peer", "armrepro", "ratio", "lowest–highest", "bound", ""})
	var columns []table.ColumnConfig
	for number := 3; number <= 6; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	var notes []string
	section := ""
	for _, r := range rows {
		mark := ""
		if r.note != "" {
			// The rows of one comparison share their note.
			if !slices.Contains(notes, r.note) {
				notes = append(notes, r.note)
			}
			mark = fmt.Sprintf(" [%d]", slices.Index(notes, r.note)+1)
		}
		name := r.section
		if name == section {
			name = ""
		}
		section = r.section
		t.AppendRow(append(append(table.Row{name, r.name}, r.cells()...), string(r.verdict)+mark))
	}
	var b strings.Builder
	// The last column is padded, which nobody sees but a diff.
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	for i, note := range notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cells are the columns of figures, empty for a row without any.
func (r row) cells() []any {
	if r.verdict == skipped {
		return []any{"", "", "", "", ""}
	}
	x := r.ratios
	return []any{
		fmt.Sprintf(r.format, x.peer), fmt.Sprintf(r.format, x.own), fmt.Sprintf("%.3f", x.median),
		fmt.Sprintf("%.3f–%.3f", x.low, x.high), r.bound.String(),
	}
}
