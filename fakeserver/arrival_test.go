package fakeserver_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func TestUnknownRouteFailsTheTest(t *testing.T) {
	for call, nearest := range map[string]string{
		"POST /v1/agent":                    "POST /v1/agents",
		"GET /v1/agents":                    "POST /v1/agents",
		"POST /v1/agents//messages":         "POST /v1/agents/{agent_id}/messages",
		"PUT /v2/byok":                      "PUT /v1/byok",
		"DELETE /byok":                      "DELETE /v1/byok",
		"GET /v1/status/":                   "GET /v1/status",
		"POST /v1/agents/x/channels/sms/y/": "POST /v1/agents/{agent_id}/channels/sms",
	} {
		watch, _, c := newSpied(t)
		method, path, _ := strings.Cut(call, " ")
		_ = seen(c.wire, c.request(method, path, noBody))
		assert.Equal(t, []string{"fakeserver: no endpoint is at " + call + "; nearest: " + nearest + "; WithUnknownRoutes allows such calls"}, watch.errors)
	}
}

func TestUnknownRoutesAreBoundedAndEscaped(t *testing.T) {
	watch, fake, c := newSpied(t)
	for range 100 {
		req := c.request("GET", "/", noBody)
		req.Method = "GET\n\x1b[2J" // which net/http would refuse to carry
		req.URL = &url.URL{Scheme: "http", Host: req.URL.Host, Path: "/\n\x1b[31m/" + c.key + strings.Repeat("/x", 5000), RawQuery: "api_key=canary"}
		fake.ServeHTTP(httptest.NewRecorder(), req)
	}
	require.Len(t, watch.errors, 10)
	assert.Contains(t, watch.errors[9], "; further calls to unknown routes are not reported")
	for _, line := range watch.errors {
		assert.Less(t, len(line), 600)
		assert.NotContains(t, line, c.key)
		assert.NotContains(t, line, "canary")
		assert.NotRegexp(t, `[\x00-\x1f]`, line)
		assert.Contains(t, line, "/%0A%1B%5B31m/[redacted]/x/x")
	}
}

// Braces need an escape, but net/http's server accepts them without.
func TestPathsAreRecordedAsTheyWereSent(t *testing.T) {
	fake, _ := newFake(t, fakeserver.WithUnknownRoutes())
	for i, path := range []string{"/v1/agent%73/{a}", "/v1/agents/{a}", "/v1/agents/%7Ba%7D"} {
		fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		assert.Equal(t, path, fake.Calls()[i].Path)
	}
}

// unlimited lifts all limits.
func unlimited() []fakeserver.Option {
	var opts []fakeserver.Option
	for _, limit := range spec.Limits {
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit.Key), 1<<30))
	}
	return opts
}

const (
	one  = "body: must be one JSON document and nothing else"
	half = "must be valid Unicode; half a surrogate pair is none"

	storeIsDown = "BYOK is not available, so no provider key can be used or stored"
)

// badBodies are bodies by their call, with the reason of their refusal, if there is one.
var badBodies = map[string][]struct{ body, reason string }{
	"POST /v1/agents/agent_000001/messages": {
		{`{"te\u0078t":"hello"}`, ""},
		{`{"text":"\ud83d\ude00 \"quoted\" \\"}`, ""},
		{`{"text":"\ufffd \\ud800"}`, ""},
		{`{"text":"\ud800"}`, "text: " + half},
		{`{"text":"hello","\ud800":1}`, `body: member " " is not allowed`},
		{"", one},
		{`{"text":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, one},
		{"{\"text\":\"\xed\xa0\x80\"}", "body: must be valid UTF-8"},
		{`{"user_ref":"x"}`, "text: is required"},
		{`{"text":null}`, "text: must be a string"},
		{`{"Text":"hello"}`, `body: member "Text" is not allowed`},
		{`{"text":"hello","a1b2c3d":1}`, `body: member "a1b2c3d" is not allowed`},
		{`{"text":"hello","a1b2c3d4":1}`, "body: member … is not allowed"}, // long enough to be a key
		{`{"text":"hello","` + strings.Repeat("é", 65) + `":1}`, `body: member "` + strings.Repeat("é", 30) + `..." is not allowed`},
		{`{"text":"hello","t\u0065xt":"hello"}`, "text: is there twice"},
	},
	"POST /v1/agents": {
		{`{"metadata":{"a":null,"b":[1,-2.5e3,true,false,{"a":{"a":1}}],"":"x","A":1,"c":[{"b":1},{"b":1}]}}`, ""},
		{`{"llm":{"x":1}}`, `llm: member "x" is not allowed`},
		{`{"llm":{"mode":"hosted","mode":"hosted"}}`, "llm.mode: is there twice"},
		{`{"sms":{}}`, "sms.mode: is required"},
		{`{"metadata":[]}`, "metadata: must be an object"},
		{`{"metadata":{"a":[{"b":"\udfff"}]}}`, "metadata: " + half},
		{`{"metadata":{"x":[[{"a":1,"\u0061":2}]]}}`, `metadata: member "a" is there twice`},
		{`{"llm":{"mode":"byok"}}`, "llm.mode: byok needs a BYOK configuration, and none is set for this API key"},
		{`{"llm":{"api_key":"sk"}}`, "llm.provider: is required when llm.api_key is given"},
		{`{"llm":{"provider":"openai","api_key":"sk"}}`, "llm.api_key: " + storeIsDown},
	},
	"POST /v1/warmup": {{`{"mode":"byok"}`, "mode: " + storeIsDown}},
	"PUT /v1/byok":    {{`{"provider":"openai","api_key":"sk"}`, "api_key: " + storeIsDown}},
}

// The reason names the member and its rule. Package contract has the statuses.
func TestReasonsOfBodies(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	fake.SetBYOKAvailable(false)
	c.agent(emptyBody)
	for call, rows := range badBodies {
		method, path, _ := strings.Cut(call, " ")
		for _, row := range rows {
			r := c.call(method, path, row.body)
			assert.Equal(t, row.reason, r.text("reason"), clipped(row.body))
			assert.Equal(t, row.reason == "", r.status == 200, clipped(row.body))
		}
	}
}
