package loadsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// at is a call, and how long the rule would have it wait; 0 means accepted.
type at struct{ now, wait time.Duration }

func TestRules(t *testing.T) {
	t.Parallel()
	const s = time.Second
	most := func(n int) *pacer.Limit { return &pacer.Limit{Max: n, Window: time.Minute} }
	for name, tt := range map[string]struct {
		rule  Rule
		calls []at
	}{
		"fixed":                {Fixed(most(2)), []at{{50 * s, 0}, {50 * s, 0}, {51 * s, 9 * s}, {60 * s, 0}, {119 * s, 0}, {119 * s, s}}},
		"fixed, idle for long": {Fixed(most(1)), []at{{0, 0}, {1000 * s, 0}, {1001 * s, 19 * s}}},
		"from first use":       {FromUse(most(2)), []at{{50 * s, 0}, {51 * s, 0}, {52 * s, 58 * s}, {110 * s, 0}}},
		"sliding log":          {Log(most(2)), []at{{0, 0}, {30 * s, 0}, {40 * s, 20 * s}, {60 * s, 0}, {61 * s, 29 * s}, {90 * s, 0}}},
		"token bucket":         {Bucket(most(2)), []at{{0, 0}, {0, 0}, {0, 30 * s}, {30 * s, 0}, {31 * s, 29 * s}, {600 * s, 0}, {600 * s, 0}, {600 * s, 30 * s}}},
		// 4 calls in the minute before: 2 of them still weigh at half time.
		"sliding counter":       {Counter(most(4)), []at{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 75*s + 1}, {60 * s, 15*s + 1}, {75*s + 1, 0}, {76 * s, 14*s + 1}, {90*s + 1, 0}}},
		"sliding counter, idle": {Counter(most(1)), []at{{0, 0}, {59 * s, 61*s + 1}, {120 * s, 0}}},
	} {
		for i, call := range tt.calls {
			got := tt.rule.wait(call.now)
			assert.Equal(t, call.wait, got, "%s: call %d at %s", name, i+1, call.now)
			if got == 0 {
				tt.rule.spend(call.now)
			}
		}
	}
}

func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	s := Model(Fixed).service([]pacer.Limit{{Max: 3, Window: time.Minute}, {Max: 2, Window: time.Hour, Counts: pacer.CountsWarmUps}})
	assert.Zero(t, s.call(spec.WarmUp, 0))
	assert.Zero(t, s.call(spec.WarmUp, 0))
	assert.Equal(t, time.Hour, s.call(spec.WarmUp, 0))
	assert.Zero(t, s.call(spec.SendMessage, 0), "the refused call has spent nothing")
	assert.Equal(t, time.Minute, s.call(spec.SendMessage, 0))
	assert.Equal(t, 3*10, s.allowed(2*time.Hour, 2*time.Hour, 2*time.Hour+10*time.Minute))
}
