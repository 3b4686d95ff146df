package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table is one of the page, between the marks of its name.
type Table struct {
	Name, Title string
	Columns     []string
	Rows        [][]string
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown is the table as the page has it.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(t.Columns)
	b.WriteString(strings.Repeat("|---", len(t.Columns)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// WriteText writes the table with its title for a terminal.
func (t *Table) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\n%s\n\n", t.Title); err != nil {
		return err
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		if _, err := fmt.Fprintln(aligned, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return aligned.Flush()
}
