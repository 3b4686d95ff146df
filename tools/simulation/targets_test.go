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

const page = "../../docs/rate-limits.md"

var updateDocs = flag.Bool("update-docs", false, "write the measured table into docs/rate-limits.md")

// TestTargets holds the worst figure of each row to its target, and the page to
// the table's rows. Goroutines that are due at the same instant run in no fixed
// order, so the last digit may differ from run to run.
func TestTargets(t *testing.T) {
	rows := make([]string, len(targets))
	t.Run("rows", func(t *testing.T) {
		for i, target := range targets {
			t.Run(target.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = target.measure(t)
			})
		}
	})
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	table := regexp.MustCompile(`(?s)(<!-- targets:begin -->\n).*(<!-- targets:end -->)`)
	if *updateDocs {
		head := "| Situation | Worst figures, and their targets |\n|---|---|\n"
		text = table.ReplaceAll(text, []byte("${1}"+head+strings.Join(rows, "")+"${2}"))
		require.NoError(t, os.WriteFile(page, text, 0o644))
	}
	of := string(table.Find(text))
	for _, target := range targets {
		assert.Contains(t, of, "| "+target.name+" |", "make simulation writes the table")
	}
	assert.Equal(t, len(targets)+2, strings.Count(of, "\n| ")+1, "rows of the page")
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
	for run, s := range want.runs {
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
