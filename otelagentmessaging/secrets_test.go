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
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const canaryKey = "key-canary-4711"

// echo is a service that says what it was told: the key, and the body.
type echo struct {
	status int
	fails  bool
}

func (e echo) RoundTrip(req *http.Request) (*http.Response, error) {
	said := req.Header.Get("Authorization")
	if req.Body != nil {
		body, _ := io.ReadAll(req.Body)
		said += string(body)
	}
	if e.fails {
		return nil, errors.New(said)
	}
	answer, _ := json.Marshal(map[string]any{
		"error": said, "reason": said, "limit_key": said, "trace_id": canaryKey, "agent_id": "agent-prompt-canary",
		"status": "active", "reply_text": "reply-canary", "warnings": []string{"warning-canary"}, said: said,
	})
	return &http.Response{
		StatusCode: e.status, Header: http.Header{"X-Echo": {said}, "Retry-After": {"86400"}},
		Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

// TestTelemetryHoldsNoSecret exports everything that calls with canaries leave
// behind, on the fake and on services that echo.
func TestTelemetryHoldsNoSecret(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithKey(canaryKey))
	fake.OnMessage().Reply("reply-canary")
	transports := map[string]http.RoundTripper{"fake": fake.HTTPClient(t).Transport, "failing": echo{fails: true}}
	for _, status := range []int{200, 400, 429, 503} {
		transports[fmt.Sprint(status)] = echo{status: status}
	}
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			r := newTelemetry()
			client, err := agentmessaging.NewClient(fake.BaseURL(), canaryKey, r.observer(t),
				agentmessaging.WithHTTPClient(&http.Client{Transport: transport}),
				agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 1, MaxWait: 3}))
			require.NoError(t, err)
			every(t.Context(), client)
			exported := r.exported(t)
			require.Contains(t, exported, "invoke_agent")
			require.Contains(t, exported, callDuration)
			for _, line := range strings.Split(exported, "\n") {
				assert.NotContains(t, line, "canary")
			}
		})
	}
}

// exported is all that was recorded, as the exporters for standard output
// write it.
func (r *telemetry) exported(t *testing.T) string {
	var out bytes.Buffer
	spans, err := stdouttrace.New(stdouttrace.WithWriter(&out), stdouttrace.WithPrettyPrint())
	require.NoError(t, err)
	require.NoError(t, spans.ExportSpans(t.Context(), r.spans.GetSpans().Snapshots()))
	metrics, err := stdoutmetric.New(stdoutmetric.WithWriter(&out), stdoutmetric.WithPrettyPrint())
	require.NoError(t, err)
	var data metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &data))
	require.NoError(t, metrics.Export(t.Context(), &data))
	return out.String()
}

// TestOnlyIdentifiersOfTheServiceAreRecorded gives the service's words to a
// span, as long as they are names and no sentences.
func TestOnlyIdentifiersOfTheServiceAreRecorded(t *testing.T) {
	longest := strings.Repeat("x", 128)
	for word, recorded := range map[string]bool{
		"trace_000001": true, "aZ09_-.:/": true, longest: true,
		longest + "x": false, "two words": false, "line\n": false, "ä": false, "": false, "[redacted]": false,
	} {
		spans := statusFrom(t, "https://service.example", word)
		assert.Equal(t, recorded, spans[1].Attrs["agentmessaging.trace_id"] == word, "%q", word)
	}
}

// TestServerAddress checks the port that the scheme implies, and a prefix.
func TestServerAddress(t *testing.T) {
	for base, want := range map[string]attrs{
		"https://service.example/prefix": {"server.address": "service.example", "server.port": int64(443)},
		"https://service.example:8443":   {"server.address": "service.example", "server.port": int64(8443)},
		"http://localhost":               {"server.address": "localhost", "server.port": int64(80)},
		"http://[::1]:80":                {"server.address": "::1", "server.port": int64(80)},
	} {
		assert.Equal(t, want.with(attrs{
			"http.request.method": "GET", "http.response.status_code": int64(200),
			"url.full": base + "/v1/status", "url.template": "/v1/status",
		}), statusFrom(t, base, "t")[0].Attrs)
	}
}

// statusFrom asks a service at base for its status; its answer has traceID.
func statusFrom(t *testing.T, base, traceID string) []span {
	r := newTelemetry()
	body, err := json.Marshal(map[string]any{"ok": true, "service": "s", "version": "v", "mode": "m", "trace_id": traceID})
	require.NoError(t, err)
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	client, err := agentmessaging.NewClient(base, canaryKey, r.observer(t), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	require.NoError(t, err)
	return r.ended()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
