package report

import (
	"math"
	"slices"
	"strings"
)

// A target is a figure that has to keep a bound.
type target struct {
	what    string
	measure func(*Results) finding
	scale   scale
	bound   bound
}

// finding is what a target is judged by. The note names the peer that comes
// nearest, and those that are missing.
type finding struct {
	figure Figure
	note   string
}

// bound is judged by the median; a verdict says where the interval leaves it
// open.
type bound struct {
	words string
	kept  func(figure, limit float64) bool
	limit float64
}

func atMost(limit float64) bound {
	return bound{"at most", func(f, l float64) bool { return f <= l }, limit}
}

func atLeast(limit float64) bound {
	return bound{"at least", func(f, l float64) bool { return f >= l }, limit}
}

func below(limit float64) bound {
	return bound{"below", func(f, l float64) bool { return f < l }, limit}
}

// exactly allows for a count that is divided by calls, where a first call of
// thousands may need one more.
func exactly(limit float64) bound {
	return bound{"exactly", func(f, l float64) bool { return math.Abs(f-l) < 0.005 }, limit}
}

func (t target) verdict(f Figure) string {
	if f.Rounds == 0 {
		return notMeasured
	}
	verdict := "missed"
	if t.bound.kept(f.Mid, t.bound.limit) {
		verdict = "met"
	}
	if t.bound.spanned(f) {
		verdict += ", within the noise"
	}
	return verdict
}

// spanned tells whether the interval has values on both sides. The limit itself
// is looked at for bounds that are kept in the middle of an interval only.
func (b bound) spanned(f Figure) bool {
	kept := b.kept(f.Mid, b.limit)
	nearest := min(max(b.limit, f.Low), f.High)
	return slices.ContainsFunc([]float64{f.Low, f.High, nearest}, func(x float64) bool {
		return b.kept(x, b.limit) != kept
	})
}

func targetTable(r *Results) *Table {
	table := &Table{Name: "targets", Title: "Targets", Columns: []string{"Target", "Bound", "Measured", ""}}
	for _, t := range targets {
		found := t.measure(r)
		cell := t.scale.cell(found.figure)
		if found.note != "" {
			cell += "; " + found.note
		}
		table.add(t.what, t.bound.words+" "+t.scale.bound(t.bound.limit), cell, t.verdict(found.figure))
	}
	return table
}

// plain is a figure itself.
func plain(bench, subject, unit string) func(*Results) finding {
	return func(r *Results) finding {
		return finding{figure: r.figure(id{bench, subject}, unit)}
	}
}

// against is the ratio of the client to another subject.
func against(bench, unit, to string) func(*Results) finding {
	return across(id{bench, own}, id{bench, to}, unit)
}

// across is the ratio of any two.
func across(of, to id, unit string) func(*Results) finding {
	return func(r *Results) finding {
		return finding{figure: r.ratio(of, to, unit)}
	}
}

// growth is how much more one grows than another, each from a smaller load to a
// larger: what a round did to all four is in none of it.
func growth(from, to, floorFrom, floorTo id, unit string) func(*Results) finding {
	return func(r *Results) finding {
		of := func(i id) series { return r.series[i][unit] }
		grown := of(to).over(of(from)).over(of(floorTo).over(of(floorFrom)))
		return finding{figure: r.summary(to, grown)}
	}
}

// greatest is the largest ratio of one subject to the others, which is that to
// the best of them where less is better.
func greatest(bench, unit, subject string, others func(*Results) []string) func(*Results) finding {
	return nearest(bench, unit, subject, others, func(a, b float64) bool { return a > b })
}

// least is the smallest ratio, to the best of the others where more is better.
func least(bench, unit, subject string, others func(*Results) []string) func(*Results) finding {
	return nearest(bench, unit, subject, others, func(a, b float64) bool { return a < b })
}

func nearest(bench, unit, subject string, others func(*Results) []string, nearer func(a, b float64) bool) func(*Results) finding {
	return func(r *Results) finding {
		var found finding
		var name string
		var missing []string
		for _, other := range others(r) {
			f := r.ratio(id{bench, subject}, id{bench, other}, unit)
			switch {
			case f.Rounds == 0:
				missing = append(missing, display(other))
			case name == "" || nearer(f.Mid, found.figure.Mid):
				found.figure, name = f, display(other)
			}
		}
		if name != "" {
			found.note = note(name, missing)
		}
		return found
	}
}

func note(nearest string, missing []string) string {
	text := "the nearest is " + nearest
	if len(missing) > 0 {
		text += "; not measured against " + strings.Join(missing, ", ")
	}
	return text
}
