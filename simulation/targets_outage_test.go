package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOutages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of   func(model, policy, int) scenario
		want target
	}{
		"killed":  {killed, target{used: 0.94, refused: 0.01, gap: 5 * time.Second}},
		"hung":    {hung, target{used: 0.85, refused: 0.01}},
		"slow":    {slowed, target{used: 0.97, refused: 0.002}},
		"flushed": {flushed, target{used: 0.97, refused: 0.005}},
	} {
		for _, m := range usualModels {
			for _, processes := range []int{1, 4, 16} {
				t.Run(fmt.Sprintf("%s, %s, %d processes", name, m, processes), func(t *testing.T) {
					tt.want.hold(t, duringOutage(simulate(t, tt.of(m, paced, processes))))
				})
			}
		}
	}
}

// The places of a process that is gone, or that stands still, go to others.
func TestLostProcesses(t *testing.T) {
	t.Parallel()
	for _, m := range usualModels {
		w := simulate(t, lost(m, paced))
		// What the frozen process was granted is sent late: a 429 for each worker.
		target{used: 0.95, refused: 0.015}.hold(t, w.measured())
		after := w.starts + w.warm + 4*time.Minute
		shares := make([]float64, 4)
		for _, e := range w.journal.events {
			if e.accepted && e.at > after {
				shares[e.process]++
			}
		}
		assert.Zero(t, shares[0], "it was killed")
		assert.Greater(t, jain(shares[1:]), 0.99, "even again after the thaw")
	}
}
