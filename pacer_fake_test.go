package agentmessaging_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// tally counts what the service answers.
type tally struct {
	http.RoundTripper
	refused, accepted atomic.Int64
}

func (c *tally) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	switch {
	case err == nil && resp.StatusCode == 429:
		c.refused.Add(1)
	case err == nil && resp.StatusCode < 300:
		c.accepted.Add(1)
	}
	return resp, err
}

// pacedClient is a client of the fake that is paced.
func pacedClient(t *testing.T, fake *fakeserver.Server, pacer *agentmessaging.Pacer) (*agentmessaging.Client, *tally) {
	client := fake.HTTPClient(t)
	counted := &tally{RoundTripper: client.Transport}
	client.Transport = counted
	paced, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(client),
		agentmessaging.WithLimiter(pacer), agentmessaging.WithTimeout(24*time.Hour))
	require.NoError(t, err)
	return paced, counted
}

// TestPacedClientUsesTheQuota of the fake and is refused nothing: 64 callers
// with 200 calls each, by both kinds of windows.
func TestPacedClientUsesTheQuota(t *testing.T) {
	roomy := fakeserver.WithLimit("key_day", 1_000_000)
	for name, opts := range map[string][]fakeserver.Option{
		"fixed":   {roomy},
		"sliding": {roomy, fakeserver.WithSlidingWindows()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakeserver.New(t, opts...)
				agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
				limits := agentmessaging.PreviewLimits()
				limits[2].Max = 1_000_000
				client, counted := pacedClient(t, fake, newPacer(t, limits))
				begin, calls := time.Now(), 200
				if testing.Short() {
					calls = 20
				}
				var group sync.WaitGroup
				for range 64 {
					group.Go(func() {
						for range calls {
							_, err := client.GetAgent(t.Context(), agent.ID)
							assert.NoError(t, err)
						}
					})
				}
				group.Wait()
				assert.Zero(t, counted.refused.Load())
				assert.EqualValues(t, 64*calls, counted.accepted.Load())
				assert.GreaterOrEqual(t, float64(counted.accepted.Load())/time.Since(begin).Minutes(), 0.98*60)
			})
		})
	}
}

// TestPacedClientOfASpentDay is refused here, and nothing is sent.
func TestPacedClientOfASpentDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithLimit("key_day", 20))
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
		limits := agentmessaging.PreviewLimits()
		limits[2].Max = 20
		client, counted := pacedClient(t, fake, newPacer(t, limits))
		var failure *agentmessaging.Error
		for range 20 {
			_, err := client.GetAgent(t.Context(), agent.ID)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		_, err := client.GetAgent(t.Context(), agent.ID) // the probe
		require.ErrorAs(t, err, &failure)
		assert.False(t, failure.Local)
		assert.EqualValues(t, 1, counted.refused.Load())
		before := fake.CallCount()
		_, err = client.GetAgent(t.Context(), agent.ID)
		require.ErrorAs(t, err, &failure)
		assert.True(t, failure.Local)
		assert.Equal(t, "key_day", failure.LimitKey)
		assert.InDelta(t, 24*3600, failure.RetryAfter.Seconds(), 60)
		assert.Equal(t, before, fake.CallCount())
		time.Sleep(failure.RetryAfter)
		_, err = client.GetAgent(t.Context(), agent.ID)
		assert.NoError(t, err)
	})
}

// TestPacerWaitsCountAsWaited, through a client whose call has no time for more.
func TestPacerWaitsCountAsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{status: 200, body: anyReply}}}
		client := newClient(t, transport, agentmessaging.WithLimiter(newPacer(t, perMinute(1))))
		require.NoError(t, get(t.Context(), client))
		var info agentmessaging.CallInfo
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Equal(t, 60400*time.Millisecond, info.Waited)
		ctx, cancel := after(30 * time.Second)
		defer cancel()
		begin := time.Now()
		var failure *agentmessaging.Error
		require.ErrorAs(t, get(ctx, client), &failure)
		assert.True(t, failure.Local)
		assert.Equal(t, "minute", failure.LimitKey)
		assert.Equal(t, 60400*time.Millisecond, failure.RetryAfter)
		assert.Zero(t, time.Since(begin))
		assert.Len(t, transport.sent(), 2)
	})
}

// TestPacerPacesRetriesToo: each attempt has a permit of its own, and one that
// was never sent gives it back.
func TestPacerPacesRetriesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{err: dialError}, {status: 503, body: `{}`}, {status: 200, body: anyReply}}}
		client := newClient(t, transport, agentmessaging.WithLimiter(newPacer(t, perMinute(1))))
		begin := time.Now()
		require.NoError(t, get(t.Context(), client))
		assert.InDelta(t, 61.4, time.Since(begin).Seconds(), 1.1, "two of three have spent something")
	})
}

// TestPacerFollowsTheFakesClock.
func TestPacerFollowsTheFakesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
		client, counted := pacedClient(t, fake, newPacer(t, agentmessaging.PreviewLimits(), agentmessaging.WithPacerClock(fake.Now)))
		begin := time.Now()
		for range 30 {
			for range 10 {
				_, err := client.GetAgent(t.Context(), agent.ID)
				require.NoError(t, err)
			}
			fake.Advance(time.Minute)
		}
		assert.Less(t, time.Since(begin), time.Second)
		assert.Zero(t, counted.refused.Load())
	})
}
