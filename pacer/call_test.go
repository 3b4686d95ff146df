package pacer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// TestUnsentAttempt gives its permit back, and its place in the even pace, also
// where it was to find out whether a limit is real.
func TestUnsentAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, append(perMinute(60), pacer.Limit{Key: "hour", Max: 2, Window: time.Hour}))
		began := time.Now()
		for used := range 3 {
			for range 100 {
				acquire(t, p, message).Done(agentmessaging.AttemptOutcome{})
			}
			for _, l := range p.State().Limits {
				assert.Equal(t, used, l.Used)
			}
			acquire(t, p, message).Done(agentmessaging.AttemptOutcome{Sent: true}) // its fate is unknown: it counts
		}
		assert.Less(t, time.Since(began), 3*time.Second)
	})
}

// TestUncountedCalls: no limit counts them (interface 4), so that only their own
// refusals hold them back.
func TestUncountedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(1))
		var permits []agentmessaging.Permit
		for range 100 {
			permits = append(permits, acquire(t, p, status))
		}
		permits[0].Done(tooMany("proxy", time.Minute))
		acquire(t, p, message)
		began := time.Now()
		acquire(t, p, status)
		assert.Equal(t, time.Minute, time.Since(began))
	})
}
