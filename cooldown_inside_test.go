package agentmessaging

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func idleCoolDown() *coolDown {
	return newCoolDown(nil, defaultMinWait, func() float64 { return 0 })
}

var reading = LimitedAttempt{Method: "GET", Path: "/v1/agents/{agent_id}", Number: 1, MaxWait: defaultMaxWait}

// TestCoolDownOfAnUnlimitedCallAllocatesNothing.
func TestCoolDownOfAnUnlimitedCallAllocatesNothing(t *testing.T) {
	c, ctx := idleCoolDown(), t.Context()
	var seat coolSeat
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, _, err := c.pass(ctx, reading, &seat); err != nil {
			t.Error(err)
		}
		c.done(&seat, AttemptOutcome{StatusCode: 200, Sent: true})
	}))
}

// TestCoolDownTakesNoLockWhereNothingIsLimited: it would wait here for ever.
func TestCoolDownTakesNoLockWhereNothingIsLimited(t *testing.T) {
	c := idleCoolDown()
	c.mu.Lock()
	defer c.mu.Unlock()
	var seat coolSeat
	_, _, err := c.pass(t.Context(), reading, &seat)
	require.NoError(t, err)
	c.done(&seat, AttemptOutcome{StatusCode: 200, Sent: true})
}

// TestClasses: each endpoint has two of its own, whoever wrote the strings.
func TestClasses(t *testing.T) {
	require.LessOrEqual(t, 2*len(spec.Endpoints)+2, maxClasses)
	seen := map[int]bool{}
	for _, e := range append([]*spec.Endpoint{{Method: "GET", Path: "/v2"}}, spec.Endpoints...) {
		for _, sets := range []bool{false, true} {
			attempt := LimitedAttempt{Method: fmt.Sprint(e.Method), Path: fmt.Sprint(e.Path), SetsBYOK: sets}
			class := classOf(attempt)
			assert.False(t, seen[class], "%v", attempt)
			assert.Less(t, class, maxClasses)
			seen[class] = true
		}
	}
	assert.Equal(t, classOf(LimitedAttempt{}), classOf(LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}"}))
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// seen429 is what the naive model remembers: everything.
type seen429 struct {
	key   string
	class int
	end   time.Time
}

// naive is the end of the cool-down of a class: that of the limits that were
// ever seen there, each at the latest end that it was ever told.
func naive(all []seen429, class int) (end time.Time) {
	for _, here := range all {
		for _, other := range all {
			same := here.key != "" && here.key == other.key || here.key == "" && other.key == "" && other.class == class
			if here.class == class && same && other.end.After(end) {
				end = other.end
			}
		}
	}
	return end
}

// TestGatesAreThoseOfTheModel over many random schedules: never earlier, and
// never later.
func TestGatesAreThoseOfTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	keys := []string{"", "a", "b", "c"}
	for range 2000 {
		var (
			gs  gates
			all []seen429
			now = epoch
		)
		for range 60 {
			now = now.Add(time.Duration(random.Int64N(int64(10 * time.Second))))
			class := random.IntN(4)
			if random.IntN(3) == 0 {
				key, told := keys[random.IntN(len(keys))], time.Duration(random.Int64N(int64(time.Minute)))
				gs.shut(key, class, now, told)
				all = append(all, seen429{key, class, now.Add(told)})
			}
			closed := false
			for class := range 4 {
				want := naive(all, class)
				end, _ := gs.latest(class, now, time.Time{})
				if want.After(now) {
					require.Equal(t, want, end)
					closed = true
				} else {
					require.Zero(t, end)
				}
			}
			require.Equal(t, closed, gs.closed(now) > 0)
		}
	}
}

func TestGateOpensAtItsEnd(t *testing.T) {
	var gs gates
	gs.shut("k", 3, epoch, time.Minute)
	for at, closed := range map[time.Duration]int32{
		0: 1, time.Minute - 1: 1, time.Minute: 0, time.Hour: 0,
		-time.Second:     1, // a clock that was read before the lock was taken
		-time.Second - 1: 0, // that of another bubble
	} {
		assert.Equal(t, closed, gs.closed(epoch.Add(at)), at)
	}
}

// TestGateWithoutRetryAfterStaysOpen, but teaches what the limit covers.
func TestGateWithoutRetryAfterStaysOpen(t *testing.T) {
	var gs gates
	assert.False(t, gs.shut("k", 1, epoch, 0))
	assert.Zero(t, gs.closed(epoch))
	assert.True(t, gs.shut("k", 2, epoch, time.Minute))
	assert.False(t, gs.shut("k", 3, epoch, -time.Minute))
	for _, class := range []int{1, 2, 3} {
		end, key := gs.latest(class, epoch, time.Time{})
		assert.Equal(t, epoch.Add(time.Minute), end)
		assert.Equal(t, "k", key)
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
		assert.Equal(t, step.news, gs.shut("k", 0, epoch.Add(step.at), step.told), step)
	}
}

// TestGatesAreBounded: of limit_keys without end, those that ended first are
// forgotten; where all are closed, the class that sees a further one is.
func TestGatesAreBounded(t *testing.T) {
	var gs gates
	for i := range 1000 {
		gs.shut(fmt.Sprint("key ", i), 0, epoch.Add(time.Duration(i)*time.Minute), time.Minute)
	}
	require.Len(t, gs, maxKeys+maxClasses)
	later := epoch.Add(1000 * time.Minute)
	for i := range maxKeys {
		gs.shut(fmt.Sprint("later ", i), 0, later, time.Hour+time.Duration(i)*time.Minute)
	}
	assert.EqualValues(t, maxKeys, gs.closed(later))
	gs.shut("one more", 5, later, 3*time.Hour)
	assert.EqualValues(t, maxKeys+1, gs.closed(later))
	end, _ := gs.latest(5, later, time.Time{})
	assert.Equal(t, later.Add(3*time.Hour), end)
	end, key := gs.latest(0, later, time.Time{})
	assert.Equal(t, "later 63", key, "it does not cover what it was not seen at")
	assert.Equal(t, later.Add(time.Hour+63*time.Minute), end)

	soon := later.Add(time.Hour + 2*time.Minute) // the first three are over
	gs.shut("later 0", 7, soon, time.Minute)
	gs.shut("new", 8, soon, time.Minute)
	var kept []string
	for _, g := range gs[:maxKeys] {
		kept = append(kept, g.key)
	}
	assert.Contains(t, kept, "later 0")
	assert.NotContains(t, kept, "later 1")
	assert.Contains(t, kept, "later 2")
	assert.Contains(t, kept, "new")
	end, _ = gs.latest(0, soon, later.Add(2*time.Hour))
	assert.Equal(t, later.Add(time.Hour+63*time.Minute), end)
	_, key = gs.latest(8, soon, time.Time{})
	assert.Equal(t, "new", key)
	gs.shut("new", 8, soon, 100*time.Hour)
	end, _ = gs.latest(0, soon, time.Time{})
	assert.Equal(t, later.Add(time.Hour+63*time.Minute), end, "a new key covers nothing that the old one did")
}

// TestCoolDownIsFastAgain once a caller has seen that it is over, and is begun
// by nothing but a 429.
func TestCoolDownIsFastAgain(t *testing.T) {
	clock := &handClock{now: epoch}
	c := newCoolDown(clock, defaultMinWait, func() float64 { return 0 })
	var seat coolSeat
	pass := func(attempt LimitedAttempt) error {
		_, _, err := c.pass(t.Context(), attempt, &seat)
		return err
	}
	require.NoError(t, pass(reading))
	for _, status := range []int{0, 200, 404, 503} {
		c.done(&seat, AttemptOutcome{StatusCode: status, Sent: true, RetryAfter: time.Hour})
		assert.Zero(t, c.closed.Load(), status)
	}
	c.done(&seat, AttemptOutcome{StatusCode: 429, Sent: true, RetryAfter: time.Hour})
	assert.EqualValues(t, 1, c.closed.Load())
	assert.ErrorIs(t, pass(reading), ErrRateLimited, "longer than MaxWait")
	unbounded := reading
	unbounded.MaxWait = 0
	assert.ErrorIs(t, pass(unbounded), ErrRateLimited, "0 is the default")
	clock.now = clock.now.Add(time.Hour)
	require.NoError(t, pass(reading))
	assert.Zero(t, c.closed.Load())
}

// handClock is set by hand.
type handClock struct {
	realClock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

// TestForeignLimitKeysAreOneShortLine.
func TestForeignLimitKeysAreOneShortLine(t *testing.T) {
	assert.Equal(t, "a b", gateKey("a\nb"))
	assert.Len(t, gateKey(string(make([]byte, 1<<16))), 64)
	assert.Empty(t, gateKey(""))
}
