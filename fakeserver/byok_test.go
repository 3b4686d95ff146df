package fakeserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

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
