package fakeserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Each call breaks two neighbouring rules at least; the one that is checked
// first answers.
func TestOrderOfChecks(t *testing.T) {
	var (
		free      = fakeserver.KeyOptions{Plan: fakeserver.PlanFree}
		foreign   = fakeserver.KeyOptions{NotDashboard: true}
		dashboard = fakeserver.KeyOptions{}
		revoke    = (*fakeserver.Server).RevokeKey
		exhaust   = func(limit fakeserver.Limit) func(*fakeserver.Server, string) {
			return func(fake *fakeserver.Server, key string) { fake.Exhaust(key, limit) }
		}
		storeDown = func(fake *fakeserver.Server, _ string) { fake.SetBYOKAvailable(false) }
		noKey     = func(fake *fakeserver.Server, key string) {}
	)
	both := func(fs ...func(*fakeserver.Server, string)) func(*fakeserver.Server, string) {
		return func(fake *fakeserver.Server, key string) {
			for _, f := range fs {
				f(fake, key)
			}
		}
	}
	for _, row := range []struct {
		name         string
		kind         fakeserver.KeyOptions
		given        func(*fakeserver.Server, string)
		method, path string
		body         string
		status       int
		code         string
	}{
		{"route before key", dashboard, revoke, "GET", "/v1/nothing", "", 404, "not_found"},
		{"method before key", dashboard, revoke, "POST", "/v1/status", "", 405, "method_not_allowed"},
		{"key before plan", free, revoke, "GET", "/v1/status", "", 401, "unauthorized"},
		{"plan before request limit", free, exhaust("key_minute"), "POST", "/v1/warmup", "", 402, "payment_required"},
		{"plan before permission", fakeserver.KeyOptions{Plan: fakeserver.PlanFree, NotDashboard: true}, noKey, "GET", "/v1/byok", "", 402, "payment_required"},
		{"request limit before permission", foreign, exhaust("key_minute"), "PUT", "/v1/byok", "{", 429, "rate_limited"},
		{"request limit before body", dashboard, exhaust("key_day"), "PUT", "/v1/byok", "{", 429, "rate_limited"},
		{"request limit before agent", dashboard, exhaust("ip_minute"), "GET", "/v1/agents/x", "", 429, "rate_limited"},
		{"permission before body", foreign, noKey, "PUT", "/v1/byok", "{", 403, "forbidden"},
		{"permission before store", foreign, storeDown, "PUT", "/v1/byok", `{"provider":"openai","api_key":"x"}`, 403, "forbidden"},
		{"permission before state, warm-up", foreign, noKey, "POST", "/v1/warmup", `{"mode":"byok"}`, 403, "forbidden"},
		{"warm-up's body before permission", foreign, noKey, "POST", "/v1/warmup", `{"mode":"byok","x":1}`, 400, "bad_request"},
		{"body before agent, message", dashboard, noKey, "POST", "/v1/agents/x/messages", "{}", 400, "bad_request"},
		{"body before agent, SMS", dashboard, noKey, "POST", "/v1/agents/x/channels/sms", "{}", 400, "bad_request"},
		{"body before store", dashboard, storeDown, "PUT", "/v1/byok", "{}", 400, "bad_request"},
		{"body before store, creation", dashboard, storeDown, "POST", "/v1/agents", `{"llm":{"api_key":"x"}}`, 400, "bad_request"},
		{"store before configuration", dashboard, storeDown, "POST", "/v1/warmup", `{"mode":"byok"}`, 503, "byok_unavailable"},
		{"configuration before operation limit", dashboard, exhaust("warmup_key_hour"), "POST", "/v1/warmup", `{"mode":"byok"}`, 409, "byok_not_configured"},
		{"store before operation limit", dashboard, both(storeDown, exhaust("byok_set_key_hour")), "PUT", "/v1/byok", `{"provider":"openai","api_key":"x"}`, 503, "byok_unavailable"},
		{"body before operation limit", dashboard, exhaust("agent_create_key_day"), "POST", "/v1/agents", "[]", 400, "bad_request"},
		{"creation's state before operation limit", dashboard, exhaust("agent_create_key_day"), "POST", "/v1/agents", `{"llm":{"mode":"byok"}}`, 400, "byok_not_configured"},
		{"permission before operation limit", foreign, exhaust("byok_set_key_hour"), "PUT", "/v1/byok", "{", 403, "forbidden"},
		{"operation limit before effect", dashboard, exhaust("agent_create_ip_minute"), "POST", "/v1/agents", "{}", 429, "rate_limited"},
	} {
		t.Run(row.name, func(t *testing.T) {
			fake, c := newFake(t, fakeserver.WithUnknownRoutes())
			key := fake.IssueKey(row.kind)
			row.given(fake, key)
			c.with(key).call(row.method, row.path, row.body).wantError(t, row.status, row.code)
			assert.Empty(t, fake.Agents())
		})
	}
}

// A message to an unknown agent is not found whatever the state of BYOK, and a
// byok agent whose configuration was cleared is a bad request.
func TestAgentBeforeState(t *testing.T) {
	fake, c := newFake(t)
	c.setBYOK()
	agent := c.agent(`{"llm":{"mode":"byok"}}`)
	c.call("DELETE", "/v1/byok", noBody).wantOK(t)
	c.with(fake.IssueKey(fakeserver.KeyOptions{})).send(agent, "hello").wantError(t, 404, "not_found")
	c.send(agent, "hello").wantError(t, 400, "byok_not_configured")
	c.setBYOK()
	c.send(agent, "hello").wantOK(t)
}

// Endpoints that list no 429 are never limited, and spend nothing.
func TestUnlimitedEndpoints(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithLimit("key_minute", 1))
	unlimited := [][2]string{{"GET", "/v1/status"}, {"GET", "/v1/byok"}, {"DELETE", "/v1/byok"}}
	for range 3 {
		for _, call := range unlimited {
			c.call(call[0], call[1], noBody).wantOK(t)
		}
	}
	c.call("POST", "/v1/warmup", noBody).wantOK(t)
	for _, limit := range []fakeserver.Limit{"key_minute", "key_day", "ip_minute"} {
		fake.Exhaust(fake.Key(), limit)
	}
	c.call("POST", "/v1/warmup", noBody).wantError(t, 429, "rate_limited")
	for _, call := range unlimited {
		c.call(call[0], call[1], noBody).wantOK(t)
	}
	fake.Advance(24 * time.Hour)
	c.call("POST", "/v1/warmup", noBody).wantOK(t)
}
