package report

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Results are the measurements of a File.
type Results struct {
	file   *File
	series map[id]map[string]series // by unit
	order  []id                     // as measured
}

// id is a benchmark without its subject, and the subject: empty where there is
// nothing to compare.
type id struct{ bench, subject string }

// series are the values of one unit by round. A round in which a benchmark
// failed has none.
type series map[int]float64

// Read takes the measurements out of a file. An error names the line that is
// not of the format, or the benchmark that a round has twice.
func Read(f *File) (*Results, error) {
	r := &Results{file: f, series: map[id]map[string]series{}}
	for _, block := range f.Blocks {
		if err := r.readBlock(block); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Results) readBlock(b Block) error {
	reader := benchfmt.NewReader(strings.NewReader(b.Output), fmt.Sprintf("round %d of %s", b.Round, b.Suite))
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return record
		case *benchfmt.Result:
			if err := r.add(record, b.Round); err != nil {
				return err
			}
		}
	}
	return reader.Err()
}

func (r *Results) add(result *benchfmt.Result, round int) error {
	of := idOf(result.Name)
	units := r.series[of]
	if units == nil {
		units = map[string]series{}
		r.series[of] = units
		r.order = append(r.order, of)
	}
	for _, v := range result.Values {
		unit, value := v.Unit, v.Value
		if v.OrigUnit != "" { // benchfmt has made seconds of nanoseconds
			unit, value = v.OrigUnit, v.OrigValue
		}
		if units[unit] == nil {
			units[unit] = series{}
		}
		if _, twice := units[unit][round]; twice {
			return fmt.Errorf("round %d has %s twice", round, result.Name)
		}
		units[unit][round] = value
	}
	return nil
}

const subjectKey = "/subject="

// idOf parts a name; the number of processors at its end is dropped.
func idOf(name benchfmt.Name) id {
	base, parts := name.Parts()
	of := id{bench: string(base)}
	for _, part := range parts {
		subject, isSubject := strings.CutPrefix(string(part), subjectKey)
		switch {
		case isSubject:
			of.subject = subject
		case part[0] == '/':
			of.bench += string(part)
		}
	}
	return of
}

// figure is the median of a unit over the rounds.
func (r *Results) figure(of id, unit string) Figure {
	var values []float64
	for _, v := range r.series[of][unit] {
		values = append(values, v)
	}
	return summarize(values)
}

// ratio is the median of a unit's ratios between two that were measured in the
// same round: what the machine did meanwhile it did to both.
func (r *Results) ratio(of, to id, unit string) Figure {
	var ratios []float64
	for round, v := range r.series[of][unit] {
		if floor := r.series[to][unit][round]; floor != 0 {
			ratios = append(ratios, v/floor)
		}
	}
	return summarize(ratios)
}

// subjects are those of the benchmarks with a prefix, in the order in which
// they were measured first, after those that are expected anyway.
func (r *Results) subjects(prefix string, expected ...string) []string {
	found := slices.Clone(expected)
	for _, of := range r.order {
		if strings.HasPrefix(of.bench, prefix) && of.subject != "" && !slices.Contains(found, of.subject) {
			found = append(found, of.subject)
		}
	}
	return found
}
