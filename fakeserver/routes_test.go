package fakeserver_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestUnknownRouteFailsTheTest(t *testing.T) {
	for _, row := range []struct{ method, path, nearest string }{
		{"POST", "/v1/agent", `POST /v1/agents`},
		{"GET", "/v1/agents", `POST /v1/agents`},
		{"POST", "/v1/agents//messages", `POST /v1/agents/{agent_id}/messages`},
		{"PUT", "/v2/byok", `PUT /v1/byok`},
		{"DELETE", "/byok", `DELETE /v1/byok`},
		{"GET", "/v1/status/", `GET /v1/status`},
		{"POST", "/v1/agents/x/channels/sms/y/z", `POST /v1/agents/{agent_id}/channels/sms`},
	} {
		watch, _, c := newSpied(t)
		_, err := c.wire.RoundTrip(c.request(row.method, row.path, noBody))
		require.NoError(t, err)
		assert.Equal(t, []string{"fakeserver: no endpoint is at " + row.method + " " + row.path + "; nearest: " + row.nearest +
			"; WithUnknownRoutes allows such calls"}, watch.errors)
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

func TestUnknownRoutesThatAreMeant(t *testing.T) {
	_, c := newFake(t, fakeserver.WithUnknownRoutes())
	c.call("GET", "/v1/agents", noBody).wantError(t, 405, "method_not_allowed")

	fake, err := fakeserver.Open()
	require.NoError(t, err)
	c = caller{t, fake.Direct(), fake.Key()}
	c.call("GET", "/favicon.ico", noBody).wantError(t, 404, "not_found")
	assert.NoError(t, fake.Close(), "a fake without a test may get foreign traffic")
}
