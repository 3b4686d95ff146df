package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The tables of docs/rate-limits.md, by the name of their marks.
func (f *figures) tables() map[string]string {
	return map[string]string{
		"saturated":  f.saturatedTable(),
		"models":     f.modelsTable(),
		"situations": f.situationsTable(),
		"outages":    f.outagesTable(),
		"long":       f.longTable(),
	}
}

// table is Markdown.
type table struct{ lines []string }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.lines = append(t.lines, strings.Repeat("|---", len(columns))+"|")
	return t
}

func (t *table) row(cells ...string) {
	t.lines = append(t.lines, "| "+strings.Join(cells, " | ")+" |")
}

func (t *table) String() string { return strings.Join(t.lines, "\n") + "\n" }

// saturatedTable is a line for each policy, over the three usual models.
func (f *figures) saturatedTable() string {
	t := newTable("Callers use", "Quota used, least / median", "429s per accepted call: fixed window", "token bucket", "sliding log", "Least Jain index", "Steps per call, P = 1 / 4 / 16")
	for _, p := range policies {
		cells := where(f.Saturated, func(c cell) bool { return c.Policy == p.name && slices.Contains(usualModels, c.Model) })
		used := spread(cells, func(c cell) float64 { return c.Used })
		row := []string{p.name, percent(used.low) + " / " + percent(used.mid)}
		for _, m := range usualModels {
			row = append(row, ratio(refusals(where(cells, func(c cell) bool { return c.Model == m }))))
		}
		jain := spread(cells, func(c cell) float64 { return c.Jain })
		t.row(append(row, fmt.Sprintf("%.3f", jain.low), steps(cells))...)
	}
	return t.String()
}

func steps(cells []cell) string {
	var parts []string
	for _, p := range []int{1, 4, 16} {
		most := spread(where(cells, func(c cell) bool { return c.P == p }), func(c cell) float64 { return c.Steps }).high
		if most == 0 {
			return "none"
		}
		parts = append(parts, fmt.Sprintf("%.1f", most))
	}
	return strings.Join(parts, " / ")
}

// modelsTable is a line for each model, for the pacer alone.
func (f *figures) modelsTable() string {
	t := newTable("The service counts by", "Quota used, least / median", "429s per accepted call", "Least Jain index")
	for _, m := range allModels {
		cells := where(f.Saturated, func(c cell) bool { return c.Policy == paced.name && c.Model == m })
		used := spread(cells, func(c cell) float64 { return c.Used })
		jain := spread(cells, func(c cell) float64 { return c.Jain })
		t.row(string(m), percent(used.low)+" / "+percent(used.mid), ratio(refusals(cells)), fmt.Sprintf("%.3f", jain.low))
	}
	return t.String()
}

// situationsTable is a line for each situation and policy.
func (f *figures) situationsTable() string {
	t := newTable("Situation", "Callers use", "Quota used", "429s per accepted call", "Jain index", "Wait p50 / p99")
	last := ""
	for _, c := range f.Situations {
		name := c.Situation
		if name == last {
			name = ""
		}
		last = c.Situation
		t.row(name, c.Policy, percent(c.Used), ratio(c.Refused), fmt.Sprintf("%.3f", c.Jain), seconds(c.P50)+" / "+seconds(c.P99))
	}
	return t.String()
}

func (f *figures) outagesTable() string {
	t := newTable("What fails for 5 minutes", "Service counts by", "P", "Quota used", "429s per accepted call", "Longest gap")
	for _, c := range f.Outages {
		t.row(c.Situation, string(c.Model), strconv.Itoa(c.P), percent(c.Used), ratio(c.Refused), seconds(c.Gap))
	}
	return t.String()
}

// longTable is a line for each limit, and a column for each model.
func (f *figures) longTable() string {
	columns := []string{"Limit"}
	for _, m := range longModels {
		columns = append(columns, string(m))
	}
	t := newTable(columns...)
	for _, l := range longLimits {
		row := []string{l.name()}
		for _, c := range where(f.Long, func(c cell) bool { return c.Situation == l.name() }) {
			row = append(row, fmt.Sprintf("%s, %d", percent(c.Used), c.Refusals))
		}
		t.row(row...)
	}
	return t.String()
}

// name is that of a limit in the page: 1,000 a day.
func (l limit) name() string {
	return fmt.Sprintf("%d a %s", l.max, map[time.Duration]string{time.Minute: "minute", time.Hour: "hour", day: "day"}[l.window])
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// ratio has two digits that count, and 0 is exactly that.
func ratio(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.0095:
		return strconv.FormatFloat(x, 'f', 4, 64)
	case x < 0.095:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
