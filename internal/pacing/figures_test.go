package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestFigures states each number once more: the twins have them in their own
// digits.
func TestFigures(t *testing.T) {
	for name, figure := range map[string][2]float64{
		"guard":      {guard, 400_000},
		"slack":      {slack, 0.97},
		"crowdBurst": {crowdBurst, 1.5},
		"longWindow": {float64(longWindow), 3_600_000_000},
		"recall":     {float64(recall), 60_000_000},
		"aging":      {float64(aging), 60_000_000},
		"patience":   {float64(patience), 5_000_000},
		"lease":      {float64(lease), 1_000_000},
		"farthest":   {float64(farthest), 3_153_600_000_000_000},
		"memberLife": {float64(memberLife), 60_000_000},
		"mostFleet":  {mostFleet, 1_000_000},
		"fullEnough": {fullEnough, 0.85},
		"backOff":    {backOff, 0.95},
		"foreign":    {foreign, 0.8},
		"climb":      {climb, 0.1},
		"nearFailed": {nearFailed, 0.97},
		"forgetting": {forgetting, 10},
		"smallBurst": {smallBurst, 30},
		"slower":     {slower, 1.05},
		"probeLife":  {float64(probeLife), 60_000_000},
		"maxSeen":    {maxSeen, 64},
	} {
		assert.Equal(t, figure[1], figure[0], name)
	}
	assert.Equal(t, 60*second, aging)
	assert.Equal(t, 5*time.Second, Patience)
}
