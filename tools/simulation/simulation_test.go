package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

var updateDocs = flag.Bool("update-docs", false, "run each row with all seeds, and write the measured tables into README.md, and the picture")

// The runs make much garbage and keep little memory, so rarer collections save time.
func init() { debug.SetGCPercent(400) }

// TestTargets compares the figures of each row with their targets, and the page with the
// rows. Goroutines that wake at the same instant run in no fixed order, so the last digit
// may differ from run to run.
func TestTargets(t *testing.T) {
	for name, targets := range map[string][]target{"client": clientTargets, "pacer": pacerTargets} {
		rows := make([]string, len(targets))
		t.Run(name, func(t *testing.T) {
			for i, row := range targets {
				t.Run(row.name, func(t *testing.T) {
					t.Parallel()
					rows[i] = fmt.Sprintf("| %s | %s |\n", row.name, strings.Join(row.measure(t), "; "))
				})
			}
		})
		table := section(t, "README.md", name, "| Situation | Figures, and their targets |\n|---|---|\n"+strings.Join(rows, ""))
		for _, row := range targets {
			assert.Contains(t, table, "\n| "+row.name+" |", "make simulation writes the table")
		}
	}
}

// section returns a file's text between two comments with a name. Under -update-docs it
// first replaces this text.
func section(t *testing.T, file, name, text string) string {
	t.Helper()
	all, err := os.ReadFile(file)
	require.NoError(t, err)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	head, rest, _ := strings.Cut(string(all), begin)
	shown, tail, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no section %s", file, name)
	if *updateDocs {
		shown = text
		require.NoError(t, os.WriteFile(file, []byte(head+begin+shown+end+tail), 0o644))
	}
	return begin + shown
}

// measure runs the scenarios of a row, and returns its figures as text. CI has less time. Of a
// row with seeds it runs one seed, and from three plans on only every third run: seven models
// and a step of three have no common factor, so each model and each plan still has a run. Of a
// row without seeds it runs the first and the last run.
func (row target) measure(t *testing.T) (words []string) {
	seeds, every := max(1, row.seeds), 1
	switch {
	case *updateDocs:
	case row.seeds > 0:
		seeds = 1
		if len(row.runs) >= 3*len(all) {
			every = 3
		}
	default:
		every = max(1, len(row.runs)-1)
	}
	var measured []loadsim.Measures
	for seed := range seeds {
		for i, s := range row.runs {
			if i%every != 0 {
				continue
			}
			if row.seeds > 0 {
				s.Seed, s.Starts = uint64(seed), time.Duration(11+17*seed)*time.Second
			}
			synctest.Test(t, func(*testing.T) {
				measured = append(measured, loadsim.Run(s).Measure(0, 0, row.classes...))
			})
		}
	}
	for _, w := range row.want {
		got := w.overall(measured)
		text := fmt.Sprintf("%s "+w.format+" (%s "+w.format+")", w.name, got, w.side, w.bound)
		assert.True(t, w.holds(got, w.bound), text)
		words = append(words, text)
	}
	if row.ideal != "" {
		words = append(words, "ideal: "+row.ideal)
	}
	return words
}

// TestPicture runs 20 callers without a Pacer for four minutes. -update-docs draws a row for
// each caller: its waits, and when the service accepted or refused it.
func TestPicture(t *testing.T) {
	scene := unpaced(1, slices.Repeat([]loadsim.Load{{Workers: []int{1}}}, 20)...)(loadsim.Fixed)
	scene.Replies, scene.Span = 2*time.Second, 4*time.Minute
	waits, answers := "", "" // answers are drawn over the waits
	synctest.Test(t, func(t *testing.T) {
		w := loadsim.Run(scene)
		m := w.Measure(0, 0)
		assert.Zero(t, m.Lost)
		assert.InDelta(t, 240, m.Accepted, 2)
		const perSecond = 2.9
		marks := map[loadsim.Kind]string{loadsim.Accepted: "accepted", loadsim.Refused: "refused"}
		for _, e := range w.Events {
			if mark := marks[e.Kind]; mark != "" {
				x, y := 76+perSecond*e.At.Seconds(), 48+14*e.Load
				waits += fmt.Sprintf(`<line class="wait" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", x-perSecond*e.Wait.Seconds(), y, x, y)
				answers += fmt.Sprintf(`<use href="#%s" x="%.1f" y="%d"/>`+"\n", mark, x, y)
			}
		}
	})
	section(t, "../../docs/pictures/limit.svg", "calls", waits+answers)
}

// at is the time of a call, and the wait that the rule returns; 0 means accepted.
type at struct{ now, wait time.Duration }

func TestRules(t *testing.T) {
	t.Parallel()
	const s = time.Second
	most := func(n int) *pacer.Limit { return &pacer.Limit{Max: n, Window: time.Minute} }
	for name, tt := range map[string]struct {
		rule  loadsim.Rule
		calls []at
	}{
		"aligned":                {loadsim.Aligned(most(2)), []at{{50 * s, 0}, {50 * s, 0}, {51 * s, 9 * s}, {60 * s, 0}, {119 * s, 0}, {119 * s, s}}},
		"aligned, idle for long": {loadsim.Aligned(most(1)), []at{{0, 0}, {1000 * s, 0}, {1001 * s, 19 * s}}},
		"fixed":                  {loadsim.Fixed(most(2)), []at{{50 * s, 0}, {51 * s, 0}, {52 * s, 58 * s}, {110 * s, 0}}},
		"sliding log":            {loadsim.Sliding(most(2)), []at{{0, 0}, {30 * s, 0}, {40 * s, 20 * s}, {60 * s, 0}, {61 * s, 29 * s}, {90 * s, 0}}},
		"token bucket":           {loadsim.Bucket(most(2)), []at{{0, 0}, {0, 0}, {0, 30 * s}, {30 * s, 0}, {31 * s, 29 * s}, {600 * s, 0}, {600 * s, 0}, {600 * s, 30 * s}}},
		// 4 calls in the minute before: 2 of them still weigh at half time.
		"sliding counter":       {loadsim.Weighted(most(4)), []at{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 75*s + 1}, {60 * s, 15*s + 1}, {75*s + 1, 0}, {76 * s, 14*s + 1}, {90*s + 1, 0}}},
		"sliding counter, idle": {loadsim.Weighted(most(1)), []at{{0, 0}, {59 * s, 61*s + 1}, {120 * s, 0}}},
	} {
		for i, call := range tt.calls {
			got := tt.rule.Wait(call.now)
			assert.Equal(t, call.wait, got, "%s: call %d at %s", name, i+1, call.now)
			if got == 0 {
				tt.rule.Spend(call.now)
			}
		}
	}
}
