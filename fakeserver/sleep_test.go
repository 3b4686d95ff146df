package fakeserver_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Each wakes at its own time, whoever began first, and those who sleep together
// move the clock once. A poller sleeps again and again meanwhile.
func TestSleepersWakeAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, frozen())
		c.wire = fake.HTTPClient(t).Transport
		begun, real := fake.Now(), time.Now()
		sleep := func(d time.Duration, want time.Duration) {
			assert.NoError(t, fake.Sleep(t.Context(), d))
			assert.Equal(t, want, fake.Now().Sub(begun))
		}
		for _, minutes := range []time.Duration{30, 10, 50, 20, 50, 40, 10} {
			go sleep(minutes*time.Minute, minutes*time.Minute)
			synctest.Wait() // it sleeps
		}
		for i := range 6 {
			c.call("GET", "/v1/status", noBody).wantOK(t)
			sleep(11*time.Minute, time.Duration(i+1)*11*time.Minute)
		}
		assert.Less(t, time.Since(real), 100*time.Millisecond)
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

// A clock that has no room left says so, and does not sleep for ever.
func TestSleepBeyondWhatTheClockHolds(t *testing.T) {
	fake, _ := newFake(t)
	assert.NoError(t, fake.Sleep(t.Context(), math.MaxInt64))
	assert.EqualError(t, fake.Sleep(t.Context(), time.Minute), "fakeserver: Sleep: the clock cannot move by another 1m0s")
	assert.Less(t, 200*365*24*time.Hour, time.Until(fake.Now()))
}

// A sleeper waits for silence, but calls that never cease do not keep it for ever.
func TestSleepAmongEndlessCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, unlimited()...)
		ended, begun := make(chan error), time.Now()
		go func() { ended <- fake.Sleep(t.Context(), time.Hour) }()
		for {
			select {
			case err := <-ended:
				assert.NoError(t, err)
				assert.InDelta(t, 0.5, time.Since(begun).Seconds(), 0.1)
				return
			default:
				time.Sleep(time.Millisecond)
				c.call("GET", "/v1/status", noBody).wantOK(t)
			}
		}
	})
}

// Two bubbles and the outside sleep on one fake: whoever wakes first moves the
// one clock for all.
func TestSleepersOfManyBubbles(t *testing.T) {
	fake := fakeserver.New(t)
	sleep := func(t *testing.T) {
		concurrently(3, 1, func() { assert.NoError(t, fake.Sleep(t.Context(), 3*time.Hour)) })
	}
	t.Run("group", func(t *testing.T) {
		for range 2 {
			t.Run("bubble", func(t *testing.T) { t.Parallel(); synctest.Test(t, sleep) })
		}
		t.Run("outside", func(t *testing.T) { t.Parallel(); sleep(t) })
	})
	assert.GreaterOrEqual(t, time.Until(fake.Now()), 3*time.Hour-time.Minute)
}
