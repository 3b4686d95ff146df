package report

import (
	"math"

	"golang.org/x/perf/benchmath"
)

// A Figure is the median of some rounds. Low and High are its confidence
// interval of 95 %, or the least and the most of fewer rounds than have one.
// The zero Figure was not measured.
type Figure struct {
	Mid, Low, High float64
	Rounds         int
	Few            bool // fewer rounds than its suite was run: in the others it failed
}

const confidence = 0.95

// summarize assumes nothing about the distribution, as benchstat does.
func summarize(values []float64) Figure {
	if len(values) == 0 {
		return Figure{}
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds) // sorts the values
	s := benchmath.AssumeNothing.Summary(sample, confidence)
	f := Figure{Mid: s.Center, Low: s.Lo, High: s.Hi, Rounds: len(values)}
	if math.IsInf(f.Low, 0) || math.IsInf(f.High, 0) {
		f.Low, f.High = sample.Values[0], sample.Values[len(values)-1]
	}
	return f
}
