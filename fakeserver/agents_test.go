package fakeserver_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestCreateAndReadAgent(t *testing.T) {
	fake, c := newFake(t, frozen())
	assert.JSONEq(t, `{"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}`, c.call("POST", "/v1/agents", emptyBody).raw)
	fake.Advance(time.Second)
	created := c.call("POST", "/v1/agents", `{"system_prompt":"Be brief.","customer_ref":"c-1","metadata":{ "a": [1, {}] },"sms":{"mode":"sandbox"},"llm":{"tier":"smart"}}`)
	assert.JSONEq(t, `{"agent_id":"agent_000002","status":"active","sms":{"status":"active"},"trace_id":"trace_000002"}`, created.raw)
	assert.JSONEq(t, `{"agent_id":"agent_000002","status":"active","created_at":"2040-01-01T00:00:01Z","updated_at":"2040-01-01T00:00:01Z",
		"sms":{"status":"active","phone_number":"+12025550102"},"trace_id":"trace_000003"}`, c.call("GET", "/v1/agents/agent_000002", noBody).raw)
	assert.JSONEq(t, `{"agent_id":"agent_000001","status":"active","created_at":"2040-01-01T00:00:00Z","updated_at":"2040-01-01T00:00:00Z",
		"trace_id":"trace_000004"}`, c.call("GET", "/v1/agents/agent_000001", noBody).raw)

	at := time.Unix(year2040, 0).UTC()
	assert.Equal(t, []fakeserver.Agent{{
		ID: "agent_000001", Status: "active", CreatedAt: at, UpdatedAt: at, Key: "key_000001",
		LLM: fakeserver.LLM{Mode: "hosted", Tier: "fast"},
	}, {
		ID: "agent_000002", Status: "active", CreatedAt: at.Add(time.Second), UpdatedAt: at.Add(time.Second), Key: "key_000001",
		SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(`{"a":[1,{}]}`),
		SMS: &fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+12025550102"},
		LLM: fakeserver.LLM{Mode: "hosted", Tier: "smart"},
	}}, fake.Agents())
	_, ok := fake.Agent("agent_000003")
	assert.False(t, ok)
}

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
		e := fake.Conversation(agent)
		assert.Equal(t, "yes", e[0].ReplyText)
		assert.Equal(t, "w", e[0].Warnings[0])
		assert.Equal(t, "Go-http-client/1.1", fake.Calls()[0].Header.Get("User-Agent"))
	}
	want()
	a, _ := fake.Agent(agent)
	a.Metadata[0], a.SMS.Status = 'x', "x"
	all := fake.Agents()
	all[0].Metadata[0], all[0].SMS.Status = 'x', "x"
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
		fake.SetSMS(agent, status, "")
		assert.Equal(t, map[string]any{"status": status}, c.call("GET", "/v1/agents/"+agent, noBody).body["sms"])
	}
	fake.SetSMS(agent, "active", "+12025550199")
	read := c.call("GET", "/v1/agents/"+agent, noBody)
	assert.Equal(t, map[string]any{"status": "active", "phone_number": "+12025550199"}, read.body["sms"])
	assert.Equal(t, "2040-01-01T00:00:05Z", read.text("updated_at"))
	c.call("POST", "/v1/agents/"+agent+"/channels/sms", `{"mode":"managed"}`).wantOK(t)
	a, _ := fake.Agent(agent)
	assert.Equal(t, &fakeserver.SMS{Mode: "managed", Status: "needs_compliance"}, a.SMS)
}
