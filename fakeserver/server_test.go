package fakeserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestBadOptions(t *testing.T) {
	for want, opt := range map[string]fakeserver.Option{
		"option 1 is nil":             nil,
		"WithClock: the clock is nil": fakeserver.WithClock(nil),
		"WithColdStart: -1s is":       fakeserver.WithColdStart(-time.Second),
		"WithCallLimit: -1 is":        fakeserver.WithCallLimit(-1),
		`WithDecision: "metadata_cap": the answer is not a number from 2`: fakeserver.WithDecision("metadata_cap", 1),
		`WithDecision: "x": this fake knows no such question`:             fakeserver.WithDecision("x", 1),
		"WithDecision: \"windows\": json: unsupported type":               fakeserver.WithDecision("windows", func() {}),
		"WithLimit: unknown limit; the":                                   fakeserver.WithLimit("key_second", 1),
		"WithLimit: key_day: 0 is":                                        fakeserver.WithLimit("key_day", 0),
	} {
		_, err := fakeserver.Open(opt)
		assert.ErrorContains(t, err, want)
		assert.Contains(t, panicOf(func() { fakeserver.New(t, opt) }), want)
	}
	assert.Contains(t, panicOf(func() { fakeserver.New(nil) }), "Open makes a fake outside tests")
}

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

func TestMisusePanicsWithASentence(t *testing.T) {
	fake, _ := newFake(t)
	key := fake.Key()
	for want, f := range map[string]func(){
		"Advance: -1ns is negative":                func() { fake.Advance(-1) },
		"RevokeKey: this fake did not issue":       func() { fake.RevokeKey("amk_other") },
		"SetPlan: this fake did not issue":         func() { fake.SetPlan("amk_other", fakeserver.PlanPro) },
		`SetPlan: unknown plan "gold"`:             func() { fake.SetPlan(key, "gold") },
		`IssueKey: unknown plan "gold"`:            func() { fake.IssueKey(fakeserver.KeyOptions{Plan: "gold"}) },
		"Exhaust: unknown limit; the limits are":   func() { fake.Exhaust("amk_other", "amk_other") },
		"Exhaust: this fake did not issue":         func() { fake.Exhaust("amk_other", "key_day") },
		`SetSMS: unknown status "on"`:              func() { fake.SetSMS("agent_000001", "on", "") },
		`SetSMS: no agent has the identifier`:      func() { fake.SetSMS("agent_000001", "pending", "") },
		"Conversation: no agent has":               func() { fake.Conversation("agent_000001") },
		"ExchangeCount: no agent has":              func() { fake.Admin().ExchangeCount("agent_000001") },
		`ByEndpoint: unknown endpoint "GET /v2"`:   func() { fakeserver.ByEndpoint("GET /v2") },
		"Where: the function is nil":               func() { fakeserver.Where(nil) },
		"OnMessage: matcher 1 is the zero Matcher": func() { fake.OnMessage(fakeserver.Matcher{}) },
		"Calls: matcher 1 is the zero Matcher":     func() { fake.Calls(fakeserver.Matcher{}) },
		"Reply: needs at least one text":           func() { fake.OnMessage().Reply() },
		"ReplyFunc: the function is nil":           func() { fake.OnMessage().ReplyFunc(nil) },
		`Direct: "home" is not an IP address`:      func() { fake.Direct("home") },
		"more would be beyond":                     func() { fake.Advance(1); fake.Advance(1<<63 - 1) },
	} {
		text := panicOf(f)
		assert.Contains(t, text, want)
		assert.NotContains(t, text, "amk_", "a key may be one of the arguments")
	}
	_, c := newFake(t)
	c.call("GET", "/v1/status", noBody).wantOK(t)
}

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
