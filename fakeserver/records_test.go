package fakeserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestRecordedBodiesAreBounded(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithDecision("metadata_cap", 100_000), fakeserver.WithMessageTexts())
	long := strings.Repeat("é", 40_000)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Text: long} })
	c.send(c.agent(emptyBody), "hello").wantOK(t)
	kept := []string{fake.Calls()[1].ReplyBody, fake.Calls()[1].Sent.Body}
	for _, body := range []string{`{"metadata":{"a":"` + long + `"}}`, `{"metadata":{"aa":"` + long + `"}}`, `{"system_prompt":"` + long + `"}`} {
		c.call("POST", "/v1/agents", body)
		call := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, len(body), call.BodyBytes)
		assert.True(t, strings.HasPrefix(body, call.Body))
		kept = append(kept, call.Body)
	}
	for i, body := range kept {
		assert.True(t, utf8.ValidString(body), i)
		assert.InDelta(t, 64<<10-0.5, len(body), 0.5, i)
	}
}

// Each line is a Call. The names of its members are part of the interface.
func TestWriteCalls(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"customer_ref":"<b> & c"}`)
	c.send(agent, "a <secret> text")
	fake.Exhaust(c.key, "key_minute")
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection()))
	_ = seen(c.wire, c.request("POST", anAgent+"/messages", `{"text":"b"}`))
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, line := range lines {
		var back fakeserver.Call
		require.NoError(t, json.Unmarshal([]byte(line), &back))
		assert.Equal(t, fake.Calls()[i], back)
	}
	const place = `"endpoint":"POST /v1/agents/{agent_id}/messages","method":"POST","url":"` + fakeURL + anAgent + `/messages","path":"` + anAgent + `/messages",` +
		`"agent_id":"agent_000001","key":"key_000001","address":"192.0.2.1","header":{"Accept-Encoding":["gzip"],"Authorization":["[redacted]"],"Content-Length":["%d"],` +
		`"Content-Type":["application/json"],"User-Agent":["Go-http-client/1.1"]},"body":"{\"text\":\"[redacted, %d characters]\"}","body_bytes":%[1]d,"took_ns":0,`
	const answer = `body":"{\"reply_text\":\"[redacted, 26 characters]\",\"trace_id\":\"trace_000002\"}",`
	const refusal = `{\"error\":\"rate_limited\",\"trace_id\":\"trace_000003\",\"limit_key\":\"key_minute\"}`
	assert.Contains(t, lines[0], `"body":"{\"customer_ref\":\"<b> & c\"}"`)
	assert.Contains(t, lines[0], `"created":"agent_000001"`)
	wantSame(t, `{"seq":2,"time":"2040-01-01T00:00:00Z",`+fmt.Sprintf(place, 26, 15)+
		`"sent":{"status":200,"header":{"Content-Length":["79"],"Content-Type":["application/json"],"Date":["Sun, 01 Jan 2040 00:00:00 GMT"]},"`+answer+`"bytes":79},`+
		`"status":200,"reply_`+answer+`"trace_id":"trace_000002"}`, lines[1], "a reply")
	wantSame(t, `{"seq":3,"time":"2040-01-01T00:00:00Z",`+fmt.Sprintf(place, 12, 1)+`"sent":{"status":0,"bytes":0,"broke":"reset"},`+
		`"status":429,"code":"rate_limited","limit_key":"key_minute","reply_body":"`+refusal+`","fault":"LoseReply(ResetConnection())","trace_id":"trace_000003"}`, lines[2], "a refusal")
}

// flat is a JSON document as its values by their paths.
func flat(path string, value any, into map[string]any) map[string]any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			flat(path+"."+name, member, into)
		}
	case []any:
		for i, element := range v {
			flat(fmt.Sprint(path, ".", i), element, into)
		}
	}
	into[strings.TrimPrefix(path, ".log.entries.0.")] = value
	return into
}

func archive(t *testing.T, fake *fakeserver.Server, matchers ...fakeserver.Matcher) map[string]any {
	var out bytes.Buffer
	require.NoError(t, fake.WriteHAR(&out, matchers...))
	var parsed any
	require.NoError(t, json.Unmarshal(out.Bytes(), &parsed))
	return flat("", parsed, map[string]any{})
}

// The archive has the address that was called, and what was sent, and all that
// HAR 1.2 requires.
func TestWriteHAR(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	fake.Inject(fakeserver.RateLimited("30"), fakeserver.ByAgent(agent))
	c.send(agent, "secret")
	har := archive(t, fake, fakeserver.ByAgent(agent))
	for path, want := range map[string]any{
		".log.version": "1.2", "startedDateTime": "2040-01-01T00:00:00Z", "time": 0.0,
		"request.method": "POST", "request.url": fakeURL + "/v1/agents/agent_000001/messages", "request.httpVersion": "HTTP/1.1",
		"request.postData.text": `{"text":"[redacted, 6 characters]"}`, "request.postData.mimeType": "application/json",
		"request.headers.1.name": "Authorization", "request.headers.1.value": "[redacted]", "request.bodySize": 17.0,
		"response.status": 429.0, "response.statusText": "Too Many Requests", "response._decided.status": 0.0,
		"response.content.text": fake.Calls()[1].Sent.Body, "response.content.mimeType": "application/json", "response.content.size": 75.0,
		"response.headers.3.name": "Retry-After", "response.headers.3.value": "30", "response.redirectURL": "",
	} {
		assert.Equal(t, want, har[path], path)
	}
	for _, path := range []string{
		".log.creator.name", ".log.creator.version", "timings.send", "timings.wait", "timings.receive", "request.headersSize",
		"response.headersSize", "response.bodySize", "response.httpVersion", "request.cookies", "request.queryString", "response.cookies", "cache",
	} {
		assert.NotNil(t, har[path], "HAR requires it: %s", path)
	}
	fake.Reset()
	assert.Equal(t, []any{}, archive(t, fake)[".log.entries"])
	fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1:8080/v1/status?page=2&token=abc", nil))
	assert.Equal(t, "http://127.0.0.1:8080/v1/status?page=2&token=%5Bredacted%5D", archive(t, fake)["request.url"])
}

// By the clock of the bubble, and in the archive in milliseconds.
func TestCallsSayHowLongTheyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, fakeserver.WithColdStart(time.Second))
		agent := c.agent(emptyBody)
		fake.Inject(fakeserver.Latency(1500*time.Microsecond), fakeserver.ByAgent(agent))
		fake.Inject(fakeserver.DripReply(1, time.Minute), fakeserver.ByAgent(agent))
		c.send(agent, "hello")
		calls := fake.Calls()
		assert.Zero(t, calls[0].Took)
		assert.Equal(t, time.Second+1500*time.Microsecond, calls[1].Took, "without the way of the answer")
		har := archive(t, fake, fakeserver.ByAgent(agent))
		assert.Equal(t, []any{1001.5, 0.0, 1001.5, 0.0}, []any{har["time"], har["timings.send"], har["timings.wait"], har["timings.receive"]})
	})
}

// The clock of a machine may be set back in the middle of a call.
func TestCallsTakeNoNegativeTime(t *testing.T) {
	now := time.Unix(year2040, 0)
	fake, c := newFake(t, fakeserver.WithClock(func() time.Time { now = now.Add(-time.Second); return now }))
	c.call("GET", "/v1/status", noBody)
	assert.Zero(t, fake.Calls()[0].Took)
}

type fullDisk struct{}

var errFull = errors.New("the disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReturnTheErrorOfTheWriter(t *testing.T) {
	fake, c := newFake(t)
	c.call("GET", "/v1/status", noBody)
	assert.ErrorIs(t, fake.WriteCalls(fullDisk{}), errFull)
	assert.ErrorIs(t, fake.WriteHAR(fullDisk{}), errFull)
}

func TestTranscript(t *testing.T) {
	now := time.Unix(year2040, 0)
	watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }), fakeserver.WithCallLimit(60))
	for range 68 {
		c.call("GET", "/v1/status", noBody)
	}
	fake.Advance(1500 * time.Millisecond)
	c.call("PUT", "/v1/byok", `{"provider":"openai"}`)
	fake.Inject(fakeserver.Answer(503, ""))
	c.call("GET", "/v1/byok", noBody)
	watch.Errorf("the test's own failure")
	watch.finish()
	require.Len(t, watch.logs, 1)
	lines := strings.Split(watch.logs[0], "\n")
	require.Len(t, lines, 51)
	assert.Equal(t, "fakeserver: the last 50 of 70 calls:", lines[0])
	assert.Equal(t, "    +0.000s  trace_000021 GET /v1/status key_000001: 200", lines[1])
	assert.Equal(t, "    +1.500s  trace_000069 PUT /v1/byok key_000001: 400 bad_request: api_key: is required", lines[49])
	assert.Contains(t, lines[50], "trace_000070 GET /v1/byok key_000001: ")
	assert.Contains(t, lines[50], "[Answer(503")
}

// A line is one line, however foreign its parts.
func TestCallStringIsOneLine(t *testing.T) {
	call := fakeserver.Call{TraceID: "trace_000001", Method: "GET\x1b[2J", Path: "/\n", Key: "key_000001", Reason: strings.Repeat("é", 1000) + "\n"}
	line := call.String()
	assert.LessOrEqual(t, len(line), 512)
	assert.Contains(t, line, "trace_000001 GET?[2J /? key_000001: 0: ééé")
	assert.NotContains(t, line, "\ufffd")
}
