package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func mixedService() *service {
	return &service{limits: []serviceLimit{
		{key: minuteKey, window: fixed.window(3, time.Minute)},
		{key: agentsKey, window: fixed.window(1, time.Hour), only: createAgent.Path},
	}}
}

func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	s := mixedService()
	assert.True(t, s.call(0, createAgent).accepted)
	assert.Equal(t, answer{key: agentsKey, retryAfter: time.Hour}, s.call(0, createAgent))
	assert.True(t, s.call(0, sendMessage).accepted)
	assert.True(t, s.call(0, sendMessage).accepted, "the refused creation has spent nothing")
	assert.Equal(t, answer{key: minuteKey, retryAfter: 59 * time.Second}, s.call(1500*time.Millisecond, createAgent))
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, m := range []model{fixed, fromUse, log, bucket} {
		assert.Equal(t, 600, m.perMinute(60).allowed(0, 2*time.Minute, 12*time.Minute, sendMessage), m)
	}
	assert.InDelta(t, 600, counter.perMinute(60).allowed(0, 2*time.Minute, 12*time.Minute, sendMessage), 10)
	assert.Equal(t, 1, mixedService().allowed(0, 0, time.Hour, createAgent))
}
