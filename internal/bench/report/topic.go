package report

import "slices"

// A topic is a table of benchmarks that are measured alike: a row for each of
// them and each subject.
type topic struct {
	name, title string
	of          string // heads the first column
	who         string // heads the second; empty where there are no subjects
	rows        []bench
	subjects    func(*Results) []string
	subject     string // of all rows, where no column tells it
	columns     []column
}

// bench is a benchmark with the words for it.
type bench struct{ label, name string }

// column is a unit, and beside it the ratio to the floor where that says more.
type column struct {
	head, unit string
	scale      scale
	floor      string // the subject; empty for no ratio
}

func (t topic) table(r *Results) *Table {
	table := &Table{Name: t.name, Title: t.title, Columns: t.heads()}
	for _, row := range t.rows {
		if t.who == "" {
			table.add(t.cells(r, row.label, id{row.name, t.subject})...)
			continue
		}
		for i, subject := range t.subjects(r) {
			label := row.label
			if i > 0 {
				label = ""
			}
			table.add(t.cells(r, label, id{row.name, subject})...)
		}
	}
	return table
}

func (t topic) heads() []string {
	heads := []string{t.of}
	if t.who != "" {
		heads = append(heads, t.who)
	}
	for _, c := range t.columns {
		heads = append(heads, c.head)
		if c.floor != "" {
			heads = append(heads, "× floor")
		}
	}
	if t.of == "" {
		heads = heads[1:]
	}
	return heads
}

func (t topic) cells(r *Results, label string, of id) []string {
	cells := []string{label}
	if t.who != "" {
		cells = append(cells, display(of.subject))
	}
	for _, c := range t.columns {
		cells = append(cells, c.absolute(r, of))
		if c.floor != "" {
			cells = append(cells, c.relative(r, of))
		}
	}
	if t.of == "" {
		cells = cells[1:]
	}
	return cells
}

func (c column) absolute(r *Results, of id) string { return c.scale.cell(r.figure(of, c.unit)) }

// relative is empty where absolute says that there is nothing.
func (c column) relative(r *Results, of id) string {
	f := r.ratio(of, id{of.bench, c.floor}, c.unit)
	switch {
	case f.Rounds == 0:
		return ""
	case of.subject == c.floor:
		return "1"
	}
	return times.cell(f)
}

// Unshown are the benchmarks that no table has, which a table should be given.
func (r *Results) Unshown() []string {
	var names []string
	for _, of := range r.order {
		shown := slices.ContainsFunc(topics, func(t topic) bool { return t.shows(of.bench) })
		if !shown && !slices.Contains(names, of.bench) {
			names = append(names, of.bench)
		}
	}
	return names
}

func (t topic) shows(name string) bool {
	return slices.ContainsFunc(t.rows, func(b bench) bool { return b.name == name })
}
