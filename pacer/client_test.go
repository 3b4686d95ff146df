package pacer_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// callers plays n clients that each make a call at the same time.
func callers(m loadsim.Model, n int, opts ...agentmessaging.Option) loadsim.Measures {
	return loadsim.Run(loadsim.Scenario{Model: m, Unpaced: true, Client: opts, Loads: []loadsim.Load{{Workers: []int{n}, Calls: 1}}}).Measure(0, 0)
}

// TestClientShowsItsPlace in the pacer's line when its wait begins, alone and with a
// store.
func TestClientShowsItsPlace(t *testing.T) {
	for _, opts := range [][]pacer.Option{nil, {pacer.WithStore(loadsim.NewStore(), loadsim.Key)}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			waits := map[int]time.Duration{}
			observer := agentmessaging.ObserverFunc(func(_ context.Context, e agentmessaging.Event) context.Context {
				if start, is := e.(agentmessaging.LimiterWaitStart); is {
					mu.Lock()
					defer mu.Unlock()
					assert.Equal(t, "minute", start.LimitKey)
					waits[start.Place] = start.Expected
				}
				return nil
			})
			p := newPacer(t, perMinute(60), opts...)
			callers(loadsim.Bucket, 20, agentmessaging.WithLimiter(p), agentmessaging.WithObserver(observer))
			assert.Greater(t, len(waits), 10)
			for place, expected := range waits {
				assert.InDelta(t, place, expected.Seconds(), 1.5)
			}
		})
	}
}

// TestClientGivesUp when the service has refused all for the time of its patience, and
// asks it less and less often until then.
func TestClientGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := callers(loadsim.Refusing, 1, agentmessaging.WithLimiter(newPacer(t, perMinute(60))))
		assert.Equal(t, 1, got.Lost)
		assert.InDelta(t, 5*60, got.Last.Seconds(), 65)
		assert.LessOrEqual(t, got.Refused, 12)
	})
}

// counting is a limiter of the user's around a pacer.
type counting struct {
	*pacer.Pacer
	asked atomic.Int32
}

func (c *counting) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	c.asked.Add(1)
	return c.Pacer.Acquire(ctx, attempt)
}

// TestLimiterAroundAPacer is asked, and not passed by.
func TestLimiterAroundAPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &counting{Pacer: newPacer(t, perMinute(60))}
		began := time.Now()
		got := callers(loadsim.Bucket, 20, agentmessaging.WithLimiter(limiter))
		assert.Equal(t, [3]int{20, 0, 20}, [3]int{got.Done, got.Refused, int(limiter.asked.Load())})
		assert.Greater(t, time.Since(began), 15*time.Second)
	})
}
