package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Tables are those of the page, in its order.
func (r *Results) Tables() []*Table {
	tables := []*Table{r.machineTable()}
	for _, t := range topics {
		tables = append(tables, t.table(r))
	}
	return append(tables, targetTable(r))
}

// Measured are the tables for a terminal: after a run of one suite those of the
// others have nothing to say.
func (r *Results) Measured() []*Table {
	tables := []*Table{r.machineTable()}
	for _, t := range topics {
		if slices.ContainsFunc(r.order, func(of id) bool { return t.shows(of.bench) }) {
			tables = append(tables, t.table(r))
		}
	}
	return append(tables, targetTable(r))
}

// suites are what the command runs, with the words for each.
var suites = []struct{ name, what string }{
	{"client", "Clients measured"},
	{"fake", "The fake measured"},
	{"programs", "Programs measured"},
	{"weight", "Weight measured"},
}

func (r *Results) machineTable() *Table {
	t := &Table{Name: "machine", Title: "Machine", Columns: []string{"", ""}}
	row := func(what, value string) {
		if value == "" {
			value = notMeasured
		}
		t.add(what, strings.ReplaceAll(value, "|", `\|`))
	}
	get := r.file.Get
	row("Processor", get("cpu"))
	row("Processors", get("cpus"))
	row("System", strings.Trim(get("goos")+"/"+get("goarch")+", "+get("kernel"), "/, "))
	row("Go", strings.TrimPrefix(get("go"), "go"))
	for _, s := range suites {
		row(s.what, get(measured+s.name))
	}
	return t
}

var beginMark = regexp.MustCompile(`<!-- ([\w-]+):begin -->\n`)

// Page is the text of the page with its tables drawn anew. A table without
// marks is an error, and so are marks without a table.
func (r *Results) Page(text string) (string, error) {
	var names []string
	for _, t := range r.Tables() {
		var err error
		if text, err = replace(text, t); err != nil {
			return "", err
		}
		names = append(names, t.Name)
	}
	for _, m := range beginMark.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, m[1]) {
			return "", fmt.Errorf("the page has marks for %s, which is no table", m[1])
		}
	}
	return text, nil
}

func replace(text string, t *Table) (string, error) {
	begin, end := "<!-- "+t.Name+":begin -->\n", "<!-- "+t.Name+":end -->"
	before, rest, found := strings.Cut(text, begin)
	if !found {
		return "", fmt.Errorf("the page lacks %s", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the page lacks %s", end)
	}
	return before + begin + t.Markdown() + end + after, nil
}
