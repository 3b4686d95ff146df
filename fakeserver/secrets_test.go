package fakeserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A secret of the call is found wherever it stands, and however it is escaped.
func TestCallsHideSecretsInOddPlaces(t *testing.T) {
	const provider = `sk-"canary"/+=<1>`
	const quoted = `"sk-\"canary\"/+=<1>"`
	_, plain := newFake(t)
	escapedToken := `\u0061` + plain.key[1:]
	for name, call := range map[string][3]string{
		"escaped token":           {"POST", "/v1/agents", `{"customer_ref":"a ` + escapedToken + ` b"}`},
		"escaped token as a name": {"POST", "/v1/agents", `{"metadata":{"` + escapedToken + `":1}}`},
		"repeated provider key":   {"PUT", "/v1/byok", `{"provider":"openai","api_key":` + quoted + `,"label":` + quoted + `}`},
		"before its member":       {"PUT", "/v1/byok", `{"label":"\u0073k-\"canary\"\/+=<1>","provider":"openai","api_key":` + quoted + `}`},
		"in metadata":             {"POST", "/v1/agents", `{"metadata":{"provider_key":` + quoted + `},"llm":{"provider":"openai","api_key":` + quoted + `}}`},
		"of metadata":             {"POST", "/v1/agents", `{"metadata":{"a":[{"API_KEY":[` + quoted + `]}],"b":` + quoted + `}}`},
		"as a member's name":      {"PUT", "/v1/byok", `{` + quoted + `:1,"provider":"openai","api_key":` + quoted + `}`},
		"as a name twice":         {"POST", "/v1/agents", `{"metadata":{` + quoted + `:1,` + quoted + `:2},"llm":{"provider":"openai","api_key":` + quoted + `}}`},
		"a name without digits":   {"PUT", "/v1/byok", `{"canary-only":1,"provider":"openai","api_key":"canary-only"}`},
		"alone as a name":         {"POST", "/v1/agents", `{` + quoted + `:1}`},
		"issued key as a name":    {"POST", "/v1/agents", `{"` + plain.key + `":1}`},
		"escaped token in a path": {"GET", "/v1/agents/%61" + plain.key[1:], ""},
		"half escaped in a path":  {"GET", "/v1/%2F/" + strings.Replace(plain.key, "_", "%5f", 1) + "%0A", ""},
	} {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithMessageTexts())
		note := "about nothing"
		if strings.Contains(strings.ToLower(call[2]), "api_key") { // else nothing says what is a key
			note = "about " + provider
		}
		r := c.call(call[0], call[1], call[2], "X-Note: "+note, "X-"+c.key+": 1")
		recorded := fmt.Sprintf("%+v", fake.Calls()) + r.raw
		for _, secret := range []string{c.key, escapedToken, "%61" + c.key[1:], "canary", "amk%5ffake"} {
			assert.NotContains(t, strings.ToLower(recorded), secret, name)
		}
	}
}

// What is foreign is bounded in a record.
func TestRecordsAreBounded(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	long := strings.Repeat("a", 10_000)
	req := c.request("X"+long, "/v1/agents/"+long, noBody, "X-Long: "+long)
	for i := range 500 {
		req.Header.Set(fmt.Sprint("X-", i), "1")
	}
	resp, err := c.wire.RoundTrip(req)
	assert.NoError(t, err)
	read(t, resp)
	c.call("GET", "/v1/agents/"+long, noBody, "X-Long: "+long)
	for _, call := range fake.Calls() {
		assert.LessOrEqual(t, len(call.Method), 256)
		assert.LessOrEqual(t, len(call.Path), 256)
		assert.LessOrEqual(t, len(call.AgentID), 256)
		assert.LessOrEqual(t, len(call.Header), 100)
		assert.LessOrEqual(t, len(call.Header.Get("X-Long")), 4<<10)
	}
	assert.Equal(t, 1, fake.CallCount(fakeserver.ByAgent(long)), "a long identifier is found")
	assert.Equal(t, http.Header{"Authorization": {"[redacted]"}}.Get("Authorization"), fake.Calls()[1].Header.Get("Authorization"))
}
