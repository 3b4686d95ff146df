package fakeserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// like is a fake that answers one question otherwise.
func like(t testing.TB, id, answer string, opts ...fakeserver.Option) (*fakeserver.Server, caller) {
	t.Helper()
	file := fmt.Sprintf(`{"format":1,"decisions":{"times":{"not_asked":"needs a key"},%q:{"answer":%s,"evidence":{}}},"spent":{}}`, id, answer)
	return newFake(t, append(opts, fakeserver.Like([]byte(file)), fakeserver.WithUnknownRoutes())...)
}

func TestLikeRefusesWhatItCannotBe(t *testing.T) {
	for id, answer := range map[string]string{
		"metadata_cap": `1`, "times": `"rfc850"`, "unknown_method": `403`, "reason": `"yes"`, "minute_limit_name": `""`,
		"sms_status": `{"fax":"active"}`, "status": `{"name":"x"}`, "mood": `true`, "clear_nothing": `"200"`,
	} {
		_, err := fakeserver.Open(fakeserver.Like(fmt.Appendf(nil, `{"format":1,"decisions":{%q:{"answer":%s}}}`, id, answer)))
		assert.ErrorContains(t, err, `fakeserver: Like: "`+id+`": `)
	}
	for _, file := range []string{`{`, `{}`, `{"format":2}`, `[]`, `{"format":1,"decisions":[]}`} {
		_, err := fakeserver.Open(fakeserver.Like([]byte(file)))
		assert.ErrorContains(t, err, "fakeserver: Like: ", file)
	}
}

func TestDecisionsSayWhatIsInForce(t *testing.T) {
	fake, c := like(t, "metadata_cap", `2`, fakeserver.WithDecision("windows", "sliding"))
	c.call("POST", "/v1/agents", `{"metadata":{"a":1}}`).wantReason(t, "metadata: at most 2 characters of compact JSON")
	set := map[string]fakeserver.Decision{}
	for _, d := range fake.Decisions() {
		assert.True(t, json.Valid([]byte(d.Answer)), "%s: %s", d.ID, d.Answer)
		assert.NotEmpty(t, d.Question+d.Possible, d.ID)
		set[d.ID] = d
	}
	assert.Equal(t, fakeserver.Decision{
		ID: "metadata_cap", Question: "How many characters of compact JSON may metadata have?", Possible: "a number from 2",
		Default: "4096", Answer: "2", Observed: true,
	}, set["metadata_cap"])
	assert.Equal(t, fakeserver.Decision{
		ID: "windows", Question: "How does a limit count calls?", Possible: `"fixed", "sliding", "aligned", "weighted" or "token bucket"`,
		Default: `"fixed"`, Answer: `"sliding"`,
	}, set["windows"])
	assert.Equal(t, []string{"404 or 405", "true or false"}, []string{set["unknown_method"].Possible, set["reason"].Possible})
}

// TestLikeWithBounds: where only bounds were observed, the fake's own answer is
// moved between them, and Decisions says that it was.
func TestLikeWithBounds(t *testing.T) {
	for bounds, want := range map[string]string{
		`"at_least":3100`: "4096", `"at_least":65536`: "65536", `"at_most":6`: "6", `"at_least":5000,"at_most":6000`: "5000",
	} {
		fake, _ := newFake(t, fakeserver.Like(fmt.Appendf(nil, `{"format":1,"decisions":{"metadata_cap":{%s},"windows":{%s}}}`, bounds, bounds)))
		for _, d := range fake.Decisions() {
			isCap := d.ID == "metadata_cap"
			assert.Equal(t, []bool{false, isCap}, []bool{d.Observed, d.Inferred}, d.ID)
			assert.True(t, !isCap || d.Answer == want, "%s: %s", bounds, d.Answer)
		}
	}
}

// likes are answers of another service, and what the fake does then.
var likes = []struct {
	id, answer string
	check      func(fake *fakeserver.Server, c caller)
}{
	{"creation_stores_key", "false", func(fake *fakeserver.Server, c caller) { // but the agent keeps it
		agent := c.agent(`{"llm":{"mode":"byok","provider":"openai","api_key":"sk-canary"}}`)
		config, stored := fake.BYOK(c.key)
		assert.Equal(c.t, []any{fakeserver.BYOK{}, false}, []any{config, stored}, "after the creation")
		file := written(c.t, fake)
		assert.Contains(c.t, file, `"own_key":true`)
		assert.NoError(c.t, fake.ReadState(strings.NewReader(file)))
		c.send(agent, "x").wantOK(c.t)
	}},
	{"agent_of_another_key", "200", func(fake *fakeserver.Server, c caller) { // it uses what its own key has stored
		fake.StoreBYOK(c.key, "sk-canary", fakeserver.BYOK{Provider: "openai"})
		agent := c.agent(`{"llm":{"mode":"byok"}}`)
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).send(agent, "x").wantOK(c.t)
	}},
	{"other_limit_names", `{"key_day":"daily"}`, func(fake *fakeserver.Server, c caller) {
		fake.Exhaust(c.key, fakeserver.LimitKeyDay)
		c.call("GET", anAgent, noBody).wantLimited(c.t, "daily", "86400")
		assert.Equal(c.t, "daily", fake.Calls()[0].LimitKey)
	}},
	{"duplicate_members", "true", func(fake *fakeserver.Server, c caller) { // the last counts
		agent, _ := fake.Agent(c.agent(`{"llm":{"model":"a","label":"x"},"llm":{"model":"b"},"customer_ref":"1","customer_ref":"2"}`))
		assert.Equal(c.t, []string{"b", "", "2"}, []string{agent.LLM.Model, agent.LLM.Label, agent.CustomerRef})
	}},
	{"null_members", "true", func(_ *fakeserver.Server, c caller) { // null is not a value that is required
		agent := c.agent(`{"llm":null,"metadata":null}`)
		c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":null}`).wantReason(c.t, "text: is required")
	}},
	{"unknown_members", "true", func(fake *fakeserver.Server, c caller) { // of messages only
		agent := c.agent(emptyBody)
		c.call("POST", "/v1/agents", `{"mood":"good"}`).wantError(c.t, 400, "bad_request")
		c.call("POST", "/v1/agents/"+agent+"/messages", `{"api_key":"sk-1","text":"hello","more":{"a":[1]}}`).wantOK(c.t)
		assert.Equal(c.t, `{"api_key":"[redacted]","text":"[redacted, 5 characters]","more":{"a":[1]}}`, fake.Calls()[2].Body)
	}},
	{"refused_requests_spend", `{"401":true}`, func(fake *fakeserver.Server, c caller) { // of the address
		c.with("").times(3, "GET", anAgent, noBody)
		assert.Regexp(c.t, `^key_minute 0/\d+, ip_minute 3/120, key_day 0/1000, agent_create_key_day 0/50, agent_create_ip_minute 0/10, `+
			`byok_set_key_hour 0/5, warmup_key_hour 0/3$`, spent(fake.Limits(c.key, fakeserver.FromIP("192.0.2.1"))))
	}},
}

// What no question of the suite reaches.
func TestLikeInDetail(t *testing.T) {
	for _, row := range likes {
		fake, c := like(t, row.id, row.answer, frozen())
		row.check(fake, c)
	}
}
