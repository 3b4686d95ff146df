package agentmessaging_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/secretscan"
)

// document is a file of testdata/wire: a body of the interface, byte by byte.
func document(name string) string {
	return strings.TrimSpace(string(must(os.ReadFile(filepath.Join("testdata", "wire", name+".json")))))
}

// The parameters and results of the documents.
var (
	bareAgent = agentmessaging.Agent{ID: "agent_1", Status: agentmessaging.AgentStatusActive, TraceID: "trace_1"}
	newAgent  = agentmessaging.Agent{
		ID: "agent_1", Status: "active", TraceID: "trace_1", SMS: &agentmessaging.SMS{Status: "needs_setup"},
	}
	readAgent = agentmessaging.Agent{
		ID: "agent_1", Status: "active", CreatedAt: "2026-01-02T03:04:05Z", UpdatedAt: "2026-01-02T03:04:06Z",
		SMS: &agentmessaging.SMS{Status: "active", PhoneNumber: "+15550100"}, TraceID: "trace_1",
	}
	bareConfig = agentmessaging.BYOKConfig{
		Provider: "openai", Model: "m-1", Fingerprint: "f00d", UpdatedAt: "2026-01-02T03:04:05Z", TraceID: "trace_1",
	}
	config = agentmessaging.BYOKConfig{
		Provider: "openai", BaseURL: "https://gateway.example/v1", Model: "m-1", Fingerprint: "f00d",
		UpdatedAt: "2026-01-02T03:04:05Z", TraceID: "trace_1",
	}
	everything = create{
		SystemPrompt: "Be brief.", CustomerRef: "c-17",
		Metadata: json.RawMessage(`{"n":12345678901234567890,"deep":{"a":[1,2.50]}}`),
		SMS:      sms{Mode: agentmessaging.SMSModeBYOTwilio},
		LLM: llm{
			Mode: agentmessaging.LLMModeBYOK, Tier: agentmessaging.TierSmart, Model: "m-1", Provider: agentmessaging.ProviderOpenAICompat,
			BaseURL: "https://gateway.example/v1", APIKey: "pk-1", Label: "main",
		},
	}
	provider = setBYOK{
		Provider: agentmessaging.ProviderAnthropic, APIKey: "pk-1", BaseURL: "https://gateway.example", Model: "m-1", Label: "main",
	}
	hello   = message{Text: "Hello <you> & 語", UserRef: "u-1"}
	warned  = agentmessaging.Reply{Text: "Hi", Warnings: []string{"slow"}, TraceID: "trace_1"}
	cold    = agentmessaging.WarmUpResult{OK: true, Warmed: false, Mode: agentmessaging.LLMModeHosted, TraceID: "trace_1"}
	channel = agentmessaging.SMSChannel{Status: agentmessaging.SMSStatusNeedsCompliance, TraceID: "trace_1"}
)

var documents = []struct {
	call    string // method and path, with agent_1 for {agent_id}
	params  any    // see sending
	request string // the name of the document that the call sends; "": no body
	reply   string // the name of the document that answers
	want    any
}{
	{"GET /v1/status", readStatus, "", "status.reply",
		&agentmessaging.ServiceStatus{OK: true, Service: "agent-messaging", Version: "1.2.3", Mode: "live", TraceID: "trace_1"}},
	{"POST /v1/warmup", agentmessaging.LLMModeBYOK, "warm_up.request", "warm_up.reply", &cold},
	{"GET /v1/byok", readBYOK, "", "byok.reply", &config},
	{"GET /v1/byok", readBYOK, "", "byok.reply.bare", &bareConfig},
	{"GET /v1/byok", readBYOK, "", "byok.reply.none", (*agentmessaging.BYOKConfig)(nil)},
	{"PUT /v1/byok", provider, "set_byok.request", "byok.reply", &config},
	{"PUT /v1/byok", setBYOK{Provider: "openai", APIKey: "pk-1"}, "set_byok.request.bare", "byok.reply.bare", &bareConfig},
	{"DELETE /v1/byok", deleteBYOK, "", "clear_byok.reply", nil},
	{"POST /v1/agents", everything, "create_agent.request", "create_agent.reply", &newAgent},
	{"POST /v1/agents", create{LLM: llm{Mode: "hosted"}}, "create_agent.request.hosted", "create_agent.reply.bare", &bareAgent},
	{"GET /v1/agents/agent_1", getAgent, "", "get_agent.reply", &readAgent},
	{"POST /v1/agents/agent_1/messages", hello, "send_message.request", "send_message.reply", &warned},
	{"POST /v1/agents/agent_1/messages", message{Text: "Hello"}, "send_message.request.bare",
		"send_message.reply.bare", &agentmessaging.Reply{Text: "Hi", TraceID: "trace_1"}},
	{"POST /v1/agents/agent_1/channels/sms", agentmessaging.SMSModeSandbox, "enable_sms.request", "enable_sms.reply", &channel},
}

// TestDocuments checks that each call sends the documented request, and returns what the
// documented reply says. The JSON of the result has the same members as the reply.
func TestDocuments(t *testing.T) {
	for _, tt := range documents {
		var info agentmessaging.CallInfo
		transport := answering(answer{Status: 200, Body: document(tt.reply)})
		got, err := call(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, transport), tt.params)
		require.NoError(t, err, tt.reply)
		assert.Equal(t, tt.want, got, tt.reply)
		assert.Equal(t, "trace_1", info.TraceID, tt.reply)
		want := ""
		if tt.request != "" {
			want = document(tt.request)
		}
		sent := transport.Sent()[0]
		assert.Equal(t, tt.call+" "+want, sent.Method+" "+sent.URL.RequestURI()+" "+sent.Text)
		if !strings.Contains(tt.reply, "byok") { // its members are one level deeper
			assert.JSONEq(t, document(tt.reply), string(must(json.Marshal(got))), tt.reply)
		}
	}
	assert.JSONEq(t, `{"provider":"openai","base_url":"https://gateway.example/v1","model":"m-1","fingerprint":"f00d",
		"updated_at":"2026-01-02T03:04:05Z","trace_id":"trace_1"}`, string(must(json.Marshal(config))))
	assert.Equal(t, `{"provider":"","fingerprint":"","updated_at":"","trace_id":""}`, string(must(json.Marshal(agentmessaging.BYOKConfig{}))))
	assert.Equal(t, 3, must(readAgent.CreatedAt.Time()).Hour())
	assert.Equal(t, `{"status":"","trace_id":"t"}`, string(must(json.Marshal(agentmessaging.SMS{TraceID: "t"}))))
}

// A member of another type counts as missing.
func TestUnknownAndMissingMembersDoNotFailACall(t *testing.T) {
	for body, want := range map[string]*agentmessaging.Agent{
		`{"agent_id":"a","status":"hibernating","sms":null,"created_at":null,"new":{"x":1},"trace_id":null}`: {ID: "a", Status: "hibernating"},
		`{"agent_id":"a","sms":5,"trace_id":"t"}`:                                                            {ID: "a", TraceID: "t"},
		`{"agent_id":"a","status":5,"created_at":5,"updated_at":"u","updated_at":"v","sms":{"status":5}}`:    {ID: "a"},
		`{"agent_id":"a","sms":{"phone_number":[5],"status":"pending"},"trace_id":"t"}`:                      {ID: "a", SMS: &agentmessaging.SMS{Status: "pending"}, TraceID: "t"},
	} {
		agent, err := newClient(t, answering(answer{Status: 200, Body: body})).GetAgent(t.Context(), "a.%")
		require.NoError(t, err, body)
		assert.Equal(t, want, agent, body)
	}
	for body, want := range map[string]*agentmessaging.Reply{
		`{"reply_text":"","warnings":null}`:                             {},
		`{"warnings":5,"reply_text":"hi","trace_id":"t"}`:               {Text: "hi", TraceID: "t"},
		`{"WARNINGS":["a"],"reply_text":"hi","Trace_ID":"t"}`:           {Text: "hi"},
		`{"reply_text":"hi","trace_id":-17,"a":1,"a":2}`:                {Text: "hi", TraceID: "-17"},
		`{"reply_text":"hi","trace_id":"a","trace_id":"b"}`:             {Text: "hi"},
		`{"reply\u005ftext":"h\u0069\ud800\ud83d\ude00` + "\xff" + `"}`: {Text: "hi\ufffd😀\ufffd"},
		`{"warnings":["a",5,"","b"],"reply_text":"hi","trace_id":"t"}`:  {Text: "hi", Warnings: []string{"a", "", "b"}, TraceID: "t"},
	} {
		reply, err := newClient(t, answering(answer{Status: 200, Body: body})).SendMessage(t.Context(), "a", message{Text: "hi"})
		require.NoError(t, err, body)
		assert.Equal(t, want, reply, body)
	}
}

// A needed member must be there once, under its exact name and of its type.
func TestAnswersWithoutANeededMemberFail(t *testing.T) {
	useless := map[string][]string{
		"Status": {`{"service":"x"}`, `{"ok":"true"}`},
		"WarmUp": {`{"warmed":true}`, `{"ok":true,"mode":"hosted"}`, `{"ok":true,"warmed":1}`},
		"GetBYOK": {`{"ok":true}`, `{"ok":true,"byok":[]}`, `{"ok":true,"byok":{"fingerprint":"f"}}`,
			`{"ok":false,"byok":{"provider":"openai"}}`, `{"byok":{"provider":"openai"}}`, `{"ok":false,"byok":null}`, `{"ok":null,"byok":null}`},
		"CreateAgent": {`{"status":"active"}`, `{"agent_id":5}`, `{"agent_id":""}`, `{"agent_id":"a","agent_id":"a"}`},
		"GetAgent":    {`[]`, `{"agent_id":null}`},
		"SendMessage": {`{"trace_id":"t"}`, `{"reply_text":null}`, `{"reply_text":["a"]}`, `{"REPLY_TEXT":"hi"}`, `{"reply_text":"a","reply_text":"b"}`},
		"EnableSMS":   {`{"trace_id":"t"}`, `{"status":{}}`},
	}
	for _, call := range endpoints {
		for _, body := range useless[call.name] {
			err := call.call(t.Context(), newClient(t, answering(answer{Status: 200, Body: body}), once))
			assert.Error(t, err, "%s: %s", call.name, body)
		}
	}
}

// prints returns a value as a careless program prints it: with every verb of fmt, as JSON
// and through both handlers of slog.
func prints(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%t"} {
		fmt.Fprintf(&out, verb+"\n", v)
	}
	out.Write(must(json.Marshal(v)))
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "value", v)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", v)
	return out.String()
}

func TestSecretNeverShows(t *testing.T) {
	const canary = "provider-canary"
	secret := agentmessaging.Secret(canary)
	params := create{LLM: llm{APIKey: canary}}
	for _, holder := range []any{
		secret, &secret, params, &params, setBYOK{APIKey: canary}, []agentmessaging.Secret{canary},
		map[string]agentmessaging.Secret{"a": canary},
	} {
		secretscan.HoldsNone(t, prints(t, holder), canary)
	}
	var binary bytes.Buffer
	require.NoError(t, gob.NewEncoder(&binary).Encode(struct{ Key agentmessaging.Secret }{secret}))
	assert.NotContains(t, binary.String(), "canary")
	assert.NotContains(t, string(must(xml.Marshal(secret))), "canary")
	assert.Equal(t, `[redacted] "[redacted]" "[redacted]" "[redacted]"`, fmt.Sprintf("%v %q %#v %s", secret, secret, secret, must(json.Marshal(secret))))
	assert.Empty(t, agentmessaging.Secret("").String())
	assert.Equal(t, canary, string(secret))
}

// TestNothingReachableHoldsASecret calls every endpoint of a service or a transport that
// echoes the request. Not even a debugger's dump of the client, the error or the CallInfo
// shows a key.
func TestNothingReachableHoldsASecret(t *testing.T) {
	client := newClient(t, nil)
	secretscan.HoldsNone(t, client, testKey)
	secretscan.HoldsNone(t, prints(t, client), testKey)
	for _, call := range slices.Concat(endpoints, []endpoint{
		{name: "CreateAgent with a key", secret: "provider-canary", call: sending(create{LLM: llm{Provider: "openai", APIKey: "provider-canary"}})},
	}) {
		spelled := testKey + " " + url.PathEscape(call.secret)
		echo, _ := json.Marshal(map[string]any{
			"error": spelled, "reason": call.secret, "trace_id": spelled, "limit_key": testKey,
			"extra": map[string]any{"deep": []string{spelled}}, testKey: 1,
		})
		cause := fmt.Errorf("proxy refused %s: %w", spelled, http.ErrHandlerTimeout)
		for _, a := range []answer{
			{Status: 200, Body: strings.Replace(anyReply, `"t"`, `"`+testKey+`"`, 1), Header: http.Header{"X-" + testKey: {call.secret}}},
			{Status: 400, Body: string(echo), Header: http.Header{"X-Echo": {testKey, call.secret}}},
			{Status: 200, Body: string(echo[1:])}, {Err: cause},
		} {
			var info agentmessaging.CallInfo
			header := a.Header.Clone()
			err := call.call(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, answering(a), once))
			assert.Equal(t, header, a.Header, "it is the transport's")
			if err == nil {
				info.Body = nil // of a success: the caller needs it as it is
			}
			secretscan.HoldsNone(t, info, testKey, call.secret)
			if err == nil {
				continue
			}
			secretscan.HoldsNone(t, err, testKey, call.secret)
			if failure := (*agentmessaging.Error)(nil); errors.As(err, &failure) {
				fields, _ := json.Marshal(failure)
				secretscan.HoldsNone(t, string(fields), testKey, call.secret)
			}
			assert.Equal(t, a.Err != nil, errors.Is(err, http.ErrHandlerTimeout), "%s: the cause stays reachable in %v", call.name, err)
		}
	}
}

// FuzzAnswer answers each endpoint with any status and body, whole or cut. The call sends
// one request, and returns a result only for a whole 2xx, and else one of the error types.
// No error and no CallInfo shows a secret. The status is unchanged, and RetryAfter is at
// most a day.
func FuzzAnswer(f *testing.F) {
	f.Add(0, 200, "", strings.Repeat("x", 1<<17), -1)
	for i, body := range []string{
		anyReply, `{"ok":true,"byok":null,"trace_id":"t"}`, "", "null", "[]", "5", `"text"`, "<html><body>502</body></html>", `{"error":`,
		`{}{}`, "\x00\xff", `{"AGENT_ID":"a"}`, `{"error":5,"trace_id":null,"limit_key":{},"reason":[]}`, `{}`,
		`{"error":"a\nb\u2028c` + strings.Repeat("é", 5000) + `"}`, `{"reply_text":"` + testKey + `"}`,
		`{"error":"` + testKey + `","extra":{"` + testKey + `":["` + testKey + `"]}}`,
	} {
		for endpoint := range endpoints {
			f.Add(endpoint, 200, "", body, -1)
		}
		f.Add(i, 200, "", body, len(body)/2)
		f.Add(i, []int{302, 400, 418, 429, 503}[i%5], "Retry-After: 1e309\nLocation: %zz\nX: "+testKey, body, i-1)
	}
	f.Fuzz(func(t *testing.T, endpoint, status int, header, body string, cut int) {
		status = 200 + int(uint(status-200)%400)
		a := answer{Status: status, Body: body, Header: http.Header{}}
		for line := range strings.SplitSeq(header, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			a.Header[name] = append(a.Header[name], value)
		}
		whole := cut < 0 || cut >= len(body)
		if !whole {
			a.Reader = breaksOff(body[:cut], io.ErrUnexpectedEOF)
		}
		var info agentmessaging.CallInfo
		service, call := answering(a), endpoints[uint(endpoint)%uint(len(endpoints))]
		err := call.call(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, service, once))
		holdsLaws(t, err, testKey)
		assert.Len(t, service.Sent(), 1)
		assert.NotContains(t, fmt.Sprint(info.Header, info.TraceID), testKey)
		failure := new(agentmessaging.Error)
		if !errors.As(err, &failure) {
			assert.NoError(t, err)
			assert.True(t, status <= 299 && whole, "a success after %d %q", status, body)
			return
		}
		assert.Equal(t, status, failure.StatusCode)
		assert.LessOrEqual(t, failure.RetryAfter, 24*time.Hour)
		assert.NotContains(t, string(must(json.Marshal(failure))), testKey)
	})
}
