package pacer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// fill sends for so long as many messages as may go, of which none is answered.
func fill(t *testing.T, p *pacer.Pacer, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		acquire(t, p, patient())
	}
}

// level is that of the first limit.
func level(p *pacer.Pacer) float64 { return p.State().Limits[0].Level }

// TestLevel is what a refusal teaches, and how it is forgotten.
func TestLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		fill(t, p, 2*time.Minute)
		refused, underWay := acquire(t, p, patient()), acquire(t, p, patient())
		refused.Done(tooMany("", 15*time.Second))
		held := level(p)
		assert.InDelta(t, 44, held, 1, "as many as in the window that ends with the wait")
		underWay.Done(tooMany("", 15*time.Second))
		assert.Equal(t, held, level(p), "a call that was under way teaches nothing")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, held, level(p), "it holds")
		time.Sleep(3 * time.Minute / 4)
		assert.InDelta(t, 1.225*held, level(p), 0.1, "it climbs")
		time.Sleep(5 * time.Minute / 4)
		assert.Equal(t, 60.0, level(p))
		acquire(t, p, message).Done(tooMany("", 15*time.Second))
		assert.Equal(t, 30.0, level(p), "never more than half at once")
		fill(t, p, 10*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", time.Second))
		held = level(p)
		acquire(t, p, patient()).Done(tooMany("", time.Second))
		assert.Equal(t, held, level(p), "a cut has two turns to work")
		fill(t, p, time.Minute)
		acquire(t, p, patient()).Done(tooMany("", time.Second))
		assert.Less(t, level(p), 0.95*held, "the next one is deeper")
		p = newPacer(t, perMinute(60))
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", 4*time.Second))
		assert.InDelta(t, 55.3, level(p), 0.8, "as many as in that window, also when they are nearly all")
	})
}

// TestARaisedLimit is looked for after a quarter of an hour of use without a
// refusal; and less often where it is refused.
func TestARaisedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		fill(t, p, 10*time.Minute)
		time.Sleep(30 * time.Second)
		fill(t, p, 15*time.Minute)
		assert.Equal(t, 60.0, level(p), "not without a break")
		for _, patience := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
			fill(t, p, 3*time.Minute/2)
			assert.InDelta(t, 66, level(p), 0.1)
			acquire(t, p, patient()).Done(tooMany("", time.Second))
			assert.InDelta(t, 59.5, level(p), 0.6, "back to what held")
			fill(t, p, patience+2*time.Minute)
			assert.Equal(t, 60.0, level(p), "not while it is lower than was told")
			time.Sleep(20 * time.Minute)
			fill(t, p, patience)
			assert.Equal(t, 60.0, level(p))
		}
	})
}

// TestRefusalsThatTeachNothing about the level, though they close the limit.
func TestRefusalsThatTeachNothing(t *testing.T) {
	for name, test := range map[string]struct {
		after   time.Duration // since the start
		attempt agentmessaging.LimitedAttempt
		late    time.Duration // that the answer comes
		wait    time.Duration
	}{
		"in the first minute":    {30 * time.Second, patient(), 0, 20 * time.Second},
		"of a late call":         {2 * time.Minute, patient(), 31 * time.Second, 20 * time.Second},
		"of a single operation":  {2 * time.Minute, creation, 0, 20 * time.Second},
		"too long for the limit": {2 * time.Minute, patient(), 0, 2 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, pacer.PreviewLimits())
			fill(t, p, test.after)
			permit := acquire(t, p, test.attempt)
			time.Sleep(test.late)
			permit.Done(tooMany("", test.wait))
			for i, l := range p.State().Limits {
				assert.EqualValues(t, pacer.PreviewLimits()[i].Max, l.Level, "%s: %s", name, l.Key)
			}
			_, wait := ask(t, p, test.attempt)
			assert.InDelta(t, test.wait, wait, float64(2*time.Second), name)
		})
	}
}
