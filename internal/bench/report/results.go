package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Results are the measurements of a File.
type Results struct {
	file   *File
	series map[id]map[string]series // by unit
	order  []id                     // as measured
	suites map[id]string
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
	r := &Results{file: f, series: map[id]map[string]series{}, suites: map[id]string{}}
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
			if err := r.add(record, b); err != nil {
				return err
			}
		}
	}
	return reader.Err()
}

func (r *Results) add(result *benchfmt.Result, from Block) error {
	of := idOf(result.Name)
	units := r.series[of]
	if units == nil {
		units = map[string]series{}
		r.series[of] = units
		r.order = append(r.order, of)
		r.suites[of] = from.Suite
	}
	for _, v := range result.Values {
		unit, value := v.Unit, v.Value
		if v.OrigUnit != "" { // benchfmt has made seconds of nanoseconds
			unit, value = v.OrigUnit, v.OrigValue
		}
		if units[unit] == nil {
			units[unit] = series{}
		}
		if _, twice := units[unit][from.Round]; twice {
			return fmt.Errorf("round %d has %s twice", from.Round, result.Name)
		}
		units[unit][from.Round] = value
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
	return r.summary(of, r.series[of][unit])
}

// summary is that of values of a benchmark, which may lack rounds.
func (r *Results) summary(of id, values series) Figure {
	f := summarize(slices.Collect(maps.Values(values)))
	f.Few = f.Rounds > 0 && f.Rounds < r.file.rounds(r.suites[of])
	return f
}

// ratio is the median of a unit's ratios between two that were measured in the
// same round: what the machine did meanwhile it did to both.
func (r *Results) ratio(of, to id, unit string) Figure {
	return r.summary(of, r.series[of][unit].over(r.series[to][unit]))
}

// over divides within each round that both have.
func (s series) over(by series) series {
	ratios := series{}
	for round, v := range s {
		if divisor := by[round]; divisor != 0 {
			ratios[round] = v / divisor
		}
	}
	return ratios
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
