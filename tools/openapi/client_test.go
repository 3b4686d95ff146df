package openapi_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/tools/openapi/client"
)

// TestGenerated: the client is what the generator makes of the document today.
func TestGenerated(t *testing.T) {
	const generated = "client/client.gen.go"
	again := generate(t, "-config", "client/config.yaml", documentFile)
	assert.True(t, string(read(t, generated)) == string(read(t, again)),
		"%s is not what openapi.yaml says; run go generate in tools/openapi", generated)
}

// generate runs the generator, and returns the file that it writes.
func generate(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.gen.go")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // the first run compiles the generator
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "oapi-codegen", "-o", file}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// TestControlGenerated: a client of the standalone fake's control interface can
// be made too, and compiles.
func TestControlGenerated(t *testing.T) {
	file := generate(t, "-generate", "types,client", "-package", "control", controlFile)
	out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

// newGenerated is the generated client of a fake; what it sends and receives
// is held against the document too.
func newGenerated(t *testing.T, fake *fakeserver.Server) *client.ClientWithResponses {
	t.Helper()
	r := newRecord(t, document(t))
	t.Cleanup(func() { assert.Empty(t, r.wrong) })
	c, err := client.NewClientWithResponses(fake.BaseURL(),
		client.WithHTTPClient(r.through(t, fake.HTTPClient(t))),
		client.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+fake.Key())
			return nil
		}))
	require.NoError(t, err)
	return c
}

// TestGeneratedClient: a client that knows only the document can create an
// agent, talk to it, and read an error and the header of a 429.
func TestGeneratedClient(t *testing.T) {
	fake, ctx := fakeserver.New(t), t.Context()
	c := newGenerated(t, fake)
	set, err := c.SetBYOKWithResponse(ctx, client.SetByokRequest{
		Provider: client.OpenaiCompat, ApiKey: "provider-key", BaseUrl: ptr("https://gateway.example/v1"),
	})
	require.NoError(t, err)
	assert.Equal(t, "https://gateway.example/v1", *set.JSON200.Byok.BaseUrl)
	made, err := c.CreateAgentWithResponse(ctx, client.CreateAgentRequest{
		SystemPrompt: ptr("Be brief."), Metadata: &map[string]any{"team": "a"},
		Sms: &client.AgentSms{Mode: client.AgentSmsModeManaged},
		Llm: &client.AgentLlm{Mode: ptr(client.Byok), Tier: ptr(client.Smart)},
	})
	require.NoError(t, err)
	assert.Equal(t, client.SmsStatusNeedsCompliance, *made.JSON200.Sms.Status)
	reply, err := c.SendMessageWithResponse(ctx, made.JSON200.AgentId, client.MessageRequest{Text: "Hello", UserRef: ptr("user-1")})
	require.NoError(t, err)
	assert.Equal(t, "You wrote: Hello", reply.JSON200.ReplyText)

	lost, err := c.GetAgentWithResponse(ctx, "agent/of nobody")
	require.NoError(t, err)
	assert.NotEmpty(t, *lost.JSON404.TraceId)
	for range 3 {
		_, err = c.WarmUpWithResponse(ctx, client.WarmUpRequest{})
		require.NoError(t, err)
	}
	limited, err := c.WarmUpWithResponse(ctx, client.WarmUpRequest{})
	require.NoError(t, err)
	assert.Equal(t, "warmup_key_hour", limited.JSON429.LimitKey)
	assert.Regexp(t, `^(3600|35[0-9][0-9])$`, limited.Headers429.RetryAfter) // a second or more has gone by
}

func ptr[T any](v T) *T { return &v }
