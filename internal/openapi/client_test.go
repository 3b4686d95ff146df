package openapi_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/openapi/client"
)

// TestGenerated: the client is what the generator makes of the document today.
func TestGenerated(t *testing.T) {
	const generated = "client/client.gen.go"
	again := filepath.Join(t.TempDir(), "client.gen.go")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // the first run compiles the generator
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "tool", "oapi-codegen",
		"-config", "client/config.yaml", "-o", again, documentFile).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.True(t, string(read(t, generated)) == string(read(t, again)),
		"%s is not what openapi.yaml says; run go generate in internal/openapi", generated)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// newGenerated is the generated client of a fake; what it sends and receives
// is held against the document too.
func newGenerated(t *testing.T, fake *fakeserver.Server, key string) *client.ClientWithResponses {
	t.Helper()
	r := newRecord(t)
	t.Cleanup(func() { assert.Empty(t, r.wrong) })
	c, err := client.NewClientWithResponses(fake.BaseURL(),
		client.WithHTTPClient(r.through(t, fake.HTTPClient(t))),
		client.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	require.NoError(t, err)
	return c
}

// answered is what the generator makes of each operation's replies.
type answered[T any] interface {
	GetJSON200() *T
	GetBody() []byte
}

// success is the body of a 200.
func success[T any](res answered[T], err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		body := res.GetJSON200()
		require.NotNil(t, body, "%s", res.GetBody())
		return *body
	}
}

// TestGeneratedStory: a client that knows only the document can use the whole
// service.
func TestGeneratedStory(t *testing.T) {
	fake, ctx := fakeserver.New(t), t.Context()
	c := newGenerated(t, fake, fake.Key())

	status := success(c.StatusWithResponse(ctx))(t)
	assert.True(t, status.Ok)
	assert.NotEmpty(t, status.Version)

	setBYOK(t, c)
	talk(t, c, newAgent(t, c))

	success(c.ClearBYOKWithResponse(ctx))(t)
	assert.Nil(t, success(c.GetBYOKWithResponse(ctx))(t).Byok)
}

// setBYOK stores a provider key and warms up with it.
func setBYOK(t *testing.T, c *client.ClientWithResponses) {
	t.Helper()
	set := success(c.SetBYOKWithResponse(t.Context(), client.SetByokRequest{
		Provider: client.OpenaiCompat, ApiKey: "provider-key", BaseUrl: ptr("https://gateway.example/v1"),
	}))(t)
	assert.Equal(t, client.OpenaiCompat, set.Byok.Provider)
	assert.Equal(t, "https://gateway.example/v1", *set.Byok.BaseUrl)
	assert.Nil(t, set.Byok.Model)
	assert.Equal(t, &set.Byok, success(c.GetBYOKWithResponse(t.Context()))(t).Byok)

	warm := success(c.WarmUpWithResponse(t.Context(), client.WarmUpRequest{Mode: ptr(client.Byok)}))(t)
	assert.Equal(t, client.Byok, warm.Mode)
}

// newAgent creates an agent on the stored provider key.
func newAgent(t *testing.T, c *client.ClientWithResponses) (id string) {
	t.Helper()
	made := success(c.CreateAgentWithResponse(t.Context(), client.CreateAgentRequest{
		SystemPrompt: ptr("Be brief."), Metadata: &map[string]any{"team": "a"},
		Sms: &client.AgentSms{Mode: client.AgentSmsModeManaged},
		Llm: &client.AgentLlm{Mode: ptr(client.Byok), Tier: ptr(client.Smart)},
	}))(t)
	assert.Equal(t, client.CreatedAgentStatusActive, made.Status)
	assert.Equal(t, client.SmsStatusNeedsCompliance, *made.Sms.Status)
	return made.AgentId
}

// talk uses all that an agent has.
func talk(t *testing.T, c *client.ClientWithResponses, id string) {
	t.Helper()
	ctx := t.Context()
	reply := success(c.SendMessageWithResponse(ctx, id, client.MessageRequest{Text: "Hello", UserRef: ptr("user-1")}))(t)
	assert.NotEmpty(t, reply.ReplyText)
	sms := success(c.EnableSMSWithResponse(ctx, id, client.EnableSmsRequest{Mode: client.EnableSmsRequestModeSandbox}))(t)
	assert.Equal(t, client.SmsStatusActive, sms.Status)
	agent := success(c.GetAgentWithResponse(ctx, id))(t)
	assert.Equal(t, id, agent.AgentId)
	assert.NotEmpty(t, *agent.Sms.PhoneNumber)
}

// TestGeneratedErrors: errors have members too, and a 429 its header.
func TestGeneratedErrors(t *testing.T) {
	fake, ctx := fakeserver.New(t), t.Context()

	nobody, err := newGenerated(t, fake, fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree})).StatusWithResponse(ctx)
	require.NoError(t, err)
	require.NotNil(t, nobody.JSON402, "%s", nobody.Body)
	assert.Equal(t, "payment_required", nobody.JSON402.Error)

	c := newGenerated(t, fake, fake.Key())
	lost, err := c.GetAgentWithResponse(ctx, "agent/of nobody")
	require.NoError(t, err)
	require.NotNil(t, lost.JSON404, "%s", lost.Body)
	assert.NotEmpty(t, *lost.JSON404.TraceId)

	made := success(c.CreateAgentWithResponse(ctx, client.CreateAgentRequest{}))(t)
	refused, err := c.SendMessageWithResponse(ctx, made.AgentId, client.MessageRequest{Text: strings.Repeat("x", 4001)})
	require.NoError(t, err)
	require.NotNil(t, refused.JSON400, "%s", refused.Body)
	assert.Equal(t, "bad_request", refused.JSON400.Error)
}

// TestGeneratedLimit: interface 8.1 has three warm-ups an hour; 7 tells the
// fourth when to come back.
func TestGeneratedLimit(t *testing.T) {
	fake, ctx := fakeserver.New(t), t.Context()
	c := newGenerated(t, fake, fake.Key())
	for range 3 {
		success(c.WarmUpWithResponse(ctx, client.WarmUpRequest{}))(t)
	}
	limited, err := c.WarmUpWithResponse(ctx, client.WarmUpRequest{})
	require.NoError(t, err)
	require.NotNil(t, limited.JSON429, "%s", limited.Body)
	assert.Equal(t, client.RateLimitedResponseErrorRateLimited, limited.JSON429.Error)
	assert.Equal(t, "warmup_key_hour", limited.JSON429.LimitKey)
	assert.Regexp(t, `^(3600|35[0-9][0-9])$`, limited.Headers429.RetryAfter) // a second or more has gone by
}

func ptr[T any](v T) *T { return &v }
