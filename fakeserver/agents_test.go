package fakeserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Nothing that the fake returns reaches what it keeps.
func TestCopies(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(`{"metadata":{"a":1},"sms":{"mode":"sandbox"}}`)
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		m.Agent.Metadata[0], m.Agent.SMS.Status = 'x', "x"
		for i := range m.History {
			m.History[i].ReplyText, m.History[i].Warnings[0] = "x", "x"
		}
		return fakeserver.Reply{Text: "yes", Warnings: []string{"w"}}
	})
	c.send(agent, "one").wantOK(t)
	c.send(agent, "two").wantOK(t)
	want := func() {
		t.Helper()
		a, _ := fake.Agent(agent)
		assert.Equal(t, `{"a":1}`, string(a.Metadata))
		assert.Equal(t, "active", a.SMS.Status)
		e := fake.Conversation(agent)[0]
		assert.Equal(t, []string{"yes", "w"}, []string{e.ReplyText, e.Warnings[0]})
		assert.Equal(t, "Go-http-client/1.1", fake.Calls()[0].Header.Get("User-Agent"))
	}
	want()
	a, _ := fake.Agent(agent)
	for _, shown := range []fakeserver.Agent{a, fake.Agents()[0]} {
		shown.Metadata[0], shown.SMS.Status = 'x', "x"
	}
	e := fake.Conversation(agent)
	e[0].ReplyText, e[0].Warnings[0] = "x", "x"
	fake.Calls()[0].Header.Set("User-Agent", "x")
	want()
}

func TestSetSMS(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	for _, status := range []string{"disabled", "needs_compliance", "pending", "active", "needs_setup"} {
		fake.Advance(time.Second)
		fake.SetSMS(agent, status, "+12025550199")
		read := c.call("GET", "/v1/agents/"+agent, noBody)
		assert.Equal(t, map[string]any{"status": status, "phone_number": "+12025550199"}, read.body["sms"])
	}
	c.call("POST", "/v1/agents/"+agent+"/channels/sms", `{"mode":"managed"}`).wantOK(t)
	a, _ := fake.Agent(agent)
	assert.Equal(t, &fakeserver.SMS{Mode: "managed", Status: "needs_compliance"}, a.SMS)
	assert.Equal(t, 5*time.Second, a.UpdatedAt.Sub(a.CreatedAt))
}

// What a creation says of its language model, the agent keeps, but for the key.
func TestLLMOfAnAgent(t *testing.T) {
	fake, c := newFake(t)
	id := c.agent(`{"llm":{"mode":"byok","provider":"openai","api_key":"sk","model":"m","base_url":"https://x.example","label":"l"}}`)
	agent, _ := fake.Agent(id)
	assert.Equal(t, fakeserver.LLM{Mode: "byok", Tier: "fast", Model: "m", Provider: "openai", BaseURL: "https://x.example", Label: "l"}, agent.LLM)
	plain, _ := fake.Agent(c.agent(emptyBody))
	assert.Equal(t, fakeserver.LLM{Mode: "hosted", Tier: "fast"}, plain.LLM)
	config, _ := fake.BYOK(c.key)
	assert.Equal(t, []string{"openai", "https://x.example", "m", "l"}, []string{config.Provider, config.BaseURL, config.Model, config.Label})
}
