package openapi_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

var everyParam = agentmessaging.CreateAgentParams{
	SystemPrompt: "Be brief.", CustomerRef: "customer-17", Metadata: map[string]any{"team": "a"},
	SMS: agentmessaging.SMSParams{Mode: agentmessaging.SMSModeManaged},
	LLM: agentmessaging.LLMParams{
		Mode: agentmessaging.LLMModeBYOK, Tier: agentmessaging.TierSmart, Model: "model-1",
		Provider: agentmessaging.ProviderOpenAI, BaseURL: "https://gateway.example", APIKey: "provider-key", Label: "main",
	},
}

// TestSDK: what the SDK sends is as the document has it, with every member that
// a request may have.
func TestSDK(t *testing.T) {
	fake, r, ctx := fakeserver.New(t), newRecord(t), t.Context()
	c, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(r.through(t, fake.HTTPClient(t))))
	require.NoError(t, err)
	agent, err := c.CreateAgent(ctx, everyParam)
	require.NoError(t, err)
	for _, call := range []func() (any, error){
		func() (any, error) { return c.Status(ctx) },
		func() (any, error) { return c.WarmUp(ctx, agentmessaging.LLMModeHosted) },
		func() (any, error) { return c.WarmUp(ctx, "") }, // without a body
		func() (any, error) { return c.SetBYOK(ctx, everyProviderParam) },
		func() (any, error) { return c.GetBYOK(ctx) },
		func() (any, error) { return c.GetAgent(ctx, agent.ID) },
		func() (any, error) { return c.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeBYOTwilio) },
		func() (any, error) {
			return c.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello", UserRef: "user-1"})
		},
		func() (any, error) { return nil, c.ClearBYOK(ctx) },
	} {
		_, err := call()
		assert.NoError(t, err)
	}
	assert.Empty(t, r.wrong)
	for _, op := range operations(document(t)) {
		assert.True(t, r.seen[op.OperationID+" 200"], op.OperationID)
	}
	assert.Zero(t, r.invalid)
}

var everyProviderParam = agentmessaging.SetBYOKParams{
	Provider: agentmessaging.ProviderAnthropic, APIKey: "provider-key", BaseURL: "https://gateway.example", Model: "model-1", Label: "work",
}
