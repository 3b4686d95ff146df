package fakeserver_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
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
		assert.True(t, strings.HasPrefix(body, call.Body), "of %s the record keeps %s", clipped(body), clipped(call.Body))
		kept = append(kept, call.Body)
	}
	for i, body := range kept {
		assert.True(t, utf8.ValidString(body), "body %d: %q", i, body[len(body)-8:])
		assert.InDelta(t, 64<<10-0.5, len(body), 0.5, i)
	}
}

// document returns a file of testdata, which an earlier fake wrote.
func document(t *testing.T, name string) string {
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
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
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	wantSame(t, document(t, "calls.jsonl"), out.String(), "the calls")
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
