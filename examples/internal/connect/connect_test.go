package connect_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/examples/internal/connect"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestOpenWithoutEnvironmentIsAFake(t *testing.T) {
	connect.OnFake(t)
	conn, err := connect.Open()
	require.NoError(t, err)
	assert.Equal(t, "a fake inside this program", conn.String())
	_, err = conn.Client.Status(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestOpenTalksToTheServiceOfTheEnvironment(t *testing.T) {
	service := fakeserver.New(t)
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	t.Setenv(agentmessaging.EnvBaseURL, server.URL)
	t.Setenv(agentmessaging.EnvAPIKey, service.Key())

	conn, err := connect.Open()
	require.NoError(t, err)
	assert.Nil(t, conn.Fake)
	assert.Equal(t, "the service at "+server.URL, conn.String())
	_, err = conn.Client.Status(t.Context())
	require.NoError(t, err)
	assert.Len(t, service.Calls(), 1)
	require.NoError(t, conn.Close())
}

func TestOpenRefusesHalfAnEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		agentmessaging.EnvBaseURL: "https://service.example",
		agentmessaging.EnvAPIKey:  "key",
	} {
		t.Run(name, func(t *testing.T) {
			connect.OnFake(t)
			t.Setenv(name, value)
			_, err := connect.Open()
			require.EqualError(t, err, "set both AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY "+
				"to talk to the service, or neither to run on a fake")
		})
	}
}
