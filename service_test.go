package agentmessaging_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// These tests run the client against the fake, which the contract suite holds
// to the interface: what one side misspells, the other does not understand.

// clientOf returns a client of the fake that uses key.
func clientOf(t *testing.T, fake *fakeserver.Server, key string, opts ...agentmessaging.Option) *agentmessaging.Client {
	t.Helper()
	opts = append([]agentmessaging.Option{agentmessaging.WithHTTPClient(fake.HTTPClient(t))}, opts...)
	client, err := agentmessaging.NewClient(fake.BaseURL(), key, opts...)
	require.NoError(t, err)
	return client
}

func newAgent(t *testing.T, client *agentmessaging.Client, params create) *agentmessaging.Agent {
	t.Helper()
	agent, err := client.CreateAgent(t.Context(), params)
	require.NoError(t, err)
	return agent
}

func TestStory(t *testing.T) {
	fake := fakeserver.New(t)
	client := clientOf(t, fake, fake.Key())
	ctx := t.Context()

	status, err := client.Status(ctx)
	require.NoError(t, err)
	assert.True(t, status.OK)
	assert.NotEmpty(t, status.Service)
	assert.NotEmpty(t, status.Version)
	assert.NotEmpty(t, status.Mode)
	assert.Equal(t, "trace_000001", status.TraceID)

	warm, err := client.WarmUp(ctx, "")
	require.NoError(t, err)
	assert.Equal(t, agentmessaging.WarmUpResult{OK: true, Warmed: true, Mode: agentmessaging.LLMModeHosted, TraceID: "trace_000002"}, *warm)

	agent := newAgent(t, client, create{SystemPrompt: "Be brief.", SMS: agentmessaging.SMSParams{Mode: agentmessaging.SMSModeManaged}})
	assert.Equal(t, agentmessaging.AgentStatusActive, agent.Status)
	assert.Equal(t, agentmessaging.SMSStatusNeedsCompliance, agent.SMS.Status)

	fake.OnMessage(fakeserver.ByText("Hello")).ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: m.Text + " " + m.UserRef + ", " + m.Agent.SystemPrompt, Warnings: []string{"slow"}}
	})
	reply, err := client.SendMessage(ctx, agent.ID, message{Text: "Hello", UserRef: "ann"})
	require.NoError(t, err)
	assert.Equal(t, "Hello ann, Be brief.", reply.Text)
	assert.Equal(t, []string{"slow"}, reply.Warnings)

	sms, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeSandbox)
	require.NoError(t, err)
	assert.Equal(t, agentmessaging.SMSStatusActive, sms.Status)

	fake.SetSMS(agent.ID, "pending", "+15550100")
	read, err := client.GetAgent(ctx, agent.ID)
	require.NoError(t, err)
	assert.Equal(t, agent.ID, read.ID)
	assert.Equal(t, &agentmessaging.SMS{Status: agentmessaging.SMSStatusPending, PhoneNumber: "+15550100"}, read.SMS)
	for _, stamp := range []agentmessaging.Timestamp{read.CreatedAt, read.UpdatedAt} {
		_, err := stamp.Time()
		assert.NoError(t, err)
	}
	assert.Nil(t, newAgent(t, client, create{}).SMS)
}

// allNine calls every endpoint once and returns the errors by name.
func allNine(ctx context.Context, client *agentmessaging.Client, agentID string) map[string]error {
	errs := map[string]error{}
	_, errs["Status"] = client.Status(ctx)
	_, errs["WarmUp"] = client.WarmUp(ctx, "")
	_, errs["GetBYOK"] = client.GetBYOK(ctx)
	_, errs["SetBYOK"] = client.SetBYOK(ctx, setBYOK{Provider: "openai", APIKey: "k"})
	errs["ClearBYOK"] = client.ClearBYOK(ctx)
	_, errs["CreateAgent"] = client.CreateAgent(ctx, create{})
	_, errs["GetAgent"] = client.GetAgent(ctx, agentID)
	_, errs["SendMessage"] = client.SendMessage(ctx, agentID, message{Text: "hi"})
	_, errs["EnableSMS"] = client.EnableSMS(ctx, agentID, "sandbox")
	return errs
}

// TestRefusalsOfEveryEndpoint: what the key and the plan decide (interface 5).
func TestRefusalsOfEveryEndpoint(t *testing.T) {
	fake := fakeserver.New(t)
	agent := newAgent(t, clientOf(t, fake, fake.Key()), create{})
	revoked := fake.IssueKey(fakeserver.KeyOptions{})
	fake.RevokeKey(revoked)
	for key, kind := range map[string]error{
		revoked:        agentmessaging.ErrUnauthorized,
		"never-issued": agentmessaging.ErrUnauthorized,
		fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree}): agentmessaging.ErrPaymentRequired,
	} {
		for name, err := range allNine(t.Context(), clientOf(t, fake, key), agent.ID) {
			assert.ErrorIs(t, err, kind, name)
		}
	}
	other := fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
	for name, err := range allNine(t.Context(), clientOf(t, fake, other), agent.ID) {
		switch name {
		case "GetBYOK", "SetBYOK", "ClearBYOK":
			assert.ErrorIs(t, err, agentmessaging.ErrForbidden, name)
		case "GetAgent", "SendMessage", "EnableSMS":
			assert.ErrorIs(t, err, agentmessaging.ErrNotFound, name) // another key's agent
		default:
			assert.NoError(t, err, name)
		}
	}
	_, err := clientOf(t, fake, other).WarmUp(t.Context(), agentmessaging.LLMModeBYOK)
	assert.ErrorIs(t, err, agentmessaging.ErrForbidden)
}

// TestEveryLimitIsTyped runs into each limiter of interface 8.1.
func TestEveryLimitIsTyped(t *testing.T) {
	for _, limit := range []string{
		"key_minute", "ip_minute", "key_day", "agent_create_key_day", "agent_create_ip_minute", "byok_set_key_hour", "warmup_key_hour",
	} {
		fake := fakeserver.New(t)
		fake.Exhaust(fake.Key(), fakeserver.Limit(limit))
		_, err := clientOf(t, fake, fake.Key(), once).WarmUp(t.Context(), "")
		if limit[:2] == "ag" {
			_, err = clientOf(t, fake, fake.Key(), once).CreateAgent(t.Context(), create{})
		}
		if limit[:2] == "by" {
			_, err = clientOf(t, fake, fake.Key(), once).SetBYOK(t.Context(), setBYOK{Provider: "openai", APIKey: "k"})
		}
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure, limit)
		assert.ErrorIs(t, err, agentmessaging.ErrRateLimited)
		assert.Equal(t, "rate_limited", failure.Code)
		assert.Equal(t, limit, failure.LimitKey)
		assert.NotEmpty(t, failure.TraceID)
		assert.Greater(t, failure.RetryAfter, time.Duration(0))
	}
}

// TestMetadataArrivesDigitByDigit: the fake keeps what the client sent.
func TestMetadataArrivesDigitByDigit(t *testing.T) {
	fake := fakeserver.New(t)
	agent := newAgent(t, clientOf(t, fake, fake.Key()), create{Metadata: map[string]any{"n": uint64(18446744073709551615)}})
	kept, ok := fake.Agent(agent.ID)
	require.True(t, ok)
	assert.JSONEq(t, `{"n":18446744073709551615}`, string(kept.Metadata))
	assert.Contains(t, string(kept.Metadata), "18446744073709551615")
}
