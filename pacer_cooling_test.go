package agentmessaging_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

var getAttempt = agentmessaging.LimitedAttempt{Method: "GET", Path: "/v1/agents/{agent_id}"}

// TestRefusalOutlivesTheCoordinator: Retry-After is kept while the coordinator
// is away, and by one that comes back without having heard of it.
func TestRefusalOutlivesTheCoordinator(t *testing.T) {
	for name, happens := range map[string]struct{ before, after func(*store) }{
		"refused, then it goes":   {func(*store) {}, func(s *store) { s.fail(errAway) }},
		"refused while it is off": {func(s *store) { s.fail(errAway) }, func(s *store) { s.fail(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{}
				pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits(), agentmessaging.WithCoordinator(s))
				require.NoError(t, err)
				first, err := pacer.Acquire(t.Context(), getAttempt)
				require.NoError(t, err)
				happens.before(s)
				begin := time.Now()
				first.Done(agentmessaging.AttemptOutcome{StatusCode: 429, Sent: true, RetryAfter: time.Minute})
				synctest.Wait()
				happens.after(s)
				time.Sleep(4 * time.Second) // it is looked for, and found
				second, err := pacer.Acquire(t.Context(), getAttempt)
				require.NoError(t, err)
				assert.GreaterOrEqual(t, time.Since(begin), time.Minute)
				second.Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
				time.Sleep(time.Second)
			})
		})
	}
}

// TestLargeFleetRefusesNobody: MaxWait is about the limits, not about the queue.
func TestLargeFleetRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		var refused atomic.Int32
		var group sync.WaitGroup
		for range 20 {
			pacer, err := agentmessaging.NewPacer([]agentmessaging.Limit{{Max: 10, Window: time.Minute}}, agentmessaging.WithCoordinator(s))
			require.NoError(t, err)
			group.Go(func() {
				for range 2 {
					if _, err := pacer.Acquire(t.Context(), getAttempt); err != nil {
						refused.Add(1)
					}
				}
			})
		}
		group.Wait()
		assert.Zero(t, refused.Load())
	})
}
