package agentmessaging_test

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// Short names for what most tests use.
type (
	create  = agentmessaging.CreateAgentParams
	llm     = agentmessaging.LLMParams
	message = agentmessaging.MessageParams
	options = []agentmessaging.Option
	setBYOK = agentmessaging.SetBYOKParams
)

func TestNewClientRefusesBaseURL(t *testing.T) {
	for _, tt := range []struct{ baseURL, says string }{
		{"", "is empty"},
		{"service.example", "must be absolute"},
		{"ftp://service.example", "must be absolute"},
		{"https://", "must be absolute"},
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
		{"http://0.0.0.0", "must be https"},
		{"https://service.example/a/../b", "must not have . or .."},
		{"https://service.example/%2e%2e/b", "must not have . or .."},
		{"https://service.example/..;x/b", "must not have . or .."},
		{"https://service.example:65536", "a port from 1 to 65535"},
		{"https://service.example:0", "a port from 1 to 65535"},
		{"https://service.example/a b", "must not have spaces"},
		{"https://service.example/a\u00a0b", "must not have spaces"},
		{"https://service.example/a%0ab", "must not have spaces or control"},
		{"https://service.example\n", "is not a URL"},
		{"https://service.example/v1", "leave it out"},
		{"https://service.example/V1//", "leave it out"},
		{"https://service.example/gateway/%761", "leave it out"},
	} {
		client, err := agentmessaging.NewClient(tt.baseURL, testKey)
		wantInvalid(t, err, "baseURL", tt.says, "%q", tt.baseURL)
		assert.Nil(t, client, "%q", tt.baseURL)
	}
}

func TestNewClientAcceptsBaseURL(t *testing.T) {
	for _, baseURL := range []string{
		"https://service.example", "https://service.example/", "https://service.example:8443/gateway/x/", "https://service.example:65535/a%20b",
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
		{"bearer c", "without"},
		{"a canary", "position 1"},
		{"canary\n", "position 6"},
		{"canary\r\n", "position 6"},
		{"canary\x00", "position 6"},
		{"canary\x7f", "position 6"},
		{"canaryé", "position 6"},
		{"https://service.example", "is a URL; call NewClient(baseURL, apiKey)"},
	} {
		_, err := agentmessaging.NewClient(serviceURL, tt.key)
		wantInvalid(t, err, "apiKey", tt.says, "%q", tt.key)
	}
	_, err := agentmessaging.NewClient(testKey, serviceURL)
	wantInvalid(t, err, "baseURL", "the wrong way round")
}

func TestNewClientFromEnv(t *testing.T) {
	for _, tt := range []struct{ address, key, about, says string }{
		{"", testKey, "AGENT_MESSAGING_BASE_URL", "is empty; give the service's address"},
		{serviceURL + "/v1", testKey, "AGENT_MESSAGING_BASE_URL", "must not end in /v1"},
		{serviceURL, "", "AGENT_MESSAGING_API_KEY", "is empty; issue one"},
		{serviceURL, testKey, "WithTimeout", "must be more than 0"},
	} {
		t.Setenv("AGENT_MESSAGING_BASE_URL", tt.address)
		t.Setenv("AGENT_MESSAGING_API_KEY", tt.key)
		_, err := agentmessaging.NewClientFromEnv(agentmessaging.WithTimeout(0))
		wantInvalid(t, err, tt.about, tt.says)
	}
	client, err := agentmessaging.NewClientFromEnv()
	require.NoError(t, err)
	assert.Contains(t, client.String(), serviceURL)
}

func TestZeroClientAndNilContext(t *testing.T) {
	wantInvalid(t, get(t.Context(), new(agentmessaging.Client)), "client", "was not made by NewClient")
	wantInvalid(t, get(t.Context(), nil), "client", "was not made by NewClient")
	assert.Equal(t, "agentmessaging.Client(unset)", new(agentmessaging.Client).String())
	var noContext context.Context
	wantInvalid(t, get(noContext, newClient(t, answering())), "ctx", "is nil")
}

func TestRequestHeaders(t *testing.T) {
	transport := answering(okAnswer)
	client := newClient(t, transport, agentmessaging.WithUserAgent("shop/1.4"))
	for _, mode := range []agentmessaging.LLMMode{agentmessaging.LLMModeBYOK, ""} {
		_, err := client.WarmUp(t.Context(), mode)
		require.NoError(t, err)
	}
	with, without := transport.Sent()[0], transport.Sent()[1]
	assert.Equal(t, http.Header{
		"Authorization": {"Bearer " + testKey},
		"Accept":        {"application/json"}, "Accept-Encoding": {"identity"},
		"Content-Type": {"application/json"},
		"User-Agent":   {"shop/1.4 agentmessaging-go/" + agentmessaging.Version + " (" + runtime.Version() + ")"},
	}, with.Header)
	assert.Equal(t, `{"mode":"byok"}`, with.Text)
	assert.Empty(t, without.Text)
	assert.Empty(t, without.Header.Get("Content-Type"))
}

// TestDependencies: who may import whom of this module, and what else a user compiles.
func TestDependencies(t *testing.T) {
	const module = "github.com/agent-messaging-service/agentmessaging-go"
	banned := map[string]string{ // "/" is the root
		module:                    "/fakeserver /contract /observe /pacer",
		module + "/pacer":         "/fakeserver /contract /observe",
		module + "/fakeserver":    "/ /contract /observe",
		module + "/contract":      "/ /fakeserver /internal/spec",
		module + "/observe":       "/ /fakeserver /contract /internal/spec",
		module + "/internal/spec": "/",
	}
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`)
	list.Args = append(list.Args, slices.Collect(maps.Keys(banned))...)
	out, err := list.CombinedOutput()
	require.NoError(t, err, string(out))
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		compilesLibrary := deps[0] == module || deps[0] == module+"/pacer"
		for _, dep := range deps[1:] {
			host, _, _ := strings.Cut(dep, "/")
			if within, ours := strings.CutPrefix(dep, module); ours {
				assert.NotContains(t, strings.Fields(banned[deps[0]]), cmp.Or(within, "/"), "%s imports", deps[0])
			} else if strings.Contains(host, ".") && deps[0] != module+"/contract" {
				assert.True(t, compilesLibrary && strings.HasPrefix(dep, "github.com/hashicorp/go-"), "%s imports %s", deps[0], dep)
			}
		}
	}
}

func TestNewClientRefusesOptions(t *testing.T) {
	var (
		noLogger   *slog.Logger
		noObserver agentmessaging.ObserverFunc
		noLimiter  *limiterStub
		noPool     *http.Transport
		noJar      *cookiejar.Jar
	)
	for _, tt := range []struct {
		field, given string
		option       agentmessaging.Option
	}{
		{"opts", "nil", nil},
		{"WithHTTPClient", "nil", agentmessaging.WithHTTPClient(nil)},
		{"WithHTTPClient", "a nil transport", agentmessaging.WithHTTPClient(&http.Client{Transport: noPool})},
		{"WithHTTPClient", "a nil jar", agentmessaging.WithHTTPClient(&http.Client{Jar: noJar})},
		{"WithLimiter", "nil", agentmessaging.WithLimiter(nil)},
		{"WithLimiter", "a nil pointer", agentmessaging.WithLimiter(noLimiter)},
		{"WithClock", "nil", agentmessaging.WithClock(nil)},
		{"WithLogger", "a nil pointer", agentmessaging.WithLogger(noLogger)},
		{"WithLogger", "no handler", agentmessaging.WithLogger(new(slog.Logger))},
		{"WithObserver", "nil", agentmessaging.WithObserver(nil)},
		{"WithObserver", "a nil function", agentmessaging.WithObserver(noObserver)},
		{"WithUserAgent", "nothing", agentmessaging.WithUserAgent("")},
		{"WithUserAgent", "another header", agentmessaging.WithUserAgent("shop/1\r\nX: y")},
		{"WithUserAgent", "a letter of two bytes", agentmessaging.WithUserAgent("caf\u00e9/1")},
		{"WithTimeout", "0", agentmessaging.WithTimeout(0)},
		{"WithTimeout", "-1 s", agentmessaging.WithTimeout(-time.Second)},
		{"RetryPolicy.MaxAttempts", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: -1})},
		{"RetryPolicy.MinWait", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: -1})},
		{"RetryPolicy.MaxWait", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: -1})},
		{"RetryPolicy.MinWait", "more than MaxWait", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 2 * time.Minute})},
	} {
		_, err := agentmessaging.NewClient(serviceURL, testKey, tt.option)
		wantInvalid(t, err, tt.field, "", "%s given %s", tt.field, tt.given)
	}
}

// TestWithKeepsKeyAndConnections, and changes what it is told to.
func TestWithKeepsKeyAndConnections(t *testing.T) {
	first, second := answering(okAnswer), answering(okAnswer)
	client := newClient(t, first, agentmessaging.WithUserAgent("shop/1"))
	other, err := client.With(agentmessaging.WithUserAgent("batch/2"), agentmessaging.WithTimeout(time.Hour))
	require.NoError(t, err)
	elsewhere, err := client.With(through(second))
	require.NoError(t, err)
	for _, c := range []*agentmessaging.Client{client, other, elsewhere} {
		require.NoError(t, get(t.Context(), c))
	}
	require.Len(t, first.Sent(), 2)
	require.Len(t, second.Sent(), 1)
	assert.Equal(t, "Bearer "+testKey, first.Sent()[1].Header.Get("Authorization"))
	assert.Regexp(t, "^shop/1 ", first.Sent()[0].UserAgent())
	assert.Regexp(t, "^batch/2 shop/1 ", first.Sent()[1].UserAgent())
	assert.Regexp(t, "^shop/1 ", second.Sent()[0].UserAgent())

	_, err = client.With(nil)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	_, err = new(agentmessaging.Client).With()
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
}

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct{}

func (stopped) Now() time.Time                             { return time.Unix(0, 0) }
func (stopped) Sleep(context.Context, time.Duration) error { return nil }
