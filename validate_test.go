package agentmessaging_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// wantSent makes a call that is sent, and returns its body.
func wantSent(t *testing.T, params any) string {
	t.Helper()
	transport := answering(okAnswer)
	require.NoError(t, sending(params)(t.Context(), newClient(t, transport)), "%T %.100v", params, params)
	return transport.Sent()[0].Text
}

// wantRefusedField makes a call that is refused before anything is sent.
func wantRefusedField(t *testing.T, params any, field, reason string) {
	t.Helper()
	wantInvalid(t, sending(params)(t.Context(), newClient(t, answering())), field, reason, "%T %.100v", params, params)
}

// wantInvalid: the argument was refused for a reason that does not quote it. input
// is shown where it was not.
func wantInvalid(t *testing.T, err error, field, reason string, input ...any) {
	t.Helper()
	var invalid *agentmessaging.ValidationError
	require.ErrorAs(t, err, &invalid, input...)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid, input...)
	assert.Equal(t, field, invalid.Field, input...)
	assert.Contains(t, invalid.Reason, reason, input...)
	for _, value := range []string{"canary", "Inf"} {
		assert.NotContains(t, invalid.Reason, value, input...)
	}
}

// TestBounds states every documented bound in its own digits, counted in code
// points, with letters that take one, three and four bytes.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		field string
		max   int
		with  func(value string) any
	}{
		{"system_prompt", 2000, func(v string) any { return create{SystemPrompt: v} }},
		{"customer_ref", 200, func(v string) any { return create{CustomerRef: v} }},
		{"llm.model", 200, func(v string) any { return create{LLM: llm{Model: v}} }},
		{"llm.base_url", 400, func(v string) any { return create{LLM: llm{BaseURL: v}} }},
		{"llm.label", 60, func(v string) any { return create{LLM: llm{Label: v}} }},
		{"text", 4000, func(v string) any { return message{Text: v} }},
	} {
		for _, letter := range []string{"a", "語", "𝄞"} {
			wantSent(t, tt.with(strings.Repeat(letter, tt.max)))
			wantRefusedField(t, tt.with("canary"+strings.Repeat(letter, tt.max-5)), tt.field, fmt.Sprintf("at most %d characters, has %d", tt.max, tt.max+1))
		}
		wantRefusedField(t, tt.with("canary\xff"), tt.field, "UTF-8")
	}
}

func TestNoBoundIsInvented(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, params := range []any{
		setBYOK{Provider: "openai", APIKey: agentmessaging.Secret(long), BaseURL: long, Model: long, Label: long},
		message{Text: "hi", UserRef: long},
		create{Metadata: map[string]string{"a": long}},
		create{LLM: llm{Provider: "openai", APIKey: agentmessaging.Secret(long)}},
		create{LLM: llm{Mode: "byok"}},
		create{LLM: llm{Provider: "anthropic"}},
	} {
		wantSent(t, params)
	}
}

// TestEnums: the constants are the closed lists of the interface.
func TestEnums(t *testing.T) {
	const providers = "openai_compat, openai, anthropic"
	for _, tt := range []struct {
		field, says, refused string
		allowed              []string
		with                 func(value string) any
	}{
		{"llm.mode", "hosted, byok", "none", texts(agentmessaging.LLMModeHosted, agentmessaging.LLMModeBYOK),
			func(v string) any { return create{LLM: llm{Mode: agentmessaging.LLMMode(v)}} }},
		{"llm.tier", "fast, smart", "FAST", texts(agentmessaging.TierFast, agentmessaging.TierSmart),
			func(v string) any { return create{LLM: llm{Tier: agentmessaging.Tier(v)}} }},
		{"llm.provider", providers, "other", texts(agentmessaging.ProviderOpenAICompat, agentmessaging.ProviderOpenAI, agentmessaging.ProviderAnthropic),
			func(v string) any { return create{LLM: llm{Provider: agentmessaging.Provider(v)}} }},
		{"sms.mode", "none, sandbox, managed, byo_twilio", "twilio", texts(agentmessaging.SMSModeNone, agentmessaging.SMSModeSandbox, agentmessaging.SMSModeManaged,
			agentmessaging.SMSModeBYOTwilio), func(v string) any { return create{SMS: agentmessaging.SMSParams{Mode: agentmessaging.SMSMode(v)}} }},
		{"mode", "sandbox, managed, byo_twilio", "none", nil, func(v string) any { return agentmessaging.SMSMode(v) }},
		{"mode", "hosted, byok", "smart", nil, func(v string) any { return agentmessaging.LLMMode(v) }},
		{"provider", providers, "other", nil, func(v string) any { return setBYOK{Provider: agentmessaging.Provider(v), APIKey: "k"} }},
	} {
		values := strings.Split(tt.says, ", ")
		if tt.allowed != nil {
			assert.Equal(t, values, tt.allowed)
		}
		for _, value := range values {
			wantSent(t, tt.with(value))
		}
		wantRefusedField(t, tt.with(tt.refused), tt.field, tt.says)
	}
	assert.Equal(t, "disabled needs_compliance pending active needs_setup", strings.Join(texts(agentmessaging.SMSStatusDisabled,
		agentmessaging.SMSStatusNeedsCompliance, agentmessaging.SMSStatusPending, agentmessaging.SMSStatusActive, agentmessaging.SMSStatusNeedsSetup), " "))
	assert.EqualValues(t, "active", agentmessaging.AgentStatusActive)
}

func texts[T ~string](values ...T) (texts []string) {
	for _, value := range values {
		texts = append(texts, string(value))
	}
	return texts
}

func TestRequiredMembers(t *testing.T) {
	wantRefusedField(t, message{UserRef: "u"}, "text", "required")
	wantRefusedField(t, setBYOK{APIKey: "k"}, "provider", "required")
	wantRefusedField(t, setBYOK{Provider: "openai"}, "api_key", "required")
	wantRefusedField(t, agentmessaging.SMSMode(""), "mode", "required")
	wantRefusedField(t, create{LLM: llm{APIKey: "provider-canary"}}, "llm.provider", "required")
	wantRefusedField(t, create{LLM: llm{Mode: "byok", APIKey: "provider-canary"}}, "llm.provider", "required")
}

func TestAgentIDs(t *testing.T) {
	for id, says := range map[string]string{
		"": "is empty", ".": "a dot segment", "..": "a dot segment", "a/canary": "a slash", `a\canary`: "a slash",
		"canary\n": "control characters", "canary\x7f": "control characters", "canary\xff": "UTF-8",
		"..;": "a dot segment", ".;canary": "a dot segment", "%2e%2E": "a dot segment", "%252e.": "a dot segment", "..%3bcanary": "a dot segment",
		".%2e%25253B%zz": "a dot segment", "..?canary": "a dot segment", ".#": "a dot segment", ".. ": "a dot segment", "..%20;": "a dot segment", "..%2520": "a dot segment", "%2520..": "a dot segment",
	} {
		_, err := newClient(t, answering()).GetAgent(t.Context(), id)
		wantInvalid(t, err, "agent_id", says, "%q", id)
	}
}

// telling quotes itself in its error.
type telling struct{}

func (telling) MarshalJSON() ([]byte, error) { return nil, errors.New("canary cannot be written") }

func TestMetadata(t *testing.T) {
	type tagged struct {
		Plan string `json:"plan"`
	}
	for _, tt := range []struct {
		metadata any
		want     string // the body sent
	}{
		{nil, `{}`},
		{map[string]any(nil), `{}`},
		{json.RawMessage("null"), `{}`},
		{map[string]any{}, `{"metadata":{}}`},
		{map[string]any{"n": json.Number("12345678901234567890.5")}, `{"metadata":{"n":12345678901234567890.5}}`},
		{json.RawMessage(`{"n": 12345678901234567890, "e": 1e400}`), `{"metadata":{"n":12345678901234567890,"e":1e400}}`},
		{tagged{"pro"}, `{"metadata":{"plan":"pro"}}`},
		{&tagged{"a<b"}, `{"metadata":{"plan":"a<b"}}`},
		{map[string]any{"a": "\ufffd\\ufffd"}, `{"metadata":{"a":"` + "\ufffd" + `\\ufffd"}}`},
		{json.RawMessage(`{"a":"\ufffd\ud83d\ude00","b":{"a":1}}`), `{"metadata":{"a":"\ufffd\ud83d\ude00","b":{"a":1}}}`},
	} {
		assert.Equal(t, tt.want, wantSent(t, create{Metadata: tt.metadata}), "%#v", tt.metadata)
	}
	for refused, reason := range map[string]string{
		`{"canary":1,"canary":2}`: "a member twice", `{"a":[{"b":1,"\u0062":2}]}`: "a member twice",
		`{"a":"\ud83d canary"}`: "half a surrogate pair", `{"\ude00":1}`: "half a surrogate pair", "{\"a\":\"\xff\"}": "UTF-8",
	} {
		wantRefusedField(t, create{Metadata: json.RawMessage(refused)}, "metadata", reason)
	}
	for _, refused := range []any{
		map[string]any{"a": "canary\xff"}, map[string]any{"a\xff": 1, "a\xfe": 2}, tagged{"\\\xff"}, map[string]any{"a": json.RawMessage("\"\xff\"")},
	} {
		wantRefusedField(t, create{Metadata: refused}, "metadata", "UTF-8")
	}
	for _, refused := range []any{
		[]int{1}, "text", 5, true, json.RawMessage(`[1]`), json.RawMessage(`{"a":`),
		map[string]any{"f": math.Inf(1)}, map[string]any{"c": make(chan int)}, func() {},
		map[string]any{"n": json.Number("canary")}, map[string]any{"f": telling{}}, json.RawMessage(`canary`),
	} {
		wantRefusedField(t, create{Metadata: refused}, "metadata", "")
	}
}
