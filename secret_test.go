package agentmessaging_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
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

// spellings are the forms in which a secret could show.
func spellings(secret string) []string {
	quoted, _ := json.Marshal(secret)
	return []string{
		secret, strings.Trim(string(quoted), `"`), url.QueryEscape(secret), url.PathEscape(secret),
		base64.RawStdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

// reachable collects every string and byte slice that reflection reaches from
// v, through unexported fields, pointers and interfaces.
func reachable(v reflect.Value, seen map[uintptr]bool, found func(string)) {
	switch v.Kind() {
	case reflect.String:
		found(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Pointer && (v.IsNil() || seen[v.Pointer()]) {
			return
		}
		if v.Kind() == reflect.Pointer {
			seen[v.Pointer()] = true
		}
		if v.Kind() == reflect.Pointer || !v.IsNil() {
			reachable(v.Elem(), seen, found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			reachable(v.Field(i), seen, found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			reachable(key, seen, found)
			reachable(v.MapIndex(key), seen, found)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			found(string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			reachable(v.Index(i), seen, found)
		}
	}
}

// sentSecrets are the secrets that each endpoint's call of nineCalls sends,
// beside the API key.
var sentSecrets = map[string]string{
	"SetBYOK": "provider-canary", "CreateAgent": "prompt-canary", "SendMessage": "message-canary",
}

// TestNothingReachableHoldsASecret walks what a call leaves in the hands of
// the application, of every endpoint and of a service that echoes what it was
// sent in every spelling: not even a debugger's dump of a client, an error or
// the facts of a call shows a key.
func TestNothingReachableHoldsASecret(t *testing.T) {
	holdsNone(t, newClient(t, nil), spellings(testKey))
	for _, call := range nineCalls {
		secrets := append(spellings(testKey), spellings(sentSecrets[call.name])...)
		echo, _ := json.Marshal(map[string]any{
			"error": strings.Join(secrets, " "), "reason": secrets[0], "trace_id": secrets[1], "extra": secrets, secrets[0]: 1,
		})
		for _, a := range []answer{{status: 200, body: okBody}, {status: 400, body: string(echo)}, {status: 200, body: "{"}, {err: dialError}} {
			var info agentmessaging.CallInfo
			err := call.do(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, &stub{answers: []answer{a}}, once))
			holdsNone(t, info, secrets)
			if err != nil {
				holdsNone(t, err, secrets)
			}
		}
	}
}

func holdsNone(t *testing.T, held any, secrets []string) {
	t.Helper()
	reachable(reflect.ValueOf(held), map[uintptr]bool{}, func(text string) {
		for _, secret := range secrets {
			assert.False(t, secret != "" && strings.Contains(text, secret), "%T holds %q", held, text)
		}
	})
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", held, held, held), "canary")
}
