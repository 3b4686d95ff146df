package main

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// An id is a benchmark without its subject, and the subject, such as a client:
// empty where there is nothing to compare.
type id struct{ bench, subject string }

// series are the values of a unit by round.
type series map[int]float64

// results are read from and written to results.txt, in the Go benchmark format.
// Its keys suite and round say where a line is from; for benchstat: -ignore round.
type results struct {
	lines  []*benchfmt.Result
	order  []id
	series map[id]map[string]series // by unit
}

func newResults() *results { return &results{series: map[id]map[string]series{}} }

func load(file string) (*results, error) {
	r := newResults()
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	return r, r.add(benchfmt.NewReader(f, file))
}

// add reports the first line that is not of the format.
func (r *results) add(from *benchfmt.Reader) error {
	for from.Scan() {
		switch line := from.Result().(type) {
		case *benchfmt.SyntaxError:
			return line
		case *benchfmt.Result:
			r.addLine(line.Clone())
		}
	}
	return from.Err()
}

func (r *results) addLine(line *benchfmt.Result) {
	r.lines = append(r.lines, line)
	of := idOf(line)
	if r.series[of] == nil {
		r.series[of] = map[string]series{}
		r.order = append(r.order, of)
	}
	round, _ := strconv.Atoi(line.GetConfig("round"))
	for _, v := range line.Values {
		if r.series[of][v.Unit] == nil {
			r.series[of][v.Unit] = series{}
		}
		r.series[of][v.Unit][round] = v.Value
	}
}

func idOf(line *benchfmt.Result) (of id) {
	base, parts := line.Name.Parts()
	of.bench = string(base)
	if line.GetConfig("suite") == "jsonv2" {
		of.bench = "JSONv2"
	}
	for _, part := range parts {
		if subject, found := strings.CutPrefix(string(part), "/subject="); found {
			of.subject = subject
		} else if part[0] == '/' { // else it is the number of processors
			of.bench += string(part)
		}
	}
	return of
}

func (r *results) save(file string) error {
	var text strings.Builder
	w := benchfmt.NewWriter(&text)
	for _, line := range r.lines {
		if err := w.Write(line); err != nil {
			return err
		}
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// A figure is the median of some rounds with its confidence interval of 95 %,
// or the least and the most of too few rounds to have one.
type figure struct {
	mid, low, high float64
	rounds         int // 0: it was not measured
}

func (s series) figure() figure {
	var values []float64
	for _, v := range s {
		values = append(values, v)
	}
	if len(values) == 0 {
		return figure{}
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds) // sorts the values
	sum := benchmath.AssumeNothing.Summary(sample, 0.95)
	f := figure{mid: sum.Center, low: sum.Lo, high: sum.Hi, rounds: len(values)}
	if math.IsInf(f.low, 0) || math.IsInf(f.high, 0) {
		f.low, f.high = sample.Values[0], sample.Values[len(values)-1]
	}
	return f
}

// with combines the values of the rounds that both have: what the machine did
// meanwhile it did to both.
func (s series) with(other series, combine func(a, b float64) float64) series {
	both := series{}
	for round, v := range s {
		if o, found := other[round]; found {
			both[round] = combine(v, o)
		}
	}
	return both
}

func (s series) over(other series) series {
	return s.with(other, func(a, b float64) float64 { return a / b })
}
