package pacer_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

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
