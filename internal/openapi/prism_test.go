package openapi_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// installed is where npm puts the Prism that prism/package-lock.json pins.
const installed = "prism/node_modules/.bin/prism"

// requirePrism, where it is set, makes a missing Prism a failure.
const requirePrism = "OPENAPI_REQUIRE_PRISM"

var listening = regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`)

// mock starts Prism on the document and returns its address.
func mock(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(installed); err != nil {
		const missing = "no Prism here; npm ci --ignore-scripts --prefix prism installs it"
		require.True(t, os.Getenv(requirePrism) == "", missing)
		t.Skip(missing)
	}
	// The program itself and not npx, which would leave it running.
	program, err := filepath.EvalSymlinks(installed)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, "node", program, "mock", "--host", "127.0.0.1", "--port", "0", documentFile)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	return address(t, bufio.NewScanner(out))
}

// address is in the last line that Prism prints before the first call.
func address(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	var printed strings.Builder
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { // its log; unread, it would stop
				for lines.Scan() {
				}
			}()
			return m[1]
		}
		printed.WriteString(lines.Text() + "\n")
	}
	require.Fail(t, "Prism did not start", "%s", printed.String())
	return ""
}

// preferring asks Prism for a status.
type preferring struct{ status string }

func (p preferring) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if p.status != "" {
		req.Header.Set("Prefer", "code="+p.status)
	}
	return http.DefaultTransport.RoundTrip(req)
}

var kinds = map[string]error{
	"400": agentmessaging.ErrBadRequest, "401": agentmessaging.ErrUnauthorized, "402": agentmessaging.ErrPaymentRequired,
	"403": agentmessaging.ErrForbidden, "404": agentmessaging.ErrNotFound, "409": agentmessaging.ErrConflict,
	"429": agentmessaging.ErrRateLimited, "503": agentmessaging.ErrUnavailable,
}

// TestPrism: a server made of the document and of nothing else answers each of
// the SDK's calls with each status, and refuses what the document forbids.
func TestPrism(t *testing.T) {
	baseURL := mock(t)
	t.Run("replies", func(t *testing.T) { wantMockReplies(t, baseURL) })
	t.Run("statuses", func(t *testing.T) { wantMockStatuses(t, baseURL) })
	t.Run("refusals", func(t *testing.T) { wantMockRefusals(t, baseURL) })
}

// wantMockReplies: the document's examples, in the SDK's types.
func wantMockReplies(t *testing.T, baseURL string) {
	c := newSDK(t, baseURL, "any-key", &http.Client{Transport: preferring{}})
	const trace = "trace_000001"
	config := agentmessaging.BYOKConfig{
		Provider: "openai", Fingerprint: "5f1d7a", UpdatedAt: "2026-01-02T03:04:05Z", TraceID: trace,
	}
	read := config
	read.Model = "model-1"
	want := map[string]any{
		"Status":      &agentmessaging.ServiceStatus{OK: true, Service: "agent-messaging", Version: "1.0.0", Mode: "preview", TraceID: trace},
		"WarmUp":      &agentmessaging.WarmUpResult{OK: true, Warmed: true, Mode: "hosted", TraceID: trace},
		"GetBYOK":     &read,
		"SetBYOK":     &config,
		"ClearBYOK":   nil,
		"CreateAgent": &agentmessaging.Agent{ID: "agent_000001", Status: "active", SMS: &agentmessaging.SMS{Status: "needs_setup"}, TraceID: trace},
		"GetAgent": &agentmessaging.Agent{
			ID: "agent_000001", Status: "active", CreatedAt: "2026-01-02T03:04:05Z", UpdatedAt: "2026-01-02T03:04:06Z",
			SMS: &agentmessaging.SMS{Status: "active", PhoneNumber: "+15550100"}, TraceID: trace,
		},
		"SendMessage": &agentmessaging.Reply{Text: "Hello to you", Warnings: []string{}, TraceID: trace},
		"EnableSMS":   &agentmessaging.SMS{Status: "needs_compliance", TraceID: trace},
	}
	for name, call := range calls(t, "agent_000001") {
		got, err := call(c)
		require.NoError(t, err, name)
		assert.Equal(t, want[name], got, name)
	}
}

func wantMockStatuses(t *testing.T, baseURL string) {
	nine := calls(t, "agent_000001")
	for _, op := range operations(document(t)) {
		for status := range op.Responses.Map() {
			if status == "200" {
				continue
			}
			// A client of its own: after a 429 one would wait.
			c := newSDK(t, baseURL, "any-key", &http.Client{Transport: preferring{status}})
			_, err := nine[op.OperationID](c)
			var refused *agentmessaging.Error
			require.True(t, errors.As(err, &refused), "%s %s: %v", op.OperationID, status, err)
			assert.Equal(t, status, strconv.Itoa(refused.StatusCode), op.OperationID)
			assert.ErrorIs(t, err, kinds[status], op.OperationID)
			assert.Equal(t, "trace_000001", refused.TraceID, op.OperationID)
			if status == "429" {
				assert.Equal(t, 30*time.Second, refused.RetryAfter, op.OperationID)
			}
		}
	}
}

// refusals have one for each kind of rule in the document, beside the nearest
// request that follows it.
var refusals = []struct {
	path, body string
	want       int
}{
	{"/v1/agents", `{}`, 200},
	{"/v1/agents", `{"name":"Ada"}`, 400},
	{"/v1/agents", `{"system_prompt":null}`, 400},
	{"/v1/agents", `{"sms":{}}`, 400},
	{"/v1/agents", `{"sms":{"mode":"sandbox"}}`, 200},
	{"/v1/agents", `{"sms":{"mode":"twilio"}}`, 400},
	{"/v1/agents", `{"llm":{"api_key":"k"}}`, 400},
	{"/v1/agents", `{"llm":{"api_key":"k","provider":"openai"}}`, 200},
	{"/v1/agents", `{"llm":{"provider":"openai"}}`, 200},
	{"/v1/agents", ``, 400},
	{"/v1/warmup", ``, 200},
	{"/v1/warmup", `{"mode":"turbo"}`, 400},
	{"/v1/agents/a/messages", `{"text":"` + strings.Repeat("😀", 4000) + `"}`, 200},
	{"/v1/agents/a/messages", `{"text":"` + strings.Repeat("😀", 4001) + `"}`, 400},
	{"/v1/agents/a/messages", `{}`, 400},
	{"/v1/agents/a/channels/sms", `{"mode":"none"}`, 400},
}

// wantMockRefusals shows that Prism reads all of the document's rules.
func wantMockRefusals(t *testing.T, baseURL string) {
	for _, tt := range refusals {
		assert.Equal(t, tt.want, post(t, baseURL+tt.path, tt.body, "Bearer any-key"), "%s %.80s", tt.path, tt.body)
	}
	assert.Equal(t, http.StatusUnauthorized, post(t, baseURL+"/v1/agents", `{}`, ""), "without a credential")
}

func post(t *testing.T, url, body, credential string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if credential != "" {
		req.Header.Set("Authorization", credential)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}
