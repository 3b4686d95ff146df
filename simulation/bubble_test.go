package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// simulate runs a scenario in a bubble of its own.
func simulate(t *testing.T, s scenario) (w *world) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { w = run(s) })
	return w
}

// target is what a scenario has to reach. A zero value asks for nothing.
type target struct {
	used    float64 // at least
	refused float64 // at most, for each accepted call
	jain    float64 // at least
	steps   float64 // at most, for each accepted call
	gap     time.Duration
}

func (want target) hold(t *testing.T, got measures) {
	t.Helper()
	t.Logf("used %.4f of %d, %d refused (%.5f), Jain %.4f, %.2f steps a call, gap %.1f s, wait %.1f / %.1f s",
		got.Used, got.Allowed, got.Refused, got.RefusedPerCall, got.Jain, got.Steps, got.Gap.Seconds(), got.P50.Seconds(), got.P99.Seconds())
	assert.GreaterOrEqual(t, got.Used, want.used, "quota used")
	assert.LessOrEqual(t, got.RefusedPerCall, want.refused, "429s per accepted call")
	assert.GreaterOrEqual(t, got.Jain, want.jain, "Jain index over the processes")
	if want.steps > 0 {
		assert.LessOrEqual(t, got.Steps, want.steps, "steps of the coordinator per accepted call")
	}
	if want.gap > 0 {
		assert.LessOrEqual(t, got.Gap, want.gap, "longest time without an accepted call")
	}
}

// fleet is a number of processes with a number of workers each.
type fleet struct{ processes, workers int }

var fleets = []fleet{{1, 1}, {1, 8}, {1, 64}, {4, 1}, {4, 8}, {4, 64}, {16, 1}, {16, 8}, {16, 64}}
