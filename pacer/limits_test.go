package pacer_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// TestNeverMoreThanTheLimit checks the property on which everything else rests: with random
// limits, processes and calls, no window holds more calls than its limit, counted from any
// moment as they arrive at the service, and most of the limit is used.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := loadsim.Scenario{
				Model: loadsim.Sliding, Seed: seed, Span: 3 * time.Minute, Processes: 1 + random.IntN(4), Latency: 20 * time.Millisecond,
				Limits: []pacer.Limit{
					{Max: 1 + random.IntN(80), Window: time.Minute},
					{Max: 1 + random.IntN(10), Window: 20 * time.Second, Counts: pacer.CountsAgentCreations},
				},
				Loads: []loadsim.Load{
					{Class: loadsim.Interactive, PerMinute: 1 + 50*random.Float64()},
					{Class: loadsim.Interactive, PerMinute: 1 + 20*random.Float64(), Call: spec.CreateAgent},
					{Workers: []int{1, 2, 3, 4}},
				},
			}
			if s.Processes > 1 {
				s.Store = loadsim.NewStore()
				s.Store.Away = time.Duration(random.IntN(20)) * time.Millisecond
			}
			m := loadsim.Run(s).Measure(time.Minute, s.Span)
			assert.Zero(t, m.Refused, "seed %d", seed)
			assert.Greater(t, m.Used, 0.8, "seed %d: %d of %+v", seed, m.Accepted, s.Limits)
		})
	}
}

func TestBurstAtFirstAndAfterQuiet(t *testing.T) {
	for name, want := range map[string]struct{ most, first, afterQuiet int }{
		"a large limit allows three at first and nine after quiet": {most: 600, first: 3, afterQuiet: 9},
		"the preview's limit allows as many after quiet":           {most: 60, first: 2, afterQuiet: 9},
		"a lower limit allows a sixth of it at most":               {most: 30, first: 2, afterQuiet: 4},
		"a tiny limit allows two":                                  {most: 3, first: 2, afterQuiet: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(want.most))
			assert.Equal(t, want.first, use(t, p, message), "%s: at first", name)
			time.Sleep(10 * time.Minute)
			assert.Equal(t, want.afterQuiet, use(t, p, message), "%s: after quiet", name)
		})
	}
}

// TestLongLimits checks that in each period as many calls go as the service allows, and then
// few are refused: a trial or, if the service allows another number than the pacer knows,
// one call of each caller. A limit that the service does not have costs some seconds.
func TestLongLimits(t *testing.T) {
	const callers, hours = 8, 5
	for name, test := range map[string]struct {
		model                loadsim.Model
		given, real          int // calls an hour
		span                 time.Duration
		least, most, refused int // calls: accepted at least and at most, and refused at most
	}{
		"3 an hour":                              {model: loadsim.Fixed, given: 3, real: 3, span: hours * h, least: 3 * hours, most: 3 * hours, refused: hours},
		"fewer than the pacer was given":         {model: loadsim.Aligned, given: 50, real: 40, span: hours * h, least: 40 * hours, most: 40 * hours, refused: callers * hours},
		"more than the pacer was given":          {model: loadsim.Aligned, given: 40, real: 50, span: hours * h, least: 50 * hours, most: 50 * hours, refused: callers * hours},
		"a limit that the service does not have": {model: loadsim.Fixed, given: 3, real: 1000, span: 10 * s, least: 200, most: 1000},
		"a bucket of 50, refilled by 50 an hour": {model: loadsim.Bucket, given: 50, real: 50, span: hours * h, least: 50*(hours+1) - 10, most: 50 * (hours + 1), refused: 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := loadsim.Run(loadsim.Scenario{
				Model: test.model, Span: test.span, Processes: 1, Loads: []loadsim.Load{{Workers: []int{callers}}}, Latency: 40 * time.Millisecond,
				Limits: []pacer.Limit{{Max: test.given, Window: h}}, Real: []pacer.Limit{{Max: test.real, Window: h}},
			}).Measure(0, test.span)
			assert.GreaterOrEqual(t, m.Accepted, test.least, "%s: accepted calls", name)
			assert.LessOrEqual(t, m.Accepted, test.most, "%s: accepted calls", name)
			assert.LessOrEqual(t, m.Refused, test.refused, "%s: refused calls", name)
		})
	}
}

// It does not matter what became of other calls that were under way. A refusal that a shorter
// limit explains does not count for a long one.
func TestLongLimitIsTriedWithOneCallAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, []pacer.Limit{{Key: "minute", Max: 1000, Window: time.Minute}, {Key: "hour", Max: 2200, Window: h}})
		refused, unsent := acquire(t, p, message), acquire(t, p, message)
		refused.Done(tooMany("hour", 10*time.Minute))
		unsent.Done(agentmessaging.AttemptOutcome{})
		assert.Zero(t, limitOf(p, "hour").Used, "the refusal has started the count again, without the unsent call")
		time.Sleep(11 * time.Minute)
		assert.Equal(t, 1, use(t, p, message))
		fill(t, p, 2*time.Minute)
		time.Sleep(50 * time.Second) // most of the hour's limit is used, and little of the minute's
		used := limitOf(p, "hour").Used
		acquire(t, p, patient()).Done(tooMany("minute", 10*s))
		assert.Equal(t, used+1, limitOf(p, "hour").Used)
	})
}

// fill sends as many messages as may go in a time.
func fill(t *testing.T, p *pacer.Pacer, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		acquire(t, p, patient()).Done(accepted)
	}
}

// level returns the level of the limit of perMinute.
func level(p *pacer.Pacer) float64 { return limitOf(p, "minute").Level }

// TestHowFarRefusalsLowerTheLevel: of two calls under way, only the refusal of one counts.
func TestHowFarRefusalsLowerTheLevel(t *testing.T) {
	for to, tt := range map[string]struct {
		busy, retryAfter time.Duration // as many calls as may go went for busy
		refusals         int           // one a minute
		want             float64
	}{
		"as many as in the window that ends with the wait": {busy: 2 * time.Minute, refusals: 1, retryAfter: 15 * s, want: 45},
		"not at all, if that window is 85 % full":          {busy: 2 * time.Minute, refusals: 1, retryAfter: 9 * s, want: 60},
		"a half at once, if fewer went":                    {refusals: 1, retryAfter: 15 * s, want: 30},
		"a quarter at least":                               {refusals: 4, retryAfter: 15 * s, want: 15},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(60))
			time.Sleep(2 * time.Minute)
			fill(t, p, tt.busy)
			for range tt.refusals {
				refused, underWay := acquire(t, p, patient()), acquire(t, p, patient())
				refused.Done(tooMany("", tt.retryAfter))
				lowered := level(p)
				underWay.Done(tooMany("", tt.retryAfter))
				assert.Equal(t, lowered, level(p), "%s: the second refusal", to)
				time.Sleep(time.Minute)
			}
			assert.InDelta(t, tt.want, level(p), 0.1, to)
		})
	}
}

// TestLevelClimbsAgain: after a refusal for 15 s the level holds for two windows, and then
// climbs by a half in each.
func TestLevelClimbsAgain(t *testing.T) {
	for after, want := range map[time.Duration]float64{135 * s: 30, 165 * s: 30 * math.Sqrt(1.5), 240 * s: 60} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, perMinute(60))
			time.Sleep(2 * time.Minute) // a refusal in the first minute teaches nothing
			acquire(t, p, message).Done(tooMany("", 15*s))
			time.Sleep(after)
			assert.InDelta(t, want, level(p), 0.1, "after %v", after)
		})
	}
}

// spaced returns a pacer for 60 calls a minute after refusals of a nearly full window. Each
// comes twice, but the first had no time to work, so the second is ignored.
func spaced(t *testing.T, refusals int) *pacer.Pacer {
	p := newPacer(t, perMinute(60))
	fill(t, p, 2*time.Minute)
	for range refusals {
		acquire(t, p, patient()).Done(tooMany("", s))
		acquire(t, p, patient()).Done(tooMany("", s))
		fill(t, p, 5*s)
	}
	return p
}

// distance returns the seconds between two calls. The first is answered after some time.
func distance(t *testing.T, p *pacer.Pacer, answered time.Duration) float64 {
	first, began := acquire(t, p, patient()), time.Now()
	time.AfterFunc(answered, func() { first.Done(accepted) })
	acquire(t, p, patient()).Done(accepted)
	return time.Since(began).Seconds()
}

// TestRefusalsOfANearlyFullWindowSpaceTheCalls: a guard of 0.4 s a window becomes 1.8 times as
// large with each refusal.
func TestRefusalsOfANearlyFullWindowSpaceTheCalls(t *testing.T) {
	for refusals, guard := range []float64{0.4, 0.4 * 1.8, 0.4 * 1.8 * 1.8} {
		synctest.Test(t, func(t *testing.T) {
			p := spaced(t, refusals)
			assert.InDelta(t, 1+guard/60, distance(t, p, 10*s), 0.001, "after %d refusals", refusals)
		})
	}
}

// Such refusals also end the burst after quiet. Calls that pass for an hour take most of the
// distance back.
func TestSpacedCallsComeCloserAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := spaced(t, 4)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, 1, use(t, p, message), "after quiet")
		fill(t, p, time.Hour)
		assert.InDelta(t, 1.013, distance(t, p, 10*s), 0.003)
	})
}

// A call that is answered has certainly reached the service. So the next call may go, which would
// otherwise wait for 1.07 s. If it is refused nevertheless, others use the limit, or the limit is
// lower: the level becomes the number of calls in the last minute.
func TestCallGoesEarlyAfterAnAnswer(t *testing.T) {
	for answered, want := range map[time.Duration]float64{30 * time.Millisecond: 1.03, 900 * time.Millisecond: 1.07} {
		synctest.Test(t, func(t *testing.T) {
			p := spaced(t, 4)
			assert.InDelta(t, want, distance(t, p, answered), 0.005, "answered after %v", answered)
			acquire(t, p, patient()).Done(tooMany("", s))
			assert.InDelta(t, 57, level(p), 1, "answered after %v", answered)
		})
	}
}

// A service that refuses every fifth call, whatever came before, slows the calls down, but
// no call waits longer than the default policy allows.
func TestRefusalsWithoutACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPacer(t, perMinute(60)), time.Now()
		for range 60 {
			for range 4 {
				acquire(t, p, message).Done(accepted)
			}
			acquire(t, p, message).Done(tooMany("overload", time.Second))
		}
		assert.Less(t, time.Since(began), 15*time.Minute)
	})
}

// A refusal that says little about the limit closes it, but does not lower the level.
func TestRefusalsThatTeachNothing(t *testing.T) {
	for name, test := range map[string]struct {
		attempt            agentmessaging.LimitedAttempt
		sentAt, retryAfter time.Duration // sentAt is the time since the start
		underWay           time.Duration // until its answer
	}{
		"in the first minute":    {attempt: patient(), sentAt: 30 * s, retryAfter: 20 * s},
		"of a late call":         {attempt: patient(), sentAt: 120 * s, underWay: 31 * s, retryAfter: 20 * s},
		"of a single operation":  {attempt: creation, sentAt: 120 * s, retryAfter: 20 * s},
		"too long for the limit": {attempt: patient(), sentAt: 120 * s, retryAfter: 62 * s},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(t, pacer.PreviewLimits())
			fill(t, p, test.sentAt)
			permit := acquire(t, p, test.attempt)
			time.Sleep(test.underWay)
			permit.Done(tooMany("", test.retryAfter))
			for i, l := range p.State().Limits {
				assert.EqualValues(t, pacer.PreviewLimits()[i].Max, l.Level, "%s: %s", name, l.Key)
			}
			_, wait := ask(t, p, test.attempt)
			assert.InDelta(t, test.retryAfter, wait, float64(2*s), "%s: the wait of the next call", name)
		})
	}
}

// Calls that were sent still count, waiting calls go by the new limits, and a learned level is
// forgotten.
func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(6))
		sent := use(t, p, message)
		w := waiting{pacer: p}
		for range 20 {
			w.enter(t.Context(), patient(), "patient")
		}
		begin := time.Now()
		require.NoError(t, p.SetLimits(perMinute(600)))
		w.group.Wait()
		assert.Less(t, time.Since(begin), 3*s)
		assert.Equal(t, sent+20, limitOf(p, "minute").Used)
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", 61*s)) // rounded up
		assert.Less(t, level(p), 600.0)
		assert.Error(t, p.SetLimits(nil))
		require.NoError(t, p.SetLimits(perMinute(300)))
		assert.Equal(t, 300.0, level(p))
	})
}

// Only the service knows when an hour starts again, so a new Max does not start it again.
func TestSetLimitsKeepsTheHour(t *testing.T) {
	hourly := func(n int) []pacer.Limit { return []pacer.Limit{{Key: "other", Max: n, Window: h}} }
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(60))
		acquire(t, p, message)
		require.NoError(t, p.SetLimits(hourly(2)))
		assert.Zero(t, limitOf(p, "other").Used, "of another limit")
		sent := use(t, p, message)
		require.NoError(t, p.SetLimits(hourly(1)))
		assert.Equal(t, sent, limitOf(p, "other").Used, "of the same limit with another Max")
	})
}

// New limits open all gates at once. A step that is under way, with the old limits, does not
// close them again. TestReopenedByAnotherProcess shows that they open in the store too.
func TestSetLimitsDuringAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		p := sharing(t, perMinute(60), store)
		acquire(t, p, message).Done(tooMany("day", 10*time.Hour))
		synctest.Wait()
		store.Away = 100 * time.Millisecond
		go acquire(t, p, message) // whose step takes 400 ms
		time.Sleep(300 * time.Millisecond)
		require.NoError(t, p.SetLimits(perMinute(61)))
		assert.Zero(t, limitOf(p, "minute").ClosedFor, "during the step")
		time.Sleep(150 * time.Millisecond)
		assert.Zero(t, limitOf(p, "minute").ClosedFor, "after the step")
		began := time.Now()
		acquire(t, p, message)
		assert.Less(t, time.Since(began), 5*time.Second, "the next call, which asks the store")
	})
}

// A process with waiting calls reads the store every ten minutes.
func TestReopenedByAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, begin := loadsim.NewStore(), time.Now()
		p, other := sharing(t, perMinute(60), store), sharing(t, perMinute(60), store)
		acquire(t, p, message).Done(tooMany("", time.Hour))
		synctest.Wait()
		time.AfterFunc(5*time.Minute, func() { assert.NoError(t, p.SetLimits(perMinute(61))) })
		acquire(t, other, patient())
		assert.InDelta(t, 10, time.Since(begin).Minutes(), 1)
	})
}

// TestWhoShares checks that processes with the same key and the same limits, whatever their
// Max, share a value. SetLimits takes a process to another, also while a step is under way.
func TestWhoShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := loadsim.NewStore()
		wantValues := func(want int, why string) {
			store.Values(func(values map[string]loadsim.Entry) { assert.Len(t, values, want, why) })
		}
		p := sharing(t, perMinute(60), store)
		acquire(t, p, message)
		acquire(t, sharing(t, perMinute(300), store), message)
		wantValues(1, "another Max")
		acquire(t, p, message)
		assert.Equal(t, 2, p.State().Processes)
		acquire(t, newPacer(t, perMinute(60), pacer.WithStore(store, "another key")), message)
		wantValues(2, "another key")
		store.Away = 100 * time.Millisecond
		go acquire(t, p, message)
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, p.SetLimits(pacer.PreviewLimits()))
		time.Sleep(time.Second)
		assert.Len(t, p.State().Limits, 7)
		wantValues(3, "other limits")
	})
}

const s, h = time.Second, time.Hour

// A refusal holds back the calls that spend at least the limits that the refused call spent,
// until the latest Retry-After has passed.
func TestWhoIsHeldBack(t *testing.T) {
	type waits = map[agentmessaging.LimitedAttempt]time.Duration
	type refusal struct {
		attempt agentmessaging.LimitedAttempt
		wait    time.Duration
	}
	for _, test := range []struct {
		rule, key string
		refused   []refusal
		want      waits // of all others: 0
	}{
		{"a creation, by name", "key_minute", []refusal{{creation, 8 * h}}, waits{creation: 8 * h, withKey: 8 * h}},
		{"a message", "", []refusal{{message, 8 * h}}, waits{message: 8 * h, creation: 8 * h, withKey: 8 * h, warmUp: 8 * h}},
		{"a wrong guess costs one message", "", []refusal{{creation, 8 * h}, {message, 3 * h}}, waits{message: 3 * h, creation: 8 * h, withKey: 8 * h, warmUp: 3 * h}},
		{"the latest counts", "", []refusal{{warmUp, 60 * s}, {warmUp, h}, {warmUp, 0}}, waits{warmUp: h}},
		{"a second at least", "", []refusal{{warmUp, 0}}, waits{warmUp: s}},
		{"a key, and a creation for longer", "", []refusal{{withKey, h}, {creation, 2 * h}}, waits{creation: 2 * h, withKey: 2 * h}},
		{"a key, and a creation for less", "", []refusal{{withKey, h}, {creation, h / 2}}, waits{creation: h / 2, withKey: h}},
	} {
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
			for _, attempt := range []agentmessaging.LimitedAttempt{message, creation, withKey, warmUp} {
				want := test.want[attempt]
				_, wait := ask(t, p, attempt)
				assert.True(t, want <= wait && wait <= want+s, "%s: %+v waits %v, and not %v and up to a second for its turn", test.rule, attempt, wait, want)
				if want > 90*s {
					assert.Equal(t, test.key, wantRefusal(t, p, t.Context(), attempt).LimitKey, test.rule)
				}
			}
		})
	}
}
