package cooldown

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
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

// seen429 is a 429 in the naive model, which remembers all.
type seen429 struct {
	key   string
	class int
	told  time.Duration
	end   time.Time
}

// believed is how long a 429 shuts: at least a second where it does not say, and
// no longer than any window.
func believed(told time.Duration) time.Duration {
	if told <= 0 {
		return time.Second
	}
	return min(told, 24*time.Hour)
}

// naive is the end of the cool-down of a class: the latest that was told there, or
// for a minute at most elsewhere of a limit that was seen there so.
func naive(all []seen429, class int) (end time.Time) {
	shared := func(s seen429) bool { return s.key != "" && s.told <= time.Minute }
	for _, here := range all {
		for _, other := range all {
			same := other.class == class || here.key == other.key && shared(here) && shared(other)
			if here.class == class && same && other.end.After(end) {
				end = other.end
			}
		}
	}
	return end
}

// TestGatesFollowTheModel over many random schedules: never earlier, and
// never later.
func TestGatesFollowTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	keys := []string{"", "a", "b", "c"}
	odd := []time.Duration{-time.Minute, 0, 1, 24 * time.Hour, 24*time.Hour + 1, math.MaxInt64}
	for range 600 {
		var (
			gs  gates
			all []seen429
			now = epoch
		)
		for range 60 {
			now = now.Add(time.Duration(random.Int64N(int64(10 * time.Second))))
			class := random.IntN(4)
			if random.IntN(3) == 0 {
				key, told := keys[random.IntN(len(keys))], LeastShut+time.Duration(random.Int64N(int64(70*time.Second)))
				if random.IntN(100) == 0 {
					told = odd[random.IntN(len(odd))]
				}
				gs.shut(key, class, now, told, 0)
				all = append(all, seen429{key, class, told, now.Add(believed(told))})
			}
			closed := false
			for class := range 4 {
				end, _ := latest(gs, class, now)
				want := naive(all, class)
				if !want.After(now) {
					want = time.Time{}
				}
				if closed = closed || !want.IsZero(); !end.Equal(want) { // assert takes ten times as long
					t.Fatalf("class %d opens at %v, want %v, after %+v", class, end, want, all)
				}
			}
			if shut := shutGates(gs, now); shut > 0 != closed {
				t.Fatalf("%d gates are shut, want some: %v, after %+v", shut, closed, all)
			}
		}
	}
}

// latest is the end of the gate of the class that is the last to open.
func latest(gs gates, class int, now time.Time) (end time.Time, key string) {
	if last := gs.last(class, now); last != nil {
		return last.end, last.key
	}
	return time.Time{}, ""
}

func shutGates(gs gates, now time.Time) (n int) {
	for _, g := range gs {
		if !g.over(now) {
			n++
		}
	}
	return n
}

func TestGateOpensAtItsEnd(t *testing.T) {
	var gs gates
	g, _ := gs.shut("k", 3, epoch, time.Minute, 0.5)
	assert.Equal(t, 3125*time.Millisecond, g.jitter())
	for at, closed := range map[time.Duration]int{
		0: 1, time.Minute + g.jitter() - 1: 1, time.Minute + g.jitter(): 0, time.Hour: 0,
		-time.Second:     1, // a clock that was read before the lock was taken
		-time.Second - 1: 0, // the clock of another bubble
	} {
		assert.Equal(t, closed, shutGates(gs, epoch.Add(at)), at)
	}
}

// TestNewsOfGates: the begin, and each second that is added, in small steps
// too.
func TestNewsOfGates(t *testing.T) {
	var gs gates
	for _, step := range []struct {
		at, told time.Duration
		news     bool
	}{
		{0, 10 * time.Second, true},
		{0, 10 * time.Second, false},
		{400 * time.Millisecond, 10 * time.Second, false},
		{999 * time.Millisecond, 10 * time.Second, false},
		{time.Second, 10 * time.Second, true},
		{time.Second, 5 * time.Second, false},
		{1100 * time.Millisecond, 10 * time.Second, false},
		{3 * time.Second, 10 * time.Second, true},
		{13 * time.Second, time.Millisecond, true},
	} {
		_, news := gs.shut("k", 0, epoch.Add(step.at), step.told, 0)
		assert.Equal(t, step.news, news, step)
	}
}

// TestGatesAreBounded: of limit_keys without end, all that are open are
// forgotten; where all are shut, a further one shuts the class that sees it.
func TestGatesAreBounded(t *testing.T) {
	var gs gates
	last := func(class int, now time.Time) string {
		_, key := latest(gs, class, now)
		return key
	}
	for i := range 1000 {
		gs.shut(fmt.Sprint("key ", i), 0, epoch.Add(time.Duration(i)*time.Minute), time.Minute, 0)
		require.LessOrEqual(t, len(gs), maxKeys)
	}
	later := epoch.Add(1000 * time.Minute)
	for i := range maxKeys {
		gs.shut(fmt.Sprint("later ", i), 0, later, time.Hour+time.Duration(i)*time.Minute, 0)
	}
	for range 2 {
		gs.shut("one more", 5, later, 3*time.Hour, 0)
		assert.Len(t, gs, maxKeys+1)
	}
	assert.Empty(t, last(5, later), "that of the class")
	assert.Equal(t, "later 63", last(0, later), "it does not cover what it was not seen at")
	soon := later.Add(time.Hour + time.Minute) // the first two are over
	gs.shut("new", 8, soon, 100*time.Hour, 0)
	assert.Len(t, gs, maxKeys)
	assert.Equal(t, "new", last(8, soon))
	assert.Equal(t, "later 63", last(0, soon), "a new key covers nothing that the old one did")
}

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

// timed is a connection that knows the service's time.
type timed struct{ net.Conn }

func (timed) Now() time.Time { return epoch }

// TestClockOfAConnection counts, unless the client has a clock of its own.
func TestClockOfAConnection(t *testing.T) {
	own := &handClock{now: epoch.Add(time.Hour)}
	for clock, want := range map[Clock]time.Time{nil: epoch, own: own.now} {
		c := New(clock, nil)
		c.Follow(timed{})
		assert.Equal(t, want, c.now())
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
