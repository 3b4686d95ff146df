package fakeserver_test

import (
	"context"
	"io"
	"net/http"
	"sync"
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
		assert.True(t, begun.Equal(calls[0].Time), "a call's time is that of its arrival at the fake")
	})
}

// A call is judged when it reaches the service, by the time it has then.
func TestLimitsAreJudgedBehindLatency(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Exhaust(c.key, "key_minute")
		c.call("POST", "/v1/warmup", noBody).wantLimited(t, "key_minute", "60")
		latency := fake.Inject(fakeserver.Latency(time.Minute)).Times(1)
		c.call("POST", "/v1/warmup", noBody).wantOK(t)
		agent := c.agent(emptyBody)
		latency.Times(2)
		begun := time.Now()
		c.send(agent, "x").wantOK(t)
		assert.True(t, fake.Conversation(agent)[0].Time.Equal(begun.Add(time.Minute)))
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
		_, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begun))
		synctest.Wait()
		assert.Empty(t, fake.Conversation(agent))
		last := fake.Calls(fakeserver.ByAgent(agent))[0]
		assert.Equal(t, []any{"LoseReply(Answer(504)), Latency(1m0s)", 0}, []any{last.Fault, last.Status})
	})
}

// The waits of a fault hold nothing up: neither other calls nor the fake.
func TestLatencyHoldsNoLock(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.Latency(time.Second), fakeserver.Where(func(fakeserver.Call) bool {
			time.Sleep(time.Second)
			return fake.CallCount() >= 0
		}))
		begun := time.Now()
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() { c.call("GET", "/v1/status", noBody) })
		}
		wait.Wait()
		assert.Equal(t, 2*time.Second, time.Since(begun))
	}, unlimited()...)
}

func TestHangEndsWithTheDeadline(t *testing.T) {
	for _, fault := range []fakeserver.Fault{fakeserver.Hang(), fakeserver.LoseReply(fakeserver.Hang())} {
		inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
			fake.Inject(fault)
			begun := time.Now()
			client := http.Client{Transport: c.wire, Timeout: 5 * time.Second}
			_, err := client.Do(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, 5*time.Second, time.Since(begun))
		})
	}
}

// A hang does not keep a test from ending: its cleanup hangs up.
func TestHangEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, watch := fakeserver.New(t), new(spy)
		fake.Inject(fakeserver.Hang())
		c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
		ended := make(chan string)
		go func() { ended <- seen(c.wire, c.request("POST", "/v1/warmup", emptyBody)) }()
		synctest.Wait()
		watch.finish()
		assert.NotEmpty(t, <-ended)
	})
}

func TestDripTakesItsTime(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.DripReply(10, 3*time.Second))
		begun := time.Now()
		resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody))
		require.NoError(t, err)
		assert.Zero(t, time.Since(begun), "the header comes at once")
		first := make([]byte, 100)
		n, err := resp.Body.Read(first)
		require.NoError(t, err)
		assert.Equal(t, 10, n)
		assert.Zero(t, time.Since(begun), "and so does the first part")
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		length := int(resp.ContentLength)
		assert.Equal(t, length, n+len(rest))
		assert.Equal(t, time.Duration((length-1)/10)*3*time.Second, time.Since(begun))
		_, err = resp.Body.Read(first)
		assert.ErrorContains(t, err, "closed response body")
	})
}

func TestDeadlineDuringDrip(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.DripReply(10, 3*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		begun := time.Now()
		resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody).WithContext(ctx))
		require.NoError(t, err)
		defer resp.Body.Close()
		read, err := io.ReadAll(resp.Body)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, read, 20)
		assert.Equal(t, 4*time.Second, time.Since(begun))
	})
}
