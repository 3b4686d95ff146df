package fakeserver_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// inBubbles runs f in a bubble for each of the in-memory ways.
func inBubbles(t *testing.T, f func(t *testing.T, fake *fakeserver.Server, c caller), opts ...fakeserver.Option) {
	for _, name := range []string{"wire", "direct"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakeserver.New(t, opts...)
				f(t, fake, caller{t, transports(t, fake)[name], fake.Key()})
			})
		})
	}
}

func TestLatenciesAddUp(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		short := fake.Inject(fakeserver.Latency(2*time.Second), fakeserver.ByEndpoint(fakeserver.EndpointStatus))
		long := fake.Inject(fakeserver.Latency(time.Minute)).Nth(2)
		fake.Inject(fakeserver.Answer(500, "")).Nth(3)
		begun := time.Now()
		for _, want := range []time.Duration{2 * time.Second, 62 * time.Second, 2 * time.Second} {
			before := time.Now()
			c.call("GET", "/v1/status", noBody)
			assert.Equal(t, want, time.Since(before))
		}
		assert.Equal(t, []int{3, 1}, []int{short.Hits(), long.Hits()})
		calls := fake.Calls()
		assert.Equal(t, "Latency(1m0s), Latency(2s)", calls[1].Fault)
		assert.Equal(t, "Answer(500), Latency(2s)", calls[2].Fault)
		assert.Zero(t, calls[0].Time.Sub(begun), "Call.Time is when the call arrived at the fake")
	})
}

// A call is judged when it reaches the service, by the time it has then.
func TestLimitsAreJudgedBehindLatency(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Exhaust(c.key, "key_minute")
		c.call("POST", "/v1/warmup", noBody).wantLimited(t, "key_minute", "60")
		fake.Inject(fakeserver.Latency(time.Minute))
		begun := time.Now()
		agent, _ := fake.Agent(c.agent(emptyBody))
		assert.Equal(t, time.Minute, agent.CreatedAt.Sub(begun), "from the call to its agent")
	})
}

// A call whose client leaves on the way never happens.
func TestClientThatLeavesDuringLatency(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		agent := c.agent(emptyBody)
		fake.Inject(fakeserver.Latency(time.Minute)).Required()
		fake.Inject(fakeserver.LoseReply(fakeserver.Answer(504, "")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		assert.Equal(t, "DeadlineExceeded", seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)))
		assert.Equal(t, time.Second, time.Since(begun))
		synctest.Wait()
		assert.Empty(t, fake.Conversation(agent))
		last := fake.Calls(fakeserver.ByAgent(agent))[0]
		assert.Equal(t, []any{"LoseReply(Answer(504)), Latency(1m0s)", 0}, []any{last.Fault, last.Status})
	})
}

// The header and the first part come at once, and each other part after a wait,
// until the deadline.
func TestDripTakesItsTime(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.DripReply(10, 3*time.Second))
		for _, deadline := range []time.Duration{time.Hour, 4 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			begun := time.Now()
			resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody).WithContext(ctx))
			require.NoError(t, err)
			first := make([]byte, 100)
			n, err := resp.Body.Read(first)
			require.NoError(t, err)
			assert.Equal(t, 10, n)
			assert.Zero(t, time.Since(begun))
			rest, err := io.ReadAll(resp.Body)
			if length := int(resp.ContentLength); deadline == time.Hour {
				assert.NoError(t, err)
				assert.Equal(t, length, n+len(rest))
				assert.Equal(t, time.Duration((length-1)/10)*3*time.Second, time.Since(begun))
			} else {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Len(t, rest, 10)
				assert.Equal(t, deadline, time.Since(begun))
			}
			require.NoError(t, resp.Body.Close())
			_, err = resp.Body.Read(first)
			assert.ErrorContains(t, err, "closed response body")
			cancel()
		}
	})
}

func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, fakeserver.WithColdStart(10*time.Second))
		took := func(c caller, agent string) time.Duration {
			before := time.Now()
			c.send(agent, "x").wantOK(t)
			return time.Since(before)
		}
		agent := c.agent(emptyBody)
		assert.Equal(t, 10*time.Second, took(c, agent))
		assert.Zero(t, took(c, agent))
		other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		other.call("POST", "/v1/warmup", noBody).wantOK(t)
		assert.Zero(t, took(other, other.agent(emptyBody)))
	})
}

// A message whose client left was accepted all the same.
func TestClientLeavesDuringColdStart(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		agent := c.agent(emptyBody)
		before := time.Now()
		client := &http.Client{Transport: c.wire, Timeout: time.Minute}
		_, err := client.Do(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`)) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "deadline exceeded")
		assert.Equal(t, time.Minute, time.Since(before))
		synctest.Wait()
		assert.Len(t, fake.Conversation(agent), 1)
		assert.Equal(t, 2, fake.CallCount())
	}, fakeserver.WithColdStart(time.Hour))
}
