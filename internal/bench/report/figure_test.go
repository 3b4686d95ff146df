package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func figureOf(mid, low, high float64, rounds int) Figure {
	return Figure{Mid: mid, Low: low, High: high, Rounds: rounds}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   []float64
		want Figure
	}{
		{nil, Figure{}},
		{[]float64{7}, figureOf(7, 7, 7, 1)},
		{[]float64{9, 1}, figureOf(5, 1, 9, 2)},
		{[]float64{5, 3, 1, 2, 4}, figureOf(3, 1, 5, 5)}, // too few for an interval: least and most
		{[]float64{6, 5, 4, 3, 2, 1}, figureOf(3.5, 1, 6, 6)},
		// The 2nd and the 9th of ten: outside them is the median with 2 %.
		{[]float64{10, 2, 9, 3, 8, 4, 7, 5, 6, 1}, figureOf(5.5, 2, 9, 10)},
		{[]float64{1000, 2, 9, 3, 8, 4, 7, 5, 6, 0.001}, figureOf(5.5, 2, 9, 10)},
	} {
		assert.Equal(t, c.want, summarize(c.in), c.in)
	}
}
