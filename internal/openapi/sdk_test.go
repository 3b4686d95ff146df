package openapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// calls are the SDK's nine, by the operationId of each, with every member that
// a request may have.
func calls(t *testing.T, agentID string) map[string]func(c *agentmessaging.Client) (any, error) {
	type client = *agentmessaging.Client
	ctx := t.Context()
	return map[string]func(c client) (any, error){
		"Status": func(c client) (any, error) { return c.Status(ctx) },
		"WarmUp": func(c client) (any, error) { return c.WarmUp(ctx, agentmessaging.LLMModeHosted) },
		"GetBYOK": func(c client) (any, error) {
			config, err := c.GetBYOK(ctx)
			return config, err
		},
		"SetBYOK": func(c client) (any, error) {
			return c.SetBYOK(ctx, agentmessaging.SetBYOKParams{
				Provider: agentmessaging.ProviderAnthropic, APIKey: "provider-key",
				BaseURL: "https://gateway.example", Model: "model-1", Label: "work",
			})
		},
		"ClearBYOK":   func(c client) (any, error) { return nil, c.ClearBYOK(ctx) },
		"CreateAgent": func(c client) (any, error) { return c.CreateAgent(ctx, everyParam) },
		"GetAgent":    func(c client) (any, error) { return c.GetAgent(ctx, agentID) },
		"SendMessage": func(c client) (any, error) {
			return c.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: "Hello", UserRef: "user-1"})
		},
		"EnableSMS": func(c client) (any, error) { return c.EnableSMS(ctx, agentID, agentmessaging.SMSModeBYOTwilio) },
	}
}

var everyParam = agentmessaging.CreateAgentParams{
	SystemPrompt: "Be brief.", CustomerRef: "customer-17", Metadata: map[string]any{"team": "a"},
	SMS: agentmessaging.SMSParams{Mode: agentmessaging.SMSModeManaged},
	LLM: agentmessaging.LLMParams{
		Mode: agentmessaging.LLMModeBYOK, Tier: agentmessaging.TierSmart, Model: "model-1",
		Provider: agentmessaging.ProviderOpenAI, BaseURL: "https://gateway.example", APIKey: "provider-key", Label: "main",
	},
}

// newSDK is the SDK's client, which tries once.
func newSDK(t *testing.T, baseURL, key string, hc *http.Client) *agentmessaging.Client {
	t.Helper()
	c, err := agentmessaging.NewClient(baseURL, key, agentmessaging.WithHTTPClient(hc),
		agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	return c
}

// TestSDK: what the SDK sends is as the document has it.
func TestSDK(t *testing.T) {
	fake, r := fakeserver.New(t), newRecord(t)
	c := newSDK(t, fake.BaseURL(), fake.Key(), r.through(t, fake.HTTPClient(t)))
	agent, err := c.CreateAgent(t.Context(), agentmessaging.CreateAgentParams{})
	require.NoError(t, err)
	for name, call := range calls(t, agent.ID) {
		_, err := call(c)
		assert.NoError(t, err, name)
		assert.True(t, r.seen[name+" 200"], "%s is not the operation that the client calls", name)
	}
	_, err = c.WarmUp(t.Context(), "") // without a body
	assert.NoError(t, err)
	assert.Empty(t, r.wrong)
	assert.Len(t, r.seen, len(operations(document(t))))
	assert.Zero(t, r.invalid)
}
