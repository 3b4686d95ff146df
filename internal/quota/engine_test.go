package quota

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// reading returns a GetAgent call of a client with the default policy.
func reading() *Waiter {
	return &Waiter{Endpoint: spec.GetAgent, MaxWait: DefaultMaxWait, Patience: 5 * time.Minute, Clock: RealClock{}}
}

// closed returns a cool-down whose limit k is closed for d.
func closed(d time.Duration) *Engine {
	e := NewCoolDown(func() float64 { return 0 })
	refuse(e, reading(), refuses("k", d))
	return e
}

// refuse ends a call that went before the limit closed.
func refuse(e *Engine, w *Waiter, o *Outcome) {
	e.rule.Classify(context.Background(), w)
	e.Done(w, *o)
}

// TestUnlimitedCallIsFree checks that a call that no limit holds back takes no memory and no
// lock: the test holds the lock.
func TestUnlimitedCallIsFree(t *testing.T) {
	e := NewCoolDown(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, w := t.Context(), reading()
	var err error
	allocs := testing.AllocsPerRun(1000, func() { err = cmp.Or(err, e.Acquire(ctx, w)); e.Done(w, Outcome{Sent: true}) })
	assert.Zero(t, allocs, "allocations")
	assert.NoError(t, err)
}

// TestClockMayMakeCalls checks that the engine reads no clock of the user's with its lock.
func TestClockMayMakeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, calls := closed(s), 0
		call := func(w *Waiter, o Outcome) {
			calls++
			assert.NoError(t, e.Acquire(t.Context(), w))
			e.Done(w, o)
		}
		w := reading()
		w.Clock = &badClock{before: func() { call(reading(), Outcome{Sent: true}) }}
		call(w, *refuses("k", s))
		e.Forecast(t.Context(), w)
		assert.Equal(t, 4, calls, "one, and one for each reading: in Acquire, Done and Forecast")
	})
}

// The engine lets callers that the service refuses try less and less often, a small crowd
// less often than a large one, and never before Retry-After. All give up once nobody has got
// through for five minutes. If one gets through, the others keep waiting.
func TestPatience(t *testing.T) {
	doubling := []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256}
	for _, tt := range []struct {
		rule           string
		callers        int
		retryAfter     time.Duration
		deadline       time.Duration // of each call, in place of MaxWait and patience; 0: none
		oneGetsThrough time.Duration // one request then; 0: none
		wantSent       []int         // the seconds of the first requests after the burst
		wantOver       time.Duration // when the last caller gives up
	}{
		{rule: "one caller waits twice as long each time, up to 64 s", callers: 1, retryAfter: s, wantSent: append(doubling, 300), wantOver: 300 * s},
		{rule: "of four, one asks every 16 s at least", callers: 4, retryAfter: s, wantSent: []int{1, 2, 4, 8, 16, 32, 48, 64}, wantOver: 300 * s},
		{rule: "of 500, one asks every 5 s at least", callers: 500, retryAfter: s, wantSent: []int{1, 2, 4, 8, 13, 18}, wantOver: 303 * s},
		{rule: "nobody asks before Retry-After", callers: 500, retryAfter: 30 * s, wantSent: []int{30, 60, 90}, wantOver: 300 * s},
		{rule: "a wait beyond MaxWait is not begun", callers: 1, retryAfter: h},
		{rule: "the last request leaves a second of the deadline for the answer", callers: 1, retryAfter: s, deadline: 300 * s, wantSent: append(doubling, 299), wantOver: 299 * s},
		{rule: "at a limit that has let a call through, one asks every 16 s at least", callers: 2, retryAfter: s, oneGetsThrough: s, wantSent: []int{1, 1, 2, 3, 5, 9, 17, 33, 49, 65}, wantOver: 301 * s},
		{rule: "one who gets through keeps all others waiting", callers: 20, retryAfter: 30 * s, oneGetsThrough: 299 * s, wantSent: []int{30, 60}, wantOver: 601 * s},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, began := NewCoolDown(func() float64 { return 0 }), time.Now()
			var mu sync.Mutex
			var sent []int
			answer := func() Outcome {
				mu.Lock()
				defer mu.Unlock()
				at := time.Since(began)
				if at > 0 {
					sent = append(sent, int(at.Seconds()))
				}
				if tt.oneGetsThrough > 0 && at >= tt.oneGetsThrough {
					tt.oneGetsThrough = 0
					return *passes
				}
				return *refuses(fmt.Sprint(len(sent)/2), tt.retryAfter) // the limit's name changes
			}
			var group sync.WaitGroup
			for range tt.callers {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tt.deadline, math.MaxInt64))
					defer cancel()
					w := reading()
					if tt.deadline > 0 {
						w.MaxWait, w.Patience = math.MaxInt64, math.MaxInt64
					}
					for through := false; !through && e.Acquire(ctx, w) == nil; through = !w.Unserved {
						e.Done(w, answer())
					}
				})
			}
			group.Wait()
			assert.Equal(t, tt.wantSent, sent[:min(len(sent), len(tt.wantSent))], "%s: seconds of the first requests after the burst", tt.rule)
			assert.Equal(t, tt.wantOver, time.Since(began), "%s: when the last caller gave up", tt.rule)
		})
	}
}

// TestStreamOfCalls checks that a service that refuses every call is asked no more often if new
// calls come all the time, each of which wants to try once before its deadline.
func TestStreamOfCalls(t *testing.T) {
	for _, within := range []time.Duration{2 * s, 20 * s, 100 * s} {
		synctest.Test(t, func(t *testing.T) {
			e, sent := NewCoolDown(func() float64 { return 0 }), atomic.Int64{}
			for range 400 { // longer than the patience, which starts again for each call
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					for w := reading(); e.Acquire(ctx, w) == nil; sent.Add(1) {
						e.Done(w, *refuses("k", s))
					}
				}()
				time.Sleep(s)
			}
			assert.InDelta(t, 400*s/minBackoff, sent.Load(), 6, "requests of calls with deadlines in %s", within)
		})
	}
}

// badClock is ahead of the real clock, counts its readings, and panics at one of them.
type badClock struct {
	RealClock
	before   func()        // each reading; may be nil
	by       time.Duration // ahead
	readings atomic.Int64
	panicsAt int64 // the number of a reading, from 1; 0: never
}

func (c *badClock) Now() time.Time {
	if c.before != nil {
		c.before()
	}
	if c.readings.Add(1) == c.panicsAt {
		panic("clock")
	}
	return time.Now().Add(c.by)
}

// Sleep fails for a wait without an end: a fake clock would move that far.
func (c *badClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > maxJump {
		panic("a wait without an end")
	}
	return c.RealClock.Sleep(ctx, d)
}

// The panic reaches the call that reads the clock, which leaves the queue. Other calls wait
// until the limit opens. A first run without a panic counts the readings, and then each reading
// panics once.
func TestClockThatPanicsLeavesNoCallInLine(t *testing.T) {
	for nth, readings := int64(0), int64(0); nth <= readings; nth++ {
		synctest.Test(t, func(t *testing.T) {
			e, clock, began := closed(10*s), &badClock{panicsAt: nth}, time.Now()
			leaves, leave := context.WithCancel(t.Context())
			time.AfterFunc(5*s, leave)
			var group sync.WaitGroup
			for _, ctx := range []context.Context{t.Context(), leaves} {
				group.Go(func() {
					defer func() { _ = recover() }()
					_ = e.Acquire(ctx, &Waiter{Endpoint: read, MaxWait: h, Clock: clock})
				})
				synctest.Wait()
			}
			group.Wait()
			readings = max(readings, clock.readings.Load())
			assert.Zero(t, e.WaitingLocked(func(Class) bool { return true }), "a panic at reading %d: calls left in the queue", nth)
			assert.NoError(t, e.Acquire(t.Context(), reading()), "a panic at reading %d: the next call", nth)
			assert.LessOrEqual(t, time.Since(began), 11*s, "a panic at reading %d: when the next call goes", nth)
		})
	}
}

// TestAnotherClock checks that calls wait until the limit opens, however often the clock is
// another one: several synctest bubbles, each of which begins in the year 2000, and code outside
// may share a client.
func TestAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := closed(s)
		for _, ahead := range []time.Duration{0, 10 * maxJump, 0, 10 * maxJump} {
			w := &Waiter{Endpoint: read, MaxWait: h, Clock: &badClock{by: ahead}}
			e.Done(w, *refuses("k", s))
			assert.NoError(t, e.Acquire(t.Context(), w))
			assert.Equal(t, s, w.Waited, "by a clock that is %s ahead", ahead)
		}
		w := reading()
		e.Done(w, *refuses("k", 30*s))
		late := &badClock{by: -2 * s, before: func() { time.Sleep(2 * s); e.Forecast(t.Context(), reading()) }}
		for _, w.Clock = range []Clock{late, RealClock{}, &badClock{by: -s}, RealClock{}} {
			wait, _ := e.Forecast(t.Context(), w)
			assert.Equal(t, 28*s, wait, "neither a reading that is late to the lock nor a clock that is a second behind is a clock set back")
		}
	})
}

// Messages do not wait for all calls of another class that came before them: every second call
// is a message, from the first one on, because messages had no grant yet. While no answer comes,
// one call goes each second.
func TestClassesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, began := closed(9*s), time.Now()
		w := &Waiter{Endpoint: message, MaxWait: h, Clock: RealClock{}}
		refuse(e, w, refuses("k", 9*s)) // so that both classes wait at the same gate
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { assert.NoError(t, e.Acquire(t.Context(), reading())) })
		}
		synctest.Wait()
		for n := range 10 {
			require.NoError(t, e.Acquire(t.Context(), w))
			assert.Equal(t, 9*s+2*time.Duration(n)*s, time.Since(began), "when message %d goes", n)
		}
		for _, o := range []*Outcome{unsent, passes} {
			e.Done(w, *o)
			assert.Equal(t, o == unsent, w.Unserved, "only a call that gave its grant back goes before new ones")
		}
		group.Wait()
	})
}

// A call does not wait by the clock of another call, which may stand still.
func TestClockThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := closed(s)
		ctx, cancel := context.WithTimeout(t.Context(), math.MaxInt64)
		defer cancel()
		var group sync.WaitGroup
		for _, clock := range []Clock{stopped{}, RealClock{}, stopped{}} {
			group.Go(func() { assert.NoError(t, e.Acquire(ctx, &Waiter{Endpoint: read, MaxWait: h, Clock: clock})) })
			synctest.Wait()
		}
		group.Wait()
		// Nor does it after that call has left.
		refuse(e, reading(), refuses("k", s))
		refuse(e, &Waiter{Endpoint: message, Clock: RealClock{}}, refuses("m", 2*s))
		leaving, leave := context.WithCancel(ctx)
		time.AfterFunc(s/2, leave)
		group.Go(func() { _ = e.Acquire(leaving, &Waiter{Endpoint: read, MaxWait: h, Clock: stopped{}}) })
		synctest.Wait()
		assert.NoError(t, e.Acquire(ctx, &Waiter{Endpoint: message, MaxWait: h, Clock: RealClock{}}))
		group.Wait()
	})
}

// stopped is a clock whose Sleep lasts until its context ends.
type stopped struct{ RealClock }

func (stopped) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// stub is a slow rule: it delivers its answer from a goroutine.
type stub struct {
	CoolDown
	answer func(now time.Duration) Schedule

	asked, ended, emptied int
}

func newStub(answer func(time.Duration) Schedule) *stub {
	r := &stub{answer: answer}
	r.engine = NewEngine(r)
	return r
}

func (*stub) Classify(context.Context, *Waiter) bool    { return true }
func (r *stub) QueueEmptiedLocked(time.Duration, Class) { r.emptied++ }
func (r *stub) AskLocked(now time.Duration, first *Waiter, _ int) Schedule {
	class := first.Class
	r.engine.Background(func() error {
		r.asked++
		answer := r.answer(now)
		r.engine.Update(func(time.Duration) { r.engine.DeliverLocked(class, answer) })
		return nil
	}, func(err error) error { r.ended++; return err })
	return Schedule{AskAgain: Never}
}

// TestRulesThatFail checks that a rule that panics, or never grants in time, ends the calls that
// wait, and is asked again for later calls.
func TestRulesThatFail(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(now time.Duration) Schedule
		want   error
		asked  int // how often the rule is asked, give or take one
	}{
		"a panic":                  {func(time.Duration) Schedule { panic("rule") }, ErrPanic, 1},
		"the end of its goroutine": {func(time.Duration) Schedule { runtime.Goexit(); return Schedule{} }, ErrPanic, 1},
		"no grant, ever, but soon": {func(now time.Duration) Schedule { return Schedule{AskAgain: now + 1} }, context.DeadlineExceeded, 10_000},
		"a grant for later":        {func(now time.Duration) Schedule { return Schedule{Grants: []Grant{{At: now + h}}} }, context.DeadlineExceeded, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			rule := newStub(tt.answer)
			for range 2 {
				rule.asked, rule.ended, rule.emptied = 0, 0, 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				w := &Waiter{Endpoint: read, MaxWait: h, Clock: &badClock{}}
				assert.ErrorIs(t, rule.engine.Acquire(ctx, w), tt.want, name)
				assert.LessOrEqual(t, w.Waited, time.Second, "%s: no longer than the deadline", name)
				synctest.Wait()
				assert.InDelta(t, tt.asked, rule.asked, 1, "%s: how often the rule was asked", name)
				assert.Equal(t, rule.asked, rule.ended, "%s: each question has ended", name)
				assert.Positive(t, rule.emptied, "%s: the rule knows that no call waits", name)
			}
		})
	}
}

// OnWait of all calls is called at once with the length of the wait, and again when the rule
// says that it is longer. Here the rule takes 4 s to say when the first turn is: at 60 s, and when
// that has come, at 120 s. The turns of the other calls follow, one a second.
func TestOnWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := h
		rule := newStub(func(time.Duration) Schedule {
			time.Sleep(4 * s)
			turn += 60 * s
			return Schedule{Turn: turn, Gap: s, AskAgain: turn}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var expected [4][]time.Duration // by place
		for range 3 {
			w := reading()
			w.OnWait = func(wait Wait) { expected[wait.Place] = append(expected[wait.Place], wait.Expected) }
			go func() { _ = rule.engine.Acquire(ctx, w) }()
			time.Sleep(3 * s)
		}
		time.Sleep(60 * s)
		cancel()
		synctest.Wait()
		assert.Equal(t, [4][]time.Duration{
			1: {60*s - 4*s, 120*s - 64*s}, // when the rule has answered, and when it has answered again
			2: {61*s - 4*s, 121*s - 64*s}, // the same
			3: {62*s - 6*s, 122*s - 64*s}, // when the call comes, after the answer, and when the rule has answered again
		}, expected)
	})
}

// Another forecast is sent only if the wait is longer by a second and by a quarter of the rest.
func TestLaterForecasts(t *testing.T) {
	w := reading()
	w.forecasts = make(chan Wait, 1)
	for _, tt := range []struct {
		says      string
		now, turn time.Duration
		sent      bool
	}{
		{says: "the first", turn: 100 * s, sent: true},
		{says: "not longer by a quarter", turn: 125*s - 1},
		{says: "longer by a quarter", turn: 125 * s, sent: true},
		{says: "2 s are left: longer by a quarter, but not by a second", now: 123 * s, turn: 126*s - 1},
		{says: "2 s are left: longer by a second", now: 123 * s, turn: 126 * s, sent: true},
	} {
		(&queue{schedule: Schedule{Turn: tt.turn}}).sendForecast(w, 0, tt.now)
		require.Equal(t, tt.sent, len(w.forecasts) == 1, tt.says)
		if tt.sent {
			assert.Equal(t, Wait{Place: 1, Expected: tt.turn - tt.now}, <-w.forecasts, tt.says)
		}
	}
}

// TestCallThatWentUninformed checks that a call that goes before the length of its wait was
// known leaves nothing behind: the rule learns that no call waits, and a call in another
// synctest bubble does not inform the first one.
func TestCallThatWentUninformed(t *testing.T) {
	answer := Schedule{Grants: make([]Grant, 1)}
	rule := newStub(func(time.Duration) Schedule { return answer })
	for calls := range 2 {
		synctest.Test(t, func(t *testing.T) {
			w := reading()
			w.OnWait = func(Wait) {}
			assert.NoError(t, rule.engine.Acquire(t.Context(), w))
			synctest.Wait()
			assert.Equal(t, 1+calls, rule.emptied)
		})
		answer.Turn = h
	}
}

// TestQueueAgainstANaiveOne compares a queue with a sorted slice, by random steps: tenants take
// turns, the calls of a tenant go in order, refused calls go first, and push returns how
// many calls go before.
func TestQueueAgainstANaiveOne(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		q := queue{tenants: map[string]int{}}
		var waiting []*Waiter
		for range 2000 {
			switch n := random.IntN(10); {
			case n < 6:
				w := &Waiter{Tenant: fmt.Sprint(random.IntN(5)), Unserved: random.IntN(5) == 0}
				before := q.push(w)
				round := q.round
				for _, o := range append(waiting, &Waiter{Tenant: w.Tenant, acquisition: acquisition{round: q.round}}) {
					if !w.Unserved && o.Tenant == w.Tenant {
						round = max(round, o.round+1)
					}
				}
				require.Equal(t, round, w.round, "seed %d: the round after the tenant's last call", seed)
				waiting = append(waiting, w)
				slices.SortStableFunc(waiting, func(a, b *Waiter) int { return a.round - b.round })
				require.Equal(t, before, slices.Index(waiting, w), "seed %d", seed)
			case n < 8 && len(waiting) > 0:
				require.Same(t, waiting[0], q.calls[0], "seed %d", seed)
				q.leave(waiting[0], 0, nil)
				q.round, waiting = waiting[0].round, waiting[1:]
			case len(waiting) > 0:
				at := random.IntN(len(waiting))
				q.leave(waiting[at], 0, nil)
				waiting = slices.Delete(waiting, at, at+1)
			}
			require.True(t, slices.Equal(waiting, q.calls), "seed %d: got %v, want %v", seed, q.calls, waiting)
		}
		for len(q.calls) > 0 {
			q.leave(q.calls[0], 0, nil)
		}
		assert.Empty(t, q.tenants, "names that nobody uses would fill the memory")
	}
}

// At an open limit a call tries again, however long nobody has got through.
func TestOpenLimitIsTried(t *testing.T) {
	schedule := Schedule{Opens: h, RefusedSince: 1, RefusedUntil: h}
	assert.Nil(t, schedule.turnAway(&Waiter{MaxWait: h, Patience: s}, 0, h))
	schedule.Opens++
	late := reading()
	late.startWait(t.Context(), h)
	assert.Nil(t, schedule.turnAway(late, 0, h), "patience begins when the call comes")
}
