package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// at is a call, and how long the rule would have it wait; 0 means accepted.
type at struct{ now, wait time.Duration }

func TestRules(t *testing.T) {
	t.Parallel()
	const s = time.Second
	most := func(n int) *pacer.Limit { return &pacer.Limit{Max: n, Window: time.Minute} }
	for name, tt := range map[string]struct {
		rule  loadsim.Rule
		calls []at
	}{
		"fixed":                {loadsim.Fixed(most(2)), []at{{50 * s, 0}, {50 * s, 0}, {51 * s, 9 * s}, {60 * s, 0}, {119 * s, 0}, {119 * s, s}}},
		"fixed, idle for long": {loadsim.Fixed(most(1)), []at{{0, 0}, {1000 * s, 0}, {1001 * s, 19 * s}}},
		"from first use":       {loadsim.FromUse(most(2)), []at{{50 * s, 0}, {51 * s, 0}, {52 * s, 58 * s}, {110 * s, 0}}},
		"sliding log":          {loadsim.Log(most(2)), []at{{0, 0}, {30 * s, 0}, {40 * s, 20 * s}, {60 * s, 0}, {61 * s, 29 * s}, {90 * s, 0}}},
		"token bucket":         {loadsim.Bucket(most(2)), []at{{0, 0}, {0, 0}, {0, 30 * s}, {30 * s, 0}, {31 * s, 29 * s}, {600 * s, 0}, {600 * s, 0}, {600 * s, 30 * s}}},
		// 4 calls in the minute before: 2 of them still weigh at half time.
		"sliding counter":       {loadsim.Counter(most(4)), []at{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 75*s + 1}, {60 * s, 15*s + 1}, {75*s + 1, 0}, {76 * s, 14*s + 1}, {90*s + 1, 0}}},
		"sliding counter, idle": {loadsim.Counter(most(1)), []at{{0, 0}, {59 * s, 61*s + 1}, {120 * s, 0}}},
	} {
		for i, call := range tt.calls {
			got := tt.rule.Wait(call.now)
			assert.Equal(t, call.wait, got, "%s: call %d at %s", name, i+1, call.now)
			if got == 0 {
				tt.rule.Spend(call.now)
			}
		}
	}
}
