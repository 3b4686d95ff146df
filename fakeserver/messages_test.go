package fakeserver_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestMessages(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	r := c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":"hello <you>","user_ref":"u"}`)
	assert.JSONEq(t, `{"reply_text":"You wrote: hello <you>","trace_id":"trace_000002"}`, r.raw)
	assert.Equal(t, []fakeserver.Exchange{{
		Text: "hello <you>", UserRef: "u", ReplyText: "You wrote: hello <you>", Time: time.Unix(year2040, 0).UTC(), TraceID: "trace_000002",
	}}, fake.Conversation(agent))
	assert.Empty(t, fake.Conversation(c.agent(emptyBody)))
}

func TestScripts(t *testing.T) {
	fake, c := newFake(t)
	first, second := c.agent(emptyBody), c.agent(emptyBody)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	third := other.agent(emptyBody)
	want := func(c caller, agent, text, reply string) {
		t.Helper()
		assert.Equal(t, reply, c.send(agent, text).text("reply_text"))
	}
	want(c, first, "x", "You wrote: x")
	all := fake.OnMessage().Reply("one", "two").Reply("three")
	for _, reply := range []string{"one", "two", "three", "three"} {
		want(c, first, "x", reply)
	}
	fake.OnMessage(fakeserver.ByAgent(second)).Reply("agent")
	fake.OnMessage(fakeserver.ByText("exact")).Reply("exact")
	fake.OnMessage(fakeserver.ByTextContaining("part"), fakeserver.ByKey(other.key)).Reply("part")
	fake.OnMessage(fakeserver.Where(func(c fakeserver.Call) bool { return c.Header.Get("X-Test") == "1" })).Reply("where")
	never := fake.OnMessage(fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)).Reply("never")
	want(c, second, "x", "agent")
	want(c, second, "exact", "exact")
	want(c, second, "exact!", "agent")
	want(c, first, "some part", "three")
	want(other, third, "some part", "part")
	want(other, third, "x", "three")
	r := c.call("POST", "/v1/agents/"+first+"/messages", `{"text":"exact"}`, "X-Test: 1")
	assert.Equal(t, "where", r.text("reply_text"), "the one made last answers")
	assert.Equal(t, 6, all.Hits())
	assert.Zero(t, never.Hits())
	all.Remove()
	all.Remove()
	want(c, first, "x", "You wrote: x")
	fake.OnMessage(fakeserver.ByText("default"))
	want(c, first, "default", "You wrote: default")
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
	fake, c := newFake(t)
	agent := c.agent(`{"system_prompt":"Count."}`)
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		_ = fake.Calls() // callbacks may call the fake
		fake.Advance(time.Second)
		fake.OnMessage(fakeserver.ByText("other")).Reply("from inside")
		return fakeserver.Reply{
			Text:     fmt.Sprint(m.Agent.SystemPrompt, m.Text, m.UserRef, len(m.History)),
			Warnings: []string{"slow"},
		}
	})
	r := c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":"a","user_ref":"u"}`)
	assert.JSONEq(t, `{"reply_text":"Count.au0","warnings":["slow"],"trace_id":"trace_000002"}`, r.raw)
	assert.Equal(t, "Count.b1", c.send(agent, "b").text("reply_text"))
	assert.Equal(t, "from inside", c.send(agent, "other").text("reply_text"))
	assert.Equal(t, []string{"slow"}, fake.Conversation(agent)[0].Warnings)
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

func TestPanickingCallbacks(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	clients := []caller{c, {t, fake.HTTPClient(t).Transport, c.key}}
	fake.OnMessage(fakeserver.ByText("reply")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { panic("oh no") })
	fake.OnMessage(fakeserver.ByText("match"), fakeserver.Where(func(fakeserver.Call) bool { panic("oh no") }))
	for text, want := range map[string]string{
		"reply": `the ReplyFunc of OnMessage\(ByText\(5 characters\)\)`,
		"match": `a matcher of OnMessage\(ByText\(5 characters\), Where\(messages_test.go:\d+\)\)`,
	} {
		for _, client := range clients {
			watch.errors = nil
			_, err := client.wire.RoundTrip(client.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"`+text+`"}`)) //nolint:bodyclose // there is none
			require.Error(t, err)
			require.Len(t, watch.errors, 1)
			assert.Regexp(t, "^fakeserver: "+want+" panicked: oh no$", watch.errors[0])
		}
	}
	calls := fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage))
	require.Len(t, calls, 4)
	assert.Zero(t, calls[0].Status, "the connection was aborted")
	assert.NotEmpty(t, calls[0].TraceID)
	assert.Empty(t, fake.Conversation(agent))
}

func TestColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithColdStart(10*time.Second))
		c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
		took := func(c caller, agent string) time.Duration {
			before := time.Now()
			c.send(agent, "x").wantOK(t)
			return time.Since(before)
		}
		agent := c.agent(emptyBody)
		assert.Equal(t, 10*time.Second, took(c, agent))
		assert.Zero(t, took(c, agent))
		other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		other.call("POST", "/v1/warmup", noBody).wantOK(t)
		assert.Zero(t, took(other, other.agent(emptyBody)))
	})
}

// A message whose client left was accepted all the same.
func TestClientLeavesDuringColdStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithColdStart(time.Hour))
		for i, wire := range []http.RoundTripper{fake.HTTPClient(t).Transport, fake.Direct()} {
			c := caller{t, wire, fake.IssueKey(fakeserver.KeyOptions{})}
			agent := c.agent(emptyBody)
			client := &http.Client{Transport: wire, Timeout: time.Minute}
			before := time.Now()
			_, err := client.Do(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`)) //nolint:bodyclose // there is none
			require.ErrorContains(t, err, "deadline exceeded")
			assert.Equal(t, time.Minute, time.Since(before))
			synctest.Wait()
			assert.Len(t, fake.Conversation(agent), 1)
			assert.Equal(t, 2*(i+1), fake.CallCount())
		}
	})
}
