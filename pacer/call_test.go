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

// TestUnlimitedCalls: no limit counts them (interface 4).
func TestUnlimitedCalls(t *testing.T) {
	p := newPacer(t, perMinute(1))
	for range 100 {
		acquire(t, p, status).Done(tooMany("", time.Hour))
	}
	assert.True(t, p.CoolsDown())
}

// reporter is what the client asks of a permit beside Done.
type reporter interface {
	Waited() (limitKey string, wait time.Duration)
	Closed() (limitKey string, wait time.Duration)
}

func TestPermitReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		next := func() reporter { return acquire(t, p, patient()).(reporter) }
		wantWaited := func(permit reporter, wantKey string, want time.Duration) {
			key, wait := permit.Waited()
			assert.Equal(t, wantKey, key)
			assert.InDelta(t, want, wait, float64(time.Microsecond))
		}
		wantWaited(next(), "", 0)
		use(t, p, message)
		began := time.Now()
		wantWaited(next(), "minute", time.Since(began))
		permits := []reporter{next(), next(), next(), next()}
		for i, test := range []struct {
			outcome agentmessaging.AttemptOutcome
			key     string
			closed  time.Duration
		}{
			{tooMany("", 0), "", time.Second},                                // a refusal without Retry-After
			{tooMany("theirs\n", 5*time.Second), "theirs ", 5 * time.Second}, // one line
			{tooMany("theirs", 5*time.Second), "", 0},                        // no news
			{accepted, "", 0},
		} {
			permits[i].(agentmessaging.Permit).Done(test.outcome)
			key, closed := permits[i].Closed()
			assert.Equal(t, test.key, key)
			assert.Equal(t, test.closed, closed)
		}
	})
}
