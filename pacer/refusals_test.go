package pacer_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/traffic"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// names are what a service may call its limits, of which one is spent.
func names(spent int, random *rand.Rand) map[string]func() string {
	limits := pacer.PreviewLimits()
	always := func(name string) func() string { return func() string { return name } }
	return map[string]func() string{
		"ours":         always(limits[spent].Key),
		"others":       always("limiter-" + limits[spent].Key),
		"none":         always(""),
		"one for all":  always("rate"),
		"swapped":      always(limits[(spent+3)%len(limits)].Key),
		"all the same": always(limits[0].Key),
		"changing":     func() string { return limits[random.IntN(len(limits))].Key },
	}
}

// TestNeverPunishesTheInnocent: whatever the service calls its limits, and
// whichever of them is spent, a call that it would have accepted waits no longer
// than one Retry-After of a minute limit.
func TestNeverPunishesTheInnocent(t *testing.T) {
	for spent, limit := range pacer.PreviewLimits() {
		for seed := range uint64(6) {
			random := rand.New(rand.NewPCG(seed, uint64(spent)))
			for naming, name := range names(spent, random) {
				synctest.Test(t, func(t *testing.T) {
					longest := playInnocent(t, limit, name, random)
					require.LessOrEqual(t, longest, 61*time.Second, "%s is spent, names: %s, seed %d", limit.Key, naming, seed)
				})
			}
		}
	}
}

// playInnocent is how long a call waits at most that would be accepted by a
// service of which one limit is spent for a while.
func playInnocent(t *testing.T, spent pacer.Limit, name func() string, random *rand.Rand) (longest time.Duration) {
	p := newPacer(t, pacer.PreviewLimits())
	opens := time.Now().Add(time.Minute + 1 + time.Duration(random.Int64N(int64(spent.Window))))
	for range 120 {
		time.Sleep(20*time.Second + time.Duration(random.Int64N(int64(time.Minute))))
		attempt := []agentmessaging.LimitedAttempt{creation, byokSet, withKey, warmUp, message}[min(random.IntN(15), 4)]
		permit, wait := ask(t, p, attempt)
		left := time.Until(opens)
		switch accepts := left <= 0 || !traffic.Counts(spent, attempt); {
		case permit == nil && accepts && !usedUp(p, attempt):
			longest = max(longest, wait)
		case permit != nil && accepts:
			permit.Done(accepted)
		case permit != nil:
			permit.Done(tooMany(name(), (left + time.Second - 1).Truncate(time.Second)))
		}
	}
	return longest
}

// usedUp reports whether the pacer's own count keeps the call back.
func usedUp(p *pacer.Pacer, attempt agentmessaging.LimitedAttempt) bool {
	for _, l := range p.State().Limits {
		counted := l.Window >= time.Hour && l.ClosedBy == "used up"
		if traffic.Counts(l.Limit, attempt) && (counted || float64(l.Used) >= 0.9*l.Level) {
			return true
		}
	}
	return false
}

// told is an attempt that is refused, with a Retry-After.
type told struct {
	attempt agentmessaging.LimitedAttempt
	wait    time.Duration
}

const s, h = time.Second, time.Hour

// heldBack are refusals in turn, and how long each kind of call then waits.
var heldBack = []struct {
	key                                string
	refused                            []told
	message, creation, withKey, warmUp time.Duration
}{
	{"", []told{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"agents_per_day", []told{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"key_day", []told{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"key_day", []told{{creation, 30 * s}}, 0, 30 * s, 30 * s, 0},
	{"key_minute", []told{{creation, 8 * h}}, 0, 8 * h, 8 * h, 0},
	{"agent_create_ip_minute", []told{{creation, 30 * s}}, 0, 30 * s, 30 * s, 0},
	{"", []told{{message, 8 * h}}, 8 * h, 8 * h, 8 * h, 8 * h},
	{"", []told{{creation, 8 * h}, {message, 3 * h}}, 3 * h, 8 * h, 8 * h, 3 * h}, // a wrong guess costs one message
	{"", []told{{warmUp, 60 * s}, {warmUp, h}, {warmUp, 0}}, 0, 0, 0, h},
	{"", []told{{warmUp, 0}}, 0, 0, 0, s},
	{"", []told{{withKey, h}}, 0, 0, h, 0},
	{"", []told{{withKey, h}, {creation, 2 * h}}, 0, 2 * h, 2 * h, 0},
	{"", []told{{withKey, h}, {creation, h / 2}}, 0, h / 2, h, 0},
}

// TestWhoIsHeldBack by refusals: the calls that count as what was refused, or as
// more, until the last moment that was told.
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
