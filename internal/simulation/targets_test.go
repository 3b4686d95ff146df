package simulation

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	shown := string(table.Find(text))
	for _, target := range targets {
		assert.Contains(t, shown, "| "+target.name+" |", "make simulation writes the table")
	}
	assert.Equal(t, len(targets)+2, strings.Count(shown, "\n| ")+1, "rows of the page")
}

// measure plays the runs of a row, and returns the row.
func (want target) measure(t *testing.T) string {
	got := measures{Used: 9, Jain: 1}
	look := want.look
	if look == nil {
		look = (*world).measured
	}
	for _, s := range want.runs {
		var w *world
		synctest.Test(t, func(*testing.T) { w = run(s) })
		got = worst(got, look(w))
	}
	figures := []figure{
		{"quota used", got.Used, want.used, false, percent}, {"429s a call", got.RefusedPerCall, want.refused, true, number},
		{"Jain index", got.Jain, want.jain, false, number}, {"longest pause", got.Gap.Seconds(), want.pause.Seconds(), true, seconds1},
		{"99th wait", got.P99.Seconds(), want.wait.Seconds(), true, seconds1}, {"operations a call", got.Steps, want.steps, true, number},
		{"conflicts", got.Conflicts, want.conflicts, true, percent},
	}
	var told []string
	for _, f := range figures {
		if f.want != 0 {
			told = append(told, f.String())
			assert.True(t, f.holds() || strings.HasPrefix(want.missed, strings.TrimSuffix(f.name, " a call")+":"), "%s", f)
		}
	}
	if want.missed != "" {
		told = append(told, "missed: "+want.missed)
	}
	return fmt.Sprintf("| %s | %s |\n", want.name, strings.Join(told, "; "))
}

// figure is one measured number and its target.
type figure struct {
	name      string
	got, want float64
	atMost    bool
	format    func(float64) string
}

func (f figure) holds() bool { return f.atMost && f.got <= f.want || !f.atMost && f.got >= f.want }

func (f figure) String() string {
	bound := "at least"
	if f.atMost {
		bound = "at most"
	}
	return fmt.Sprintf("%s %s (%s %s)", f.name, f.format(f.got), bound, f.format(f.want))
}

func percent(x float64) string  { return fmt.Sprintf("%.1f %%", 100*x) }
func seconds1(x float64) string { return fmt.Sprintf("%.1f s", x) }

func number(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.4g", x), ".0") }
