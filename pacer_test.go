package agentmessaging_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// The attempts that the tests of the pacer ask for.
var (
	sendAttempt   = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages"}
	createAttempt = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents"}
	patient       = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages", MaxWait: 1000 * time.Hour}
)

func perMinute(n int) []agentmessaging.Limit {
	return []agentmessaging.Limit{{Key: "minute", Max: n, Window: time.Minute}}
}

func newPacer(t testing.TB, limits []agentmessaging.Limit, opts ...agentmessaging.PacerOption) *agentmessaging.Pacer {
	t.Helper()
	pacer, err := agentmessaging.NewPacer(limits, opts...)
	require.NoError(t, err)
	return pacer
}

func acquire(t testing.TB, pacer *agentmessaging.Pacer, attempt agentmessaging.LimitedAttempt) agentmessaging.Permit {
	t.Helper()
	permit, err := pacer.Acquire(context.Background(), attempt)
	require.NoError(t, err)
	return permit
}

// wantRefusal checks that the pacer refuses at once.
func wantRefusal(t *testing.T, pacer *agentmessaging.Pacer, ctx context.Context, attempt agentmessaging.LimitedAttempt) *agentmessaging.Error {
	t.Helper()
	begin := time.Now()
	_, err := pacer.Acquire(ctx, attempt)
	var refusal *agentmessaging.Error
	require.ErrorAs(t, err, &refusal)
	assert.Zero(t, time.Since(begin))
	assert.Equal(t, 429, refusal.StatusCode)
	return refusal
}

func after(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// order collects who was served, in order.
type order struct {
	sync.Mutex
	names []string
	group sync.WaitGroup
}

// enter starts a call and waits until it is in the queue.
func (o *order) enter(ctx context.Context, pacer *agentmessaging.Pacer, name string) {
	o.group.Go(func() {
		if _, err := pacer.Acquire(ctx, patient); err == nil {
			o.Lock()
			defer o.Unlock()
			o.names = append(o.names, name)
		}
	})
	synctest.Wait()
}

func TestPacerServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(1)), &order{}
		for _, name := range []string{"a", "b", "c", "d"} {
			o.enter(t.Context(), pacer, name)
		}
		begin := time.Now()
		o.group.Wait()
		assert.Equal(t, []string{"a", "b", "c", "d"}, o.names)
		assert.InDelta(t, 3*60.4, time.Since(begin).Seconds(), 0.1)
	})
}

func TestPacerServesInteractiveCallsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(1)), &order{}
		batch := agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch)
		o.enter(t.Context(), pacer, "first")
		o.enter(batch, pacer, "batch")
		o.enter(batch, pacer, "batch 2")
		o.enter(t.Context(), pacer, "interactive")
		time.Sleep(61 * time.Second)
		o.enter(t.Context(), pacer, "late")
		o.group.Wait()
		assert.Equal(t, []string{"first", "interactive", "late", "batch", "batch 2"}, o.names)
	})
}

// TestPacerTakesABatchCallInTurn: of eight grants one, where interactive calls
// would take them all.
func TestPacerTakesABatchCallInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(1)), &order{}
		batch := agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch)
		acquire(t, pacer, sendAttempt)
		for range 3 {
			o.enter(t.Context(), pacer, "i") // nobody is passed
		}
		time.Sleep(2*60400*time.Millisecond + time.Second)
		o.enter(batch, pacer, "batch")
		o.enter(batch, pacer, "batch 2")
		for range 15 {
			o.enter(t.Context(), pacer, "i")
		}
		o.group.Wait()
		var turns []int
		for i, name := range o.names {
			if name != "i" {
				turns = append(turns, i)
			}
		}
		assert.Equal(t, []int{2 + 7, 2 + 7 + 8}, turns)
		assert.Equal(t, []string{"batch", "batch 2"}, []string{o.names[9], o.names[17]})
	})
}

// TestPacerCountsTheTurnsOfThoseWhoWait: one who gave up has no part in them.
func TestPacerCountsTheTurnsOfThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(1)), &order{}
		acquire(t, pacer, sendAttempt)
		ctx, cancel := context.WithCancel(agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch))
		o.enter(ctx, pacer, "gave up")
		for range 15 {
			o.enter(t.Context(), pacer, "i")
		}
		time.Sleep(5*60400*time.Millisecond + time.Second)
		cancel()
		time.Sleep(60400 * time.Millisecond)
		o.enter(agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch), pacer, "batch")
		o.group.Wait()
		assert.Equal(t, 6+7, slices.Index(o.names, "batch"))
	})
}

// TestBatchCallsAskAsBatchForEver: it is the fleet's queue that lets them age.
func TestBatchCallsAskAsBatchForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &store{}, &order{}
		pacer, _ := member(t, s, []agentmessaging.Limit{{Max: 1, Window: 10 * time.Minute}})
		acquire(t, pacer, sendAttempt)
		o.enter(agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch), pacer, "batch")
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		assert.Equal(t, quota.Ask, s.last().Kind)
		assert.True(t, s.last().Batch)
		o.group.Wait()
	})
}

// TestInteractiveCallPromotesItsLaneInTheFleet at once in the fleet's queue.
func TestInteractiveCallPromotesItsLaneInTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &store{}, &order{}
		pacer, _ := member(t, s, perMinute(1))
		acquire(t, pacer, sendAttempt)
		o.enter(agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch), pacer, "batch")
		o.enter(t.Context(), pacer, "interactive")
		assert.False(t, s.last().Batch)
		o.group.Wait()
		assert.Equal(t, []string{"interactive", "batch"}, o.names)
	})
}

// TestInteractiveCallPromotesItsFleetWhileAsking: likewise while the batch one is asked for.
func TestInteractiveCallPromotesItsFleetWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &store{delay: 50 * time.Millisecond}, &order{}
		pacer, _ := member(t, s, perMinute(1))
		acquire(t, pacer, sendAttempt)
		o.enter(agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch), pacer, "batch")
		o.enter(t.Context(), pacer, "interactive")
		time.Sleep(110 * time.Millisecond)
		assert.False(t, s.last().Batch)
		o.group.Wait()
	})
}

// TestPacerPrioritiesHoldAcrossLanes: calls that spend other limits compete by
// the same rules.
func TestPacerPrioritiesHoldAcrossLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := append(perMinute(1), agentmessaging.Limit{Key: "create", Max: 100, Window: time.Minute, Counts: agentmessaging.CountsAgentCreations})
		pacer, o := newPacer(t, limits), &order{}
		batch := agentmessaging.WithPriority(t.Context(), agentmessaging.PriorityBatch)
		create := createAttempt
		create.MaxWait = time.Hour
		acquire(t, pacer, sendAttempt)
		o.enter(batch, pacer, "batch")
		o.group.Go(func() {
			_, err := pacer.Acquire(t.Context(), create)
			assert.NoError(t, err)
			o.Lock()
			defer o.Unlock()
			o.names = append(o.names, "create")
		})
		o.group.Wait()
		assert.Equal(t, []string{"create", "batch"}, o.names)
	})
}

// TestPacerDoesNotStarveBatch under a steady stream of interactive calls.
func TestPacerDoesNotStarveBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(60))
		ctx, cancel := after(10 * time.Minute)
		defer cancel()
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				for ctx.Err() == nil {
					_, _ = pacer.Acquire(ctx, patient)
				}
			})
		}
		time.Sleep(time.Minute)
		begin := time.Now()
		_, err := pacer.Acquire(agentmessaging.WithPriority(ctx, agentmessaging.PriorityBatch), patient)
		require.NoError(t, err)
		assert.Less(t, time.Since(begin), 70*time.Second)
		cancel()
		group.Wait()
	})
}

// TestPacerGivesUpThePlace of a call that is cancelled, at once.
func TestPacerGivesUpThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(1)), &order{}
		acquire(t, pacer, sendAttempt)
		ctx, cancel := context.WithCancel(t.Context())
		o.enter(ctx, pacer, "cancelled")
		o.enter(t.Context(), pacer, "next")
		time.Sleep(time.Second)
		begin := time.Now()
		cancel()
		o.group.Wait()
		assert.Equal(t, []string{"next"}, o.names)
		assert.Less(t, time.Since(begin), time.Minute)
		ctx, cancel = context.WithCancel(t.Context())
		o.enter(ctx, pacer, "alone")
		cancel()
		o.group.Wait() // the bubble fails if a goroutine stays
	})
}

func TestPacerOfAContextThatHasEnded(t *testing.T) {
	pacer := newPacer(t, perMinute(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		_, err := pacer.Acquire(ctx, sendAttempt)
		require.ErrorIs(t, err, context.Canceled)
	}
	acquire(t, pacer, sendAttempt) // nothing was spent
}

func TestPacerRefusesWhatCannotGoInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(1))
		acquire(t, pacer, sendAttempt)
		ctx, cancel := after(60399 * time.Millisecond)
		defer cancel()
		refusal := wantRefusal(t, pacer, ctx, sendAttempt)
		assert.Equal(t, "minute", refusal.LimitKey)
		assert.Equal(t, "rate_limited", refusal.Code)
		assert.Equal(t, 60400*time.Millisecond, refusal.RetryAfter)
		short := sendAttempt
		short.MaxWait = time.Minute
		wantRefusal(t, pacer, t.Context(), short)
		long, cancel := after(60401 * time.Millisecond)
		defer cancel()
		_, err := pacer.Acquire(long, sendAttempt)
		assert.NoError(t, err)
	})
}

// TestPacerRefusesByPlace: those ahead in the same process count.
func TestPacerRefusesByPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, o := newPacer(t, perMinute(60)), &order{}
		for range 10 {
			acquire(t, pacer, sendAttempt)
		}
		for range 5 {
			o.enter(t.Context(), pacer, "x")
		}
		ctx, cancel := after(5 * time.Second)
		defer cancel()
		assert.InDelta(t, 6*0.97, wantRefusal(t, pacer, ctx, sendAttempt).RetryAfter.Seconds(), 0.1)
		ctx, cancel = after(6 * time.Second)
		defer cancel()
		_, err := pacer.Acquire(ctx, sendAttempt)
		assert.NoError(t, err)
		o.group.Wait()
	})
}

// TestPacerQueueIsNoWaitForTheLimits: MaxWait, 90 s where none is given, bounds
// how long nobody may go, and not how many are ahead.
func TestPacerQueueIsNoWaitForTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(60))
		var group sync.WaitGroup
		for range 300 {
			group.Go(func() {
				_, err := pacer.Acquire(t.Context(), sendAttempt)
				assert.NoError(t, err)
			})
		}
		group.Wait()
		acquire(t, pacer, sendAttempt).Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, RetryAfter: 91 * time.Second})
		wantRefusal(t, pacer, t.Context(), sendAttempt)
	})
}

// TestPacerRefusesThoseWhoWait where a refusal by the service leaves no hope.
func TestPacerRefusesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(60))
		permit := acquire(t, pacer, sendAttempt)
		for range 9 {
			acquire(t, pacer, sendAttempt)
		}
		time.AfterFunc(500*time.Millisecond, func() {
			permit.Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: "minute", RetryAfter: 50 * time.Second})
		})
		ctx, cancel := after(10 * time.Second)
		defer cancel()
		begin := time.Now()
		_, err := pacer.Acquire(ctx, sendAttempt)
		assert.ErrorIs(t, err, agentmessaging.ErrRateLimited)
		assert.Equal(t, 500*time.Millisecond, time.Since(begin))
	})
}

// TestPacerCoolsDown all calls that spend the limit, for as long as it is told.
func TestPacerCoolsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(60))
		acquire(t, pacer, sendAttempt).Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, LimitKey: "minute", RetryAfter: 20 * time.Second})
		begin := time.Now()
		acquire(t, pacer, sendAttempt)
		assert.Equal(t, 20*time.Second, time.Since(begin))
	})
}

// TestPacerTakesBackWhatWasNotSent, and only that.
func TestPacerTakesBackWhatWasNotSent(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome agentmessaging.AttemptOutcome
		want    time.Duration
	}{
		"never sent":      {agentmessaging.AttemptOutcome{}, 0},
		"perhaps sent":    {agentmessaging.AttemptOutcome{Sent: true}, 60400 * time.Millisecond},
		"answered":        {agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true}, 60400 * time.Millisecond},
		"odd":             {agentmessaging.AttemptOutcome{StatusCode: 200}, 60400 * time.Millisecond},
		"refused, 0 told": {agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true}, 60400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pacer := newPacer(t, perMinute(1))
				begin := time.Now()
				acquire(t, pacer, sendAttempt).Done(tt.outcome)
				acquire(t, pacer, sendAttempt)
				assert.Equal(t, tt.want, time.Since(begin))
			})
		})
	}
}

// TestPacerWakesTheNext when a permit is given back.
func TestPacerWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, perMinute(1))
		permit := acquire(t, pacer, sendAttempt)
		time.AfterFunc(1500*time.Millisecond, func() { permit.Done(agentmessaging.AttemptOutcome{}) })
		begin := time.Now()
		acquire(t, pacer, sendAttempt)
		assert.Equal(t, 1500*time.Millisecond, time.Since(begin))
	})
}

// TestPacerProbes: of a day that was spent early one call may find out whether
// it is a fixed one, and its success opens the day again.
func TestPacerProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, []agentmessaging.Limit{{Key: "day", Max: 3, Window: 24 * time.Hour}})
		for range 3 {
			acquire(t, pacer, sendAttempt)
		}
		probe := acquire(t, pacer, sendAttempt)
		time.AfterFunc(2500*time.Millisecond, func() { probe.Done(agentmessaging.AttemptOutcome{StatusCode: 201, Sent: true}) })
		begin := time.Now()
		acquire(t, pacer, sendAttempt)
		assert.Equal(t, 2500*time.Millisecond, time.Since(begin))
		acquire(t, pacer, sendAttempt)
	})
}

// TestPacerGivesBackAGrantThatComesAsTheContextEnds: none is lost and none is
// granted twice. It races the two under the race detector.
func TestPacerGivesBackAGrantThatComesAsTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, []agentmessaging.Limit{{Key: "s", Max: 1, Window: time.Second}})
		acquire(t, pacer, sendAttempt)
		granted, last := 0, time.Now()
		for range 500 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Until(last.Add(1400*time.Millisecond)), cancel)
			if permit, err := pacer.Acquire(ctx, sendAttempt); err == nil {
				granted++
				permit.Done(agentmessaging.AttemptOutcome{})
			}
			begin := time.Now()
			acquire(t, pacer, sendAttempt)
			require.Zero(t, time.Since(begin), "the grant was given back")
			last = time.Now()
			cancel()
		}
		t.Logf("%d of 500 were granted", granted)
	})
}

// TestPacerUnderManyGoroutines, of which some give up and some give back.
func TestPacerUnderManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := newPacer(t, append(perMinute(600), agentmessaging.Limit{Key: "c", Max: 300, Window: time.Minute, Counts: agentmessaging.CountsAgentCreations}))
		var group sync.WaitGroup
		var sent atomic.Int64
		for n := range 200 {
			group.Go(func() {
				for i := range 20 {
					ctx, cancel := after(time.Duration(1+(n*i)%40) * time.Second)
					permit, err := pacer.Acquire(ctx, []agentmessaging.LimitedAttempt{sendAttempt, createAttempt}[n%2])
					cancel()
					switch {
					case err != nil:
						time.Sleep(time.Second)
					case i%10 == 0:
						permit.Done(agentmessaging.AttemptOutcome{})
					default:
						sent.Add(1)
						permit.Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
					}
				}
			})
		}
		group.Wait()
		assert.Greater(t, sent.Load(), int64(600))
	})
}

// TestPacerClock: windows follow the clock that it was given, also backwards.
func TestPacerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		pacer := newPacer(t, perMinute(1), agentmessaging.WithPacerClock(func() time.Time { return time.Now().Add(ahead) }))
		acquire(t, pacer, sendAttempt)
		ctx, cancel := after(time.Second)
		defer cancel()
		ahead -= time.Hour
		assert.Equal(t, 60400*time.Millisecond, wantRefusal(t, pacer, ctx, sendAttempt).RetryAfter)
		ahead += time.Minute
		assert.Equal(t, 400*time.Millisecond, func() time.Duration {
			begin := time.Now()
			acquire(t, pacer, sendAttempt)
			return time.Since(begin)
		}())
	})
}

// TestPacerGivesBackAGrantThatMeetsTheEnd: the context ends while the grant is
// being handed over. Whichever the caller sees, nothing is lost.
func TestPacerGivesBackAGrantThatMeetsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opens time.Time
		var reads int
		cancel := func() {}
		clock := func() time.Time {
			if now := time.Now(); !opens.IsZero() && !now.Before(opens) {
				if reads++; reads == 3 { // is it due, ask, hand over
					cancel()
				}
			}
			return time.Now()
		}
		pacer := newPacer(t, []agentmessaging.Limit{{Key: "s", Max: 1, Window: time.Second}}, agentmessaging.WithPacerClock(clock))
		acquire(t, pacer, sendAttempt)
		for range 40 {
			opens, reads = time.Now().Add(1400*time.Millisecond), 0
			ctx, end := context.WithCancel(t.Context())
			cancel = end
			if permit, err := pacer.Acquire(ctx, sendAttempt); err == nil {
				permit.Done(agentmessaging.AttemptOutcome{})
			}
			synctest.Wait()
			opens = time.Time{}
			begin := time.Now()
			acquire(t, pacer, sendAttempt)
			require.Zero(t, time.Since(begin))
			end()
		}
	})
}

// TestPacerKeepsNoPlaceForWhomItRefused.
func TestPacerKeepsNoPlaceForWhomItRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := append(perMinute(1), agentmessaging.Limit{Key: "c", Max: 9, Window: time.Minute, Counts: agentmessaging.CountsAgentCreations})
		pacer := newPacer(t, limits)
		acquire(t, pacer, sendAttempt)
		ctx, cancel := after(time.Second)
		defer cancel()
		wantRefusal(t, pacer, ctx, createAttempt)
		begin := time.Now()
		acquire(t, pacer, sendAttempt)
		assert.Equal(t, 60400*time.Millisecond, time.Since(begin))
	})
}
