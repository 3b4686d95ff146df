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
		{"GET", "/v1/agents/agent_000001/messages", `POST /v1/agents/{agent_id}/messages`},
		{"POST", "/v1/agents/agent_000001/message", `POST /v1/agents/{agent_id}/messages`},
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

func TestUnusedRequiredNamesTheNearestCall(t *testing.T) {
	const message = "nearest: trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200, "
	byAgent, byText := fakeserver.ByAgent("agent_000001"), fakeserver.ByText("good morning")
	for _, row := range []struct {
		want     string
		matchers []fakeserver.Matcher
	}{
		{message + "not matched by ByText(12 characters)", []fakeserver.Matcher{byAgent, byText}},
		{message + "not matched by ByText(12 characters)", []fakeserver.Matcher{byText}},
		{message + "not matched by ByAgent(…), ByKey(…)", []fakeserver.Matcher{fakeserver.ByAgent("amk_x"), fakeserver.ByKey("amk_x")}},
		{message + "which matches: it came before the rule was made, or another acted on it", []fakeserver.Matcher{byAgent}},
		{message + "not matched by ByTextContaining(4 characters)", []fakeserver.Matcher{
			fakeserver.ByKey("amk_fake_000001"), fakeserver.ByTextContaining("good")}},
		{"nearest: trace_000003 POST /v1/agents/agent_000009/messages key_000001: 404 not_found: " +
			"no agent of this API key has this identifier, which matches, but was not accepted", []fakeserver.Matcher{fakeserver.ByAgent("agent_000009")}},
	} {
		watch, fake, c := newSpied(t)
		c.send(c.agent(emptyBody), "hello")
		c.send("agent_000009", "hello")
		c.call("GET", "/v1/agents/agent_000001", noBody).wantOK(t) // no message, so never near
		if strings.HasPrefix(row.want, message) {
			fake.Reset()
			c.call("GET", "/v1/status", noBody)
			c.send(seeded(fake, c), "hello")
		}
		fake.OnMessage(row.matchers...).Required()
		watch.finish()
		require.Len(t, watch.errors, 1)
		assert.True(t, strings.HasSuffix(watch.errors[0], "; "+row.want), watch.errors[0])
	}
}

// seeded returns an agent that no call created.
func seeded(fake *fakeserver.Server, c caller) string {
	return fake.AddAgent(c.key, fakeserver.Agent{}).ID
}

func TestUnusedRequiredWithoutACall(t *testing.T) {
	watch, fake, c := newSpied(t)
	c.call("GET", "/v1/status", noBody)
	fake.OnMessage(fakeserver.Where(func(fakeserver.Call) bool { panic("never asked") })).Required()
	watch.finish()
	require.Len(t, watch.errors, 1)
	assert.Regexp(t, `^fakeserver: OnMessage\(Where\(unknown_test.go:\d+\)\) is required and was never used; calls that it matched: 0; no call came near$`, watch.errors[0])
}

func TestMatchersPrintWithoutTextsAndKeys(t *testing.T) {
	for want, matcher := range map[string]fakeserver.Matcher{
		"ByEndpoint(POST /v1/agents)":    fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent),
		"ByKey(key_000012)":              fakeserver.ByKey("amk_fake_000012"),
		"ByKey(…)":                       fakeserver.ByKey("amk_fake_0000000012"),
		"ByAgent(agent_000001)":          fakeserver.ByAgent("agent_000001"),
		"ByAgent(…)":                     fakeserver.ByAgent("amk_fake_000001"),
		"ByText(2 characters)":           fakeserver.ByText("hé"),
		"ByTextContaining(0 characters)": fakeserver.ByTextContaining(""),
	} {
		assert.Equal(t, want, matcher.String())
	}
}
