package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
)

// Each part of the pacer is there for a target that is missed without it.
func TestEveryPartIsNeeded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		without  pacing.Tuning
		scenario scenario
		missed   string
		misses   func(*world) bool
	}{
		"guard": {pacing.Tuning{NoGuard: true}, saturated(log, paced, 4, 8), "429s per accepted call",
			func(w *world) bool { return w.measured().RefusedPerCall > 0.002 }},
		"smoothing": {pacing.Tuning{NoSmoothing: true}, coldStart(log, paced), "at most 15 429s at a cold start",
			func(w *world) bool { return w.measured().Refused > 15 }},
		"queue": {pacing.Tuning{NoQueue: true}, saturated(log, paced, 16, 8), "steps per call",
			func(w *world) bool { return w.measured().Steps > 5.5 }},
		"queue, priority": {pacing.Tuning{NoQueue: true}, trickle(log, paced), "interactive calls go first",
			func(w *world) bool { return w.of(interactive).P99 > 10e9 }},
		"cool-down": {pacing.Tuning{NoCoolDown: true}, coldStart(log, paced), "at most 15 429s at a cold start",
			func(w *world) bool { return w.measured().Refused > 15 }},
		"learning": {pacing.Tuning{NoLearning: true}, lower(log, paced), "429s where the real limit is lower",
			func(w *world) bool { return w.measured().RefusedPerCall > 0.02 }},
	} {
		whole := simulate(t, tt.scenario)
		assert.False(t, tt.misses(whole), "with all parts: %s, %+v", tt.missed, whole.measured())
		tt.scenario.tuning = tt.without
		part := simulate(t, tt.scenario)
		assert.True(t, tt.misses(part), "without %s: %s, %+v", name, tt.missed, part.measured())
		t.Logf("without %s: %+v; interactive %+v", name, part.measured(), part.of(interactive))
	}
}
