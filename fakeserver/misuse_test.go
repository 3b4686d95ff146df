package fakeserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// panicOf returns what f panics with, "" if it does not.
func panicOf(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// Each misuse panics with a sentence that names the method, and repeats nothing
// that may be a key or a message.
func TestMisuse(t *testing.T) {
	fake, c := newFake(t)
	other, _ := newFake(t)
	key := c.key
	fake.AddAgent(key, fakeserver.Agent{})
	long := strings.Repeat("é", 4001)
	add := func(a fakeserver.Agent) func() { return func() { fake.AddAgent(key, a) } }
	for want, f := range map[string]func(){
		"Advance: -1ns is negative":                                               func() { fake.Advance(-1) },
		"RevokeKey: this fake did not issue":                                      func() { fake.RevokeKey("amk_other") },
		"SetPlan: this fake did not issue":                                        func() { fake.SetPlan("amk_other", fakeserver.PlanPro) },
		`SetPlan: unknown plan "gold"`:                                            func() { fake.SetPlan(key, "gold") },
		`IssueKey: unknown plan "gold"`:                                           func() { fake.IssueKey(fakeserver.KeyOptions{Plan: "gold"}) },
		"Exhaust: unknown limit; the limits are":                                  func() { fake.Exhaust("amk_other", "amk_other") },
		"Exhaust: this fake did not issue":                                        func() { fake.Exhaust("amk_other", "key_day") },
		`SetSMS: unknown status "on"`:                                             func() { fake.SetSMS("agent_000001", "on", "") },
		`SetSMS: no agent has the identifier`:                                     func() { fake.SetSMS("agent_000009", "pending", "") },
		"Conversation: no agent has":                                              func() { fake.Conversation("agent_000009") },
		"ExchangeCount: no agent has":                                             func() { fake.Admin().ExchangeCount("agent_000009") },
		`ByEndpoint: unknown endpoint "GET /v2"`:                                  func() { fakeserver.ByEndpoint("GET /v2") },
		"Where: the function is nil":                                              func() { fakeserver.Where(nil) },
		"OnMessage: matcher 1 is the zero Matcher":                                func() { fake.OnMessage(fakeserver.Matcher{}) },
		"Calls: matcher 1 is the zero Matcher":                                    func() { fake.Calls(fakeserver.Matcher{}) },
		"Reply: needs at least one text":                                          func() { fake.OnMessage().Reply() },
		"ReplyFunc: the function is nil":                                          func() { fake.OnMessage().ReplyFunc(nil) },
		`Direct: "home" is not an IP address`:                                     func() { fake.Direct("home") },
		"Direct: 2 addresses":                                                     func() { fake.Direct("192.0.2.1", "192.0.2.2") },
		"more would be beyond":                                                    func() { fake.Advance(1); fake.Advance(1<<63 - 1) },
		"Inject: the fault is the zero Fault; RefuseConnection, Change, Answer, ": func() { fake.Inject(fakeserver.Fault{}) },
		"Inject: matcher 1 is the zero Matcher":                                   func() { fake.Inject(fakeserver.Hang(), fakeserver.Matcher{}) },
		"Answer: 199 is no status from 200 to 599":                                func() { fakeserver.Answer(199, "") },
		"Answer: 600 is no status":                                                func() { fakeserver.Answer(600, "") },
		"RawAnswer: the header's value holds a control":                           func() { fakeserver.RawAnswer(200, "a\nsk-canary", "") },
		"RateLimited: the header's value holds a control":                         func() { fakeserver.RateLimited("sk-canary\r\n") },
		"Latency: -1ns is negative":                                               func() { fakeserver.Latency(-1) },
		"LoseReply: Fault{} is no way to lose a reply; Answer, ":                  func() { fakeserver.LoseReply(fakeserver.Fault{}) },
		"LoseReply: Latency(1s) is no way":                                        func() { fakeserver.LoseReply(fakeserver.Latency(time.Second)) },
		"TruncateReply: -1 is negative":                                           func() { fakeserver.TruncateReply(-1) },
		"DripReply: 0 bytes every 1s: at least 1 byte":                            func() { fakeserver.DripReply(0, time.Second) },
		"DripReply: 1 bytes every -1ns":                                           func() { fakeserver.DripReply(1, -1) },
		"Times: 0 is less than 1":                                                 func() { fake.Inject(fakeserver.Hang()).Times(0) },
		"Nth: 0 is less than 1; the first call is 1":                              func() { fake.Inject(fakeserver.Hang()).Nth(0) },
		"Chance: 1.1 is not between 0 and 1":                                      func() { fake.Inject(fakeserver.Hang()).Chance(1.1, 0) },
		"Chance: NaN is not between 0 and 1":                                      func() { fake.OnMessage().Chance(math.NaN(), 0) },
		"AddAgent: this fake did not issue that key":                              func() { fake.AddAgent("amk_other", fakeserver.Agent{}) },
		"AddAgent: there is an agent with this ID already":                        add(fakeserver.Agent{ID: "agent_000001"}),
		"AddAgent: ID: no path can name it":                                       add(fakeserver.Agent{ID: ".."}),
		"AddAgent: SystemPrompt: at most 2000 characters":                         add(fakeserver.Agent{SystemPrompt: long}),
		"AddAgent: SystemPrompt: must be valid UTF-8":                             add(fakeserver.Agent{SystemPrompt: "\xff"}),
		"AddAgent: CustomerRef: at most 200 characters":                           add(fakeserver.Agent{CustomerRef: long}),
		"AddAgent: LLM.Mode: must be one of hosted, byok":                         add(fakeserver.Agent{LLM: fakeserver.LLM{Mode: "amk_x"}}),
		"AddAgent: LLM.Tier: must be one of fast, smart":                          add(fakeserver.Agent{LLM: fakeserver.LLM{Tier: "amk_x"}}),
		"AddAgent: LLM.Model: at most 200 characters":                             add(fakeserver.Agent{LLM: fakeserver.LLM{Model: long}}),
		"AddAgent: LLM.Provider: must be one of openai_compat":                    add(fakeserver.Agent{LLM: fakeserver.LLM{Provider: "amk_x"}}),
		"AddAgent: LLM.BaseURL: at most 400 characters":                           add(fakeserver.Agent{LLM: fakeserver.LLM{BaseURL: long}}),
		"AddAgent: LLM.Label: at most 60 characters":                              add(fakeserver.Agent{LLM: fakeserver.LLM{Label: long}}),
		"AddAgent: Metadata: must be one JSON object":                             add(fakeserver.Agent{Metadata: json.RawMessage(`[]`)}),
		"AddAgent: Metadata: a member is there twice":                             add(fakeserver.Agent{Metadata: json.RawMessage(`{"a":{"b":1,"b":2}}`)}),
		"AddAgent: Metadata: at most 4096 characters":                             add(fakeserver.Agent{Metadata: json.RawMessage(`{"a":"` + long + strings.Repeat("x", 100) + `"}`)}),
		"AddAgent: SMS: needs a Mode or a Status":                                 add(fakeserver.Agent{SMS: &fakeserver.SMS{}}),
		"AddAgent: SMS.Mode: must be one of none, sandbox":                        add(fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "amk_x"}}),
		"AddAgent: SMS.Status: must be one of disabled":                           add(fakeserver.Agent{SMS: &fakeserver.SMS{Status: "amk_x"}}),
		"AddExchanges: no agent has the identifier":                               func() { fake.AddExchanges("agent_000009") },
		"AddExchanges: Text: at most 4000 characters":                             func() { fake.AddExchanges("agent_000001", fakeserver.Exchange{Text: long}) },
		"BYOK: this fake did not issue that key":                                  func() { fake.BYOK("amk_other") },
		"StoreBYOK: this fake did not issue that key":                             func() { fake.StoreBYOK("amk_other", "amk_x", fakeserver.BYOK{Provider: "openai"}) },
		"StoreBYOK: a provider key and its Provider are required":                 func() { fake.StoreBYOK(key, "", fakeserver.BYOK{Provider: "openai"}) },
		"StoreBYOK: Provider: must be one of openai_compat":                       func() { fake.StoreBYOK(key, "amk_x", fakeserver.BYOK{Provider: "amk_x"}) },
		"Change: the function is nil":                                             func() { fakeserver.Change("x", nil) },
		"From: 0 is less than 1; the first call is 1":                             func() { fake.Inject(fakeserver.Hang()).From(0) },
		"RemoveAgent: no agent has the identifier":                                func() { fake.RemoveAgent("agent_000009") },
		"ReinstateKey: this fake did not issue":                                   func() { fake.ReinstateKey("amk_other") },
		"Limits: this fake did not issue that key":                                func() { fake.Limits("amk_other") },
		"LimitsFrom: \"here\" is not an IP address":                               func() { fake.Admin().LimitsFrom(key, "here") },
		"LimitsFrom: this fake did not issue":                                     func() { fake.Admin().LimitsFrom("amk_other", "::1") },
		"OnCall: the function is nil":                                             func() { fake.OnCall(nil) },
		"OnCall: matcher 1":                                                       func() { fake.OnCall(func(fakeserver.Call) {}, fakeserver.Matcher{}) },
		"CallsAfter: 0 calls is less than 1":                                      func() { fake.Admin().CallsAfter(0, 0) },
		"CallsAfter: matcher 1":                                                   func() { fake.Admin().CallsAfter(0, 1, fakeserver.Matcher{}) },
		"Restore: the snapshot is not one that this":                              func() { fake.Restore(other.Snapshot()) },
		"Restore: the snapshot is not one":                                        func() { fake.Restore(nil) },
		"AwaitCalls: 0 calls cannot be waited for":                                func() { _, _ = fake.AwaitCalls(t.Context(), 0) },
		"AwaitCalls: matcher 1 is the zero Matcher":                               func() { _, _ = fake.AwaitCalls(t.Context(), 1, fakeserver.Matcher{}) },
		"WriteCalls: matcher 1":                                                   func() { _ = fake.WriteCalls(io.Discard, fakeserver.Matcher{}) },
		"WriteHAR: matcher 1":                                                     func() { _ = fake.WriteHAR(io.Discard, fakeserver.Matcher{}) },
	} {
		text := panicOf(f)
		assert.Contains(t, text, want)
		for _, secret := range []string{"amk_", "canary", "éé"} {
			assert.NotContains(t, text, secret)
		}
	}
	assert.Len(t, fake.Agents(), 1, "nothing happened, and no lock is held")
}

func TestOptionsRefuse(t *testing.T) {
	for want, opt := range map[string]fakeserver.Option{
		"option 1 is nil":             nil,
		"WithClock: the clock is nil": fakeserver.WithClock(nil),
		"WithColdStart: -1s is":       fakeserver.WithColdStart(-time.Second),
		"WithCallLimit: -1 is":        fakeserver.WithCallLimit(-1),
		`WithDecision: "metadata_cap": the answer is not a number from 2`: fakeserver.WithDecision("metadata_cap", 1),
		"WithDecision: \"windows\": json: unsupported type":               fakeserver.WithDecision("windows", func() {}),
		"WithLimit: unknown limit; the":                                   fakeserver.WithLimit("key_second", 1),
		"WithLimit: key_day: 0 is":                                        fakeserver.WithLimit("key_day", 0),
		"WithKey: the text is empty":                                      fakeserver.WithKey(""),
		"WithKey: at most 256 characters":                                 fakeserver.WithKey(strings.Repeat("k", 257)),
		"WithKey: only visible ASCII characters":                          fakeserver.WithKey("two words"),
		"WithKey: only visible ASCII characters but":                      fakeserver.WithKey("a,b"),
		"WithKey: only visible ASCII characters but the":                  fakeserver.WithKey("clé"),
		"WithPlan: unknown plan; the plans are preview, free":             fakeserver.WithPlan("gold"),
	} {
		_, err := fakeserver.Open(opt)
		assert.ErrorContains(t, err, want)
		assert.Contains(t, panicOf(func() { fakeserver.New(t, opt) }), want)
	}
	_, err := fakeserver.Open(fakeserver.WithKey(strings.Repeat("~", 256)), fakeserver.WithPlan(""))
	assert.NoError(t, err)
	assert.Contains(t, panicOf(func() { fakeserver.New(nil) }), "Open makes a fake outside tests")
}
