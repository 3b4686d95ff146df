package agentmessaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Short names for what most tests use.
type (
	create  = agentmessaging.CreateAgentParams
	llm     = agentmessaging.LLMParams
	message = agentmessaging.MessageParams
	options = []agentmessaging.Option
	policy  = agentmessaging.RetryPolicy
	setBYOK = agentmessaging.SetBYOKParams
	sms     = agentmessaging.SMSParams
)

func TestNewClientRefusesBaseURL(t *testing.T) {
	for _, tt := range []struct{ baseURL, says string }{
		{"ftp://service.example", "must be absolute"},
		{"https://", "must be absolute"},
		{"https://user:pw-canary@service.example", "must not hold a user"},
		{"https://user:pw-canary@service.example:port", "is not a URL"},
		{"https://service.example?a=b", "must not have a query"},
		{"https://service.example?", "must not have a query"},
		{"https://service.example#", "must not have a fragment"},
		{"http://localhost.service.example", "must be https"},
		{"http://0.0.0.0", "must be https"},
		{"https://service.example/a/../b", "must not have . or .."},
		{"https://service.example:65536", "a port from 1 to 65535"},
		{"https://service.example:0", "a port from 1 to 65535"},
		{"https://service.example/a\u00a0b", "must not have spaces"},
		{"https://service.example/a%0ab", "must not have spaces or control"},
		{"https://service.example/V1//", "leave it out"},
		{"https://service.example/gateway/%761", "leave it out"},
		{"https://service.example/gateway/v1/agents/", "leave out /v1"},
		{"https://service.example/v1/agents/agent_1/messages", "leave out /v1"},
		{"https://service.example/" + testKey, "must not hold the API key"},
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
		_, err := agentmessaging.NewClient(baseURL, `'!~"`) // the first and the last character that a key may have
		assert.NoError(t, err, baseURL)
	}
}

func TestNewClientRefusesAPIKey(t *testing.T) {
	for _, tt := range []struct{ key, says string }{
		{"[redacted]", "not the key itself"},
		{"bearer c", "without"},
		{`"canary"`, "without quotes"},
		{"a canary", "byte 2 of 8"},
		{"canary\n", "byte 7 of 7"},
		{"canary\x7f", "byte 7 of 7"},
		{"écanary", "byte 1 of 8"},
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
	client := must(agentmessaging.NewClientFromEnv())
	assert.Equal(t, "agentmessaging.Client("+serviceURL+")", client.String())
	assert.Equal(t, noAnswer, outcome(get(t.Context(), clientAt("http://127.0.0.1:1", once))), "through the transport of its own")
}

func TestZeroClientAndNilContext(t *testing.T) {
	for _, client := range []*agentmessaging.Client{nil, new(agentmessaging.Client)} {
		wantInvalid(t, get(t.Context(), client), "client", "was not made by NewClient")
		_, err := client.With()
		wantInvalid(t, err, "client", "was not made by NewClient")
		assert.Equal(t, "agentmessaging.Client(unset)", fmt.Sprintf("%#v", client))
	}
	wantInvalid(t, get(context.Context(nil), newClient(t, answering())), "ctx", "is nil")
	assert.EqualError(t, new(agentmessaging.OutcomeUnknownError), "agentmessaging: the request may have been carried out, so a repeat may do it twice")
}

func TestRequestHeaders(t *testing.T) {
	transport := answering(okAnswer)
	client := newClient(t, transport, agentmessaging.WithUserAgent("shop ~/1.4"))
	for _, mode := range []agentmessaging.LLMMode{agentmessaging.LLMModeBYOK, ""} {
		_, err := client.WarmUp(t.Context(), mode)
		require.NoError(t, err, "mode %q", mode)
	}
	with, without := transport.Sent()[0], transport.Sent()[1]
	assert.Equal(t, http.Header{
		"Authorization": {"Bearer " + testKey},
		"Accept":        {"application/json"}, "Accept-Encoding": {"identity"},
		"Content-Type": {"application/json"},
		"User-Agent":   {"shop ~/1.4 agentmessaging-go/" + agentmessaging.Version + " (" + runtime.Version() + ")"},
	}, with.Header)
	assert.Equal(t, `{"mode":"byok"}`, with.Text)
	assert.EqualValues(t, len(with.Text), with.ContentLength, "it is not sent in chunks")
	assert.Empty(t, without.Text)
	assert.Empty(t, without.Header.Get("Content-Type"))
}

func TestNewClientRefusesOptions(t *testing.T) {
	for _, tt := range []struct {
		field, given string
		option       agentmessaging.Option
	}{
		{"opts", "nil", nil},
		{"WithHTTPClient", "nil", agentmessaging.WithHTTPClient(nil)},
		{"WithHTTPClient", "a nil transport", agentmessaging.WithHTTPClient(&http.Client{Transport: (*http.Transport)(nil)})},
		{"WithHTTPClient", "a nil jar", agentmessaging.WithHTTPClient(&http.Client{Jar: (*cookiejar.Jar)(nil)})},
		{"WithLimiter", "a nil pointer", agentmessaging.WithLimiter((*limiterStub)(nil))},
		{"WithClock", "nil", agentmessaging.WithClock(nil)},
		{"WithLogger", "a nil pointer", agentmessaging.WithLogger(nil)},
		{"WithLogger", "no handler", agentmessaging.WithLogger(new(slog.Logger))},
		{"WithObserver", "a nil function", agentmessaging.WithObserver(agentmessaging.ObserverFunc(nil))},
		{"WithUserAgent", "nothing", agentmessaging.WithUserAgent("")},
		{"WithUserAgent", "another header", agentmessaging.WithUserAgent("shop/1\r\nX: y")},
		{"WithUserAgent", "a letter of two bytes", agentmessaging.WithUserAgent("caf\u00e9/1")},
		{"WithTimeout", "0", agentmessaging.WithTimeout(0)},
		{"RetryPolicy.MaxAttempts", "-1", agentmessaging.WithRetry(policy{MaxAttempts: -1})},
		{"RetryPolicy.MinWait", "-1", agentmessaging.WithRetry(policy{MinWait: -1})},
		{"RetryPolicy.MaxWait", "-1", agentmessaging.WithRetry(policy{MaxWait: -1})},
		{"RetryPolicy.MinWait", "more than MaxWait", agentmessaging.WithRetry(policy{MinWait: 2 * time.Minute})},
	} {
		_, err := agentmessaging.NewClient(serviceURL, testKey, tt.option)
		wantInvalid(t, err, tt.field, "", "%s given %s", tt.field, tt.given)
	}
}

func TestWithKeepsKeyAndConnections(t *testing.T) {
	first, second := answering(okAnswer), answering(okAnswer)
	client := newClient(t, first, agentmessaging.WithUserAgent("shop/1"))
	other := must(client.With(agentmessaging.WithUserAgent("batch/2"), agentmessaging.WithTimeout(time.Hour)))
	elsewhere := must(client.With(through(second)))
	for i, c := range []*agentmessaging.Client{client, other, elsewhere} {
		require.NoError(t, get(t.Context(), c), "client %d", i+1)
	}
	require.Len(t, first.Sent(), 2)
	require.Len(t, second.Sent(), 1)
	assert.Equal(t, "Bearer "+testKey, first.Sent()[1].Header.Get("Authorization"))
	assert.Regexp(t, "^shop/1 ", first.Sent()[0].UserAgent())
	assert.Regexp(t, "^batch/2 shop/1 ", first.Sent()[1].UserAgent())
	assert.Regexp(t, "^shop/1 ", second.Sent()[0].UserAgent())
}

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

// wantInvalid checks that err refuses the field, for a reason that does not quote the
// value. input is for the message of a failure.
func wantInvalid(t *testing.T, err error, field, reason string, input ...any) {
	t.Helper()
	var invalid *agentmessaging.ValidationError
	require.ErrorAs(t, err, &invalid, input...)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid, input...)
	assert.Equal(t, field, invalid.Field, input...)
	assert.Contains(t, invalid.Reason, reason, input...)
	assert.NotEmpty(t, invalid.Reason, input...)
	for _, value := range []string{"canary", "Inf"} {
		assert.NotContains(t, invalid.Reason, value, input...)
	}
}

// TestBounds states each documented bound in its own digits, and counts code points with
// letters of one, three and four bytes.
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
	long := strings.Repeat("x", 100_000) // no other member has a bound
	wantSent(t, setBYOK{Provider: "openai", APIKey: agentmessaging.Secret(long), BaseURL: long, Model: long, Label: long})
	wantSent(t, message{Text: "hi", UserRef: long})
	wantSent(t, create{Metadata: map[string]string{"a": long}, LLM: llm{Provider: "openai", APIKey: agentmessaging.Secret(long)}})
}

// TestEnums compares the constants, and the values that the client sends, with the closed
// lists of the interface.
func TestEnums(t *testing.T) {
	const providers, twilio = "openai_compat, openai, anthropic", "sandbox, managed, byo_twilio"
	for _, tt := range []struct {
		field, says, refused string
		with                 func(value string) any
	}{
		{"llm.mode", "hosted, byok", "none", func(v string) any { return create{LLM: llm{Mode: agentmessaging.LLMMode(v)}} }},
		{"llm.tier", "fast, smart", "FAST", func(v string) any { return create{LLM: llm{Tier: agentmessaging.Tier(v)}} }},
		{"llm.provider", providers, "other", func(v string) any { return create{LLM: llm{Provider: agentmessaging.Provider(v)}} }},
		{"sms.mode", "none, " + twilio, "twilio", func(v string) any { return create{SMS: sms{Mode: agentmessaging.SMSMode(v)}} }},
		{"mode", twilio, "none", func(v string) any { return agentmessaging.SMSMode(v) }},
		{"mode", "hosted, byok", "smart", func(v string) any { return agentmessaging.LLMMode(v) }},
		{"provider", providers, "other", func(v string) any { return setBYOK{Provider: agentmessaging.Provider(v), APIKey: "k"} }},
	} {
		for value := range strings.SplitSeq(tt.says, ", ") {
			wantSent(t, tt.with(value))
		}
		wantRefusedField(t, tt.with(tt.refused), tt.field, tt.says)
	}
	assert.Equal(t, "[hosted byok fast smart openai_compat openai anthropic none sandbox managed byo_twilio "+
		"active disabled needs_compliance pending active needs_setup]", fmt.Sprint([]any{
		agentmessaging.LLMModeHosted, agentmessaging.LLMModeBYOK, agentmessaging.TierFast, agentmessaging.TierSmart,
		agentmessaging.ProviderOpenAICompat, agentmessaging.ProviderOpenAI, agentmessaging.ProviderAnthropic,
		agentmessaging.SMSModeNone, agentmessaging.SMSModeSandbox, agentmessaging.SMSModeManaged, agentmessaging.SMSModeBYOTwilio,
		agentmessaging.AgentStatusActive, agentmessaging.SMSStatusDisabled, agentmessaging.SMSStatusNeedsCompliance,
		agentmessaging.SMSStatusPending, agentmessaging.SMSStatusActive, agentmessaging.SMSStatusNeedsSetup,
	}))
}

func TestRequiredMembers(t *testing.T) {
	wantRefusedField(t, message{UserRef: "u"}, "text", "required")
	wantRefusedField(t, setBYOK{APIKey: "k"}, "provider", "is required: one of openai_compat,")
	wantRefusedField(t, setBYOK{Provider: "openai"}, "api_key", "required")
	wantRefusedField(t, agentmessaging.SMSMode(""), "mode", "required")
	wantRefusedField(t, setBYOK{Provider: "openai", APIKey: "k", BaseURL: "canary\xff"}, "base_url", "UTF-8")
	wantRefusedField(t, setBYOK{Provider: "openai", APIKey: "k", Model: "canary\xff"}, "model", "UTF-8")
	wantRefusedField(t, setBYOK{Provider: "openai", APIKey: "k", Label: "canary\xff"}, "label", "UTF-8")
	wantRefusedField(t, message{Text: "hi", UserRef: "canary\xff"}, "user_ref", "UTF-8")
	wantRefusedField(t, create{LLM: llm{APIKey: "provider-canary"}}, "llm.provider", "required")
	wantRefusedField(t, setBYOK{Provider: "openai", APIKey: "[redacted]"}, "api_key", "not the key itself")
	wantRefusedField(t, create{LLM: llm{Provider: "openai", APIKey: "[redacted]"}}, "llm.api_key", "not the key itself")
}

func TestAgentIDs(t *testing.T) {
	for says, ids := range map[string][]string{
		"is empty": {""}, "a slash": {"a/canary", `a\canary`, "..%2f..%2Fbyok", "a%255Ccanary"}, "UTF-8": {"canary\xff"},
		"control characters": {"canary\n", "canary\x7f"},
		"holds the API key":  {testKey, "agent_" + testKey + "_1"},
		"a dot segment": {
			".", "..", "..;", ".;canary", "%2e%2E", "%252e.", "..%3bcanary", ".%2e%25253B%zz", "..?canary", ".#",
			".. ", "..%20;", "..%2520", "%2520..",
		},
	} {
		for _, id := range ids {
			_, err := newClient(t, answering()).GetAgent(t.Context(), id)
			wantInvalid(t, err, "agent_id", says, "%q", id)
		}
	}
	for key, refused := range map[string]bool{"agent": false, "agent_": true} {
		err := get(t.Context(), must(agentmessaging.NewClient(serviceURL, key, through(answering(okAnswer)))))
		assert.Equal(t, refused, err != nil, "an id that holds the key %s: a key of five bytes is no secret", key)
	}
}

// FuzzURL checks that an address or an agent's id is refused, or that every call stays
// below the address and the id arrives as exactly one path segment. A proxy that decodes
// escapes and drops what follows a semicolon must not change that.
func FuzzURL(f *testing.F) {
	for _, id := range []string{
		"agent_1", "", ".", "..", "a/b", "%2e%2e", "a%2Fb", "a?b", "a#b", "é 語", "\x00", `a\b`, "a;b", "+", "/", "a\nb", "a\xffb",
		"../status", "...", "a;b,c d", "a?b#c%2Fd é", "..;", "%252e%2e;x", "..?",
	} {
		f.Add(serviceURL+"/a%2Fb/", id)
	}
	for _, base := range []string{
		serviceURL, serviceURL + "/a/b/", "http://localhost:80", "https://u:p@h", "https://h?q", "https://h#f", "https://h/..", "//h", "https://[::1]:1/x",
		"HTTPS://H", "https://h/%2e%2e/", "http://evil.example", "https://h/;a=b", "https://h/%2F", serviceURL + "/a%20b//", "https://[2001:db8::1]:8443/",
	} {
		f.Add(base, "a?b#c%2Fd é;")
	}
	f.Fuzz(func(t *testing.T, base, id string) {
		service := answering(okAnswer)
		client, err := agentmessaging.NewClient(base, testKey, through(service))
		if err != nil {
			return
		}
		if _, err := client.SendMessage(t.Context(), id, message{Text: "hi"}); err != nil {
			assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
			assert.Empty(t, service.Sent())
			return
		}
		want, sent := must(url.Parse(base)), service.Sent()[0].URL
		path := strings.TrimRight(want.EscapedPath(), "/") + "/v1/agents/" + url.PathEscape(id) + "/messages"
		assert.Equal(t, (&url.URL{Scheme: sent.Scheme, Host: want.Host}).String()+path, sent.String())
		assert.Regexp(t, `(?i)^(https://|http://(127\.|localhost|\[))`, sent.String(), "plain http")
		arrived := id
		for range 3 { // a proxy that decodes escapes, and drops what follows a semicolon
			name, _, _ := strings.Cut(arrived, ";")
			assert.NotRegexp(t, `^\.{1,2}$`, name, "%q may reach another path", id)
			if unescaped, err := url.PathUnescape(arrived); err == nil {
				arrived = unescaped
			}
		}
	})
}

// leaking is a value whose MarshalJSON quotes it in an error.
type leaking struct{}

func (leaking) MarshalJSON() ([]byte, error) { return nil, errors.New("canary cannot be written") }

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
	type raw = json.RawMessage
	for reason, values := range map[string][]any{
		"a member twice": {raw(`{"canary":1,"canary":2}`), raw(`{"a":[{"b":1,"\u0062":2}]}`)},
		"lone surrogate": {raw(`{"a":"\ud83d canary"}`), raw(`{"\ude00":1}`)},
		"malformed JSON": {raw(`{"a":`), raw("canary")},
		"UTF-8": {raw("{\"a\":\"\xff\"}"), map[string]any{"a": "canary\xff"}, tagged{"\\\xff"},
			map[string]any{"a\xff": 1, "a\xfe": 2}, map[string]any{"a": raw("\"\xff\"")}},
		"must be a JSON object":       {[]int{1}, "text", 5, true, raw(`[1]`)},
		"a func() has no JSON form":   {func() {}, map[string]any{"f": func() {}}},
		"a number that is not finite": {map[string]any{"f": math.Inf(1)}, map[string]any{"n": json.Number("canary")}, map[string]any{"f": leaking{}}},
	} {
		for _, refused := range values {
			wantRefusedField(t, create{Metadata: refused}, "metadata", reason)
		}
	}
}

// The tests of package agentmessagingtest are here, because linking another test binary would
// take longer than they do.

// A minute's wait takes a minute by the fake's clock, and no real time.
func TestWaitsTakeNoRealTime(t *testing.T) {
	wait := func(t *testing.T) {
		client, fake := agentmessagingtest.New(t)
		fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)
		began, real := fake.Now(), time.Now()
		_, err := client.CreateAgent(t.Context(), create{})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, fake.Now().Sub(began), time.Minute)
		assert.Less(t, time.Since(real), time.Minute, "of real time")
	}
	t.Run("outside", wait)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, wait) })
}

func TestAnUnusableArgumentPanics(t *testing.T) {
	assert.PanicsWithValue(t, "fakeserver: New needs a test; Open makes a fake outside tests", func() { agentmessagingtest.New(nil) })
	assert.PanicsWithValue(t, "agentmessagingtest: agentmessaging: opts: option 1 is nil", func() { agentmessagingtest.New(t, nil) })
	assert.PanicsWithValue(t, "agentmessagingtest: NewClient needs the *testing.T of a test, and a fake such as fakeserver.New(t)", func() {
		agentmessagingtest.NewClient(t, nil)
	})
}
