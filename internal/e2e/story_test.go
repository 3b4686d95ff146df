package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestStory runs the client against the fake, which the contract suite holds
// to the interface: what one side misspells, the other does not understand.
func TestStory(t *testing.T) {
	fake := fakeserver.New(t)
	client, ctx := clientBy(t, fake, overMemory), t.Context()

	status, err := client.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, &agentmessaging.ServiceStatus{OK: true, Service: "agent-messaging-fake", Version: "v1", Mode: "preview", TraceID: "trace_000001"}, status)

	warm, err := client.WarmUp(ctx, "")
	require.NoError(t, err)
	assert.Equal(t, &agentmessaging.WarmUpResult{OK: true, Warmed: true, Mode: agentmessaging.LLMModeHosted, TraceID: "trace_000002"}, warm)

	config, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderAnthropic, APIKey: "provider-canary", BaseURL: "https://gateway.example", Model: "m-1", Label: "main",
	})
	require.NoError(t, err)
	assert.Equal(t, agentmessaging.BYOKConfig{
		Provider: agentmessaging.ProviderAnthropic, BaseURL: "https://gateway.example", Model: "m-1",
		Fingerprint: config.Fingerprint, UpdatedAt: config.UpdatedAt, TraceID: "trace_000003",
	}, *config)
	read, err := client.GetBYOK(ctx)
	require.NoError(t, err)
	config.TraceID = "trace_000004"
	assert.Equal(t, config, read)

	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "Be brief.", CustomerRef: "c-17", Metadata: map[string]any{"n": uint64(18446744073709551615)},
		SMS: agentmessaging.SMSParams{Mode: agentmessaging.SMSModeManaged},
		LLM: agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK, Tier: agentmessaging.TierSmart},
	})
	require.NoError(t, err)
	assert.Equal(t, agentmessaging.AgentStatusActive, agent.Status)
	assert.Equal(t, agentmessaging.SMSStatusNeedsCompliance, agent.SMS.Status)
	kept, _ := fake.Agent(agent.ID)
	assert.Equal(t, `{"n":18446744073709551615}`, string(kept.Metadata), "digit by digit")
	assert.Equal(t, "Be brief. c-17 byok smart", kept.SystemPrompt+" "+kept.CustomerRef+" "+kept.LLM.Mode+" "+kept.LLM.Tier)

	fake.OnMessage(fakeserver.ByText("Hello")).ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: m.Text + " " + m.UserRef + ", " + m.Agent.SystemPrompt, Warnings: []string{"slow"}}
	})
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello", UserRef: "ann"})
	require.NoError(t, err)
	assert.Equal(t, &agentmessaging.Reply{Text: "Hello ann, Be brief.", Warnings: []string{"slow"}, TraceID: "trace_000006"}, reply)

	sms, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeSandbox)
	require.NoError(t, err)
	assert.Equal(t, agentmessaging.SMSStatusActive, sms.Status)
	fake.SetSMS(agent.ID, "pending", "+15550100")
	again, err := client.GetAgent(ctx, agent.ID)
	require.NoError(t, err)
	assert.Equal(t, &agentmessaging.SMS{Status: agentmessaging.SMSStatusPending, PhoneNumber: "+15550100"}, again.SMS)
	for _, stamp := range []agentmessaging.Timestamp{again.CreatedAt, again.UpdatedAt, config.UpdatedAt} {
		_, err := stamp.Time()
		assert.NoError(t, err)
	}
	require.NoError(t, client.ClearBYOK(ctx))
}
