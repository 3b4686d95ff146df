package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	s := fixed.perMinute(3)
	s.limits = append(s.limits, fixed.window(&size{1, time.Hour}))
	assert.Zero(t, s.call(0))
	assert.Equal(t, time.Hour, s.call(0))
	assert.Equal(t, 2, s.limits[0].(*fixedWindow).max-s.limits[0].(*fixedWindow).used, "the refused call has spent nothing")
	assert.Equal(t, 1, s.allowed(2*time.Hour, 2*time.Hour, 3*time.Hour))
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, m := range models {
		assert.InDelta(t, 600, m.perMinute(60).allowed(0, 2*time.Minute, 12*time.Minute), 10, m)
	}
}
