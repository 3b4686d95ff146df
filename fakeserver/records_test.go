package fakeserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// ExampleMatcher shows what each matcher finds; these find less than they seem to.
func TestMatchersOfCalls(t *testing.T) {
	fake, c := newFake(t)
	c.send(c.agent(emptyBody), "hello there")
	c.with("").call("GET", "/v1/status", noBody)
	calledBack := fakeserver.Where(func(call fakeserver.Call) bool { return fake.CallCount() == 3 && call.Status == 401 })
	for _, row := range []struct {
		want    int
		matcher fakeserver.Matcher
	}{
		{0, fakeserver.ByKey("")}, // no key is not the empty key
		{0, fakeserver.ByText("there")},
		{0, fakeserver.ByText("")}, // a call without text has no empty text
		{1, fakeserver.ByTextContaining("")},
		{1, calledBack},
	} {
		assert.Len(t, fake.Calls(row.matcher), row.want, "%v", row.matcher)
		assert.Equal(t, row.want, fake.CallCount(row.matcher), "%v", row.matcher)
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
		{fakeserver.RawAnswer(502, "text/html", "<h1>Bad gateway</h1>"), 502, 20, "[redacted, 20 characters]", "", "20", "text/html", false},
		{fakeserver.LoseReply(fakeserver.Answer(504, "")), 504, 85, lost, "", "85", "application/json", false},
		{fakeserver.TruncateReply(20), 200, 20, `{"reply_text":"[redacted, 12 characters]"`, "", "55", "application/json", false},
		{fakeserver.Answer(204, "x"), 204, 0, "", "", "", "", false},
		{fakeserver.CloseEarly(), 0, 0, "", "", "", "", false},
		{fakeserver.TruncateReply(5), 200, 5, `{"rep`, "", "55", "application/json", true}, // as far as it went
		{fakeserver.RawAnswer(502, "x", "<h1>sk-12345678</h1>"), 502, 20, "[redacted, 20 characters]", "", "20", "x", true},
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
		{"POST", "/v1/agents/a/messages", `{"text":"Hello`, `[redacted, 14 characters]`, "body"},
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

// A record is bounded, whatever came. A long identifier is found all the same.
func TestRecordsAreBounded(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithDecision("metadata_cap", 100_000), fakeserver.WithMessageTexts())
	long := strings.Repeat("é", 40_000)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Text: long} })
	c.send(c.agent(emptyBody), "hello").wantOK(t)
	kept := []string{fake.Calls()[1].ReplyBody, fake.Calls()[1].Sent.Body}
	for _, body := range []string{`{"metadata":{"a":"` + long + `"}}`, `{"metadata":{"aa":"` + long + `"}}`, `{"system_prompt":"` + long + `"}`} {
		c.call("POST", "/v1/agents", body)
		call := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, len(body), call.BodyBytes)
		assert.True(t, strings.HasPrefix(body, call.Body), "of %s the record keeps %s", clipped(body), clipped(call.Body))
		kept = append(kept, call.Body)
	}
	for i, body := range kept {
		assert.True(t, utf8.ValidString(body), "body %d: %q", i, body[len(body)-8:])
		assert.InDelta(t, 64<<10-0.5, len(body), 0.5, i)
	}
	id := strings.Repeat("a", 10_000)
	req := c.request("X"+id, "/v1/agents/"+id, noBody, "X-Long: "+id)
	for i := range 500 {
		req.Header.Set(fmt.Sprint("X-", i), "1")
	}
	_ = seen(c.wire, req)
	c.call("GET", "/v1/agents/"+id, noBody, "X-Long: "+id)
	for _, call := range fake.Calls() {
		assert.LessOrEqual(t, max(len(call.Method), len(call.Path), len(call.AgentID)), 256)
		assert.LessOrEqual(t, len(call.Header), 100)
		assert.LessOrEqual(t, len(call.Header.Get("X-Long")), 4<<10)
	}
	assert.Equal(t, 1, fake.CallCount(fakeserver.ByAgent(id)))
}

// Each line is a Call. The names of its members are part of the interface.
func TestWriteCalls(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"customer_ref":"<b> & c"}`)
	c.send(agent, "a <secret> text")
	c.call("POST", "/v1/warmup", `{"mode":1}`)
	fake.Exhaust(c.key, "key_minute")
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection()))
	_ = seen(c.wire, c.request("POST", anAgent+"/messages", `{"text":"b"}`))
	want, err := os.ReadFile("testdata/calls.jsonl") // which an earlier fake wrote
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	assert.Equal(t, string(want), out.String())
	decoder := json.NewDecoder(&out)
	for _, call := range fake.Calls() {
		var back fakeserver.Call
		require.NoError(t, decoder.Decode(&back))
		assert.Equal(t, call, back)
	}
}

// The clock of a machine may be set back in the middle of a call.
func TestCallsTakeNoNegativeTime(t *testing.T) {
	now := time.Unix(year2040, 0)
	fake, c := newFake(t, fakeserver.WithClock(func() time.Time { now = now.Add(-time.Second); return now }))
	c.call("GET", "/v1/status", noBody)
	assert.Zero(t, fake.Calls()[0].Took)
}

func TestTranscript(t *testing.T) {
	now := time.Unix(year2040, 0)
	watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }), fakeserver.WithCallLimit(60))
	for range 68 {
		c.call("GET", "/v1/status", noBody)
	}
	fake.Advance(1500 * time.Millisecond)
	fake.Exhaust(c.key, fakeserver.LimitBYOKSetKeyHour)
	c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`)
	fake.Inject(fakeserver.Answer(503, ""))
	c.call("GET", "/v1/byok", noBody)
	watch.Errorf("the test's own failure")
	watch.finish()
	require.Len(t, watch.logs, 1)
	lines := strings.Split(watch.logs[0], "\n")
	require.Len(t, lines, 51)
	assert.Equal(t, "fakeserver: the last 50 of 70 calls:", lines[0])
	assert.Equal(t, "    +0.000s  trace_000021 GET /v1/status key_000001: 200", lines[1])
	assert.Equal(t, "    +1.500s  trace_000069 PUT /v1/byok key_000001: 429 rate_limited (byok_set_key_hour): Exhaust closed byok_set_key_hour for key_000001; it opens in 1h0m0s", lines[49])
	assert.Contains(t, lines[50], "trace_000070 GET /v1/byok key_000001: ")
	assert.Contains(t, lines[50], "key_000001: 503: Answer(503) answered in place of the service; the call had no effect")
}

// A line is one line, however foreign its parts.
func TestCallStringIsOneLine(t *testing.T) {
	call := fakeserver.Call{TraceID: "trace_000001", Method: "GET\x1b[2J", Path: "/\n", Key: "key_000001", Reason: strings.Repeat("é", 1000) + "\n"}
	line := call.String()
	assert.LessOrEqual(t, len(line), 512)
	assert.Contains(t, line, "trace_000001 GET [2J /  key_000001: 0: ééé")
	assert.NotContains(t, line, "\ufffd")
}
