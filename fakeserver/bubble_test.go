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

// The header and the first part come at once, and each other part after a wait.
func TestDripTakesItsTime(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.DripReply(10, 3*time.Second))
		begun := time.Now()
		resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody))
		require.NoError(t, err)
		defer resp.Body.Close()
		n, err := resp.Body.Read(make([]byte, 100))
		require.NoError(t, err)
		assert.Equal(t, 10, n)
		assert.Zero(t, time.Since(begun))
		rest, err := io.ReadAll(resp.Body)
		assert.NoError(t, err)
		assert.Equal(t, int(resp.ContentLength), n+len(rest))
		assert.Equal(t, time.Duration((n+len(rest)-1)/10)*3*time.Second, time.Since(begun))
	})
}

// A record has what left of an answer, and when, and how it ended: not what would
// have left. A call whose client leaves on the way never happens.
func TestSentIsWhatLeft(t *testing.T) {
	for _, row := range []struct {
		fault       fakeserver.Fault
		bytes, runs int
		broke, line string
		why         string
	}{
		{fakeserver.DripReply(10, time.Hour), 10, 1, "left", "200, left after 10 bytes", "sent 10 bytes at a time"},
		{fakeserver.Hang(), 0, 0, "hung", "no answer, hung", "never answered"},
		{fakeserver.Latency(time.Hour), 0, 0, "left", "no answer, left", "The client left after 2s, before the call reached the service: it had no effect."},
	} {
		inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
			agent, begun := c.agent(emptyBody), fake.Now()
			fake.Inject(row.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			req := c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)
			ended := make(chan string)
			go func() { ended <- seen(c.wire, req) }()
			time.Sleep(time.Second)
			under := fake.UnderWay()
			require.Len(t, under, 1)
			assert.Equal(t, []any{begun, time.Time{}, row.bytes}, []any{under[0].Time, under[0].Sent.Ended, under[0].Sent.Bytes})
			assert.Contains(t, <-ended, "DeadlineExceeded")
			synctest.Wait()
			assert.Empty(t, fake.UnderWay())
			call := fake.Calls(fakeserver.ByAgent(agent))[0]
			assert.Equal(t, []any{row.bytes, row.broke, begun.Add(2 * time.Second)}, []any{call.Sent.Bytes, call.Sent.Broke, call.Sent.Ended})
			assert.Contains(t, call.String(), row.line)
			assert.Contains(t, call.Why, row.why)
			assert.Len(t, call.Sent.Body, row.bytes)
			assert.Len(t, fake.Conversation(agent), row.runs)
		}, fakeserver.WithMessageTexts())
	}
}

// The first message of a key waits, unless it was warmed up. One whose client left was
// accepted all the same.
func TestColdStart(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		took := func(c caller, agent string) time.Duration {
			before := time.Now()
			c.send(agent, "x").wantOK(t)
			return time.Since(before)
		}
		other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		agent := other.agent(emptyBody)
		assert.Equal(t, time.Hour, took(other, agent))
		assert.Zero(t, took(other, agent))
		warm := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		warm.call("POST", "/v1/warmup", noBody).wantOK(t)
		assert.Zero(t, took(warm, warm.agent(emptyBody)))

		agent = c.agent(emptyBody)
		client := &http.Client{Transport: c.wire, Timeout: time.Minute}
		_, err := client.Do(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`)) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "deadline exceeded")
		synctest.Wait()
		assert.Len(t, fake.Conversation(agent), 1)
	}, fakeserver.WithColdStart(time.Hour))
}
