package quota

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// reading is a call of a client with the default policy.
func reading() *Waiter {
	return &Waiter{Endpoint: spec.GetAgent, MaxWait: DefaultMaxWait, Patience: 5 * time.Minute}
}

// closed is a cool-down in which somebody was refused.
func closed(clock Clock, d time.Duration) *Engine {
	e := NewCoolDown(clock, func() float64 { return 0 })
	e.Done(reading(), *refuses("k", d))
	return e
}

// TestUnlimitedCallIsFree: it takes no memory, nor the lock, for which it would wait
// here for ever. So does a nil engine.
func TestUnlimitedCallIsFree(t *testing.T) {
	held := NewCoolDown(nil, nil)
	held.mu.Lock()
	defer held.mu.Unlock()
	ctx, w := t.Context(), reading()
	for _, e := range []*Engine{held, nil} {
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			if err := e.Acquire(ctx, w); err != nil {
				t.Error(err)
			}
			e.Done(w, Outcome{Sent: true})
		}))
	}
}

// crowds are callers whom the service refuses. The engine lets them try less and less
// often, a small crowd least of all, and never before Retry-After. All give up once nobody
// has got through for five minutes. If one gets through, all others wait on.
var crowds = []struct {
	name    string
	callers int
	within  time.Duration // the deadline, in place of MaxWait and patience; 0: none
	asked   time.Duration // Retry-After
	through time.Duration // when one gets through; 0: never
	sent    []int         // seconds of the first requests after the burst
	over    time.Duration // when the last one gives up
}{
	{"one caller waits twice as long each time, up to 64 s", 1, 0, s, 0, []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 300}, 300 * s},
	{"of four, one asks every 16 s at least", 4, 0, s, 0, []int{1, 2, 4, 8, 16, 32, 48, 64}, 300 * s},
	{"of 500, one asks every 5 s at least", 500, 0, s, 0, []int{1, 2, 4, 8, 13, 18}, 300 * s},
	{"nobody asks before Retry-After", 500, 0, 30 * s, 0, []int{30, 60, 90}, 300 * s},
	{"without Retry-After the first wait is a second", 1, 0, 0, 0, []int{1, 2, 4}, 300 * s},
	{"a wait beyond MaxWait is not begun", 1, 0, time.Hour, 0, nil, 0},
	{"a deadline cuts the last wait, which leaves a second for the answer", 1, 300 * s, s, 0, []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 299}, 299 * s},
	{"one who gets through keeps all others waiting", 20, 0, 30 * s, 299 * s, []int{30, 60}, 600 * s},
}

func TestPatience(t *testing.T) {
	for _, tt := range crowds {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			sent := refuseAll(t, tt.callers, tt.within, tt.asked, tt.through)
			assert.Equal(t, tt.sent, sent[:min(len(sent), len(tt.sent))], tt.name)
			assert.Equal(t, tt.over, time.Since(began), tt.name)
		})
	}
}

// refuseAll refuses callers until each has given up, but for one who gets through. It
// returns the seconds of the requests that came after the burst.
func refuseAll(t *testing.T, callers int, within, asked, through time.Duration) (sent []int) {
	e, began := NewCoolDown(nil, func() float64 { return 0 }), time.Now()
	var mu sync.Mutex
	answer := func() Outcome {
		mu.Lock()
		defer mu.Unlock()
		at := time.Since(began)
		if at > 0 {
			sent = append(sent, int(at.Seconds()))
		}
		if through > 0 && at >= through {
			through = 0
			return Outcome{Sent: true}
		}
		return *refuses("k", asked)
	}
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			ctx, w := t.Context(), reading()
			if within > 0 {
				w.MaxWait, w.Patience = math.MaxInt64, math.MaxInt64
				deadline, cancel := context.WithTimeout(ctx, within)
				defer cancel()
				ctx = deadline
			}
			for e.Acquire(ctx, w) == nil {
				e.Done(w, answer())
				if _, refusal := e.Forecast(ctx, w); refusal != nil || !w.Refused {
					return
				}
			}
		})
	}
	group.Wait()
	return sent
}

// failingClock panics once, at a reading from now on.
type failingClock struct {
	RealClock
	readings int // until then; 0: never
}

func (c *failingClock) Now() time.Time {
	if c.readings--; c.readings == 0 {
		panic("clock")
	}
	return time.Now()
}

// TestClockThatPanics does so in the call that reads it, or ends the calls that wait, and
// keeps nothing: the next call waits alone, until the limit opens.
func TestClockThatPanics(t *testing.T) {
	for last := range 8 {
		synctest.Test(t, func(t *testing.T) {
			clock := &failingClock{}
			e := closed(clock, 10*s)
			clock.readings = 1 + last
			func() {
				defer func() { _ = recover() }()
				_ = e.Acquire(t.Context(), reading())
			}()
			clock.readings = 0
			assert.Zero(t, e.Waiting(false), "reading %d", 1+last)
			assert.NoError(t, e.Acquire(t.Context(), reading()))
		})
	}
}

// TestAnotherClock, which was set back by more than a second, forgets the cool-down: a
// client may be shared by several synctest bubbles, each of which begins in the year 2000.
func TestAnotherClock(t *testing.T) {
	for back, forgets := range map[time.Duration]bool{time.Second: false, time.Second + 1: true, time.Hour: true} {
		e := NewCoolDown(nil, func() float64 { return 0 })
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(back)
			e.Done(reading(), *refuses("k", time.Hour))
			assert.Error(t, e.Acquire(t.Context(), reading()), back)
		})
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, forgets, e.Acquire(t.Context(), reading()) == nil, back)
		})
	}
}

// TestClassesTakeTurns at a gate, so that a message does not wait for all who read before
// it. While no answer comes, one call goes each second.
func TestClassesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := closed(nil, 9*s)
		w := reading()
		w.Endpoint = message
		e.Done(w, *refuses("k", 9*s)) // under the same name
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { assert.NoError(t, e.Acquire(t.Context(), reading())) })
		}
		synctest.Wait()
		require.NoError(t, e.Acquire(t.Context(), w))
		assert.LessOrEqual(t, w.Waited, 10*s)
		group.Wait()
	})
}

// stub is a rule that takes time for its answer.
type stub struct {
	CoolDown
	engine *Engine
	answer func() Schedule
	asked  int
}

func newStub(answer func() Schedule) *stub {
	r := &stub{answer: answer}
	r.engine = NewEngine(r, nil)
	return r
}

func (*stub) Sort(context.Context, *Waiter) bool { return true }
func (r *stub) Ask(_ time.Duration, first *Waiter, _ int) Schedule {
	class := first.Class
	r.engine.Go(func() {
		r.asked++
		answer := r.answer()
		r.engine.Do(func(time.Duration) { r.engine.Deliver(class, answer) })
	})
	return Schedule{Again: Later}
}

// TestRulesThatFail end the calls that wait, on the goroutines of these, and are asked
// again for the calls that come later.
func TestRulesThatFail(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func() Schedule
		want   error
		asked  int // give or take one
	}{
		{"a panic", func() Schedule { panic("rule") }, ErrPanic, 1},
		{"no grant, ever, and no time", func() Schedule { return Schedule{} }, context.DeadlineExceeded, 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			rule := newStub(tt.answer)
			for range 2 {
				rule.asked = 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.ErrorIs(t, rule.engine.Acquire(ctx, reading()), tt.want, tt.name)
				synctest.Wait()
				assert.InDelta(t, tt.asked, rule.asked, 1, tt.name)
			}
		})
	}
}

// TestLineAgainstANaiveOne: tenants take turns, each in the order in which its calls
// came, those that the service has refused go first, and before is how many really go
// before.
func TestLineAgainstANaiveOne(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := line{tenants: map[string]tenant{}}
		var waiting []*Waiter
		for range 2000 {
			switch n := random.IntN(10); {
			case n < 6:
				w := &Waiter{Tenant: fmt.Sprint(random.IntN(5)), Refused: random.IntN(5) == 0}
				before := l.push(w)
				waiting = append(waiting, w)
				slices.SortStableFunc(waiting, func(a, b *Waiter) int { return a.round - b.round })
				require.Equal(t, before, slices.Index(waiting, w), "seed %d", seed)
			case n < 8 && len(waiting) > 0:
				require.Same(t, waiting[0], l.first(), "seed %d", seed)
				require.Same(t, waiting[0], l.pop(), "seed %d", seed)
				waiting = waiting[1:]
			case len(waiting) > 0:
				at := random.IntN(len(waiting))
				before := l.tenants[waiting[at].Tenant].last
				l.remove(waiting[at])
				after, others := l.tenants[waiting[at].Tenant]
				require.Equal(t, others && before == waiting[at].round, others && after.last < before, "a tenant's last place is free again")
				l.remove(waiting[at]) // it waits no more
				waiting = slices.Delete(waiting, at, at+1)
			}
			require.True(t, slices.Equal(waiting, l.all()), "seed %d", seed)
		}
		for _, w := range waiting {
			l.remove(w)
		}
		assert.Empty(t, l.tenants, "names that nobody uses would fill the memory")
	}
}
