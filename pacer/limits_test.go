package pacer_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// TestNeverMoreThanTheLimit is the property that everything else rests on:
// whoever asks when, no window holds more calls than its limit, counted from any
// moment as they arrive, and most of it is used.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := loadsim.Scenario{
				Model: loadsim.Log, Seed: seed, Span: 5 * time.Minute, Processes: 1 + random.IntN(4), Latency: 20 * time.Millisecond,
				Limits: []pacer.Limit{
					{Max: 1 + random.IntN(80), Window: time.Minute},
					{Max: 1 + random.IntN(10), Window: 20 * time.Second, Counts: pacer.CountsAgentCreations},
				},
				Loads: []loadsim.Load{
					{Class: loadsim.Interactive, PerMinute: 1 + 50*random.Float64()},
					{Class: loadsim.Interactive, PerMinute: 1 + 20*random.Float64(), Call: loadsim.CreateAgent},
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

// TestLongLimits: Max calls, one that finds out, and from then on as many calls
// in each period without another refusal. A limit that the service does not have
// is not kept: each time one call finds out, and the others wait ten seconds.
func TestLongLimits(t *testing.T) {
	one, eight := loadsim.Load{Workers: []int{1}}, loadsim.Load{Workers: []int{8}}
	seldom := loadsim.Load{Class: loadsim.Interactive, PerMinute: 0.07}
	rarely := loadsim.Load{Class: loadsim.Interactive, PerMinute: 0.05}
	for _, test := range []struct {
		model             loadsim.Model
		load              loadsim.Load
		others            []pacer.Limit
		given, real       int
		span              time.Duration
		accepted, refused int
	}{
		{loadsim.FromUse, eight, nil, 3, 3, 10 * time.Hour, 30, 1},
		{loadsim.FromUse, eight, nil, 3, 1000, time.Minute, 19, 0},
		{loadsim.Bucket, seldom, nil, 4, 4, 100 * time.Hour, 397, 29},
		{loadsim.Fixed, rarely, nil, 3, 3, 1000 * time.Hour, 2978, 16}, // a slower period is not kept to
		{loadsim.Bucket, one, perMinute(600), 50, 50, 10 * time.Hour, 530, 2},
		{loadsim.Fixed, one, perMinute(600), 50, 40, 10 * time.Hour, 400, 10}, // fewer than the pacer was given
		{loadsim.Fixed, one, perMinute(600), 40, 50, 10 * time.Hour, 500, 10}, // more
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := func(hourly int) []pacer.Limit {
				return append(test.others, pacer.Limit{Max: hourly, Window: time.Hour})
			}
			m := loadsim.Run(loadsim.Scenario{
				Model: test.model, Span: test.span, Processes: 1, Loads: []loadsim.Load{test.load}, Replies: time.Second,
				Limits: limits(test.given), Real: limits(test.real),
			}).Measure(0, test.span)
			assert.InEpsilon(t, test.accepted, m.Accepted, 0.01, "%+v", test)
			assert.InDelta(t, test.refused, m.Refused, float64(test.refused)/4, "%+v", test) // in no fixed order
		})
	}
}

// fill sends as many messages as may go during that time.
func fill(t *testing.T, p *pacer.Pacer, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		acquire(t, p, patient()).Done(accepted)
	}
}

// level returns the level of the first limit.
func level(p *pacer.Pacer) float64 { return p.State().Limits[0].Level }

// TestLevel: a refusal lowers the level, which climbs again later.
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
