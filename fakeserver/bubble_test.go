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
