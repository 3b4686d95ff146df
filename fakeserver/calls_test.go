package fakeserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestCallsMatchers(t *testing.T) {
	fake, c := newFake(t)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	agent := c.agent(emptyBody)
	c.send(agent, "hello there")
	c.send(agent, "goodbye")
	other.call("GET", "/v1/status", noBody)
	c.with("").call("GET", "/v1/status", noBody)
	where := fakeserver.Where(func(call fakeserver.Call) bool {
		return fake.CallCount() == 5 && call.Endpoint == fakeserver.EndpointStatus
	})
	for _, row := range []struct {
		want     int
		matchers []fakeserver.Matcher
	}{
		{5, nil},
		{0, []fakeserver.Matcher{fakeserver.ByKey("")}}, // no key is not the empty key
		{0, []fakeserver.Matcher{fakeserver.ByAgent(agent), fakeserver.ByKey(other.key)}},
		{0, []fakeserver.Matcher{fakeserver.ByText("there")}},
		{0, []fakeserver.Matcher{fakeserver.ByText("")}}, // a call without text has no empty text
		{2, []fakeserver.Matcher{fakeserver.ByTextContaining("")}},
		{2, []fakeserver.Matcher{where}},
	} {
		assert.Len(t, fake.Calls(row.matchers...), row.want, "%v", row.matchers)
		assert.Equal(t, row.want, fake.CallCount(row.matchers...), "%v", row.matchers)
	}
}

const decidedReply = `{"reply_text":"[redacted, 12 characters]","trace_id":"trace_000002"}`

// A record shows what the client got, without words that nobody wrote for it.
func TestSent(t *testing.T) {
	const limited = `{"error":"rate_limited","trace_id":"trace_000002","limit_key":"key_minute"}`
	const lost = `{"error":"gateway_timeout","trace_id":"trace_000002","reason":"injected by the test"}`
	for _, row := range []struct {
		fault                              fakeserver.Fault
		status, bytes                      int
		body                               string
		retryAfter, announced, contentType string
		texts                              bool // WithMessageTexts
	}{
		{fakeserver.Latency(0), 200, 55, decidedReply, "", "55", "application/json", false},
		{fakeserver.RateLimited("7"), 429, 75, limited, "7", "75", "application/json", false},
		{fakeserver.RateLimited("soon, says Bob"), 429, 75, limited, "[redacted, 14 characters]", "75", "application/json", false},
		{fakeserver.RawAnswer(502, "text/html", "<h1>Bad gateway</h1>"), 502, 20, "[redacted, 7 characters] [redacted, 12 characters]", "", "20", "text/html", false},
		{fakeserver.LoseReply(fakeserver.Answer(504, "")), 504, 85, lost, "", "85", "application/json", false},
		{fakeserver.TruncateReply(20), 200, 20, `{"reply_text":"[redacted, 12 characters]"`, "", "55", "application/json", false},
		{fakeserver.Answer(204, "x"), 204, 0, "", "", "", "", false},
		{fakeserver.CloseEarly(), 0, 0, "", "", "", "", false},
		{fakeserver.TruncateReply(5), 200, 5, `{"rep`, "", "55", "application/json", true}, // as far as it went
		{fakeserver.RawAnswer(502, "x", "<h1>sk-12345678</h1>"), 502, 20, "[redacted]", "", "20", "x", true},
	} {
		t.Run(row.fault.String(), func(t *testing.T) {
			opts := []fakeserver.Option{frozen()}
			if row.texts {
				opts = append(opts, fakeserver.WithMessageTexts())
			}
			fake, c := newFake(t, opts...)
			agent := c.agent(emptyBody)
			fake.Inject(row.fault, fakeserver.ByAgent(agent))
			_ = seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`))
			sent := fake.Calls(fakeserver.ByAgent(agent))[0].Sent
			assert.Equal(t, []any{row.status, row.bytes, row.body}, []any{sent.Status, sent.Bytes, sent.Body})
			assert.Equal(t, []string{row.retryAfter, row.announced, row.contentType},
				[]string{sent.Header.Get("Retry-After"), sent.Header.Get("Content-Length"), sent.Header.Get("Content-Type")})
		})
	}
}

// The record of a refused body shows the body without texts and keys, and names
// the member that was wrong.
func TestRefusedBodies(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	long := strings.Repeat("x", 4001)
	for _, row := range []struct{ method, path, body, shown, member string }{
		{"POST", "/v1/agents/a/messages", `{"text":5}`, `{"text":5}`, "text"},
		{"POST", "/v1/agents/a/messages", `{"text": "` + long + `"}`, `{"text": "[redacted, 4001 characters]"}`, "text"},
		{"POST", "/v1/agents/a/messages", `{"txt":"Hello Bob"}`, `{"txt":"[redacted, 9 characters]"}`, "txt"},
		{"POST", "/v1/agents/a/messages", `{"text":"a","text":"b"}`, `{"text":"[redacted, 1 characters]","text":"[redacted, 1 characters]"}`, "text"},
		{"POST", "/v1/agents/a/messages", `{"text":"Hello`, `{"text":"[redacted, 5 characters]"`, "body"},
		{"POST", "/v1/agents/a/messages", `{'text': "Hello", true, 12e3}`, `{[redacted, 6 characters]: "[redacted, 5 characters]", true, 12e3}`, "body"},
		{"POST", "/v1/agents/a/messages", `text=Hello&api_key=abc`, `[redacted, 22 characters]`, "body"},
		{"POST", "/v1/agents", `{"llm":{"mode":"turbo","model":"m-1","api_key":"k","Tier":"fast"}}`, `{"llm":{"mode":"turbo","model":"m-1","api_key":"[redacted]","Tier":"[redacted, 4 characters]"}}`, "llm.mode"},
		{"POST", "/v1/agents", `{"llm":{"secret":"k"}}`, `{"llm":{"secret":"[redacted]"}}`, "llm.secret"},
		{"POST", "/v1/agents", `{"customer_ref":["sk-proj-1"]}`, `{"customer_ref":["[redacted]"]}`, "customer_ref"},
		{"POST", "/v1/agents", `{"amk_fake_000001":"amk_fake_000001","a":"é\ud83d"}`, `{"[redacted]":"[redacted]","a":"[redacted, 2 characters]"}`, "…"},
		{"PUT", "/v1/byok", `{"provider":"openai","apikey":"AbCdEfGhIjKlMnOpQrStUv12"}`, `{"provider":"openai","apikey":"[redacted]"}`, "apikey"},
		{"POST", "/v1/agent", `{"customer_ref":"Bob","n":null}`, `{"customer_ref":"[redacted, 3 characters]","n":null}`, ""},
	} {
		c.call(row.method, row.path, row.body)
		call := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, row.shown, call.Body, row.body)
		assert.Equal(t, row.member, call.Member, row.body)
	}
}
