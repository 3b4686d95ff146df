package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a call, and how long the window would have it wait; 0 means accepted.
type at struct{ now, wait time.Duration }

func TestWindows(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		window window
		calls  []at
	}{
		"fixed":                {fixed.window(&size{2, time.Minute}), []at{{50 * s, 0}, {50 * s, 0}, {51 * s, 9 * s}, {60 * s, 0}, {119 * s, 0}, {119 * s, s}}},
		"fixed, idle for long": {fixed.window(&size{1, time.Minute}), []at{{0, 0}, {1000 * s, 0}, {1001 * s, 19 * s}}},
		"from first use":       {fromUse.window(&size{2, time.Minute}), []at{{50 * s, 0}, {51 * s, 0}, {52 * s, 58 * s}, {110 * s, 0}}},
		"sliding log":          {log.window(&size{2, time.Minute}), []at{{0, 0}, {30 * s, 0}, {40 * s, 20 * s}, {60 * s, 0}, {61 * s, 29 * s}, {90 * s, 0}}},
		"token bucket":         {bucket.window(&size{2, time.Minute}), []at{{0, 0}, {0, 0}, {0, 30 * s}, {30 * s, 0}, {31 * s, 29 * s}, {600 * s, 0}, {600 * s, 0}, {600 * s, 30 * s}}},
		// 4 calls in the minute before: 2 of them still weigh at half time.
		"sliding counter":       {counter.window(&size{4, time.Minute}), repeat(4, 0, at{0, 75*s + 1}, at{60 * s, 15*s + 1}, at{75*s + 1, 0}, at{76 * s, 14*s + 1}, at{90*s + 1, 0})},
		"sliding counter, idle": {counter.window(&size{1, time.Minute}), []at{{0, 0}, {59 * s, 61*s + 1}, {120 * s, 0}}},
	} {
		for i, call := range tt.calls {
			got := tt.window.wait(call.now)
			assert.Equal(t, call.wait, got, "%s: call %d at %s", name, i+1, call.now)
			if got == 0 {
				tt.window.spend(call.now)
			}
		}
	}
}

// repeat is n accepted calls at now, and then rest.
func repeat(n int, now time.Duration, rest ...at) []at {
	calls := make([]at, n, n+len(rest))
	for i := range calls {
		calls[i].now = now
	}
	return append(calls, rest...)
}

// A caller who asks at the announced moment is accepted then, and would have
// been refused just before.
func TestWaitsAreExact(t *testing.T) {
	t.Parallel()
	for _, m := range models {
		w, now := m.window(&size{60, time.Minute}), 20*time.Second
		for range 1000 {
			if wait := w.wait(now); wait > 0 {
				assert.Positive(t, w.wait(now+wait-2), "%s: less would have done", m)
				now += wait
			}
			assert.Zero(t, w.wait(now), "%s: refused at the moment it named", m)
			w.spend(now)
			now += 7 * time.Millisecond
		}
	}
}

func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	s := fixed.perMinute(3)
	s.limits = append(s.limits, fixed.window(&size{1, time.Hour}))
	assert.Zero(t, s.call(0))
	assert.Equal(t, time.Hour, s.call(0))
	assert.Equal(t, 2, s.limits[0].(*fixedWindow).max-s.limits[0].(*fixedWindow).used, "the refused call has spent nothing")
	assert.Equal(t, 1, s.allowed(2*time.Hour, 2*time.Hour, 3*time.Hour))
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, m := range models {
		assert.InDelta(t, 600, m.perMinute(60).allowed(0, 2*time.Minute, 12*time.Minute), 10, m)
	}
}
