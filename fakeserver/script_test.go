package fakeserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestReplyFuncErrors(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	var next fakeserver.Reply
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return next })
	for status, code := range map[int]string{400: "bad_request", 401: "unauthorized", 402: "payment_required", 404: "not_found"} {
		next = fakeserver.Reply{Status: status}
		c.send(agent, "x").wantError(t, status, code)
	}
	next = fakeserver.Reply{Status: 429}
	c.send(agent, "x").wantLimited(t, "key_minute", "1")
	assert.Equal(t, 6, fake.Limits(c.key)[0].Used, "each was accepted before its script ran")
	next = fakeserver.Reply{Status: 400, Code: "moderated", Reason: "text: not " + c.key}
	r := c.send(agent, "x")
	r.wantError(t, 400, "moderated")
	assert.Equal(t, next.Reason, r.text("reason"))
	assert.Equal(t, "text: not [redacted]", fake.Calls()[fake.CallCount()-1].Reason)
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

// What a panic is blamed on, and what is left of its call.
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
		watch.errors = nil
		assert.Equal(t, "EOF", seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"`+text+`"}`)))
		require.Len(t, watch.errors, 1)
		assert.Regexp(t, "^fakeserver: "+want+" panicked: oops$", watch.errors[0])
	}
	assert.Empty(t, fake.UnderWay())
	assert.Empty(t, fake.Conversation(agent))
	for _, call := range fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)) {
		assert.NotEmpty(t, call.TraceID)
		assert.Zero(t, call.Status)
	}
}

func TestUnusedRequiredNamesTheNearestCall(t *testing.T) {
	const message = "nearest: trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200, "
	byAgent, byText := fakeserver.ByAgent("agent_000001"), fakeserver.ByText("good morning")
	panics := fakeserver.Where(func(fakeserver.Call) bool { panic("of the test") })
	for _, row := range []struct {
		want     string
		matchers []fakeserver.Matcher
	}{
		{message + "not matched by ByText(12 characters)", []fakeserver.Matcher{byAgent, byText}},
		{message + "not matched by ByText(12 characters)", []fakeserver.Matcher{byText}},
		{message + "not matched by ByAgent(…), ByKey(…)", []fakeserver.Matcher{fakeserver.ByAgent("amk_x"), fakeserver.ByKey("amk_x")}},
		{message + "which matches: it came before the rule was made, or another acted on it", []fakeserver.Matcher{byAgent}},
		{message + "not matched by ByTextContaining(4 characters)", []fakeserver.Matcher{
			fakeserver.ByKey("amk_fake_000001"), fakeserver.ByTextContaining("good")}},
		{"nearest: trace_000003 POST /v1/agents/agent_000009/messages key_000001: 404 not_found: " +
			"no agent has this identifier, which matches, but was not accepted", []fakeserver.Matcher{fakeserver.ByAgent("agent_000009")}},
		{message + "not matched by " + panics.String(), []fakeserver.Matcher{byAgent, panics}},
	} {
		watch, fake, c := newSpied(t)
		c.send(c.agent(emptyBody), "hello")
		c.send("agent_000009", "hello")
		c.call("GET", "/v1/agents/agent_000001", noBody).wantOK(t) // no message, so never near
		if strings.HasPrefix(row.want, message) {
			fake.Reset()
			c.call("GET", "/v1/status", noBody)
			c.send(fake.AddAgent(c.key, fakeserver.Agent{}).ID, "hello")
		}
		fake.OnMessage(row.matchers...).Required()
		watch.finish()
		require.Len(t, watch.errors, 1)
		assert.True(t, strings.HasSuffix(watch.errors[0], "; "+row.want), watch.errors[0])
	}
}
