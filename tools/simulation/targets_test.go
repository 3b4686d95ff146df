package simulation

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

const page = "README.md"

var updateDocs = flag.Bool("update-docs", false, "play all runs of each row, and write the measured tables into README.md")

// some are the first and the last of a row's runs, which is what CI has time for.
func some[R any](runs []R) []R {
	if *updateDocs || len(runs) < 2 {
		return runs
	}
	return []R{runs[0], runs[len(runs)-1]}
}

// TestTargets holds the worst figures of each row to their targets, and the page to
// the rows. Goroutines that are due at the same instant run in no fixed order, so the
// last digit may differ from run to run.
func TestTargets(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	text = hold(t, text, "pacer", targets, func(r target) string { return r.name })
	text = hold(t, text, "client", crowdRows, func(r crowdRow) string { return r.name })
	if *updateDocs {
		require.NoError(t, os.WriteFile(page, text, 0o644))
	}
}

// hold measures the rows of a table, and returns the page with them.
func hold[R interface{ measure(*testing.T) string }](t *testing.T, text []byte, table string, all []R, name func(R) string) []byte {
	rows := make([]string, len(all))
	t.Run(table, func(t *testing.T) {
		for i, row := range all {
			t.Run(name(row), func(t *testing.T) {
				t.Parallel()
				rows[i] = row.measure(t)
			})
		}
	})
	place := regexp.MustCompile(`(?s)(<!-- ` + table + `:begin -->\n).*(<!-- ` + table + `:end -->)`)
	if *updateDocs {
		head := "| Situation | Figures, and their targets |\n|---|---|\n"
		text = place.ReplaceAll(text, []byte("${1}"+head+strings.Join(rows, "")+"${2}"))
	}
	of := string(place.Find(text))
	for _, row := range all {
		assert.Contains(t, of, "| "+name(row)+" |", "make simulation writes the table")
	}
	assert.Equal(t, len(all)+2, strings.Count(of, "\n| ")+1, "rows of the page")
	return text
}

// measure plays the runs of a row, and returns the row.
func (want target) measure(t *testing.T) string {
	var told []string
	got := want.worst(t)
	for i, bound := range want.want {
		if bound != 0 {
			told = append(told, shown[i].String(got[i], bound))
			missed := strings.HasPrefix(want.missed, strings.TrimSuffix(shown[i].name, " a call")+":")
			assert.True(t, missed || shown[i].holds(got[i], bound), told[len(told)-1])
		}
	}
	if want.missed != "" {
		told = append(told, "missed: "+want.missed)
	}
	return fmt.Sprintf("| %s | %s |\n", want.name, strings.Join(told, "; "))
}

// worst is what of each figure is furthest from its bound.
func (want target) worst(t *testing.T) (worst figures) {
	for run, s := range some(want.runs) {
		var m loadsim.Measures
		synctest.Test(t, func(*testing.T) {
			m = loadsim.Run(s).Measure(want.from, cmp.Or(want.to, s.Span), want.only...)
		})
		for i, f := range shown {
			if got := f.of(m); run == 0 || f.holds(worst[i], got) {
				worst[i] = got
			}
		}
	}
	return worst
}
