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

// TestNeverMoreThanTheLimit is the property that everything else rests on:
// whoever asks when, no window holds more calls than its limit, counted from any
// moment as they arrive, and most of it is used. After 16 windows the pacer would try whether
// more is allowed.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := traffic.Scenario{
				Model: traffic.Log, Seed: seed, Span: 5 * time.Minute, Processes: 1 + random.IntN(4), Latency: 20 * time.Millisecond,
				Limits: []pacer.Limit{
					{Max: 1 + random.IntN(80), Window: time.Minute},
					{Max: 1 + random.IntN(10), Window: 20 * time.Second, Counts: pacer.CountsAgentCreations},
				},
				Loads: []traffic.Load{
					{Class: traffic.Interactive, PerMinute: 1 + 50*random.Float64()},
					{Class: traffic.Interactive, PerMinute: 1 + 20*random.Float64(), Attempt: creation},
					{Workers: []int{1, 2, 3, 4}},
				},
			}
			if s.Processes > 1 {
				s.Store = traffic.NewStore()
				s.Store.Away = time.Duration(random.IntN(20)) * time.Millisecond
			}
			m := traffic.Run(s).Measure(time.Minute, s.Span)
			assert.Zero(t, m.Refused, "seed %d", seed)
			assert.Greater(t, m.Used, 0.8, "seed %d: %d of %+v", seed, m.Accepted, s.Limits)
		})
	}
}

// TestBurst of some calls at first, and up to 9 after quiet.
func TestBurst(t *testing.T) {
	for most, want := range map[int][2]int{60: {2, 9}, 600: {3, 9}, 30: {2, 4}, 12: {2, 2}, 3: {2, 2}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(most))
			assert.Equal(t, want[0], use(t, p, message), "%d a minute", most)
			time.Sleep(10 * time.Minute)
			assert.Equal(t, want[1], use(t, p, message), "%d a minute", most)
		})
	}
}

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

// TestLongLimits: Max calls, one that finds out, and from then on as many calls
// in each period without another refusal. A limit that the service does not have
// is not kept: each time one call finds out, and the others wait ten seconds.
func TestLongLimits(t *testing.T) {
	one, eight := traffic.Load{Workers: []int{1}}, traffic.Load{Workers: []int{8}}
	seldom := traffic.Load{Class: traffic.Interactive, PerMinute: 0.07}
	rarely := traffic.Load{Class: traffic.Interactive, PerMinute: 0.05}
	often := traffic.Load{Class: traffic.Interactive, PerMinute: 0.5}
	for _, test := range []struct {
		model             traffic.Model
		load              traffic.Load
		beside            []pacer.Limit
		told, real        int
		span              time.Duration
		accepted, refused int
	}{
		{traffic.FromUse, eight, nil, 3, 3, 10 * time.Hour, 30, 1},
		{traffic.FromUse, eight, nil, 3, 1000, time.Minute, 19, 0},
		{traffic.Fixed, seldom, nil, 4, 4, 300 * time.Hour, 1195, 4}, // pauses in between
		{traffic.Bucket, seldom, nil, 4, 4, 100 * time.Hour, 397, 29},
		{traffic.Log, often, nil, 3, 3, 100 * time.Hour, 299, 43},
		{traffic.Fixed, rarely, nil, 3, 3, 1000 * time.Hour, 2978, 16}, // a slower period is not kept to
		{traffic.Bucket, one, perMinute(600), 50, 50, 10 * time.Hour, 530, 2},
		{traffic.Log, one, perMinute(600), 50, 50, 10 * time.Hour, 500, 40},
		{traffic.Fixed, one, perMinute(600), 50, 40, 10 * time.Hour, 400, 10}, // less than was told
		{traffic.Fixed, one, perMinute(600), 40, 50, 10 * time.Hour, 500, 10}, // more
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := func(hourly int) []pacer.Limit {
				return append(test.beside, pacer.Limit{Max: hourly, Window: time.Hour})
			}
			m := traffic.Run(traffic.Scenario{
				Model: test.model, Span: test.span, Processes: 1, Loads: []traffic.Load{test.load}, Replies: time.Second,
				Limits: limits(test.told), Real: limits(test.real),
			}).Measure(0, test.span)
			assert.InEpsilon(t, test.accepted, m.Accepted, 0.01, "%+v", test)
			assert.InDelta(t, test.refused, m.Refused, float64(test.refused)/4, "%+v", test) // in no fixed order
		})
	}
}
