package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The targets of the Pacer. They hold for a service that counts by a fixed
// window, a token bucket of the limit's size or a sliding log, whichever it is.

func TestSaturated(t *testing.T) {
	t.Parallel()
	want := target{used: 0.98, refused: 0.002, jain: 0.99}
	for _, m := range usualModels {
		for _, f := range fleets {
			t.Run(fmt.Sprintf("%s, %d processes, %d workers", m, f.processes, f.workers), func(t *testing.T) {
				want.hold(t, simulate(t, saturated(m, paced, f.processes, f.workers)).measured())
			})
		}
	}
}

// A single process needs no coordinator.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		for _, workers := range []int{1, 64} {
			got := simulate(t, saturated(m, alone, 1, workers)).measured()
			target{used: 0.98, refused: 0.002}.hold(t, got)
			assert.Zero(t, got.Steps)
		}
	}
}

// What the service counts otherwise than any window does is learned at the
// cost of a few refusals.
func TestOtherModels(t *testing.T) {
	t.Parallel()
	for m, want := range map[model]target{
		fromUse: {used: 0.98, refused: 0.002, jain: 0.99},
		gcra10:  {used: 0.98, refused: 0.005, jain: 0.99},
		gcra1:   {used: 0.70, refused: 0.03, jain: 0.99},
		counter: {used: 0.93, refused: 0.01, jain: 0.99},
	} {
		for _, f := range []fleet{{1, 8}, {4, 8}, {16, 8}} {
			t.Run(fmt.Sprintf("%s, %d processes", m, f.processes), func(t *testing.T) {
				want.hold(t, simulate(t, saturated(m, paced, f.processes, f.workers)).measured())
			})
		}
	}
}

func TestStepsOfTheCoordinator(t *testing.T) {
	t.Parallel()
	for processes, steps := range map[int]float64{1: 2.1, 4: 2.5, 16: 5.5} {
		for _, workers := range []int{1, 8, 64} {
			target{refused: 0.002, steps: steps}.hold(t, simulate(t, saturated(log, paced, processes, workers)).measured())
		}
	}
}

// At 80 % of the limit there is mostly nothing to wait for.
func TestPartLoad(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 4, 16} {
		got := simulate(t, partLoad(log, paced, processes, 0.8)).measured()
		target{used: 0.75, refused: 0.002, steps: 1.3}.hold(t, got)
		assert.Less(t, got.P50, time.Second)
		assert.Less(t, got.P99, 20*time.Second)
	}
}

// A process gets its share of the quota, not one by the number of its callers.
func TestGreedyProcess(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		target{used: 0.98, refused: 0.002, jain: 0.99}.hold(t, simulate(t, greedy(m, paced)).measured())
	}
}

// What the others do not want, one process may have.
func TestOneActiveProcess(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		target{used: 0.98, refused: 0.002}.hold(t, simulate(t, oneActive(m, paced)).measured())
	}
}

func TestInteractiveGoesFirst(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		w := simulate(t, trickle(m, paced))
		got := w.of(interactive)
		target{refused: 0.002}.hold(t, got)
		target{used: 0.98, refused: 0.002}.hold(t, w.measured())
		assert.Greater(t, got.Accepted, 100)
		assert.Less(t, got.P99, 10*time.Second)
	}
}

// Not even under interactive calls that would use everything.
func TestBatchIsNotStarved(t *testing.T) {
	t.Parallel()
	w := simulate(t, flood(log, paced))
	got := w.of(batch)
	target{refused: 0.002}.hold(t, got)
	assert.GreaterOrEqual(t, got.Accepted, 4*2) // each worker, more than once
	assert.Less(t, got.P99, 3*time.Minute)
}

// All workers start at once, and have 60 calls refused where nobody learns.
func TestColdStart(t *testing.T) {
	t.Parallel()
	for _, m := range append([]model{counter}, usualModels...) {
		got := simulate(t, coldStart(m, paced)).measured()
		target{used: 0.8, refused: 1}.hold(t, got) // learning takes its time
		assert.LessOrEqual(t, got.Refused, 15, m)
	}
}

func TestCallersOfSeveralEndpoints(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		w := simulate(t, mixed(m, paced))
		got := w.measured()
		target{refused: 0.005}.hold(t, got)
		agents := w.journal.within(w.starts, w.starts+w.warm+w.span, 4, func(e event) bool { return e.class == other })
		assert.Equal(t, 30, agents.Accepted, "%s: all of the agent limit", m)
		assert.LessOrEqual(t, got.Refused, 2, m)
		assert.GreaterOrEqual(t, got.Accepted, 588, "a spent limit holds up no other calls")
	}
}
