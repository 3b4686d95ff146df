package otelagentmessaging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const canaryKey = "key-canary-4711"

// echo is a service that says what it was told, the key and the body, with a
// status; with 0 it fails.
type echo int

func (e echo) RoundTrip(req *http.Request) (*http.Response, error) {
	said := req.Header.Get("Authorization")
	if req.Body != nil {
		body, _ := io.ReadAll(req.Body)
		said += string(body)
	}
	if e == 0 {
		return nil, errors.New(said)
	}
	answer, _ := json.Marshal(map[string]any{
		"error": said, "reason": said, "limit_key": said, "trace_id": canaryKey, "agent_id": "agent-" + canaryKey,
		"status": "active", "reply_text": "reply-canary", "warnings": []string{"warning-canary"}, said: said,
	})
	return &http.Response{
		StatusCode: int(e), Header: http.Header{"X-Echo": {said}, "Retry-After": {"86400"}},
		Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

// TestTelemetryHoldsNoSecret exports everything that calls with canaries leave
// behind, on the fake and on services that echo.
func TestTelemetryHoldsNoSecret(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithKey(canaryKey))
	fake.OnMessage().Reply("reply-canary")
	transports := map[string]http.RoundTripper{"fake": fake.HTTPClient(t).Transport}
	for _, status := range []echo{0, 200, 400, 429, 503} {
		transports[fmt.Sprint(status)] = status
	}
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			r := newTelemetry()
			client, err := agentmessaging.NewClient(fake.BaseURL(), canaryKey, r.observer(t),
				agentmessaging.WithHTTPClient(&http.Client{Transport: transport}),
				agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 1, MaxWait: 3}))
			require.NoError(t, err)
			_ = every(t.Context(), nil, client)
			exported := asJSON(t, r.spans.GetSpans()) + asJSON(t, r.metrics(t))
			require.Contains(t, exported, "invoke_agent")
			require.Contains(t, exported, callDuration)
			for _, member := range strings.Split(exported, ",") {
				assert.NotContains(t, member, "canary")
			}
		})
	}
}

// TestOnlyIdentifiersOfTheServiceAreRecorded gives the service's words to a
// span, as long as they are names and no sentences.
func TestOnlyIdentifiersOfTheServiceAreRecorded(t *testing.T) {
	longest := strings.Repeat("x", 128)
	r := newTelemetry()
	observer := r.observer(t)
	for word, recorded := range map[string]bool{
		"trace_000001": true, "aZ09_-.:/": true, longest: true,
		longest + "x": false, "two words": false, "line\n": false, "ä": false, "": false, "[redacted]": false,
	} {
		call := r.statusFrom(t, observer, "https://service.example", word)
		assert.Equal(t, recorded, call["agentmessaging.trace_id"] == word, "%q", word)
	}
}

// TestServerAddress checks the port that the scheme implies, and a prefix, with
// one observer for several servers.
func TestServerAddress(t *testing.T) {
	r := newTelemetry()
	observer := r.observer(t)
	for base, want := range map[string]attrs{
		"https://service.example/prefix": {"server.address": "service.example", "server.port": int64(443)},
		"https://service.example:8443":   {"server.address": "service.example", "server.port": int64(8443)},
		"http://localhost":               {"server.address": "localhost", "server.port": int64(80)},
		"https://localhost":              {"server.address": "localhost", "server.port": int64(443)},
		"http://[::1]:80":                {"server.address": "::1", "server.port": int64(80)},
	} {
		call := r.statusFrom(t, observer, base, "t")
		assert.Equal(t, base+"/v1/status", call["url.full"])
		assert.Equal(t, "/v1/status", call["url.template"])
		assert.Subset(t, call, want)
	}
}

// statusFrom asks a service at base for its status, whose answer has traceID,
// and returns the attributes of the call.
func (r *telemetry) statusFrom(t *testing.T, observer agentmessaging.Option, base, traceID string) attrs {
	r.spans.Reset()
	body := asJSON(t, map[string]any{"ok": true, "service": "s", "version": "v", "mode": "m", "trace_id": traceID})
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	client, err := agentmessaging.NewClient(base, canaryKey, observer, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	require.NoError(t, err)
	return attrsOf(r.spans.GetSpans()[0].Attributes)
}

func asJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
