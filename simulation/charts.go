package simulation

import (
	"fmt"
	"slices"
	"strconv"
)

// charts are the page's figures, by the name of their file in docs.
func (f *figures) charts() map[string]string {
	return map[string]string{
		"rate-limits-refused.svg": f.refusedChart().svg(),
		"rate-limits-used.svg":    f.usedChart().svg(),
		"rate-limits-wait.svg":    f.waitChart().svg(),
	}
}

const nineCells = "nine fleets each, of 1, 4 and 16 processes with 1, 8 and 64 workers: the line goes from the least to the most, the mark is the median"

func (f *figures) refusedChart() chart {
	return chart{
		title: "429s per accepted call",
		desc:  "Refused calls for each accepted one, by the way the service counts and by what the callers use; " + nineCells + ".",
		axis:  "429s per accepted call, logarithmic (line: least to most of nine fleets, mark: median)",
		log:   true, ticks: []float64{0.001, 0.01, 0.1, 1, 10, 100, 1000},
		label:  func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) },
		series: policyNames(),
		groups: f.groups(allModels, func(cells []cell) span {
			return spread(cells, func(c cell) float64 { return c.Refused })
		}),
	}
}

func (f *figures) usedChart() chart {
	return chart{
		title: "Quota used",
		desc:  "Accepted calls as a part of what the service would have accepted, by the way the service counts and by what the callers use; " + nineCells + ".",
		axis:  "quota used (line: least to most of nine fleets, mark: median)",
		ticks: []float64{0, 0.2, 0.4, 0.6, 0.8, 1}, label: func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
		series: policyNames(),
		groups: f.groups(allModels, func(cells []cell) span {
			return spread(cells, func(c cell) float64 { return c.Used })
		}),
	}
}

func (f *figures) waitChart() chart {
	return chart{
		title: "How long calls wait: 16 processes with 8 workers each",
		desc:  "The wait of accepted calls from the median, where the mark is, to the 99th percentile. 128 workers at 60 calls a minute wait 128 s on the average, so a short line at 128 s is a fair queue.",
		axis:  "wait in seconds, logarithmic (mark: median, end of the line: 99th percentile)",
		log:   true, ticks: []float64{0.1, 1, 10, 100, 1000},
		label:  func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) },
		series: policyNames(),
		groups: f.groups(usualModels, func(cells []cell) span {
			c := where(cells, func(c cell) bool { return c.P == 16 && c.N == 8 })[0]
			return span{c.P50.Seconds(), c.P50.Seconds(), c.P99.Seconds()}
		}),
	}
}

// groups is a group for each model, and in it a span for each policy.
func (f *figures) groups(models []model, of func([]cell) span) []group {
	var groups []group
	for _, m := range models {
		g := group{name: string(m)}
		for _, p := range policies {
			g.spans = append(g.spans, of(where(f.Saturated, func(c cell) bool { return c.Model == m && c.Policy == p.name })))
		}
		groups = append(groups, g)
	}
	return groups
}

func policyNames() []string {
	var names []string
	for p := range slices.Values(policies) {
		names = append(names, p.name)
	}
	return names
}
