package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"
)

const (
	byHand     = "net-http-by-hand"
	retryable  = "go-retryablehttp"
	own        = "agentmessaging"
	ownBounded = "agentmessaging-with-a-deadline" // the caller's, in place of the client's
)

// A table has the benchmarks whose name matches, in the order in which they ran.
type table struct {
	name    string // of the marks around it in the page
	bench   *regexp.Regexp
	columns []column
}

// A column may have the ratio to the floor beside it.
type column struct {
	head, unit string
	ratio      bool
}

var (
	inCall = []column{{"Time", "sec/op", true}, {"Allocations", "allocs/op", true}, {"Memory", "B/op", true}}
	shared = []column{{"Time", "sec/call", true}, {"Processor time", "cpu-sec/call", true}}
	ofFake = []column{{"× floor", "x-floor", false}, {"Time", "sec/call", false}}
	tables = []table{
		{"calls", regexp.MustCompile(`^Call/over=canned`), inCall},
		{"jsonv2", regexp.MustCompile(`^JSONv2/`), inCall},
		{"paths", regexp.MustCompile(`^Path/`), inCall},
		{"extras", regexp.MustCompile(`^Extra/`), inCall},
		{"loopback", regexp.MustCompile(`^Call/over=loopback`), inCall[:1]},
		{"http2", regexp.MustCompile(`^HTTP2/`), shared},
		{"callers", regexp.MustCompile(`^Callers/`), shared},
		{"fake", regexp.MustCompile(`^(Fresh|Message)/`), ofFake},
		{"scale", regexp.MustCompile(`^(Scale|Rules)`), ofFake},
		{"throughput", regexp.MustCompile(`^Throughput`), []column{{"Part of the floor's calls per second", "of-floor", false}}},
		{"memory", regexp.MustCompile(`^Memory`), []column{{"For an agent", "B/agent", false}, {"For a key", "B/key", false}}},
		{"line", regexp.MustCompile(`^Line`), []column{{"Time", "sec/op", false}}},
		{"start", regexp.MustCompile(`^Start`), []column{{"Time", "sec/op", false}}},
	}
)

// markdown is the table as the page has it.
func (t table) markdown(r *results) string {
	heads := []string{"What", "Of"}
	for _, c := range t.columns {
		heads = append(heads, c.head)
		if c.ratio {
			heads = append(heads, "× floor")
		}
	}
	rows := [][]string{heads}
	for _, of := range r.order {
		if !t.bench.MatchString(of.bench) {
			continue
		}
		row := []string{labels.Replace(of.bench), labels.Replace(of.subject)}
		for _, c := range t.columns {
			values := r.series[of][c.unit]
			row = append(row, values.figure().cell(c.unit))
			if c.ratio {
				row = append(row, values.over(r.series[floorOf(of)][c.unit]).figure().cell(""))
			}
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

// floorOf is what a benchmark is compared with.
func floorOf(of id) id {
	if strings.HasPrefix(of.bench, "Extra/") {
		return on("none")
	}
	return id{of.bench, byHand}
}

var labels = strings.NewReplacer("Call/over=canned/call=", "", "Call/over=loopback/call=", "", "Callers/over=canned/callers=", "in memory, callers: ",
	"Callers/over=loopback/callers=", "over loopback, callers: ", "JSONv2/over=canned/call=", "", "HTTP2/call=", "", "/callers=", ", callers: ",
	"Path/case=429", "a GET after a 429", "Path/case=", "", "Extra/on=", "", "Fresh/", "a fake's first call, ", "Message/", "one of many calls, ",
	"Scale/agents=", "agents: ",
	"/keys=", ", keys: ", "Rules/", "1,000 scripts, of another ", "Throughput", "64 connections over loopback", "Memory", "100,000 of each", "Line", "100,000 callers come and leave", "Start", "the fake's program, to its first answer", "post", "POST", "get", "GET",
	"net-http-by-hand", "net/http by hand", "agentmessaging-with-a-deadline", "agentmessaging, caller's deadline")

// markdown writes rows, the first of them the head, without empty columns.
func markdown(rows [][]string) string {
	for i := len(rows[0]) - 1; i >= 0 && len(rows) > 1; i-- {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" }) {
			for j := range rows {
				rows[j] = slices.Delete(rows[j], i, i+1)
			}
		}
	}
	rows = slices.Insert(rows, 1, slices.Repeat([]string{"---"}, len(rows[0])))
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// cell is a figure with its interval, where the two differ as written.
func (f figure) cell(unit string) string {
	if f.rounds == 0 {
		return "not measured"
	}
	mid, low, high := show(f.mid, unit), show(f.low, unit), show(f.high, unit)
	if low == mid && high == mid {
		return mid
	}
	number, name, _ := strings.Cut(low, " ")
	if !strings.HasSuffix(high, name) {
		number = low
	}
	return mid + " (" + number + " to " + high + ")"
}

// show writes a value with three digits and a prefix where it has a unit.
func show(v float64, unit string) string {
	name := ""
	switch {
	case strings.Contains(unit, "sec"):
		name = "s"
	case strings.HasPrefix(unit, "B"):
		name = "B"
	case unit == "allocs/op" || unit == "more":
		return fmt.Sprintf("%.3g", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
	scale := benchunit.CommonScale([]float64{v}, benchunit.ClassOf(unit))
	return fmt.Sprintf("%.3g %s%s", v/scale.Factor, scale.Prefix, name)
}

// draw writes the tables between their marks in a page, and the pictures beside
// it. A table without marks is an error.
func (r *results) draw(page string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(raw)
	drawn := map[string]string{"machine": r.machine(), "targets": targetTable(r)}
	for _, t := range tables {
		drawn[t.name] = t.markdown(r)
	}
	for name, table := range drawn {
		marks := regexp.MustCompile(`(?s)(<!-- ` + name + `:begin -->\n).*?(<!-- ` + name + `:end -->)`)
		if !marks.MatchString(text) {
			return fmt.Errorf("%s lacks the marks of table %s", page, name)
		}
		text = marks.ReplaceAllString(text, "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
	}
	if err := r.drawCharts(strings.TrimSuffix(page, ".md")); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// machine says where and when the last line was measured, and the rounds.
func (r *results) machine() string {
	rows := [][]string{{"", ""}}
	if len(r.lines) == 0 {
		return markdown(rows)
	}
	last := r.lines[len(r.lines)-1]
	for _, key := range []string{"date", "cpu", "cpus", "goos", "goarch", "go", "benchtime"} {
		rows = append(rows, []string{key, last.GetConfig(key)})
	}
	return markdown(append(rows, []string{"rounds", fmt.Sprint(len(r.series[id{post, own}]["sec/op"]))}))
}
