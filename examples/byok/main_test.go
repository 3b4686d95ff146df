package main

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/examples/internal/connect"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestRun(t *testing.T) {
	connect.OnFake(t)
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^stored:      \[redacted\] for openai
fingerprint: [0-9a-f]+
updated at:  .+Z
agent:       agent_000001 replies ".+"
cleared:     true
$`, stdout.String())
	assert.NotContains(t, stdout.String(), "sk-example")
}

func TestStoredKeyIsLeftAlone(t *testing.T) {
	service := fakeserver.New(t)
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	t.Setenv(agentmessaging.EnvBaseURL, server.URL)
	t.Setenv(agentmessaging.EnvAPIKey, service.Key())

	t.Setenv("PROVIDER_API_KEY", "")
	require.EqualError(t, run(t.Context(), &bytes.Buffer{}), "set PROVIDER_API_KEY to the OpenAI key to store")
	t.Setenv("PROVIDER_API_KEY", "sk-mine")

	conn, err := connect.Open()
	require.NoError(t, err)
	before, err := conn.Client.SetBYOK(t.Context(), agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderAnthropic, APIKey: "in use",
	})
	require.NoError(t, err)
	require.ErrorContains(t, run(t.Context(), &bytes.Buffer{}), "a key for anthropic is stored already")
	after, err := conn.Client.GetBYOK(t.Context())
	require.NoError(t, err)
	assert.Equal(t, before.Fingerprint, after.Fingerprint)
}
