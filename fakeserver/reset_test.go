package fakeserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A call that is under way at a Reset ends in the world that it began in, and
// leaves nothing in the new one.
func TestResetInsideACall(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
		fake.Reset()
		return fakeserver.Reply{Text: "from before"}
	})
	assert.Equal(t, "from before", c.send(agent, "x").text("reply_text"))
	assert.Empty(t, fake.Calls())
	assert.Zero(t, fake.Admin().TotalCalls())
	assert.Empty(t, fake.Agents())
	assert.Equal(t, "trace_000001", c.call("GET", "/v1/status", noBody).text("trace_id"))
}

// A matcher runs before the effect of a call.
func TestResetBeforeTheEffectOfACall(t *testing.T) {
	fake, c := newFake(t, frozen())
	second := fake.IssueKey(fakeserver.KeyOptions{})
	fake.Inject(fakeserver.Latency(1), fakeserver.Where(func(fakeserver.Call) bool { fake.Reset(); return true }))
	c.with(second).call("POST", "/v1/agents", emptyBody).wantOK(t)
	assert.Empty(t, fake.Agents())
	assert.Empty(t, fake.Calls())
	for _, limit := range fake.Limits(c.key) {
		assert.Zero(t, limit.Used)
	}
}
