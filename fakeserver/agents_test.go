package fakeserver_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Nothing that the fake returns reaches what it keeps.
func TestCopies(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"metadata":{"a":1},"sms":{"mode":"sandbox"}}`)
	given, replied := []string{"w"}, []string{"w"}
	spoil := func(a fakeserver.Agent, said []fakeserver.Exchange) {
		a.Metadata[0], a.SMS.Status = 'x', "x"
		for i, e := range said {
			said[i].ReplyText = "x"
			copy(e.Warnings, []string{"x"})
		}
	}
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		spoil(m.Agent, m.History)
		return fakeserver.Reply{Text: "yes", Warnings: replied}
	})
	c.send(agent, "one").wantOK(t)
	c.send(agent, "two").wantOK(t)
	then := fake.Now().AddDate(-1, 0, 0)
	fake.AddExchanges(agent, fakeserver.Exchange{Warnings: given, Time: then.Local()}, fakeserver.Exchange{})
	given[0], replied[0] = "x", "x"
	for range 2 {
		a, _ := fake.Agent(agent)
		said := fake.Conversation(agent)
		assert.Equal(t, []string{`{"a":1}`, "active"}, []string{string(a.Metadata), a.SMS.Status})
		assert.Equal(t, []string{"yes", "w", "w"}, []string{said[0].ReplyText, said[0].Warnings[0], said[2].Warnings[0]})
		assert.Equal(t, []time.Time{then, fake.Now()}, []time.Time{said[2].Time, said[3].Time})
		assert.Equal(t, "Go-http-client/1.1", fake.Calls()[0].Header.Get("User-Agent"))
		spoil(a, said)
		spoil(fake.Agents()[0], nil)
		fake.Calls()[0].Header.Set("User-Agent", "x")
	}
}

// AddAgent fills in what is empty, and leaves the rest as it is given.
func TestAddAgent(t *testing.T) {
	start := time.Unix(year2040, 0).UTC()
	created := time.Date(2020, 5, 1, 12, 0, 0, 0, time.FixedZone("", 7200))
	hosted := fakeserver.LLM{Mode: "hosted", Tier: "fast"}
	byok := fakeserver.LLM{Mode: "byok", Tier: "smart", Model: "m", Provider: "openai", BaseURL: "https://x", Label: "l"}
	fresh := fakeserver.Agent{ID: "agent_000001", Status: "active", CreatedAt: start, UpdatedAt: start, Key: "key_000001", LLM: hosted}
	withSMS := func(sms fakeserver.SMS) fakeserver.Agent { a := fresh; a.SMS = &sms; return a }
	for _, row := range []struct{ given, want fakeserver.Agent }{
		{fakeserver.Agent{}, fresh},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "sandbox"}}, withSMS(fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+12025550101"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "sandbox", PhoneNumber: "+1"}}, withSMS(fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+1"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "byo_twilio"}}, withSMS(fakeserver.SMS{Mode: "byo_twilio", Status: "needs_setup"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Status: "pending"}}, withSMS(fakeserver.SMS{Status: "pending"})},
		{fakeserver.Agent{
			ID: "agent/one", Status: "suspended", CreatedAt: created, UpdatedAt: created.Add(time.Hour), Key: "key_000099",
			SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(` {"a": [1, 2]} `), LLM: byok,
		}, fakeserver.Agent{
			ID: "agent/one", Status: "suspended", CreatedAt: created.UTC(), UpdatedAt: created.Add(time.Hour).UTC(), Key: "key_000001",
			SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(`{"a":[1,2]}`), LLM: byok,
		}},
	} {
		fake, c := newFake(t, frozen())
		assert.Equal(t, row.want, fake.AddAgent(c.key, row.given))
		assert.Empty(t, fake.Calls(), "it is no call")
		assert.Zero(t, fake.Limits(c.key)[2].Used, "and spends nothing")
		stored, there := fake.Agent(row.want.ID)
		assert.Equal(t, []any{row.want, true}, []any{stored, there})
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).send("agent_000001", "hello").wantError(t, 404, "not_found")
	}
}

// Created agents never take an identifier that AddAgent has given away.
func TestAddAgentAndTheNextIdentifiers(t *testing.T) {
	fake, c := newFake(t)
	add := func(id string) string { return fake.AddAgent(c.key, fakeserver.Agent{ID: id}).ID }
	assert.Equal(t, "agent_000003", add("agent_000003"))
	assert.Equal(t, "agent_000002", c.agent(emptyBody), "the first agent that a call creates")
	assert.Equal(t, "agent_000004", add("agent_000004"))
	assert.Equal(t, "agent_000005", c.agent(emptyBody))
	assert.Equal(t, "support", add("support"))
	assert.Equal(t, "agent_000007", add(""))
	fake.RemoveAgent("agent_000007")
	assert.Equal(t, "agent_000008", c.agent(emptyBody), "no identifier is given twice")
	var ids []string
	for _, a := range fake.Agents() {
		ids = append(ids, a.ID)
	}
	assert.Equal(t, []string{"agent_000003", "agent_000002", "agent_000004", "agent_000005", "support", "agent_000008"}, ids)
}

// StoreBYOK stores what PUT /v1/byok would, also where that is refused. It is no call.
func TestStoreBYOK(t *testing.T) {
	fake, c := newFake(t, frozen())
	fake.SetBYOKAvailable(false)
	want := fakeserver.BYOK{Provider: "anthropic", BaseURL: "https://x", Model: "m", Label: "l"}
	stored := fake.StoreBYOK(c.key, "sk-canary", want)
	assert.Regexp(t, "^[0-9a-f]{16}$", stored.Fingerprint)
	want.Fingerprint, want.UpdatedAt = stored.Fingerprint, time.Unix(year2040, 0).UTC()
	read, set := fake.BYOK(c.key)
	assert.Equal(t, []any{want, want, true}, []any{stored, read, set})
	assert.Zero(t, fake.Limits(c.key)[3].Used)
	assert.Empty(t, fake.Calls())
	other := fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
	assert.Equal(t, stored.Fingerprint, fake.StoreBYOK(other, "sk-canary", fakeserver.BYOK{Provider: "openai"}).Fingerprint, "the same provider key")
	wire := c.call("GET", "/v1/byok", noBody).body["byok"]
	assert.Equal(t, map[string]any{"provider": "anthropic", "base_url": "https://x", "model": "m", "fingerprint": read.Fingerprint, "updated_at": "2040-01-01T00:00:00Z"}, wire)
	c.agent(`{"llm":{"mode":"byok"}}`)
}
