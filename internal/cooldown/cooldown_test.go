package cooldown

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

var reading = Attempt{Endpoint: spec.GetAgent, Left: 1, MaxWait: time.Minute}

// TestCoolDownOfAnUnlimitedCallIsFree: it takes no memory, nor the lock, for
// which it would wait here for ever. So does a nil one.
func TestCoolDownOfAnUnlimitedCallIsFree(t *testing.T) {
	held := New(nil, func() float64 { return 0 })
	held.mu.Lock()
	defer held.mu.Unlock()
	ctx := t.Context()
	for _, c := range []*CoolDown{held, nil} {
		var seat Seat // of a call
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			if _, _, err := c.Pass(ctx, reading, &seat); err != nil {
				t.Error(err)
			}
			c.Done(&seat, Outcome{Sent: true})
		}))
	}
}

// TestClasses: each endpoint has two of its own.
func TestClasses(t *testing.T) {
	seen := map[int]bool{}
	for _, e := range spec.Endpoints {
		for _, sets := range []bool{false, true} {
			class := classOf(e, sets)
			assert.False(t, seen[class], "%v", e)
			assert.Less(t, class, maxClasses)
			seen[class] = true
		}
	}
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// handClock is set by hand.
type handClock struct {
	RealClock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

// pass lets an attempt through, and then the time go on.
func (c *handClock) pass(t *testing.T, down *CoolDown, attempt Attempt, seat *Seat, after time.Duration) {
	t.Helper()
	_, _, err := down.Pass(t.Context(), attempt, seat)
	require.NoError(t, err)
	c.now = c.now.Add(after)
}

// TestCoolDownIsFastAgain once a caller has seen that it is over, and is begun
// by nothing but a 429.
func TestCoolDownIsFastAgain(t *testing.T) {
	clock, seat := &handClock{now: epoch}, &Seat{}
	c := New(clock, func() float64 { return 0 })
	clock.pass(t, c, reading, seat, 0)
	for _, sent := range []bool{false, true} {
		c.Done(seat, Outcome{Sent: sent, RetryAfter: time.Hour})
		assert.Zero(t, c.busy.Load())
	}
	c.Done(seat, Outcome{Refused: true, Sent: true, LimitKey: "k", RetryAfter: time.Hour})
	_, _, err := c.Pass(t.Context(), reading, seat)
	assert.Equal(t, &Refusal{LimitKey: "k", RetryAfter: time.Hour}, err, "longer than MaxWait")
	clock.now = clock.now.Add(time.Hour)
	clock.pass(t, c, reading, seat, 0)
	c.Done(&Seat{class: 9}, Outcome{Refused: true, LimitKey: "other", RetryAfter: time.Hour})
	c.Done(seat, Outcome{Sent: true})
	assert.EqualValues(t, 2, c.busy.Load(), "one is shut, and others may be about to wake up: they go in turn too")
	clock.now = clock.now.Add(patience)
	for i, busy := range []int32{1, 1, 0} {
		clock.pass(t, c, Attempt{Endpoint: spec.Status}, seat, []time.Duration{time.Hour, patience, 0}[i])
		assert.Equal(t, busy, c.busy.Load(), "any caller sees that a gate is open, and that nobody comes any more")
	}
}

// TestGateStaysShut when a call that was on its way comes through, or the one that
// was to look is not sent.
func TestGateStaysShut(t *testing.T) {
	clock, seats := &handClock{now: epoch}, make([]Seat, 3)
	c := New(clock, func() float64 { return 0 })
	clock.pass(t, c, reading, &seats[0], 1)
	c.Done(&seats[0], Outcome{Refused: true, RetryAfter: 1})
	clock.now = clock.now.Add(1)
	clock.pass(t, c, reading, &seats[1], patience)
	clock.pass(t, c, reading, &seats[2], patience)
	c.Done(&seats[1], Outcome{Refused: true, RetryAfter: 2 * lookEvery})
	c.Done(&seats[2], Outcome{Sent: true})
	for i := range 2 {
		_, _, err := c.Pass(t.Context(), reading, &seats[0])
		assert.Error(t, err, "look %d: the gate is shut", i)
		if clock.now = epoch.Add(lookEvery + time.Minute); i == 0 {
			clock.pass(t, c, reading, &seats[0], 0)
			c.Done(&seats[0], Outcome{})
		}
	}
}

// TestHurriedCaller waits for no jitter that it had no time for.
func TestHurriedCaller(t *testing.T) {
	const told, jitter = 20 * time.Second, 1125 * time.Millisecond
	for given, want := range map[time.Duration]time.Duration{told: 0, told + jitter - 1: 0, told + jitter: jitter} {
		synctest.Test(t, func(t *testing.T) {
			c, seat := New(nil, func() float64 { return 0.5 }), &Seat{class: classOf(spec.GetAgent, false)}
			c.Done(seat, Outcome{Refused: true, Sent: true, LimitKey: "k", RetryAfter: told})
			seat.Waits(told, given)
			time.Sleep(told)
			_, waited, err := c.Pass(t.Context(), reading, seat)
			require.NoError(t, err)
			assert.Equal(t, want, waited, given)
		})
	}
}

// TestCallerInLineHearsOfARefusal at once, not when it looks again by itself.
func TestCallerInLineHearsOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(nil, func() float64 { return 0 })
		seats := make([]Seat, 3)
		var refused atomic.Int32
		_, _, err := c.Pass(t.Context(), reading, &seats[0])
		require.NoError(t, err)
		c.Done(&seats[0], Outcome{Refused: true, Sent: true, RetryAfter: 10 * time.Second})
		for i := range seats[1:] { // both sleep until the gate opens, and one goes first
			go func() {
				begin := time.Now()
				_, _, err := c.Pass(t.Context(), reading, &seats[i+1])
				if err == nil {
					time.Sleep(time.Second / 2)
					c.Done(&seats[i+1], Outcome{Refused: true, Sent: true, RetryAfter: time.Hour})
					return
				}
				refused.Add(1)
				assert.Equal(t, &Refusal{RetryAfter: time.Hour}, err)
				assert.Equal(t, 10*time.Second+time.Second/2, time.Since(begin))
			}()
		}
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, refused.Load())
	})
}
