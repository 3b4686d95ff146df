package agentmessaging_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

var once = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1})

// failWith makes one call that the service answers with a.
func failWith(t *testing.T, a answer) *agentmessaging.Error {
	t.Helper()
	err := get(t.Context(), newClient(t, &stub{answers: []answer{a}}, once))
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	return failure
}

func TestKindOfEachStatus(t *testing.T) {
	kinds := map[string]error{
		"bad request": agentmessaging.ErrBadRequest, "unauthorized": agentmessaging.ErrUnauthorized,
		"payment required": agentmessaging.ErrPaymentRequired, "forbidden": agentmessaging.ErrForbidden,
		"not found": agentmessaging.ErrNotFound, "conflict": agentmessaging.ErrConflict,
		"rate limited": agentmessaging.ErrRateLimited, "unavailable": agentmessaging.ErrUnavailable,
		"server": agentmessaging.ErrServer, "invalid": agentmessaging.ErrInvalid, "unknown": agentmessaging.ErrOutcomeUnknown,
	}
	want := map[int]string{
		400: "bad request", 401: "unauthorized", 402: "payment required", 403: "forbidden", 404: "not found",
		409: "conflict", 429: "rate limited", 503: "unavailable",
	}
	for status := 201; status <= 599; status++ {
		failure := failWith(t, answer{status: status})
		assert.Equal(t, status, failure.StatusCode)
		name := want[status]
		if name == "" && status >= 500 {
			name = "server"
		}
		for kindName, kind := range kinds {
			assert.Equal(t, kindName == name, errors.Is(failure, kind), "%d is %s", status, kindName)
		}
	}
}

func TestErrorBody(t *testing.T) {
	failure := failWith(t, answer{
		status: 429, header: retryAfter("34"),
		body: `{"error":"rate_limited","trace_id":"trace_9","limit_key":"key_minute","reason":"slow down","quota":12345678901234567890,"nested":{"a":[1]}}`,
	})
	assert.Equal(t, "rate_limited", failure.Code)
	assert.Equal(t, "trace_9", failure.TraceID)
	assert.Equal(t, "key_minute", failure.LimitKey)
	assert.Equal(t, "slow down", failure.Reason)
	assert.Equal(t, 34*time.Second, failure.RetryAfter)
	assert.Equal(t, map[string]json.RawMessage{
		"quota": json.RawMessage("12345678901234567890"), "nested": json.RawMessage(`{"a":[1]}`),
	}, failure.Extra)
	assert.Equal(t, "GET", failure.Method)
	assert.Equal(t, "/v1/agents/{agent_id}", failure.Path)
	assert.Equal(t, 1, failure.Attempts)
	assert.False(t, failure.Local)
	assert.Equal(t, "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: slow down"+
		" (limit key_minute, retry after 34 s, trace trace_9)", failure.Error())
	assert.NoError(t, failure.Unwrap())
}

func TestErrorBodyOfAnyShape(t *testing.T) {
	for _, body := range []string{
		"", "null", "[]", "5", `"text"`, "<html><body>502</body></html>", `{"error":`, `{}{}`, "\x00\xff",
		`{"error":5,"trace_id":null,"limit_key":{},"reason":[]}`, `{}`, strings.Repeat("x", 1<<20),
		`{"error":"a\nb\u2028c` + strings.Repeat("é", 5000) + `"}`,
	} {
		failure := failWith(t, answer{status: 418, body: body})
		assert.Equal(t, 418, failure.StatusCode)
		text := failure.Error()
		assert.True(t, utf8.ValidString(text))
		assert.LessOrEqual(t, len(text), 512)
		assert.NotContains(t, text, "html")
		assert.False(t, strings.ContainsAny(text, "\n\r\u2028"), text)
	}
	failure := failWith(t, answer{status: 400, body: `{"error":5,"reason":"r"}`})
	assert.Empty(t, failure.Code)
	assert.Equal(t, "r", failure.Reason)
	assert.Equal(t, json.RawMessage("5"), failure.Extra["error"], "a member of the wrong type is kept")
}

func TestEchoedSecretsAreRedacted(t *testing.T) {
	const provider, text, prompt = "provider-canary-<&\"é>???>>>", "message canary: my secret diary", "prompt canary: be rude"
	echo := func(secret string) string {
		quoted, _ := json.Marshal(secret)
		plain, _ := json.Marshal(strings.Join([]string{
			secret, url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		}, " "))
		return fmt.Sprintf(`{"error":%s,"reason":%s,"trace_id":%s,"limit_key":%[1]s,"extra":{"deep":%[2]s},%[1]s:1}`, quoted, plain, quoted)
	}
	for _, secret := range []string{testKey, provider, text, prompt} {
		transport := &stub{answers: []answer{{status: 400, body: echo(secret), header: http.Header{"X-Echo": {secret}}}}}
		var info agentmessaging.CallInfo
		ctx := agentmessaging.WithCallInfo(t.Context(), &info)
		var err error
		switch client := newClient(t, transport); secret {
		case provider:
			_, err = client.SetBYOK(ctx, agentmessaging.SetBYOKParams{Provider: agentmessaging.ProviderOpenAI, APIKey: provider})
		case prompt:
			_, err = client.CreateAgent(ctx, create{SystemPrompt: prompt, LLM: llm{Provider: "openai", APIKey: provider}})
		case text:
			_, err = client.SendMessage(ctx, "a", agentmessaging.MessageParams{Text: text})
		default:
			_, err = client.Status(ctx)
		}
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure)
		fields, _ := json.Marshal(failure)
		all := fmt.Sprintf("%v|%+v|%#v|%+v|%s|%v", err, err, err, *failure, fields, info)
		assert.NotContains(t, all, "canary")
		assert.NotContains(t, all, base64.RawStdEncoding.EncodeToString([]byte(secret)))
		assert.NotContains(t, all, base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
}

func TestTransportErrorsKeepTheirCauseWithoutSecrets(t *testing.T) {
	cause := fmt.Errorf("proxy refused %s: %w", testKey, http.ErrHandlerTimeout)
	failure := failWith(t, answer{err: cause})
	assert.ErrorIs(t, failure, http.ErrHandlerTimeout)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", failure, failure, *failure), testKey)
	assert.Zero(t, failure.StatusCode)
}

func TestOutcomeUnknown(t *testing.T) {
	transport := &stub{answers: []answer{{status: 200, body: `{"reply_text`}}}
	err := post(t.Context(), newClient(t, transport))
	var unknown *agentmessaging.OutcomeUnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "POST", unknown.Method)
	assert.Equal(t, "/v1/agents/{agent_id}/messages", unknown.Path)
	assert.Equal(t, "agentmessaging: POST /v1/agents/{agent_id}/messages: the request may have been carried out, look before you repeat it: "+
		"200 OK: the body is not the documented JSON: unexpected end of JSON input", err.Error())

	transport = &stub{answers: []answer{{status: 200, body: `{"reply":"misspelt","trace_id":"trace_7"}`}}}
	require.ErrorAs(t, post(t.Context(), newClient(t, transport)), &unknown)
	assert.Equal(t, "trace_7", unknown.TraceID)
	assert.ErrorContains(t, unknown, "reply_text is missing")
}

func TestValidationErrorPrintsFieldAndReason(t *testing.T) {
	err := &agentmessaging.ValidationError{Field: "text", Reason: "is required"}
	assert.Equal(t, "agentmessaging: text: is required", err.Error())
}

// TestDurationsForPeople: as each error writes its RetryAfter.
func TestDurationsForPeople(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		250 * time.Millisecond: "250 ms", time.Millisecond: "1 ms", 999 * time.Millisecond: "999 ms",
		1500 * time.Millisecond: "1.5 s", 3 * time.Second: "3 s", 9960 * time.Millisecond: "10 s",
		55482740907: "55 s", 59600 * time.Millisecond: "1 m", 7 * time.Minute: "7 m", 4*time.Minute + 59*time.Second: "4 m 59 s",
		59*time.Minute + 59900*time.Millisecond: "1 h", 90 * time.Minute: "1 h 30 m", 9*time.Hour + 59*time.Minute + 40*time.Second: "10 h",
		11*time.Hour + 6*time.Minute + 40*time.Second: "11 h", 24 * time.Hour: "24 h",
	} {
		text := (&agentmessaging.Error{StatusCode: 429, RetryAfter: wait}).Error()
		assert.True(t, strings.HasSuffix(text, "(retry after "+want+")"), "%s: %s", want, text)
	}
}

// TestErrorsSayWhatToDo next, where neither a wait nor the cause tells.
func TestErrorsSayWhatToDo(t *testing.T) {
	for status, want := range map[int]string{
		400: "correct the call", 401: "check the API key", 402: "activate a plan", 403: "use a key that the dashboard issued",
		404: "check the agent's id", 409: "store a provider key first",
	} {
		assert.ErrorContains(t, failWith(t, answer{status: status}), want)
	}
	err := newClient(t, &stub{answers: []answer{{status: 404}}}).ClearBYOK(t.Context())
	assert.ErrorContains(t, err, "check the base address")
}

// TestLocalRefusalSaysWhatItCollidedWith, and which answer is behind it.
func TestLocalRefusalSaysWhatItCollidedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := answer{status: 429, header: retryAfter("420"), body: `{"error":"rate_limited","limit_key":"key_day","trace_id":"trace_9"}`}
		client := newClient(t, &stub{answers: []answer{limited}})
		assert.Error(t, get(t.Context(), client))
		const text = "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: %s, its turn in 7 m" +
			" (refused here by the cool-down, limit key_day, retry after 7 m, trace trace_9)"
		assert.EqualError(t, get(t.Context(), client), fmt.Sprintf(text, "the longest wait that the RetryPolicy allows is 1 m 30 s"))
		ctx, cancel := context.WithTimeout(t.Context(), 299*time.Second)
		defer cancel()
		patient, err := client.With(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Hour}))
		require.NoError(t, err)
		assert.EqualError(t, get(ctx, patient), fmt.Sprintf(text, "the call's deadline is in 4 m 59 s"))
	})
}
