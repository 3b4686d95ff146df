package agentmessaging_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

func TestSecretNeverShows(t *testing.T) {
	const canary = "provider-canary"
	secret := agentmessaging.Secret(canary)
	params := create{LLM: llm{APIKey: canary}}
	holders := []any{secret, &secret, params, &params, setBYOK{APIKey: canary}, []agentmessaging.Secret{canary}, map[string]agentmessaging.Secret{"a": canary}}
	for _, holder := range holders {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%t"} {
			text := fmt.Sprintf(verb, holder)
			assert.NotContains(t, text, "canary", verb)
			assert.NotContains(t, text, fmt.Sprintf("%x", canary), verb)
		}
		encoded, err := json.Marshal(holder)
		require.NoError(t, err)
		assert.NotContains(t, string(encoded), "canary")
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "holder", holder)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "holder", holder)
		assert.NotContains(t, out.String(), "canary")
	}
	var binary bytes.Buffer
	require.NoError(t, gob.NewEncoder(&binary).Encode(struct{ Key agentmessaging.Secret }{secret}))
	assert.NotContains(t, binary.String(), "canary")
	encoded, err := xml.Marshal(secret)
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "canary")
	assert.Equal(t, "[redacted]", secret.String())
	assert.Empty(t, agentmessaging.Secret("").String())
	assert.Equal(t, canary, string(secret))
}
