package fakeserver_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A client ends with its test, and only when the fake is done with its calls.
func TestClientEndsWithItsTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, watch := fakeserver.New(t), new(spy)
		c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
		agent, done := c.agent(emptyBody), false
		fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			time.Sleep(time.Hour)
			done = true
			return fakeserver.Reply{}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, context.DeadlineExceeded)
		watch.finish()
		assert.True(t, done, "the cleanup waits")
		_, err = c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		c.wire = fake.HTTPClient(t).Transport
		c.call("GET", "/v1/status", noBody).wantOK(t)
	})
}

// A day of waiting takes milliseconds.
func TestBubbles(t *testing.T) {
	t.Run("a minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := fakeserver.New(t)
			waitOut(t, fake, fake.Key(), "192.0.2.1", 60, time.Minute)
			assert.Equal(t, 62, fake.CallCount())
		})
	})
	t.Run("a day", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := fakeserver.New(t, fakeserver.WithLimit("key_minute", 2000), fakeserver.WithLimit("ip_minute", 2000))
			waitOut(t, fake, fake.Key(), "192.0.2.1", 1000, 24*time.Hour)
		})
	})
}

// waitOut spends a limit of max calls, is refused, waits as told and passes.
func waitOut(t *testing.T, fake *fakeserver.Server, key, ip string, maximum int, wait time.Duration) {
	c := caller{t, fake.HTTPClient(t, fakeserver.FromIP(ip)).Transport, key}
	c.times(maximum, "GET", anAgent, noBody)
	before := time.Now()
	r := c.call("GET", anAgent, noBody)
	r.wantError(t, 429, "rate_limited")
	told, err := time.ParseDuration(r.header.Get("Retry-After") + "s")
	require.NoError(t, err)
	time.Sleep(told)
	c.call("GET", anAgent, noBody).wantError(t, 404, "not_found")
	assert.Equal(t, wait, time.Since(before))
}

// One fake serves several bubbles and the outside at once.
func TestOneFakeInManyBubbles(t *testing.T) {
	fake, outside := newFake(t)
	t.Run("group", func(t *testing.T) {
		for _, ip := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"} {
			key := fake.IssueKey(fakeserver.KeyOptions{})
			t.Run(ip, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { waitOut(t, fake, key, ip, 60, time.Minute) })
			})
		}
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			outside.wire = fake.HTTPClient(t).Transport
			outside.times(60, "GET", anAgent, noBody)
			outside.call("GET", anAgent, noBody).wantError(t, 429, "rate_limited")
		})
	})
	assert.Equal(t, 4*62+61, fake.CallCount())
}

// One key under two clocks cannot be limited; the test is told.
func TestOneKeyInsideAndOutside(t *testing.T) {
	watch, fake, c := newSpied(t)
	c.call("GET", anAgent, noBody)
	synctest.Test(t, func(t *testing.T) {
		inside := caller{t, fake.HTTPClient(t).Transport, c.key}
		inside.call("GET", anAgent, noBody).wantError(t, 404, "not_found")
	})
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "issue a key of its own for each bubble")
}
