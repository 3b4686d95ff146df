package simulation

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"
)

// figures is what the page shows, as measured by the last full run. They are
// kept in a file, so that the page can be held to them without another one.
type figures struct {
	Saturated  []cell
	Situations []cell
	Outages    []cell
	Long       []cell
}

// cell is one measured scenario.
type cell struct {
	Situation string `json:",omitempty"`
	Model     model
	Policy    string
	P, N      int     `json:",omitempty"` // processes, and workers in each
	Used      float64 // of what the service allows
	Refused   float64 // for each accepted call
	Refusals  int
	Accepted  int
	Jain      float64
	P50, P99  time.Duration
	Gap       time.Duration
	Steps     float64
}

const figuresFile = "testdata/figures.json"

// save writes a cell a line, so that a diff shows what has changed.
func (f *figures) save() error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	lines := strings.NewReplacer("[{", "[\n{", "},{", "},\n{").Replace(string(text))
	return os.WriteFile(figuresFile, []byte(lines+"\n"), 0o644)
}

func loadFigures() (*figures, error) {
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		return nil, err
	}
	f := &figures{}
	return f, json.Unmarshal(text, f)
}

func newCell(situation string, m model, p policy, n int, got measures, processes int) cell {
	return cell{
		Situation: situation, Model: m, Policy: p.name, P: processes, N: n,
		Used: round(got.Used), Refused: round(got.RefusedPerCall), Refusals: got.Refused, Accepted: got.Accepted,
		Jain: round(got.Jain), P50: got.P50.Round(time.Millisecond), P99: got.P99.Round(time.Millisecond),
		Gap: got.Gap.Round(time.Millisecond), Steps: round(got.Steps),
	}
}

// round keeps five places: more would be noise in every diff.
func round(x float64) float64 { return float64(int64(x*1e5+0.5)) / 1e5 }

// where selects cells.
func where(cells []cell, match func(cell) bool) []cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return !match(c) })
}

// spread is the least, the median and the most of a figure.
func spread(cells []cell, figure func(cell) float64) span {
	if len(cells) == 0 {
		return span{}
	}
	values := make([]float64, len(cells))
	for i, c := range cells {
		values[i] = figure(c)
	}
	slices.Sort(values)
	return span{low: values[0], mid: values[len(values)/2], high: values[len(values)-1]}
}

// refusals is refused for accepted calls over all cells.
func refusals(cells []cell) float64 {
	refused, accepted := 0, 0
	for _, c := range cells {
		refused, accepted = refused+c.Refusals, accepted+c.Accepted
	}
	return float64(refused) / float64(max(1, accepted))
}
