package fakeserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestBYOK(t *testing.T) {
	fake, c := newFake(t, frozen())
	assert.JSONEq(t, `{"ok":true,"byok":null,"trace_id":"trace_000001"}`, c.call("GET", "/v1/byok", noBody).raw)

	set := c.call("PUT", "/v1/byok", `{"provider":"anthropic","api_key":"sk-1","base_url":"https://gateway.example","model":"m","label":"mine"}`)
	set.wantOK(t)
	config := set.body["byok"].(map[string]any)
	assert.Regexp(t, "^[0-9a-f]{16}$", config["fingerprint"])
	first := config["fingerprint"]
	delete(config, "fingerprint")
	assert.Equal(t, map[string]any{
		"provider": "anthropic", "base_url": "https://gateway.example", "model": "m", "updated_at": "2040-01-01T00:00:00Z",
	}, config, "neither the key nor the label is returned")

	fake.Advance(1500 * time.Millisecond)
	got := c.call("GET", "/v1/byok", noBody)
	config["fingerprint"] = first
	assert.Equal(t, config, got.body["byok"])

	set = c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-2"}`)
	assert.NotContains(t, set.raw, "label")
	config = set.body["byok"].(map[string]any)
	assert.Contains(t, set.raw, `"base_url":null,"model":null`)
	assert.Equal(t, "2040-01-01T00:00:01.5Z", config["updated_at"])
	assert.NotEqual(t, first, config["fingerprint"])
	again := c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-1"}`)
	assert.Equal(t, first, again.body["byok"].(map[string]any)["fingerprint"], "it depends on the key only")

	for range 2 {
		assert.JSONEq(t, `{"ok":true,"trace_id":"x"}`, withTrace(c.call("DELETE", "/v1/byok", noBody)))
	}
	assert.Nil(t, c.call("GET", "/v1/byok", noBody).body["byok"])
}

func withTrace(r reply) string { return strings.Replace(r.raw, r.text("trace_id"), "x", 1) }

func TestFingerprintsOfTwoFakesDiffer(t *testing.T) {
	fingerprint := func() any {
		_, c := newFake(t)
		return c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).body["byok"].(map[string]any)["fingerprint"]
	}
	assert.NotEqual(t, fingerprint(), fingerprint())
}

func TestBYOKUnavailable(t *testing.T) {
	fake, c := newFake(t)
	c.setBYOK()
	fake.SetBYOKAvailable(false)
	c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).wantError(t, 503, "byok_unavailable")
	withKey := `{"llm":{"provider":"openai","api_key":"sk"}}`
	c.call("POST", "/v1/agents", withKey).wantError(t, 400, "byok_unavailable")
	assert.NotNil(t, c.call("GET", "/v1/byok", noBody).body["byok"])
	c.send(c.agent(`{"llm":{"mode":"byok"}}`), "hello").wantOK(t)
	c.call("DELETE", "/v1/byok", noBody).wantOK(t)
	fake.SetBYOKAvailable(true)
	c.call("POST", "/v1/agents", withKey).wantOK(t)
}

// Interface 4.6, rules 1 and 2.
func TestProviderKeyAtCreation(t *testing.T) {
	for _, o := range []fakeserver.KeyOptions{{}, {NotDashboard: true}} {
		fake, c := newFake(t)
		c = c.with(fake.IssueKey(o))
		c.call("POST", "/v1/agents", `{"llm":{"mode":"byok"}}`).wantError(t, 400, "byok_not_configured")
		c.call("POST", "/v1/agents", `{"llm":{"api_key":"sk"}}`).wantReason(t, "llm.provider: is required when llm.api_key is given")
		agent := c.agent(`{"llm":{"mode":"byok","provider":"openai","api_key":"sk","model":"m","base_url":"https://x.example","label":"l"}}`)
		c.send(agent, "hello").wantOK(t)
		c.agent(`{"llm":{"mode":"byok"}}`) // the key is stored for the account
		a, ok := fake.Agent(agent)
		require.True(t, ok)
		assert.Equal(t, fakeserver.LLM{Mode: "byok", Tier: "fast", Model: "m", Provider: "openai", BaseURL: "https://x.example", Label: "l"}, a.LLM)
		if !o.NotDashboard {
			config := c.call("GET", "/v1/byok", noBody).body["byok"].(map[string]any)
			assert.Equal(t, []any{"openai", "https://x.example", "m"}, []any{config["provider"], config["base_url"], config["model"]})
		}
	}
}

// A creation that is refused stores no key.
func TestRefusedCreationStoresNoKey(t *testing.T) {
	fake, c := newFake(t)
	fake.Exhaust(c.key, "agent_create_key_day")
	c.call("POST", "/v1/agents", `{"llm":{"provider":"openai","api_key":"sk"}}`).wantError(t, 429, "rate_limited")
	assert.Nil(t, c.call("GET", "/v1/byok", noBody).body["byok"])
}

// The reason names the member that asks for what is not there.
func TestBYOKFailuresNameTheirMember(t *testing.T) {
	fake, c := newFake(t)
	for _, tt := range []struct{ method, path, body, member string }{
		{"POST", "/v1/warmup", `{"mode":"byok"}`, "mode: "},
		{"POST", "/v1/agents", `{"llm":{"mode":"byok"}}`, "llm.mode: "},
	} {
		assert.True(t, strings.HasPrefix(c.call(tt.method, tt.path, tt.body).text("reason"), tt.member), tt.path)
	}
	fake.SetBYOKAvailable(false)
	for _, tt := range []struct{ method, path, body, member string }{
		{"POST", "/v1/warmup", `{"mode":"byok"}`, "mode: "},
		{"PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, "api_key: "},
		{"POST", "/v1/agents", `{"llm":{"provider":"openai","api_key":"sk"}}`, "llm.api_key: "},
	} {
		assert.True(t, strings.HasPrefix(c.call(tt.method, tt.path, tt.body).text("reason"), tt.member), tt.path)
	}
}
