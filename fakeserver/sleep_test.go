package fakeserver_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// together runs f n times at once and waits for all.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// Inside a bubble and outside, ten sleepers of a minute move the clock a minute.
func TestSleepersMoveTheClockTogether(t *testing.T) {
	moved := func(t *testing.T) time.Duration {
		fake, _ := newFake(t, frozen())
		begun := fake.Now()
		together(10, func(int) { assert.NoError(t, fake.Sleep(t.Context(), time.Minute)) })
		return fake.Now().Sub(begun)
	}
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { assert.Equal(t, time.Minute, moved(t)) })
	})
	t.Run("outside", func(t *testing.T) { // where a caller that has yet to begin cannot be seen
		d := moved(t)
		assert.GreaterOrEqual(t, d, time.Minute)
		assert.Less(t, d, 10*time.Minute)
	})
}

// A poller of ten seconds wakes six times before the sleeper of a minute does.
func TestSleepersWakeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t)
		c.wire = fake.HTTPClient(t).Transport
		begun, real := fake.Now(), time.Now()
		polls := 0
		together(2, func(i int) {
			if i == 0 {
				require.NoError(t, fake.Sleep(t.Context(), time.Minute))
				assert.Equal(t, time.Minute, fake.Now().Sub(begun))
				assert.Equal(t, 5, polls)
				return
			}
			for ; polls < 7; polls++ {
				c.call("GET", "/v1/status", noBody).wantOK(t)
				require.NoError(t, fake.Sleep(t.Context(), 11*time.Second))
				assert.Equal(t, time.Duration(polls+1)*11*time.Second, fake.Now().Sub(begun))
			}
		})
		assert.Equal(t, 77*time.Second, fake.Now().Sub(begun))
		assert.Less(t, time.Since(real), time.Millisecond)
	})
}

// Whoever began first, each wakes at its own time.
func TestSleepersWakeAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t, frozen())
		begun := fake.Now()
		for _, minutes := range []time.Duration{30, 10, 50, 20, 40} {
			go func() {
				assert.NoError(t, fake.Sleep(t.Context(), minutes*time.Minute))
				assert.Equal(t, minutes*time.Minute, fake.Now().Sub(begun))
			}()
			synctest.Wait() // it sleeps
		}
		require.NoError(t, fake.Sleep(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, fake.Now().Sub(begun))
	})
}

func TestAdvanceEndsASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t)
		begun := fake.Now()
		woken := make(chan time.Time)
		go func() {
			assert.NoError(t, fake.Sleep(t.Context(), time.Minute))
			woken <- fake.Now()
		}()
		synctest.Wait()
		fake.Advance(time.Hour)
		assert.Equal(t, time.Hour, (<-woken).Sub(begun).Round(time.Microsecond))
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t, frozen())
		begun := fake.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- fake.Sleep(ctx, time.Minute) }()
		synctest.Wait()
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled)
		assert.ErrorIs(t, fake.Sleep(ctx, time.Minute), context.Canceled)
		assert.ErrorIs(t, fake.Sleep(ctx, 0), context.Canceled)
		assert.NoError(t, fake.Sleep(t.Context(), -time.Minute))
		assert.Equal(t, begun, fake.Now())
		assert.NoError(t, fake.Sleep(t.Context(), time.Second), "nobody is in the way")
	})
}

// Outside a bubble too, who is in the middle of a call sleeps before the clock
// moves: each sleeps for exactly as long as it wants to.
func TestSleepersOutsideWaitForCalls(t *testing.T) {
	fake, c := newFake(t, frozen())
	c.wire = fake.HTTPClient(t).Transport
	begun := fake.Now()
	together(20, func(i int) {
		var slept time.Duration
		for round := range 5 {
			c.call("GET", "/v1/status", noBody).wantOK(t)
			d := time.Duration(1+(i*7+round*3)%11) * time.Second
			slept += d
			assert.NoError(t, fake.Sleep(t.Context(), d))
			assert.Equal(t, slept, fake.Now().Sub(begun))
		}
	})
}

func TestSleepEndsInAProgramThatNeverRests(t *testing.T) {
	fake, _ := newFake(t, frozen())
	var ended atomic.Bool
	var spinning sync.WaitGroup
	spinning.Go(func() {
		for !ended.Load() {
			runtime.Gosched()
		}
	})
	assert.NoError(t, fake.Sleep(t.Context(), time.Hour))
	ended.Store(true)
	spinning.Wait()
}

// Two bubbles and the outside sleep on one fake: whoever wakes first moves the
// one clock for all.
func TestSleepersOfManyBubbles(t *testing.T) {
	fake := fakeserver.New(t)
	t.Run("group", func(t *testing.T) {
		for range 2 {
			t.Run("bubble", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					together(3, func(i int) {
						assert.NoError(t, fake.Sleep(t.Context(), time.Duration(i+1)*time.Hour))
					})
				})
			})
		}
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			assert.NoError(t, fake.Sleep(t.Context(), 2*time.Hour))
		})
	})
	assert.GreaterOrEqual(t, time.Until(fake.Now()), 3*time.Hour-time.Minute)
}
