package fakeserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
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
		fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, http.NoBody))
		assert.Equal(t, path, fake.Calls()[i].Path)
	}
}
