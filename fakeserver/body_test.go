package fakeserver_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// unlimited lifts all limits.
func unlimited() []fakeserver.Option {
	var opts []fakeserver.Option
	for _, key := range []fakeserver.Limit{
		fakeserver.LimitKeyMinute, fakeserver.LimitIPMinute, fakeserver.LimitKeyDay, fakeserver.LimitAgentCreateKeyDay,
		fakeserver.LimitAgentCreateIPMinute, fakeserver.LimitBYOKSetKeyHour, fakeserver.LimitWarmUpKeyHour,
	} {
		opts = append(opts, fakeserver.WithLimit(key, 1<<30))
	}
	return opts
}

func TestStrictBodies(t *testing.T) {
	const (
		one  = "body: must be one JSON document and nothing else"
		half = "must be valid Unicode; half a surrogate pair is none"
	)
	_, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	for _, row := range []struct{ body, reason string }{
		{`{"text":"hello"}`, ""},
		{`{"text":""}`, ""},
		{" \r\n\t{ \"text\" : \"hello\" , \"user_ref\" : \"\" } \n", ""},
		{`{"te\u0078t":"hello"}`, ""},
		{`{"text":"\ud83d\ude00 \"quoted\" \\"}`, ""},
		{`{"text":"\ufffd \\ud800"}`, ""},
		{`{"text":"\ud800"}`, "text: " + half},
		{`{"text":"\ud800\ud800"}`, "text: " + half},
		{`{"text":"\udc00\ud800"}`, "text: " + half},
		{`{"text":"\ud83d\ude00\uDFFF"}`, "text: " + half},
		{`{"text":"\ud83dx\ude00"}`, "text: " + half},
		{`{"text":"\ud83d\n"}`, "text: " + half},
		{`{"text":"hello","\ud800":1}`, `body: member "�" is not allowed`},
		{"", one},
		{"{", one},
		{"{\"text\":\"a\nb\"}", one},
		{strings.Repeat("[", 20_000), one},
		{`{"text":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, one},
		{"null", "body: must be a JSON object"},
		{"{\"text\":\"\xff\"}", "body: must be valid UTF-8"},
		{"{\"text\":\"\xed\xa0\x80\"}", "body: must be valid UTF-8"},
		{`{}`, "text: is required"},
		{`{"user_ref":"x"}`, "text: is required"},
		{`{"text":null}`, "text: must be a string"},
		{`{"text":1}`, "text: must be a string"},
		{`{"text":["hello"]}`, "text: must be a string"},
		{`{"text":"hello","user_ref":null}`, "user_ref: must be a string"},
		{`{"Text":"hello"}`, `body: member "Text" is not allowed`},
		{`{"text":"hello","x":1}`, `body: member "x" is not allowed`},
		{`{"text":"hello","":1}`, `body: member "" is not allowed`},
		{`{"text":"hello","` + strings.Repeat("é", 65) + `":1}`, `body: member "` + strings.Repeat("é", 64) + `..." is not allowed`},
		{`{"text":"hello","text":"hello"}`, "text: stands twice"},
		{`{"text":"hello","t\u0065xt":"hello"}`, "text: stands twice"},
	} {
		r := c.call("POST", "/v1/agents/"+agent+"/messages", row.body)
		if row.reason == "" {
			assert.Equal(t, 200, r.status, "%q: %s", row.body, r.raw)
			continue
		}
		assert.Equal(t, 400, r.status, "%.80q", row.body)
		assert.Equal(t, row.reason, r.text("reason"), "%.80q", row.body)
	}
}

func TestNestedBodies(t *testing.T) {
	_, c := newFake(t, unlimited()...)
	for _, row := range []struct{ body, reason string }{
		{`{"llm":{}}`, ""},
		{`{"metadata":{}}`, ""},
		{`{"metadata":{"a":null,"b":[1,-2.5e3,true,false,{"a":{"a":1}}],"":"x","A":1}}`, ""},
		{`{"metadata":{"a":[{"b":1},{"b":1}]}}`, ""},
		{`{"llm":null}`, "llm: must be an object"},
		{`{"llm":[]}`, "llm: must be an object"},
		{`{"llm":{"mode":null}}`, "llm.mode: must be a string"},
		{`{"llm":{"x":1}}`, `llm: member "x" is not allowed`},
		{`{"llm":{"mode":"hosted","mode":"hosted"}}`, "llm.mode: stands twice"},
		{`{"llm":{},"llm":{}}`, "llm: stands twice"},
		{`{"sms":{}}`, "sms.mode: is required"},
		{`{"sms":"none"}`, "sms: must be an object"},
		{`{"sms":{"mode":"none","status":"active"}}`, `sms: member "status" is not allowed`},
		{`{"metadata":null}`, "metadata: must be an object"},
		{`{"metadata":[]}`, "metadata: must be an object"},
		{`{"metadata":{"a":1,"a":2}}`, `metadata: member "a" stands twice`},
		{`{"metadata":{"\ud800":1}}`, "metadata: must be valid Unicode; half a surrogate pair is none"},
		{`{"metadata":{"\ud800":1,"\ud801":2}}`, "metadata: must be valid Unicode; half a surrogate pair is none"},
		{`{"metadata":{"a":[{"b":"\udfff"}]}}`, "metadata: must be valid Unicode; half a surrogate pair is none"},
		{`{"metadata":{"a":"\ud83d\ude00"}}`, ""},
		{`{"metadata":{"x":[[{"a":1,"\u0061":2}]]}}`, `metadata: member "a" stands twice`},
	} {
		r := c.call("POST", "/v1/agents", row.body)
		assert.Equal(t, row.reason, r.text("reason"), row.body)
		assert.Equal(t, row.reason == "", r.status == 200, "%s: %s", row.body, r.raw)
	}
}

// A document that was cut off may look whole.
func TestBodyThatEndsEarly(t *testing.T) {
	fake, c := newFake(t)
	r := httptest.NewRequest("POST", "/v1/warmup", io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	r.Header.Set("Authorization", "Bearer "+c.key)
	w := httptest.NewRecorder()
	fake.ServeHTTP(w, r)
	read(t, w.Result()).wantReason(t, "body: it did not arrive whole") //nolint:bodyclose // read closes it
	assert.Equal(t, 2, fake.Calls()[0].BodyBytes)
}

func TestContentHeaders(t *testing.T) {
	_, c := newFake(t, unlimited()...)
	const typ, coding = "Content-Type: must be application/json, in UTF-8", "Content-Encoding: only identity is accepted"
	for _, row := range []struct{ header, reason string }{
		{"Content-Type: application/json", ""},
		{"Content-Type: application/json; charset=utf-8", ""},
		{"Content-Type: Application/JSON;charset=UTF-8", ""},
		{"Content-Encoding: identity", ""},
		{"Content-Type: text/plain", typ},
		{"Content-Type: application/problem+json", typ},
		{"Content-Type: application/json; charset=latin1", typ},
		{"Content-Type: application/json;;=", typ},
		{"Content-Type: application/x-www-form-urlencoded", typ},
		{"Content-Encoding: gzip", coding},
	} {
		r := c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, row.header)
		assert.Equal(t, row.reason, r.text("reason"), row.header)
	}
	req := c.request("POST", "/v1/warmup", `{}`)
	req.Header.Del("Content-Type")
	req.ContentLength = -1 // chunked
	resp, err := c.wire.RoundTrip(req)
	require.NoError(t, err)
	read(t, resp).wantOK(t)
	c.call("POST", "/v1/warmup", noBody, "Content-Type: application/x-www-form-urlencoded").wantOK(t) // there is no body to be of that type
	c.call("GET", "/v1/status", noBody, "Content-Type: text/plain").wantOK(t)
}
