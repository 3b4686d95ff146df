package clienttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// Do makes one call.
type Do func(context.Context, *agentmessaging.Client) error

// Get calls an idempotent endpoint.
func Get(ctx context.Context, c *agentmessaging.Client) error {
	_, err := c.GetAgent(ctx, "agent_1")
	return err
}

// Post calls one that is not.
func Post(ctx context.Context, c *agentmessaging.Client) error {
	_, err := c.SendMessage(ctx, "agent_1", agentmessaging.MessageParams{Text: "message-canary"})
	return err
}

// Call is one endpoint, and a call of it.
type Call struct {
	Method, Name string
	Secret       string // that the call sends, beside the API key
	Do           Do
}

// IsPost reports that the call must not be repeated.
func (c Call) IsPost() bool { return c.Method == http.MethodPost }

// Calls are the endpoints, in the order of interface section 4.
var Calls = []Call{
	{"GET", "Status", "", func(ctx context.Context, c *agentmessaging.Client) error { _, err := c.Status(ctx); return err }},
	{"POST", "WarmUp", "", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.WarmUp(ctx, agentmessaging.LLMModeHosted)
		return err
	}},
	{"GET", "GetBYOK", "", func(ctx context.Context, c *agentmessaging.Client) error { _, err := c.GetBYOK(ctx); return err }},
	{"PUT", "SetBYOK", "provider-canary", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.SetBYOK(ctx, agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"})
		return err
	}},
	{"DELETE", "ClearBYOK", "", func(ctx context.Context, c *agentmessaging.Client) error { return c.ClearBYOK(ctx) }},
	{"POST", "CreateAgent", "prompt-canary", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "prompt-canary"})
		return err
	}},
	{"GET", "GetAgent", "", Get},
	{"POST", "SendMessage", "message-canary", Post},
	{"POST", "EnableSMS", "", func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.EnableSMS(ctx, "agent_1", agentmessaging.SMSModeSandbox)
		return err
	}},
}

// The outcomes of a call, as Outcome names them.
const (
	Success  = "success"
	Unknown  = "outcome unknown"
	NoAnswer = "no answer"
)

// Outcome names what a call returned, such as "error 429".
func Outcome(err error) string {
	var failure *agentmessaging.Error
	switch {
	case err == nil:
		return Success
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return Unknown
	case errors.As(err, &failure) && failure.StatusCode != 0:
		return fmt.Sprintf("error %d", failure.StatusCode)
	}
	return NoAnswer
}

// HoldsLaws checks what is true of every failure: it is of one of three types,
// and its text is short, one line, and without the secret.
func HoldsLaws(t testing.TB, err error, secret string) {
	if err == nil {
		return
	}
	var (
		failure *agentmessaging.Error
		unknown *agentmessaging.OutcomeUnknownError
		invalid *agentmessaging.ValidationError
	)
	assert.True(t, errors.As(err, &failure) || errors.As(err, &unknown) || errors.As(err, &invalid), "%T", err)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		assert.LessOrEqual(t, len(text), 512)
		assert.True(t, utf8.ValidString(text) && !strings.ContainsAny(text, "\n\r\u2028"), "%q", text)
		assert.NotContains(t, text, "<html>", "a page is not quoted")
		assert.NotContains(t, text, "GetBody", "net/http's advice is for others")
		assert.NotContains(t, text, secret)
	}
}

// Made is what came of one call.
type Made struct {
	Err     error
	Info    agentmessaging.CallInfo
	Sent    []Sent
	Elapsed time.Duration
}

// Make makes one call in virtual time, which is answered from a list, and
// without jitter unless opts say otherwise.
func Make(t *testing.T, do Do, answers []Answer, opts ...agentmessaging.Option) (m Made) {
	synctest.Test(t, func(t *testing.T) {
		service, begin := Answering(answers...), time.Now()
		client := New(t, service, append([]agentmessaging.Option{Jitter(0)}, opts...)...)
		m.Err = do(agentmessaging.WithCallInfo(t.Context(), &m.Info), client)
		m.Sent, m.Elapsed = service.Sent(), time.Since(begin)
	})
	return m
}
