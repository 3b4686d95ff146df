package fakeserver_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithColdStart(10*time.Second))
		c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
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
