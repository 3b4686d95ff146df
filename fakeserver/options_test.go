package fakeserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// like returns a fake that answers one question in another way.
func like(t testing.TB, id, answer string, opts ...fakeserver.Option) (*fakeserver.Server, caller) {
	t.Helper()
	file := fmt.Sprintf(`{"format":1,"decisions":{"times":{"not_asked":"needs a key"},%q:{"answer":%s,"evidence":{}}},"spent":{}}`, id, answer)
	return newFake(t, append(opts, fakeserver.Like([]byte(file)), fakeserver.WithUnknownRoutes())...)
}

// Like refuses an answer that the fake cannot give, and a file that observe did not write.
// The error names the question.
func TestLikeRefusesWhatItCannotBe(t *testing.T) {
	for id, answer := range map[string]string{
		"metadata_cap": `1`, "times": `"rfc850"`, "unknown_method": `403`, "reason": `"yes"`, "minute_limit_name": `""`,
		"sms_status": `{"fax":"active"}`, "status": `{"name":"x"}`, "mood": `true`, "clear_nothing": `"200"`,
	} {
		_, err := fakeserver.Open(fakeserver.Like(fmt.Appendf(nil, `{"format":1,"decisions":{%q:{"answer":%s}}}`, id, answer)))
		assert.ErrorContains(t, err, `fakeserver: Like: "`+id+`": `, answer)
	}
	for _, file := range []string{`{`, `{}`, `{"format":2}`, `[]`, `{"format":1,"decisions":[]}`, `{"format":1,"decisions":{"metadata_cap":{"at_least":9,"at_most":8}}}`} {
		_, err := fakeserver.Open(fakeserver.Like([]byte(file)))
		assert.ErrorContains(t, err, "fakeserver: Like: ", file)
	}
}

// TestLikeWithBounds: if only bounds were observed, the fake takes the number between them that
// is nearest to its own answer, and Decisions marks it as Inferred.
func TestLikeWithBounds(t *testing.T) {
	for bounds, want := range map[string]string{
		`"at_least":3100`: "4096", `"at_least":65536`: "65536", `"at_most":6`: "6", `"at_least":5000,"at_most":6000`: "5000",
		`"answer":8192`: "8192",
	} {
		fake, _ := newFake(t, fakeserver.Like(fmt.Appendf(nil, `{"format":1,"decisions":{"metadata_cap":{%s},"windows":{"at_least":3},"unknown_method":{"at_least":450}}}`, bounds)))
		for _, d := range fake.Decisions() {
			assert.True(t, json.Valid([]byte(d.Answer)), "no field of service.Behavior has the tag %s: %s", d.ID, d.Answer)
			if d.ID != "metadata_cap" {
				assert.False(t, d.Observed || d.Inferred, d.ID)
				continue
			}
			assert.Equal(t, []string{want, "4096"}, []string{d.Answer, d.Default}, bounds)
			answered := strings.Contains(bounds, "answer")
			assert.Equal(t, []bool{answered, !answered}, []bool{d.Observed, d.Inferred}, bounds)
		}
	}
}

// likes has, for a question, an answer of another service, and a check that the fake then does
// the same.
var likes = []struct {
	id, answer string
	check      func(fake *fakeserver.Server, c caller)
}{
	{"creation_stores_key", "false", func(fake *fakeserver.Server, c caller) { // the new agent still works, with its own key
		agent := c.agent(`{"llm":{"mode":"byok","provider":"openai","api_key":"sk-canary"}}`)
		config, stored := fake.BYOK(c.key)
		assert.Equal(c.t, []any{fakeserver.BYOK{}, false}, []any{config, stored}, "after the creation")
		file := written(c.t, fake)
		assert.Contains(c.t, file, `"own_key":true`)
		assert.NoError(c.t, fake.ReadState(strings.NewReader(file)))
		c.send(agent, "x").wantOK(c.t)
	}},
	{"agent_of_another_key", "200", func(fake *fakeserver.Server, c caller) { // the agent uses the provider key of its own API key
		stored := fake.StoreBYOK(c.key, "sk-canary", fakeserver.BYOK{Provider: "openai", BaseURL: "https://x", Model: "m", Label: "l"})
		assert.Equal(c.t, []string{"openai", "https://x", "m", "l"}, []string{stored.Provider, stored.BaseURL, stored.Model, stored.Label})
		assert.Contains(c.t, spent(fake.Limits(c.key)), "byok_set_key_hour 0/5", "StoreBYOK spends nothing")
		agent := c.agent(`{"llm":{"mode":"byok"}}`)
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).send(agent, "x").wantOK(c.t)
	}},
	{"duplicate_members", "true", func(fake *fakeserver.Server, c caller) { // the last of them counts, also if it is null
		agent, _ := fake.Agent(c.agent(`{"llm":{"model":"a","label":"x"},"llm":{"model":"b"},"customer_ref":"1","customer_ref":"2","system_prompt":"a","system_prompt":null}`))
		assert.Equal(c.t, []string{"b", "", "2", ""}, []string{agent.LLM.Model, agent.LLM.Label, agent.CustomerRef, agent.SystemPrompt})
	}},
	{"unknown_members", "true", func(fake *fakeserver.Server, c caller) { // only in messages
		agent := c.agent(emptyBody)
		c.call("POST", "/v1/agents", `{"mood":"good"}`).wantError(c.t, 400, "bad_request")
		c.call("POST", "/v1/agents/"+agent+"/messages", `{"api_key":"sk-1","text":"hello","more":{"a":[1]}}`).wantOK(c.t)
		assert.Equal(c.t, `{"api_key":"[redacted]","text":"[redacted, 5 characters]","more":{"a":[1]}}`, fake.Calls()[2].Body)
	}},
	{"refused_operations_spend", "true", func(fake *fakeserver.Server, c caller) { // a creation answered 400 spends, a warm-up answered 409 does not
		c.call("POST", "/v1/agents", `{"llm":{"mode":"byok"}}`).wantError(c.t, 400, "byok_not_configured")
		c.call("POST", "/v1/warmup", `{"mode":"byok"}`).wantError(c.t, 409, "byok_not_configured")
		assert.Regexp(c.t, "agent_create_key_day 1/50, .*warmup_key_hour 0/3", spent(fake.Limits(c.key)))
	}},
	{"retry_after", "false", func(fake *fakeserver.Server, c caller) { // a second too short, but a second at least
		fake.Exhaust(c.key, fakeserver.LimitKeyMinute)
		c.call("GET", anAgent, noBody).wantLimited(c.t, "key_minute", "59")
		fake.Advance(59 * time.Second)
		fake.Exhaust(c.key, fakeserver.LimitKeyMinute) // does not extend the minute
		c.call("GET", anAgent, noBody).wantLimited(c.t, "key_minute", "1")
	}},
	{"windows", `"token bucket of 2"`, func(fake *fakeserver.Server, c caller) { // a call a second, and two at once; but three in an hour, where the limit is 3
		c.times(2, "POST", "/v1/warmup", noBody)
		c.call("GET", anAgent, noBody).wantLimited(c.t, "key_minute", "1")
		assert.Contains(c.t, fake.Calls()[2].String(), ": 429 rate_limited (key_minute): key_000001 has spent 2 of 60 in this minute; it opens in 1s")
		fake.Advance(time.Second)
		c.call("POST", "/v1/warmup", noBody).wantOK(c.t)
	}},
}

// With another answer to a question, the fake acts on it also in details that package contract
// does not check. These fakes also accept null.
func TestLikeInDetail(t *testing.T) {
	for _, row := range likes {
		fake, c := like(t, row.id, row.answer, frozen(), fakeserver.WithDecision("null_members", true))
		row.check(fake, c)
	}
}

// A call without a valid key may spend the limit of its address.
func TestKeylessCallsSpend(t *testing.T) {
	fake, c := like(t, "refused_requests_spend", `{"401":true}`, frozen(), fakeserver.WithDecision("windows", "token bucket"))
	revoked := fake.IssueKey(fakeserver.KeyOptions{})
	fake.RevokeKey(revoked)
	for _, key := range []string{"", "amk_other", revoked} {
		c.with(key).call("GET", anAgent, noBody)
	}
	assert.Equal(t, "key_minute 0/60, ip_minute 3/120, key_day 0/1000, agent_create_key_day 0/50, agent_create_ip_minute 0/10, "+
		"byok_set_key_hour 0/5, warmup_key_hour 0/3", spent(fake.Limits(c.key, fakeserver.FromIP("192.0.2.1"))))
}

// panicOf returns the value with which f panics; "" if it does not panic.
func panicOf(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

type fake = *fakeserver.Server

var tooLong = strings.Repeat("é", 4001)

func adding(a fakeserver.Agent) func(fake) { return func(f fake) { f.AddAgent(f.Key(), a) } }

// Each misuse panics with a sentence that names the method.
var misuses = map[string]func(fake){
	"Advance: -1ns is negative":                                     func(f fake) { f.Advance(-1) },
	`IssueKey: unknown plan "gold"`:                                 func(f fake) { f.IssueKey(fakeserver.KeyOptions{Plan: "gold"}) },
	"Exhaust: unknown limit; the limits are":                        func(f fake) { f.Exhaust("amk_other", "amk_other") },
	"SetSMS: unknown status; the statuses":                          func(f fake) { f.SetSMS("agent_000001", "on", "") },
	`SetSMS: no agent has the identifier`:                           func(f fake) { f.SetSMS("agent_000009", "pending", "") },
	`ByEndpoint: unknown endpoint "GET /v2"`:                        func(f fake) { fakeserver.ByEndpoint("GET /v2") },
	"Where: the function is nil":                                    func(f fake) { fakeserver.Where(nil) },
	"OnMessage: matcher 1 is the zero Matcher":                      func(f fake) { f.OnMessage(fakeserver.Matcher{}) },
	"Reply: needs at least one text":                                func(f fake) { f.OnMessage().Reply() },
	"ReplyFunc: the function is nil":                                func(f fake) { f.OnMessage().ReplyFunc(nil) },
	`Direct: "home" is not an IP address`:                           func(f fake) { f.Direct("home") },
	"more would be beyond":                                          func(f fake) { f.Advance(1); f.Advance(1<<63 - 1) },
	"Inject: the fault is the zero Fault; functions such as Answer": func(f fake) { f.Inject(fakeserver.Fault{}) },
	"Answer: 199 is not a status from 200 to 599":                   func(f fake) { fakeserver.Answer(199, "") },
	"RawAnswer: 600 is not a status from 200 to 599":                func(f fake) { fakeserver.RawAnswer(600, "", "") },
	"RawAnswer: the header's value holds a control":                 func(f fake) { fakeserver.RawAnswer(200, "a\nsk-canary", "") },
	"Latency: -1ns is negative":                                     func(f fake) { fakeserver.Latency(-1) },
	"LoseReply: Fault{} cannot lose a reply":                        func(f fake) { fakeserver.LoseReply(fakeserver.Fault{}) },
	"LoseReply: Latency(0s) cannot lose a reply; Answer, ":          func(f fake) { fakeserver.LoseReply(fakeserver.Latency(0)) },
	"can; TruncateReply and ResetReply end the reply after the":     func(f fake) { fakeserver.LoseReply(fakeserver.TruncateReply(5)) },
	"TruncateReply: -1 is negative":                                 func(f fake) { fakeserver.TruncateReply(-1) },
	"DripReply: 0 bytes every 1s: at least 1 byte":                  func(f fake) { fakeserver.DripReply(0, time.Second) },
	"ByAgent: the identifier is empty":                              func(f fake) { fakeserver.ByAgent("") },
	"Chance: NaN is not between 0 and 1":                            func(f fake) { f.OnMessage().Chance(math.NaN(), 0) },
	"AddAgent: this fake did not issue that key":                    func(f fake) { f.AddAgent("amk_other", fakeserver.Agent{}) },
	"AddExchanges: exchanges[0].text: at most 4000 characters":      func(f fake) { f.AddExchanges("agent_000001", fakeserver.Exchange{Text: tooLong}) },
	"AddExchanges: every text must be valid UTF-8":                  func(f fake) { f.AddExchanges("agent_000001", fakeserver.Exchange{TraceID: "\xff"}) },
	"SetSMS: every text must be valid UTF-8":                        func(f fake) { f.SetSMS("agent_000001", "active", "\xff") },
	"StoreBYOK: every text must be valid UTF-8":                     func(f fake) { f.StoreBYOK(f.Key(), "sk-canary", fakeserver.BYOK{Provider: "openai", Label: "\xff"}) },
	"StoreBYOK: a provider key is required":                         func(f fake) { f.StoreBYOK(f.Key(), "", fakeserver.BYOK{Provider: "openai"}) },
	"Provider: one of openai_compat":                                func(f fake) { f.StoreBYOK(f.Key(), "amk_x", fakeserver.BYOK{Provider: "amk_x"}) },
	"Change: the function is nil":                                   func(f fake) { fakeserver.Change("x", nil) },
	"OnCall: the function is nil":                                   func(f fake) { f.OnCall(nil) },
	"OnCall: matcher 1 is the zero Matcher":                         func(f fake) { f.OnCall(func(fakeserver.Call) {}, fakeserver.Matcher{}) },
	"Sleep: the context is nil":                                     func(f fake) { _ = f.Sleep(context.Context(nil), 1) },
	"AwaitCalls: n is 0; it must be at least 1":                     func(f fake) { _, _ = f.AwaitCalls(context.Background(), 0) },
	"AwaitCalls: the context is nil":                                func(f fake) { _, _ = f.AwaitCalls(context.Context(nil), 1) },
	"ServeHTTP: the Server is the zero Server":                      func(fake) { new(fakeserver.Server).ServeHTTP(nil, nil) },

	"AddAgent: the ID must not be a dot segment":       adding(fakeserver.Agent{ID: ".."}),
	"the ID must not contain a slash":                  adding(fakeserver.Agent{ID: "a%2Fb"}),
	"the ID must not contain control characters":       adding(fakeserver.Agent{ID: "\xff"}),
	"AddAgent: every text must be valid UTF-8":         adding(fakeserver.Agent{SMS: &fakeserver.SMS{Status: "active", PhoneNumber: "\xff"}}),
	"AddAgent: metadata: must be one JSON object":      adding(fakeserver.Agent{Metadata: json.RawMessage(`{`)}),
	"AddAgent: metadata: at most 4096 characters":      adding(fakeserver.Agent{Metadata: json.RawMessage(`{"a":"` + tooLong + strings.Repeat("x", 100) + `"}`)}),
	"AddAgent: sms.mode: must be one of none, sandbox": adding(fakeserver.Agent{SMS: &fakeserver.SMS{}}),
}

// A misuse changes nothing, and its message repeats nothing that may be a key or a message.
func TestMisuse(t *testing.T) {
	fake, c := newFake(t)
	fake.AddAgent(c.key, fakeserver.Agent{})
	for want, misuse := range misuses {
		text := panicOf(func() { misuse(fake) })
		assert.Contains(t, text, want, want)
		for _, secret := range []string{"amk_", "canary", "éé"} {
			assert.NotContains(t, text, secret, want)
		}
	}
	assert.Len(t, fake.Agents(), 1, "nothing happened, and no lock is held")
	second := fake.Inject(fakeserver.Hang()).Nth(2)
	assert.Contains(t, panicOf(func() { second.From(3) }), "From: Nth(2) and From(3) never act together")
	assert.Equal(t, "Inject(Hang()).Nth(2)", fmt.Sprint(second))
}

// Open returns, and New panics with, the error of an unusable option: what is wrong, and what
// is allowed.
func TestOptionsRefuse(t *testing.T) {
	for want, opt := range map[string]fakeserver.Option{
		"option 1 is nil":             nil,
		"WithClock: the clock is nil": fakeserver.WithClock(nil),
		"WithColdStart: -1s is":       fakeserver.WithColdStart(-time.Second),
		"WithCallLimit: -1 is":        fakeserver.WithCallLimit(-1),
		`WithDecision: "reason": the answer is not true or false`:         fakeserver.WithDecision("reason", nil),
		`WithDecision: "error_names": the answer is not an object`:        fakeserver.WithDecision("error_names", map[string]any{"not_found": ""}),
		`WithDecision: "windows": the answer is not "fixed", "sliding", `: fakeserver.WithDecision("windows", "token bucket of 010"),
		`WithDecision: "windows": the answer is not "fixed", "sliding"`:   fakeserver.WithDecision("windows", "token bucket of 0"),
		`WithDecision: "windows": the answer is not "fixed",`:             fakeserver.WithDecision("windows", "10"),
		"WithDecision: \"windows\": json: unsupported type":               fakeserver.WithDecision("windows", func() {}),
		"WithLimit: key_day: 0 is":                                        fakeserver.WithLimit("key_day", 0),
		"WithKey: the text is empty":                                      fakeserver.WithKey(""),
		"WithKey: at most 256 characters":                                 fakeserver.WithKey(strings.Repeat("k", 257)),
		"WithKey: must be visible ASCII characters":                       fakeserver.WithKey("two words"),
		"WithKey: must be visible ASCII characters without":               fakeserver.WithKey("clé"),
	} {
		_, err := fakeserver.Open(opt)
		assert.ErrorContains(t, err, want, want)
		assert.Equal(t, err.Error(), panicOf(func() { fakeserver.New(t, opt) }), want)
	}
	_, err := fakeserver.Open(fakeserver.WithKey(strings.Repeat("~", 256)), fakeserver.WithPlan(""))
	assert.NoError(t, err)
	assert.Contains(t, panicOf(func() { fakeserver.New(nil) }), "Open makes a fake outside tests")
}
