package fakeserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A script answers the messages that all its matchers match. Of several, the
// one made last answers.
func TestScripts(t *testing.T) {
	fake, c := newFake(t)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	first, second, third := c.agent(emptyBody), c.agent(emptyBody), other.agent(emptyBody)
	all := fake.OnMessage().Reply("one", "two").Reply("three")
	fake.OnMessage(fakeserver.ByAgent(second)).Reply("agent")
	fake.OnMessage(fakeserver.ByText("exact")).Reply("exact")
	fake.OnMessage(fakeserver.ByTextContaining("part"), fakeserver.ByKey(other.key)).Reply("part")
	fake.OnMessage(fakeserver.Where(func(c fakeserver.Call) bool { return c.Header.Get("X-Test") == "1" })).Reply("where")
	never := fake.OnMessage(fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)).Reply("never")
	for _, row := range []struct {
		by                        caller
		agent, text, header, want string
	}{
		{c, first, "x", "", "one"},
		{c, first, "x", "", "two"},
		{c, second, "x", "", "agent"},
		{c, second, "exact", "", "exact"},
		{c, second, "exact!", "", "agent"},
		{c, first, "some part", "", "three"},
		{other, third, "some part", "", "part"},
		{other, third, "x", "", "three"},
		{c, first, "exact", "1", "where"},
	} {
		r := row.by.call("POST", "/v1/agents/"+row.agent+"/messages", fmt.Sprintf(`{"text":%q}`, row.text), "X-Test: "+row.header)
		assert.Equal(t, row.want, r.text("reply_text"), "%+v", row)
	}
	assert.Equal(t, []int{4, 0}, []int{all.Hits(), never.Hits()})
	all.Remove()
	all.Remove()
	fake.OnMessage(fakeserver.ByText("default"))
	for _, text := range []string{"x", "default"} { // a script without an answer gives the default one
		assert.Equal(t, "You wrote: "+text, c.send(first, text).text("reply_text"))
	}
}

// A message that is refused uses up no step.
func TestRefusedMessagesUseNoStep(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	script := fake.OnMessage().Reply("one", "two")
	c.send("agent_000009", "x").wantError(t, 404, "not_found")
	c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":1}`).wantError(t, 400, "bad_request")
	fake.Exhaust(c.key, "key_minute")
	c.send(agent, "x").wantError(t, 429, "rate_limited")
	assert.Zero(t, script.Hits())
	fake.Advance(time.Minute)
	assert.Equal(t, "one", c.send(agent, "x").text("reply_text"))
}

func TestReplyFunc(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"system_prompt":"Count."}`)
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		_ = fake.Calls() // callbacks may call the fake
		fake.OnMessage(fakeserver.ByText("other")).Reply("from inside")
		return fakeserver.Reply{
			Text:     fmt.Sprint(m.Agent.SystemPrompt, m.Text, m.UserRef, len(m.History)),
			Warnings: []string{"slow"},
		}
	})
	r := c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":"<a>","user_ref":"u"}`)
	assert.JSONEq(t, `{"reply_text":"Count.<a>u0","warnings":["slow"],"trace_id":"trace_000002"}`, r.raw)
	assert.Equal(t, "Count.b1", c.send(agent, "b").text("reply_text"))
	assert.Equal(t, "from inside", c.send(agent, "other").text("reply_text"))
	assert.Equal(t, fakeserver.Exchange{
		Text: "<a>", UserRef: "u", ReplyText: "Count.<a>u0", Warnings: []string{"slow"},
		Time: time.Unix(year2040, 0).UTC(), TraceID: "trace_000002",
	}, fake.Conversation(agent)[0])
}

func TestReplyFuncErrors(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	var next fakeserver.Reply
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return next })
	for status, code := range map[int]string{400: "bad_request", 401: "unauthorized", 402: "payment_required", 404: "not_found", 429: "rate_limited"} {
		next = fakeserver.Reply{Status: status}
		r := c.send(agent, "x")
		r.wantError(t, status, code)
		if status == 429 {
			r.wantLimited(t, "key_minute", "1")
		}
	}
	next = fakeserver.Reply{Status: 400, Code: "moderated", Reason: "text: not this"}
	r := c.send(agent, "x")
	r.wantError(t, 400, "moderated")
	assert.Equal(t, "text: not this", r.text("reason"))
	next = fakeserver.Reply{Status: 200, Text: "fine"}
	c.send(agent, "x").wantOK(t)
	assert.Len(t, fake.Conversation(agent), 1, "errors are no exchange")
	assert.Empty(t, watch.errors)
	for _, status := range []int{403, 409, 503, 201, 99, -1} {
		next = fakeserver.Reply{Status: status}
		assert.Equal(t, 500, c.send(agent, "x").status)
		assert.Contains(t, watch.errors[len(watch.errors)-1], fmt.Sprintf("a ReplyFunc answered with status %d", status))
	}
	assert.Len(t, watch.errors, 6)
}

// A callback that panics fails the test, and aborts its call, which has no
// effect.
func TestPanickingCallbacks(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	oops := fakeserver.Where(func(fakeserver.Call) bool { panic("oops") })
	fake.OnMessage(fakeserver.ByText("reply")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { panic("oops") })
	fake.OnMessage(fakeserver.ByText("match"), oops)
	fake.Inject(fakeserver.Latency(0), fakeserver.ByText("inject"), oops)
	fake.Inject(fakeserver.Change("x", func() { panic("oops") }), fakeserver.ByText("change"))
	for text, want := range map[string]string{
		"reply":  `the ReplyFunc of OnMessage\(ByText\(5 characters\)\)`,
		"match":  `a matcher of OnMessage\(ByText\(5 characters\), Where\(script_test.go:\d+\)\)`,
		"inject": `a matcher of Inject\(Latency\(0s\), ByText\(6 characters\), Where\(script_test.go:\d+\)\)`,
		"change": `the function of Inject\(Change\(x\), ByText\(6 characters\)\)`,
	} {
		for way, wire := range transports(t, fake) {
			watch.errors = nil
			assert.Equal(t, "EOF", seen(wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"`+text+`"}`)), way)
			require.Len(t, watch.errors, 1)
			assert.Regexp(t, "^fakeserver: "+want+" panicked: oops$", watch.errors[0])
		}
	}
	assert.Empty(t, fake.Conversation(agent))
	for _, call := range fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)) {
		assert.NotEmpty(t, call.TraceID)
		assert.Zero(t, call.Status)
	}
}
