package pacer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// rejection is an attempt that is refused, with a Retry-After.
type rejection struct {
	attempt agentmessaging.LimitedAttempt
	wait    time.Duration
}

const s, h = time.Second, time.Hour

// heldBack are refusals in turn, and how long each kind of call then waits.
var heldBack = []struct {
	key                                string
	refused                            []rejection
	message, creation, withKey, warmUp time.Duration
}{
	{"", []rejection{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"agents_per_day", []rejection{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"key_day", []rejection{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"key_day", []rejection{{creation, 30 * s}}, 0, 30 * s, 30 * s, 0},
	{"key_minute", []rejection{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"agent_create_ip_minute", []rejection{{creation, 30 * s}}, 0, 30 * s, 30 * s, 0},
	{"", []rejection{{message, 8 * h}}, 8 * h, 8 * h, 8 * h, 8 * h},
	{"", []rejection{{creation, 8 * h}, {message, 3 * h}}, 3 * h, 8 * h, 8 * h, 3 * h}, // a wrong guess costs one message
	{"", []rejection{{warmUp, 60 * s}, {warmUp, h}, {warmUp, 0}}, 0, 0, 0, h},
	{"", []rejection{{warmUp, 0}}, 0, 0, 0, s},
	{"", []rejection{{withKey, h}}, 0, 0, h, 0},
	{"", []rejection{{withKey, h}, {creation, 2 * h}}, 0, 2 * h, 2 * h, 0},
	{"", []rejection{{withKey, h}, {creation, h / 2}}, 0, h / 2, h, 0},
}

// TestWhoIsHeldBack by refusals: the calls that count as what was refused, or as
// more, until the latest Retry-After has passed.
func TestWhoIsHeldBack(t *testing.T) {
	for _, test := range heldBack {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, pacer.PreviewLimits())
			acquire(t, p, message)
			time.Sleep(time.Minute)
			var permits []agentmessaging.Permit
			for _, refused := range test.refused {
				permits = append(permits, acquire(t, p, refused.attempt))
			}
			for i, refused := range test.refused {
				permits[i].Done(tooMany(test.key, refused.wait))
			}
			for attempt, want := range map[agentmessaging.LimitedAttempt]time.Duration{
				message: test.message, creation: test.creation, withKey: test.withKey, warmUp: test.warmUp,
			} {
				_, wait := ask(t, p, attempt)
				assert.InDelta(t, (want + s/2).Seconds(), wait.Seconds(), 0.51, "%+v: %s", test, attempt.Path) // and a turn
				if want > 90*s {
					assert.Equal(t, test.key, wantRefusal(t, p, t.Context(), attempt).LimitKey, "the service's word")
				}
			}
		})
	}
}

// TestLongRefusalsAreTried each hour. LimitState shows the service's Retry-After.
func TestLongRefusalsAreTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := newPacer(t, pacer.PreviewLimits()), time.Now()
		acquire(t, p, message).Done(tooMany("", 24*h))
		wantRefusal(t, p, t.Context(), message)
		assert.Equal(t, 24*h, p.State().Limits[0].ClosedFor)
		for hours := range 2 {
			looks := acquire(t, p, patient())
			assert.InDelta(t, hours+1, time.Since(begin).Hours(), 0.01)
			looks.Done(tooMany("", 24*h))
		}
		acquire(t, p, patient()).Done(accepted)
		acquire(t, p, patient())
		assert.InDelta(t, 3, time.Since(begin).Hours(), 0.01, "it is open again")
	})
}
