package programs

import (
	"slices"
	"testing"
)

// figures are what was measured, by its unit.
type figures map[string][]float64

func (f figures) add(unit string, v float64) { f[unit] = append(f[unit], v) }

// report reports the median of each.
func (f figures) report(b *testing.B) {
	for unit, values := range f {
		b.ReportMetric(median(values), unit)
	}
}

// median of at least one value: with an even number the mean of the two in
// the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
