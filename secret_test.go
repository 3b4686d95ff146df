package agentmessaging_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/reach"
)

// prints returns a value as a careless program prints it: with every verb of fmt, as JSON
// and through both handlers of slog.
func prints(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%t"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	out.Write(must(json.Marshal(v)))
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "value", v)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", v)
	return out.String()
}

func TestSecretNeverShows(t *testing.T) {
	const canary = "provider-canary"
	secret := agentmessaging.Secret(canary)
	params := create{LLM: llm{APIKey: canary}}
	for _, holder := range []any{
		secret, &secret, params, &params, setBYOK{APIKey: canary}, []agentmessaging.Secret{canary},
		map[string]agentmessaging.Secret{"a": canary},
	} {
		holdsNone(t, prints(t, holder), canary)
	}
	var binary bytes.Buffer
	require.NoError(t, gob.NewEncoder(&binary).Encode(struct{ Key agentmessaging.Secret }{secret}))
	assert.NotContains(t, binary.String(), "canary")
	assert.NotContains(t, string(must(xml.Marshal(secret))), "canary")
	assert.Equal(t, `[redacted] "[redacted]" "[redacted]" "[redacted]"`, fmt.Sprintf("%v %q %#v %s", secret, secret, secret, must(json.Marshal(secret))))
	assert.Empty(t, agentmessaging.Secret("").String())
	assert.Equal(t, canary, string(secret))
}

// holdsNone checks that no string that reflection reaches from held has a secret. A
// debugger reaches as much.
func holdsNone(t *testing.T, held any, secrets ...string) {
	t.Helper()
	reach.Strings(held, func(text string) {
		for _, secret := range secrets {
			assert.False(t, secret != "" && strings.Contains(text, secret), "%T holds %.80q", held, text)
		}
	})
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", held, held, held), "canary")
}

// TestNothingReachableHoldsASecret calls every endpoint of a service or a transport that
// echoes the request. Not even a debugger's dump of the client, the error or the CallInfo
// shows a key.
func TestNothingReachableHoldsASecret(t *testing.T) {
	client := newClient(t, nil)
	holdsNone(t, client, testKey)
	holdsNone(t, prints(t, client), testKey)
	for _, call := range slices.Concat(endpoints, []endpoint{
		{name: "CreateAgent with a key", secret: "provider-canary", call: sending(create{LLM: llm{Provider: "openai", APIKey: "provider-canary"}})},
	}) {
		spelled := testKey + " " + url.PathEscape(call.secret)
		echo, _ := json.Marshal(map[string]any{
			"error": spelled, "reason": call.secret, "trace_id": spelled, "limit_key": testKey,
			"extra": map[string]any{"deep": []string{spelled}}, testKey: 1,
		})
		cause := fmt.Errorf("proxy refused %s: %w", spelled, http.ErrHandlerTimeout)
		for _, a := range []answer{
			{Status: 200, Body: strings.Replace(anyReply, `"t"`, `"`+testKey+`"`, 1), Header: http.Header{"X-" + testKey: {call.secret}}},
			{Status: 400, Body: string(echo), Header: http.Header{"X-Echo": {testKey, call.secret}}},
			{Status: 200, Body: string(echo[1:])}, {Err: cause},
		} {
			var info agentmessaging.CallInfo
			header := a.Header.Clone()
			err := call.call(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, answering(a), once))
			assert.Equal(t, header, a.Header, "it is the transport's")
			if err == nil {
				info.Body = nil // of a success: the caller needs it as it is
			}
			holdsNone(t, info, testKey, call.secret)
			if err == nil {
				continue
			}
			holdsNone(t, err, testKey, call.secret)
			if failure := (*agentmessaging.Error)(nil); errors.As(err, &failure) {
				fields, _ := json.Marshal(failure)
				holdsNone(t, string(fields), testKey, call.secret)
			}
			assert.Equal(t, a.Err != nil, errors.Is(err, http.ErrHandlerTimeout), "%s: the cause stays reachable in %v", call.name, err)
		}
	}
}
