package simulation

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

const page = "README.md"

var updateDocs = flag.Bool("update-docs", false, "play all runs of each row, and write the measured tables into README.md")

// TestTargets holds the figures of each row to their targets, and the page to the
// rows. Goroutines that are due at the same instant run in no fixed order, so the
// last digit may differ from run to run.
func TestTargets(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	text = hold(t, text, "pacer", targets)
	text = hold(t, text, "client", clientTargets)
	if *updateDocs {
		require.NoError(t, os.WriteFile(page, text, 0o644))
	}
}

// hold measures the rows of a table, and returns the page with them.
func hold(t *testing.T, text []byte, table string, all []target) []byte {
	rows := make([]string, len(all))
	t.Run(table, func(t *testing.T) {
		for i, row := range all {
			t.Run(row.name, func(t *testing.T) {
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
		assert.Contains(t, of, "| "+row.name+" |", "make simulation writes the table")
	}
	assert.Equal(t, len(all)+2, strings.Count(of, "\n| ")+1, "rows of the page")
	return text
}

// measure plays the runs of a row, and returns the row.
func (want target) measure(t *testing.T) string {
	var runs []loadsim.Measures
	for _, s := range want.some() {
		synctest.Test(t, func(*testing.T) {
			runs = append(runs, loadsim.Run(s).Measure(want.from, want.to, want.only...))
		})
	}
	var says []string
	for i, f := range shown {
		if bound, has := want.want[i]; has {
			got := f.all(runs)
			says = append(says, f.String(got, bound))
			missed := strings.HasPrefix(want.missed, strings.TrimSuffix(f.name, " a call")+":")
			assert.True(t, missed || f.holds(got, bound), says[len(says)-1])
		}
	}
	if want.missed != "" {
		says = append(says, "missed: "+want.missed)
	}
	return fmt.Sprintf("| %s | %s |\n", want.name, strings.Join(says, "; "))
}

// some are the runs that CI has time for: those of the first seed, or the first and the
// last of all.
func (want target) some() (runs []scenario) {
	switch all := want.runs; {
	case want.seeds > 0:
	case *updateDocs || len(all) < 2:
		return all
	default:
		return []scenario{all[0], all[len(all)-1]}
	}
	for seed := range want.seeds {
		for _, s := range want.runs {
			s.Seed, s.Starts = uint64(seed), time.Duration(11+17*seed)*time.Second
			runs = append(runs, s)
		}
		if !*updateDocs {
			break
		}
	}
	return runs
}
