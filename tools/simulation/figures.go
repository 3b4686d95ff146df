package simulation

import (
	"fmt"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// figures are what a row shows, at most or at least.
type figures [conflicts + 1]float64

const (
	used      = iota // of the quota
	refused          // 429s for each accepted call
	jain             // index over the processes
	pause            // seconds without an accepted call
	wait             // seconds, in the 99th percentile
	steps            // operations of the store for each call
	conflicts        // of the swaps
)

// figure says what one of them is, and how it is shown.
type figure struct {
	name   string
	atMost bool
	of     func(loadsim.Measures) float64
	format func(float64) string
}

var shown = [...]figure{
	used:      {"quota used", false, func(m loadsim.Measures) float64 { return m.Used }, percent},
	refused:   {"429s a call", true, func(m loadsim.Measures) float64 { return m.RefusedPerCall }, number},
	jain:      {"Jain index", false, func(m loadsim.Measures) float64 { return m.Jain }, number},
	pause:     {"longest pause", true, func(m loadsim.Measures) float64 { return m.Pause.Seconds() }, seconds},
	wait:      {"99th wait", true, func(m loadsim.Measures) float64 { return m.P99.Seconds() }, seconds},
	steps:     {"operations a call", true, func(m loadsim.Measures) float64 { return m.Steps }, number},
	conflicts: {"conflicts", true, func(m loadsim.Measures) float64 { return m.Conflicts }, percent},
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
func seconds(x float64) string { return fmt.Sprintf("%.1f s", x) }
func number(x float64) string  { return strings.TrimSuffix(fmt.Sprintf("%.4g", x), ".0") }

// holds reports whether a figure is as good as another.
func (f figure) holds(got, want float64) bool { return got == want || (got < want) == f.atMost }

func (f figure) String(got, want float64) string {
	bound := "at least"
	if f.atMost {
		bound = "at most"
	}
	return fmt.Sprintf("%s %s (%s %s)", f.name, f.format(got), bound, f.format(want))
}
