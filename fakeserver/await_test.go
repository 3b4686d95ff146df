package fakeserver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func traces(calls []fakeserver.Call) (ids []string) {
	for _, call := range calls {
		ids = append(ids, call.TraceID)
	}
	return ids
}

func TestAwaitCallsThatHaveCome(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	for _, text := range []string{"one", "two", "three"} {
		c.send(agent, text)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	calls, err := fake.AwaitCalls(ended, 2, fakeserver.ByAgent(agent))
	require.NoError(t, err, "what has come has come")
	assert.Equal(t, []string{"trace_000002", "trace_000003"}, traces(calls), "the first, and no more than asked for")

	calls, err = fake.AwaitCalls(ended, 2, fakeserver.ByAgent(agent), fakeserver.ByText("two"))
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "fakeserver: AwaitCalls: 1 of 2 calls came that match ByAgent(agent_000001), ByText(3 characters): context canceled")
	assert.Equal(t, []string{"trace_000003"}, traces(calls))
	_, err = fake.AwaitCalls(ended, 5)
	assert.ErrorContains(t, err, "4 of 5 calls came that match every call")
}

// The calls are waited for without a look at the clock: in a bubble, time
// moves only when everybody waits. What was counted stays counted when Calls or
// Reset forgets it.
func TestAwaitCallsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, fakeserver.WithCallLimit(1))
		start := time.Now()
		go func() {
			for i := range 3 {
				time.Sleep(time.Hour)
				if i == 2 {
					fake.Reset()
				}
				c.call("GET", "/v1/status", noBody)
				c.call("GET", "/v1/byok", noBody)
			}
		}()
		calls, err := fake.AwaitCalls(t.Context(), 3, fakeserver.ByEndpoint(fakeserver.EndpointGetBYOK))
		require.NoError(t, err)
		assert.Equal(t, 3*time.Hour, time.Since(start))
		assert.Equal(t, []string{"trace_000002", "trace_000004", "trace_000002"}, traces(calls))
	})
}

// A call that is answered just when AwaitCalls begins is counted once.
func TestAwaitCallsWhileCallsCome(t *testing.T) {
	for range 50 {
		fake, c := newFake(t)
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() { c.call("GET", "/v1/status", noBody) })
		}
		calls, err := fake.AwaitCalls(t.Context(), 6)
		all.Wait()
		require.NoError(t, err)
		assert.ElementsMatch(t, traces(fake.Calls()), traces(calls))
	}
}

// A matcher runs without a lock and may call the fake or take its time; one that
// panics fails the test and spares the call. The result is in the order of the
// answers, also where a later call was matched sooner.
func TestAwaitCallsMatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch, fake, c := newSpied(t)
		for i, path := range []string{"/v1/byok", "/v1/status", "/v1/status"} {
			go func() {
				time.Sleep(time.Duration(i+1) * time.Second)
				c.call("GET", path, noBody).wantOK(t)
			}()
		}
		calls, err := fake.AwaitCalls(t.Context(), 2, fakeserver.Where(func(call fakeserver.Call) bool {
			switch call.TraceID {
			case "trace_000001":
				panic("not this one")
			case "trace_000002":
				time.Sleep(time.Hour)
			}
			return call.Status == 200 && fake.CallCount() > 1
		}))
		require.NoError(t, err)
		assert.Equal(t, []string{"trace_000002", "trace_000003"}, traces(calls))
		require.Len(t, watch.errors, 1)
		assert.Regexp(t, `^fakeserver: a matcher of AwaitCalls \(Where\(await_test.go:\d+\)\) panicked: not this one$`, watch.errors[0])
		synctest.Wait()
	})
}

func TestOnCall(t *testing.T) {
	watch, fake, c := newSpied(t, frozen())
	var seen []fakeserver.Call
	stop := fake.OnCall(func(call fakeserver.Call) {
		assert.Equal(t, call, fake.Calls()[len(fake.Calls())-1], "it is in Calls already")
		seen = append(seen, call)
	}, fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent))
	c.call("GET", "/v1/status", noBody)
	c.agent(emptyBody)
	fake.Reset()
	c.agent(emptyBody)
	assert.Equal(t, []string{"trace_000002", "trace_000001"}, traces(seen))
	assert.Equal(t, 200, seen[0].Status)
	seen[0].Header.Set("X", "mine")
	stop()
	stop()
	c.agent(emptyBody)
	assert.Len(t, seen, 2)
	fake.OnCall(func(fakeserver.Call) { panic("oops") })
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.Equal(t, []string{"fakeserver: the function of OnCall (every call) panicked: oops"}, watch.errors)
}
