package agentmessaging_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

func TestNewClientRefusesBaseURL(t *testing.T) {
	for _, tt := range []struct{ baseURL, says string }{
		{"", "is empty"},
		{"service.example", "must be absolute"},
		{"/v1", "must be absolute"},
		{"//service.example", "must be absolute"},
		{"ftp://service.example", "must be absolute"},
		{"https://", "must be absolute"},
		{"https://:443", "must be absolute"},
		{"https:service.example", "must be absolute"},
		{"https://user@service.example", "must not hold a user"},
		{"https://user:pw-canary@service.example", "must not hold a user"},
		{"https://user:pw-canary@service.example:port", "is not a URL"},
		{"https://service.example?a=b", "must not have a query"},
		{"https://service.example?", "must not have a query"},
		{"https://service.example#a", "must not have a fragment"},
		{"https://service.example#", "must not have a fragment"},
		{"http://service.example", "must be https"},
		{"http://localhost.service.example", "must be https"},
		{"http://127.0.0.1.example", "must be https"},
		{"http://10.0.0.1", "must be https"},
		{"http://0.0.0.0", "must be https"},
		{"https://service.example/a/../b", "must not have . or .."},
		{"https://service.example/%2e%2e/b", "must not have . or .."},
		{"https://service.example\n", "is not a URL"},
		{"https://service.example/v1", "leave it out"},
		{"https://service.example/V1//", "leave it out"},
		{"https://service.example/gateway/%761", "leave it out"},
	} {
		client, err := agentmessaging.NewClient(tt.baseURL, testKey)
		var invalid *agentmessaging.ValidationError
		require.ErrorAs(t, err, &invalid, tt.baseURL)
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
		assert.Equal(t, "baseURL", invalid.Field, tt.baseURL)
		assert.Contains(t, err.Error(), tt.says, tt.baseURL)
		assert.NotContains(t, err.Error(), "canary")
		assert.Nil(t, client)
	}
}

func TestNewClientAcceptsBaseURL(t *testing.T) {
	for _, baseURL := range []string{
		"https://service.example", "https://service.example/", "https://service.example:8443/gateway/x/",
		"http://localhost:8080", "http://LOCALHOST", "http://127.0.0.1:1", "http://127.8.9.1", "http://[::1]:80",
		"http://[::ffff:127.0.0.1]:80", "HTTPS://service.example",
		"https://[2001:db8::1]:8443/v1/gateway", "https://v1", "https://service.example/v10",
	} {
		_, err := agentmessaging.NewClient(baseURL, testKey)
		assert.NoError(t, err, baseURL)
	}
}

func TestNewClientRefusesAPIKey(t *testing.T) {
	for _, tt := range []struct{ key, says string }{
		{"", "is empty"},
		{"Bearer canary", "without"},
		{"bearer canary", "without"},
		{"a canary", "position 1"},
		{"canary\n", "position 6"},
		{"canary\r\n", "position 6"},
		{"canary\x00", "position 6"},
		{"canary\x7f", "position 6"},
		{"canaryé", "position 6"},
		{"https://service.example", "is a URL"},
	} {
		_, err := agentmessaging.NewClient(testURL, tt.key)
		require.ErrorIs(t, err, agentmessaging.ErrInvalid, "%q", tt.key)
		assert.Contains(t, err.Error(), "apiKey", "%q", tt.key)
		assert.Contains(t, err.Error(), tt.says, "%q", tt.key)
		assert.NotContains(t, err.Error(), "canary")
	}
}

func TestNewClientToldArgumentsTheWrongWayRound(t *testing.T) {
	_, err := agentmessaging.NewClient(testKey, testURL)
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	assert.Contains(t, err.Error(), "NewClient(baseURL, apiKey)")
}

func TestNewClientRefusesOptions(t *testing.T) {
	var (
		noLogger   *slog.Logger
		noObserver agentmessaging.ObserverFunc
		noLimiter  *limiterStub
	)
	for name, option := range map[string]agentmessaging.Option{
		"opts":                    nil,
		"WithHTTPClient":          agentmessaging.WithHTTPClient(nil),
		"WithLimiter":             agentmessaging.WithLimiter(nil),
		"WithLimiter ":            agentmessaging.WithLimiter(noLimiter),
		"WithClock":               agentmessaging.WithClock(nil),
		"WithLogger":              agentmessaging.WithLogger(noLogger),
		"WithObserver":            agentmessaging.WithObserver(nil),
		"WithObserver ":           agentmessaging.WithObserver(noObserver),
		"WithUserAgent":           agentmessaging.WithUserAgent(""),
		"WithUserAgent ":          agentmessaging.WithUserAgent("shop/1\r\nX: y"),
		"WithTimeout":             agentmessaging.WithTimeout(0),
		"WithTimeout ":            agentmessaging.WithTimeout(-time.Second),
		"RetryPolicy.MaxAttempts": agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: -1}),
		"RetryPolicy.MinWait":     agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: -1}),
		"RetryPolicy.MaxWait":     agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: -1}),
	} {
		_, err := agentmessaging.NewClient(testURL, testKey, option)
		var invalid *agentmessaging.ValidationError
		require.ErrorAs(t, err, &invalid, name)
		assert.Equal(t, strings.TrimSpace(name), invalid.Field)
	}
}

func TestNewClientFromEnv(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", testKey)
	_, err := agentmessaging.NewClientFromEnv()
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	assert.Contains(t, err.Error(), "AGENT_MESSAGING_BASE_URL")

	t.Setenv("AGENT_MESSAGING_BASE_URL", testURL)
	client, err := agentmessaging.NewClientFromEnv()
	require.NoError(t, err)
	assert.Contains(t, client.String(), testURL)

	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	_, err = agentmessaging.NewClientFromEnv()
	assert.ErrorContains(t, err, "AGENT_MESSAGING_API_KEY")
}

func TestZeroClientAndNilContext(t *testing.T) {
	var zero agentmessaging.Client
	_, err := zero.Status(t.Context())
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	var none *agentmessaging.Client
	assert.ErrorIs(t, none.ClearBYOK(t.Context()), agentmessaging.ErrInvalid)

	var noContext context.Context
	_, err = newClient(t, &stub{}).Status(noContext)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
}

func TestRequestHeaders(t *testing.T) {
	transport := &stub{answers: []answer{{status: 200, body: `{"ok":true,"warmed":true,"mode":"byok","trace_id":"t"}`}}}
	client := newClient(t, transport, agentmessaging.WithUserAgent("shop/1.4"))
	_, err := client.WarmUp(t.Context(), agentmessaging.LLMModeBYOK)
	require.NoError(t, err)
	_, err = client.WarmUp(t.Context(), "")
	require.NoError(t, err)

	with, without := transport.sent()[0], transport.sent()[1]
	assert.Equal(t, http.Header{
		"Authorization": {"Bearer " + testKey},
		"Accept":        {"application/json"},
		"Content-Type":  {"application/json"},
		"User-Agent":    {"shop/1.4 agentmessaging-go/" + agentmessaging.Version + " (" + runtime.Version() + ")"},
	}, with.Header)
	assert.Equal(t, `{"mode":"byok"}`, with.body)
	assert.Empty(t, without.body)
	assert.Empty(t, without.Header.Get("Content-Type"))
}

func TestTarget(t *testing.T) {
	const ok = `{"agent_id":"a","status":"active","trace_id":"t"}`
	for _, tt := range []struct{ base, id, want string }{
		{testURL, "agent_1", "/v1/agents/agent_1"},
		{testURL + "/", "agent_1", "/v1/agents/agent_1"},
		{testURL + "/gate/way/", "agent_1", "/gate/way/v1/agents/agent_1"},
		{testURL + "/a%2Fb", "agent_1", "/a%2Fb/v1/agents/agent_1"},
		{testURL + "/%2F/", "agent_1", "/%2F/v1/agents/agent_1"},
		{testURL + "/a%20b//", "agent_1", "/a%20b/v1/agents/agent_1"},
		{testURL, "a?b#c%2Fd é", "/v1/agents/a%3Fb%23c%252Fd%20%C3%A9"},
		{"https://[2001:db8::1]:8443/", "a", "/v1/agents/a"},
		{testURL, "...", "/v1/agents/..."},
		{testURL, "%2e%2e", "/v1/agents/%252e%252e"},
	} {
		transport := &stub{answers: []answer{{status: 200, body: ok}}}
		client, err := agentmessaging.NewClient(tt.base, testKey, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		_, err = client.GetAgent(t.Context(), tt.id)
		require.NoError(t, err)
		assert.Equal(t, tt.want, transport.sent()[0].URL.EscapedPath())
		assert.True(t, strings.HasPrefix(tt.base+"/", "https://"+transport.sent()[0].Host+"/"), tt.base)
		assert.Empty(t, transport.sent()[0].URL.RawQuery)
	}
}

func TestPrefixWithEscapesIsKeptWithoutAgentID(t *testing.T) {
	transport := &stub{answers: []answer{{status: 200, body: `{"ok":true}`}}}
	client, err := agentmessaging.NewClient(testURL+"/a%2Fb/", testKey, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	_, err = client.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "/a%2Fb/v1/status", transport.sent()[0].URL.EscapedPath())
}

func TestAgentIDIsOnePathSegment(t *testing.T) {
	transport := &stub{}
	client := newClient(t, transport)
	for _, id := range []string{"", ".", "..", "a/b", "/", `a\b`, "a\nb", "a\xffb", "../status"} {
		_, err := client.GetAgent(t.Context(), id)
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid, "%q", id)
		_, err = client.SendMessage(t.Context(), id, agentmessaging.MessageParams{Text: "hi"})
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid, "%q", id)
		_, err = client.EnableSMS(t.Context(), id, agentmessaging.SMSModeSandbox)
		assert.ErrorIs(t, err, agentmessaging.ErrInvalid, "%q", id)
	}
	assert.Empty(t, transport.sent())
}

func TestCallerHTTPClientIsNotChanged(t *testing.T) {
	transport := &stub{answers: []answer{{status: 302, header: http.Header{"Location": {"https://elsewhere.example/"}}}}}
	hc := &http.Client{Transport: transport, Timeout: time.Minute}
	before := *hc
	client, err := agentmessaging.NewClient(testURL, testKey, agentmessaging.WithHTTPClient(hc))
	require.NoError(t, err)
	_, err = client.Status(t.Context())

	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 302, failure.StatusCode)
	assert.Contains(t, err.Error(), "redirect to elsewhere.example was not followed")
	assert.Len(t, transport.sent(), 1)
	assert.Equal(t, before.Transport, hc.Transport)
	assert.Equal(t, before.Timeout, hc.Timeout)
	assert.Nil(t, hc.CheckRedirect)
}

func TestClientNeverPrintsItsKey(t *testing.T) {
	client := newClient(t, &stub{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.NotContains(t, fmt.Sprintf(verb, client), testKey, verb)
		assert.NotContains(t, fmt.Sprintf(verb, *client), testKey, verb) //nolint:govet // a copy is what a careless print makes
	}
	assert.Equal(t, "agentmessaging.Client(https://service.example)", client.String())
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("made", "client", client)
	assert.NotContains(t, out.String(), testKey)
}

func TestDependencies(t *testing.T) {
	list := func(pkg string) string {
		out, err := exec.Command("go", "list", "-deps", pkg).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	const module = "github.com/agent-messaging-service/agentmessaging-go"
	for _, tt := range []struct {
		pkg      string
		banned   []string
		external []string
	}{
		{".", []string{module + "/fakeserver", module + "/contract", module + "/pacer"},
			[]string{"github.com/hashicorp/go-retryablehttp", "github.com/hashicorp/go-cleanhttp"}},
		{"./pacer", []string{module + "/fakeserver", module + "/contract"},
			[]string{"github.com/hashicorp/go-retryablehttp", "github.com/hashicorp/go-cleanhttp"}},
		{"./fakeserver", []string{module, module + "/contract"}, nil},
		{"./contract", []string{module, module + "/fakeserver", module + "/internal/spec"},
			[]string{"github.com/stretchr/testify/assert", "github.com/stretchr/testify/require"}},
		{"./internal/spec", []string{module}, nil},
	} {
		deps := strings.Fields(list(tt.pkg))
		for _, banned := range tt.banned {
			assert.NotContains(t, deps, banned, tt.pkg)
		}
		for _, dep := range deps {
			first, _, _ := strings.Cut(dep, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(dep, module) && tt.pkg != "./contract" {
				assert.Contains(t, tt.external, dep, tt.pkg)
			}
		}
	}
}
