package fakeserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestCallsAreCompleteAndRedacted(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"system_prompt":"Be brief.","customer_ref":"c-1"}`)
	sent := c.send(agent, "hé")
	calls := fake.Calls()
	require.Len(t, calls, 2)
	assert.Equal(t, `{"system_prompt":"[redacted, 9 characters]","customer_ref":"c-1"}`, calls[0].Body)
	assert.JSONEq(t, `{"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}`, calls[0].ReplyBody)
	got := calls[1]
	assert.Equal(t, http.Header{
		"Authorization": {"[redacted]"}, "Content-Type": {"application/json"}, "Content-Length": {"14"},
		"User-Agent": {"Go-http-client/1.1"}, "Accept-Encoding": {"gzip"},
	}, got.Header)
	assert.Equal(t, http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"57"}, "Date": {"Sun, 01 Jan 2040 00:00:00 GMT"},
	}, got.Sent.Header)
	got.Header, got.Sent.Header = nil, nil
	assert.Equal(t, fakeserver.Call{
		Seq: 2, Time: time.Unix(year2040, 0).UTC(), Endpoint: fakeserver.EndpointSendMessage, Method: "POST",
		URL:  fakeURL + "/v1/agents/agent_000001/messages",
		Path: "/v1/agents/agent_000001/messages", AgentID: "agent_000001", Key: "key_000001", Address: "192.0.2.1",
		Body: `{"text":"[redacted, 2 characters]"}`, BodyBytes: 14, Status: 200,
		Sent:      fakeserver.Sent{Status: 200, Body: `{"reply_text":"[redacted, 13 characters]","trace_id":"trace_000002"}`, Bytes: 57},
		ReplyBody: `{"reply_text":"[redacted, 13 characters]","trace_id":"trace_000002"}`, TraceID: "trace_000002",
	}, got)
	assert.Equal(t, "You wrote: hé", sent.text("reply_text"), "the answer itself is not redacted")
	assert.Equal(t, "trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200", got.String())
}

func TestCallsOfRefusals(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	c.with("").call("GET", "/v1/status", noBody)
	c.with("amk_stranger_1").call("GET", "/v1/status", noBody)
	c.call("PUT", "/v1/byok", `{"api_key":"sk-canary"`)
	c.call("PUT", "/v1/byok", `{"api_key":"sk-canary"}`)
	fake.Exhaust(c.key, "warmup_key_hour")
	c.call("POST", "/v1/warmup", `{"mode":"hosted"}`)
	c.call("GET", "/v1/nothing?key=canary", noBody)
	calls := fake.Calls()
	assert.Equal(t, []string{"missing", "unknown", "key_000001"}, []string{calls[0].Key, calls[1].Key, calls[2].Key})
	for i, size := range map[int]int{2: 22, 3: 23} {
		assert.Equal(t, size, calls[i].BodyBytes)
		assert.Equal(t, []any{400, "bad_request"}, []any{calls[i].Status, calls[i].Code})
	}
	assert.Equal(t, `{"api_key":"[redacted]"`, calls[2].Body)
	assert.Equal(t, "provider", calls[3].Member)
	assert.Equal(t, []any{429, "rate_limited", "warmup_key_hour"}, []any{calls[4].Status, calls[4].Code, calls[4].LimitKey})
	assert.Contains(t, calls[4].String(), "429 rate_limited (warmup_key_hour)")
	assert.Equal(t, "/v1/nothing", calls[5].Path)
	assert.Equal(t, fakeURL+"/v1/nothing?key=%5Bredacted%5D", calls[5].URL)
	assert.Empty(t, calls[5].Endpoint)
}

func TestCallsMatchers(t *testing.T) {
	fake, c := newFake(t)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	agent := c.agent(emptyBody)
	c.send(agent, "hello there")
	c.send(agent, "goodbye")
	other.call("GET", "/v1/status", noBody)
	for want, matchers := range map[int][]fakeserver.Matcher{
		4: {},
		3: {fakeserver.ByKey(c.key)},
		2: {fakeserver.ByAgent(agent)},
		0: {fakeserver.ByAgent(agent), fakeserver.ByKey(other.key)},
		1: {fakeserver.ByText("goodbye"), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)},
	} {
		assert.Len(t, fake.Calls(matchers...), want)
		assert.Equal(t, want, fake.CallCount(matchers...))
	}
	assert.Equal(t, 1, fake.CallCount(fakeserver.ByTextContaining("there")))
	assert.Equal(t, 0, fake.CallCount(fakeserver.ByText("there")))
	assert.Equal(t, 0, fake.CallCount(fakeserver.ByText("")), "a call without text has no empty text")
	assert.Equal(t, 4, fake.CallCount(fakeserver.ByTextContaining(""))+2)
	assert.Equal(t, 1, fake.CallCount(fakeserver.Where(func(call fakeserver.Call) bool {
		return fake.CallCount() == 4 && call.Endpoint == fakeserver.EndpointStatus
	})))
	c.with("").call("GET", "/v1/status", noBody)
	assert.Equal(t, 0, fake.CallCount(fakeserver.ByKey("")), "no key is not the empty key")
}

func TestCallsAreBounded(t *testing.T) {
	for _, limit := range []int{0, 1, 3, 1000} {
		fake, c := newFake(t, fakeserver.WithCallLimit(limit))
		for range 1007 {
			c.call("GET", "/v1/status", noBody)
		}
		calls := fake.Calls()
		require.Len(t, calls, limit)
		assert.Equal(t, 1007-limit, fake.Admin().DroppedCalls())
		for i, call := range calls {
			require.Equal(t, fmt.Sprintf("trace_%06d", 1007-limit+i+1), call.TraceID)
		}
	}
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk","model":"`+strings.Repeat("m", 100_000)+`"}`).wantOK(t)
	call := fake.Calls()[0]
	assert.Len(t, call.Body, 64<<10)
	assert.Len(t, call.ReplyBody, 64<<10)
	assert.Greater(t, call.BodyBytes, 100_000)
	c.call("GET", "/"+strings.Repeat("a", 1000), noBody)
	assert.Len(t, fake.Calls()[1].Path, 256)
}

// The record of a call is there, complete, before its client has the answer.
func TestRecordedBeforeAnswered(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	c.wire = fake.HTTPClient(t).Transport
	for range 200 {
		trace := c.call("GET", "/v1/status", noBody).text("trace_id")
		calls := fake.Calls(fakeserver.Where(func(call fakeserver.Call) bool { return call.TraceID == trace }))
		require.Len(t, calls, 1)
		require.Equal(t, 200, calls[0].Status)
		require.NotEmpty(t, calls[0].ReplyBody)
	}
}
