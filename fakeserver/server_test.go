package fakeserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestCloseRefusesAndIsIdempotent(t *testing.T) {
	fake, err := fakeserver.Open()
	require.NoError(t, err)
	client := fake.HTTPClient(nil)
	resp, err := client.Get(fake.BaseURL() + "/v1/status")
	require.NoError(t, err)
	read(t, resp)
	fake.OnMessage().Required()
	assert.ErrorContains(t, fake.Close(), "OnMessage() is required and was never used; calls that it matched: 0")
	assert.NoError(t, fake.Close())
	for _, refused := range []caller{{t, client.Transport, ""}, {t, fake.Direct(), ""}} {
		_, err = refused.wire.RoundTrip(refused.request("POST", "/v1/warmup", noBody)) //nolint:bodyclose // there is none
		assert.ErrorContains(t, err, "the fake is closed")
	}
}

func TestReset(t *testing.T) {
	watch, fake, c := newSpied(t)
	other := fake.IssueKey(fakeserver.KeyOptions{})
	agent := c.agent(emptyBody)
	c.setBYOK()
	c.send(agent, "hello").wantOK(t)
	fake.SetBYOKAvailable(false)
	fake.SetPlan(fake.Key(), fakeserver.PlanFree)
	fake.Exhaust(fake.Key(), "key_day")
	fake.RevokeKey(fake.Key())
	fake.OnMessage().Reply("scripted").Required()
	fake.Advance(24 * time.Hour)
	before := fake.Key()

	fake.Reset()
	assert.Equal(t, []string{"fakeserver: OnMessage() is required and was never used; calls that it matched: 0; " +
		"nearest: trace_000003 POST /v1/agents/agent_000001/messages key_000001: 200, " +
		"which matches: it came before the rule was made, or another acted on it"}, watch.errors)
	assert.Equal(t, before, fake.Key())
	assert.Empty(t, fake.Calls())
	assert.Empty(t, fake.Agents())
	c.with(other).call("GET", "/v1/status", noBody).wantError(t, 401, "unauthorized")
	assert.Nil(t, c.call("GET", "/v1/byok", noBody).body["byok"])
	c.setBYOK()
	assert.Equal(t, "agent_000001", c.agent(emptyBody))
	r := c.send("agent_000001", "hello")
	assert.Equal(t, "You wrote: hello", r.text("reply_text"))
	assert.Equal(t, "trace_000005", r.text("trace_id"))
	date, err := time.Parse(time.RFC1123, r.header.Get("Date"))
	require.NoError(t, err)
	assert.Greater(t, time.Until(date), 23*time.Hour, "the clock keeps what Advance added")
	assert.Equal(t, other, fake.IssueKey(fakeserver.KeyOptions{}), "key texts start again")
}

func TestServerPrintsItsNameOnly(t *testing.T) {
	fake, _ := newFake(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		assert.Equal(t, "fakeserver.Server", fmt.Sprintf(verb, fake))
	}
}

// The monotonic clocks of a bubble and of the outside cannot be compared.
func TestTimesHaveNoMonotonicReading(t *testing.T) {
	fake, c := newFake(t)
	agent, _ := fake.Agent(c.agent(emptyBody))
	assert.NotContains(t, agent.CreatedAt.String(), "m=")
	assert.Equal(t, time.UTC, agent.CreatedAt.Location())
	assert.WithinDuration(t, time.Now(), fake.Calls()[0].Time, time.Hour)
}
