package fakeserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

// The reason names the member and its rule. Package contract has the statuses.
func TestReasonsOfBodies(t *testing.T) {
	const (
		one  = "body: must be one JSON document and nothing else"
		half = "must be valid Unicode; half a surrogate pair is none"
	)
	_, c := newFake(t, unlimited()...)
	messages := "/v1/agents/" + c.agent(emptyBody) + "/messages"
	for path, rows := range map[string][]struct{ body, reason string }{
		messages: {
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
			{"{\"text\":\"a\nb\"}", one},
			{`{"text":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, one},
			{"{\"text\":\"\xed\xa0\x80\"}", "body: must be valid UTF-8"},
			{`{"user_ref":"x"}`, "text: is required"},
			{`{"text":null}`, "text: must be a string"},
			{`{"text":"hello","user_ref":null}`, "user_ref: must be a string"},
			{`{"Text":"hello"}`, `body: member "Text" is not allowed`},
			{`{"text":"hello","":1}`, `body: member "" is not allowed`},
			{`{"text":"hello","` + strings.Repeat("é", 65) + `":1}`, `body: member "` + strings.Repeat("é", 64) + `..." is not allowed`},
			{`{"text":"hello","t\u0065xt":"hello"}`, "text: is there twice"},
		},
		"/v1/agents": {
			{`{"metadata":{"a":null,"b":[1,-2.5e3,true,false,{"a":{"a":1}}],"":"x","A":1,"c":[{"b":1},{"b":1}]}}`, ""},
			{`{"metadata":{"a":"\ud83d\ude00"}}`, ""},
			{`{"llm":{"mode":null}}`, "llm.mode: must be a string"},
			{`{"llm":{"x":1}}`, `llm: member "x" is not allowed`},
			{`{"llm":{"mode":"hosted","mode":"hosted"}}`, "llm.mode: is there twice"},
			{`{"llm":{},"llm":{}}`, "llm: is there twice"},
			{`{"sms":{}}`, "sms.mode: is required"},
			{`{"metadata":[]}`, "metadata: must be an object"},
			{`{"metadata":{"\ud800":1}}`, "metadata: " + half},
			{`{"metadata":{"\ud800":1,"\ud801":2}}`, "metadata: " + half},
			{`{"metadata":{"a":[{"b":"\udfff"}]}}`, "metadata: " + half},
			{`{"metadata":{"x":[[{"a":1,"\u0061":2}]]}}`, `metadata: member "a" is there twice`},
		},
	} {
		for _, row := range rows {
			r := c.call("POST", path, row.body)
			assert.Equal(t, row.reason, r.text("reason"), clipped(row.body))
			assert.Equal(t, row.reason == "", r.status == 200, clipped(row.body))
		}
	}
}

func TestContentHeaders(t *testing.T) {
	_, c := newFake(t, unlimited()...)
	const typ, coding = "Content-Type: must be application/json, in UTF-8", "Content-Encoding: only identity is accepted"
	for header, reason := range map[string]string{
		"Content-Type: Application/JSON;charset=UTF-8":   "",
		"Content-Encoding: identity":                     "",
		"Content-Type: application/json; charset=latin1": typ,
		"Content-Type: application/json;;=":              typ,
		"Content-Encoding: gzip":                         coding,
	} {
		r := c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, header)
		assert.Equal(t, reason, r.text("reason"), header)
	}
	c.call("POST", "/v1/warmup", noBody, "Content-Type: text/plain").wantOK(t) // there is no body to be of that type
	c.call("GET", "/v1/status", noBody, "Content-Type: text/plain").wantOK(t)
}
