package simulation

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAxis(t *testing.T) {
	t.Parallel()
	label := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	linear := chart{ticks: []float64{0, 0.5, 1}, label: label}
	assert.InDelta(t, plotLeft, linear.x(0), 0.01)
	assert.InDelta(t, (plotLeft+plotRight)/2.0, linear.x(0.5), 0.01)
	assert.InDelta(t, plotRight, linear.x(3), 0.01, "beyond the axis")
	log := chart{log: true, ticks: []float64{0.01, 0.1, 1}, label: label}
	assert.InDelta(t, plotLeft, log.x(0), 0.01, "zero has a place of its own")
	assert.InDelta(t, plotLeft+zeroWidth, log.x(0.01), 0.01)
	assert.InDelta(t, (plotLeft+zeroWidth+plotRight)/2.0, log.x(0.1), 0.01)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for want, x := range map[string]float64{"0": 0, "0.0003": 0.0003, "0.016": 0.016, "0.53": 0.53, "104": 103.8} {
		assert.Equal(t, want, ratio(x))
	}
	assert.Equal(t, "99.3 %", percent(0.9933))
	assert.Equal(t, "1000 a day", longLimits[0].name())
}
