package fakeserver_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Nothing that the fake returns reaches what it keeps.
func TestCopies(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(`{"metadata":{"a":1},"sms":{"mode":"sandbox"}}`)
	given, replied := []string{"w"}, []string{"w"}
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		m.Agent.Metadata[0], m.Agent.SMS.Status = 'x', "x"
		for i := range m.History {
			m.History[i].ReplyText, m.History[i].Warnings[0] = "x", "x"
		}
		return fakeserver.Reply{Text: "yes", Warnings: replied}
	})
	c.send(agent, "one").wantOK(t)
	c.send(agent, "two").wantOK(t)
	fake.AddExchanges(agent, fakeserver.Exchange{Warnings: given})
	given[0], replied[0] = "x", "x"
	want := func() {
		t.Helper()
		assert.Equal(t, []string{"w"}, fake.Conversation(agent)[2].Warnings)
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

func TestAddAgentFillsWhatIsEmpty(t *testing.T) {
	start := time.Unix(year2040, 0).UTC()
	for _, row := range []struct{ given, want *fakeserver.SMS }{
		{nil, nil},
		{&fakeserver.SMS{Mode: "sandbox"}, &fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+12025550101"}},
		{&fakeserver.SMS{Mode: "sandbox", PhoneNumber: "+1"}, &fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+1"}},
		{&fakeserver.SMS{Mode: "byo_twilio"}, &fakeserver.SMS{Mode: "byo_twilio", Status: "needs_setup"}},
		{&fakeserver.SMS{Status: "pending"}, &fakeserver.SMS{Status: "pending"}},
	} {
		fake, c := newFake(t, frozen())
		assert.Equal(t, fakeserver.Agent{
			ID: "agent_000001", Status: "active", CreatedAt: start, UpdatedAt: start, Key: "key_000001",
			LLM: fakeserver.LLM{Mode: "hosted", Tier: "fast"}, SMS: row.want,
		}, fake.AddAgent(c.key, fakeserver.Agent{SMS: row.given}))
		assert.Empty(t, fake.Calls(), "it is no call")
		assert.Zero(t, fake.Limits(c.key)[2].Used, "and spends nothing")
		assert.Equal(t, "agent_000002", c.agent(emptyBody))
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).send("agent_000001", "hello").wantError(t, 404, "not_found")
	}
}

func TestAddAgentKeepsWhatIsGiven(t *testing.T) {
	fake, c := newFake(t, frozen())
	key := fake.IssueKey(fakeserver.KeyOptions{})
	created := time.Date(2020, 5, 1, 12, 0, 0, 0, time.FixedZone("", 7200))
	given := fakeserver.Agent{
		ID: "agent/one", Status: "suspended", CreatedAt: created, UpdatedAt: created.Add(time.Hour), Key: "key_000099",
		SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(` {"a": [1, 2]} `),
		SMS: &fakeserver.SMS{Mode: "managed", Status: "pending", PhoneNumber: "+1"},
		LLM: fakeserver.LLM{Mode: "byok", Tier: "smart", Model: "m", Provider: "openai", BaseURL: "https://x", Label: "l"},
	}
	want := given
	want.Key, want.Metadata = "key_000002", json.RawMessage(`{"a":[1,2]}`)
	want.CreatedAt, want.UpdatedAt = created.UTC(), created.Add(time.Hour).UTC()
	sms := *given.SMS
	want.SMS = &sms

	got := fake.AddAgent(key, given)
	assert.Equal(t, want, got)
	given.SMS.Status, given.Metadata[2] = "changed", 'X'
	got.SMS.Status, got.Metadata[2] = "changed", 'X'
	stored, there := fake.Agent("agent/one")
	assert.Equal(t, []any{want, true}, []any{stored, there}, "copies in, copies out")
	fake.AddExchanges("agent/one", fakeserver.Exchange{Time: created}, fakeserver.Exchange{})
	said := fake.Conversation("agent/one")
	assert.Equal(t, []time.Time{created.UTC(), fake.Now()}, []time.Time{said[0].Time, said[1].Time})
	r := c.with(key).call("GET", "/v1/agents/agent%2Fone", noBody)
	assert.Equal(t, []string{"suspended", "2020-05-01T10:00:00Z"}, []string{r.text("status"), r.text("created_at")})
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

// The reason names the member that needs a BYOK configuration or the store.
func TestBYOKFailuresNameTheirMember(t *testing.T) {
	fake, c := newFake(t)
	const creation = `{"llm":{"provider":"openai","api_key":"sk"}}`
	for _, row := range []struct {
		available                  bool
		method, path, body, member string
	}{
		{true, "POST", "/v1/warmup", `{"mode":"byok"}`, "mode"},
		{true, "POST", "/v1/agents", `{"llm":{"mode":"byok"}}`, "llm.mode"},
		{true, "POST", "/v1/agents", `{"llm":{"api_key":"sk"}}`, "llm.provider"},
		{false, "POST", "/v1/warmup", `{"mode":"byok"}`, "mode"},
		{false, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, "api_key"},
		{false, "POST", "/v1/agents", creation, "llm.api_key"},
	} {
		fake.SetBYOKAvailable(row.available)
		r := c.call(row.method, row.path, row.body)
		assert.True(t, strings.HasPrefix(r.text("reason"), row.member+": "), "%+v: %s", row, clipped(r.raw))
		assert.Equal(t, row.member, fake.Calls()[fake.CallCount()-1].Member)
	}
}

func TestStoreBYOK(t *testing.T) {
	fake, c := newFake(t, frozen())
	other := fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
	read, set := fake.BYOK(c.key)
	assert.Equal(t, []any{fakeserver.BYOK{}, false}, []any{read, set}, "before StoreBYOK")
	fake.SetBYOKAvailable(false)
	want := fakeserver.BYOK{Provider: "anthropic", BaseURL: "https://x", Model: "m", Label: "l"}
	stored := fake.StoreBYOK(c.key, "sk-canary", want)
	assert.Regexp(t, "^[0-9a-f]{16}$", stored.Fingerprint)
	want.Fingerprint, want.UpdatedAt = stored.Fingerprint, time.Unix(year2040, 0).UTC()
	read, set = fake.BYOK(c.key)
	assert.Equal(t, []any{want, want, true}, []any{stored, read, set}, "after StoreBYOK")
	assert.Equal(t, fakeserver.BYOK{Provider: "openai", Fingerprint: stored.Fingerprint, UpdatedAt: want.UpdatedAt},
		fake.StoreBYOK(other, "sk-canary", fakeserver.BYOK{Provider: "openai"}), "the same provider key")
	assert.Zero(t, fake.Limits(c.key)[3].Used)
	assert.Empty(t, fake.Calls())
	wire := c.call("GET", "/v1/byok", noBody).body["byok"]
	assert.Equal(t, map[string]any{"provider": "anthropic", "base_url": "https://x", "model": "m", "fingerprint": read.Fingerprint, "updated_at": "2040-01-01T00:00:00Z"}, wire)
	assert.NotEqual(t, stored.Fingerprint, fake.StoreBYOK(other, "sk-another", fakeserver.BYOK{Provider: "openai"}).Fingerprint)
	c.agent(`{"llm":{"mode":"byok"}}`)
}
