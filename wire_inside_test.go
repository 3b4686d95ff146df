package agentmessaging

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// wireTypes says which type each document of testdata/wire stands for.
var wireTypes = map[string]any{
	"create_agent.request":       createAgentBody{},
	"create_agent.request.empty": createAgentBody{},
	"create_agent.reply":         agentAnswer{},
	"create_agent.reply.bare":    agentAnswer{},
	"get_agent.reply":            agentAnswer{},
	"send_message.request":       messageBody{},
	"send_message.request.bare":  messageBody{},
	"send_message.reply":         replyAnswer{},
	"enable_sms.request":         smsModeBody{},
	"enable_sms.reply":           smsAnswer{},
	"set_byok.request":           setBYOKBody{},
	"byok.reply":                 setBYOKAnswer{},
	"byok.reply.none":            byokAnswer{},
	"clear_byok.reply":           okAnswer{},
	"status.reply":               statusAnswer{},
	"warm_up.request":            warmUpBody{},
	"warm_up.reply":              warmUpAnswer{},
	"error":                      nil, // TestErrorBody reads it
}

func document(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "wire", name+".json"))
	require.NoError(t, err)
	return bytes.TrimSpace(text)
}

// TestWireDocuments reads each document into its type, strictly, and writes
// it back to the same bytes, so that no member is lost or misspelt.
func TestWireDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.json")
	require.NoError(t, err)
	assert.Len(t, files, len(wireTypes))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		wire, known := wireTypes[name]
		require.True(t, known, name)
		if wire == nil {
			continue
		}
		value := reflect.New(reflect.TypeOf(wire))
		decoder := json.NewDecoder(bytes.NewReader(document(t, name)))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(value.Interface()), name)
		var written bytes.Buffer
		require.NoError(t, encode(&written, value.Elem().Interface()))
		assert.Equal(t, string(document(t, name)), written.String(), name)
	}
}

// TestParamsBecomeTheDocuments writes the public types as the documents.
func TestParamsBecomeTheDocuments(t *testing.T) {
	body, err := CreateAgentParams{
		SystemPrompt: "Be brief.", CustomerRef: "c-17",
		Metadata: json.RawMessage(`{"n":12345678901234567890,"deep":{"a":[1,2.50]}}`),
		SMS:      SMSParams{Mode: SMSModeBYOTwilio},
		LLM: LLMParams{
			Mode: LLMModeBYOK, Tier: TierSmart, Model: "m-1", Provider: ProviderOpenAICompat,
			BaseURL: "https://gateway.example/v1", APIKey: "pk-1", Label: "main",
		},
	}.wire()
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, encode(&text, body))
	assert.Equal(t, string(document(t, "create_agent.request")), text.String())
}

// TestDocumentsBecomeResults reads the documents as the public types.
func TestDocumentsBecomeResults(t *testing.T) {
	assert.Equal(t, &Agent{
		ID: "agent_1", Status: AgentStatusActive, CreatedAt: "2026-01-02T03:04:05Z", UpdatedAt: "2026-01-02T03:04:06Z",
		SMS: &SMS{Status: SMSStatusActive, PhoneNumber: "+15550100"}, TraceID: "trace_1",
	}, resultOf[*Agent, agentAnswer](t, "get_agent.reply"))
	assert.Equal(t, &Agent{ID: "agent_1", Status: AgentStatusActive, TraceID: "trace_1"},
		resultOf[*Agent, agentAnswer](t, "create_agent.reply.bare"))
	assert.Equal(t, &Reply{Text: "Hi", Warnings: []string{"slow"}, TraceID: "trace_1"},
		resultOf[*Reply, replyAnswer](t, "send_message.reply"))
	assert.Equal(t, &SMS{Status: SMSStatusNeedsCompliance, TraceID: "trace_1"}, resultOf[*SMS, smsAnswer](t, "enable_sms.reply"))
	assert.Equal(t, &BYOKConfig{
		Provider: ProviderOpenAI, Model: "m-1", Fingerprint: "f00d", UpdatedAt: "2026-01-02T03:04:05Z", TraceID: "trace_1",
	}, resultOf[*BYOKConfig, setBYOKAnswer](t, "byok.reply"))
	assert.Nil(t, resultOf[*BYOKConfig, byokAnswer](t, "byok.reply.none"))
	assert.Equal(t, &ServiceStatus{OK: true, Service: "agent-messaging", Version: "1.2.3", Mode: "live", TraceID: "trace_1"},
		resultOf[*ServiceStatus, statusAnswer](t, "status.reply"))
	assert.Equal(t, &WarmUpResult{OK: true, Warmed: false, Mode: LLMModeHosted, TraceID: "trace_1"},
		resultOf[*WarmUpResult, warmUpAnswer](t, "warm_up.reply"))
}

func resultOf[T, A any, P answer[T, A]](t *testing.T, name string) T {
	t.Helper()
	a := P(new(A))
	require.NoError(t, json.Unmarshal(document(t, name), a))
	assert.Equal(t, "trace_1", a.traceID())
	result, err := a.result()
	require.NoError(t, err)
	return result
}

// TestRepliesAreTolerant: what the service adds or leaves out of the optional
// members never fails a call; what makes the result useless does.
func TestRepliesAreTolerant(t *testing.T) {
	for body, want := range map[string]*Agent{
		`{"agent_id":"a","status":"hibernating","sms":null,"created_at":null,"new":{"x":1},"trace_id":null}`: {ID: "a", Status: "hibernating"},
		`{"agent_id":"a","SMS":5,"trace_id":"t"}`:                                                            {ID: "a", TraceID: "t"},
		`{"agent_id":"a","sms":{"phone_number":[5],"status":"pending"},"trace_id":"t"}`:                      {ID: "a", SMS: &SMS{Status: "pending"}, TraceID: "t"},
		`{"agent_id":"a","sms":5,"Sms":{"phone_number":1,"status":"pending"},"trace_id":"t"}`:                {ID: "a", TraceID: "t"},
	} {
		agent, trace, err := decode[*Agent, agentAnswer]([]byte(body))
		require.NoError(t, err, body)
		assert.Equal(t, want, agent)
		assert.Equal(t, want.TraceID, trace)
	}
	for body, want := range map[string]*Reply{
		`{"reply_text":"","warnings":null}`:                      {},
		`{"warnings":[5],"reply_text":"hi","trace_id":"t"}`:      {Text: "hi", TraceID: "t"},
		`{"warnings":["slow"],"reply_text":"hi","trace_id":"t"}`: {Text: "hi", Warnings: []string{"slow"}, TraceID: "t"},
	} {
		reply, _, err := decode[*Reply, replyAnswer]([]byte(body))
		require.NoError(t, err, body)
		assert.Equal(t, want, reply)
	}
	for _, tt := range []struct {
		read   func(body string) error
		bodies []string
	}{
		{failing[*Agent, agentAnswer], []string{`[]`, `{"status":"active"}`, `{"agent_id":null}`}},
		{failing[*Reply, replyAnswer], []string{`{"trace_id":"t"}`, `{"reply_text":null}`}},
		{failing[*SMS, smsAnswer], []string{`{"trace_id":"t"}`}},
		{failing[*BYOKConfig, byokAnswer], []string{`{"ok":true}`}},
		{failing[*BYOKConfig, setBYOKAnswer], []string{`{"ok":true,"byok":null}`, `{"ok":false,"byok":{"provider":"openai"}}`}},
		{failing[struct{}, okAnswer], []string{`{"ok":false}`, `{}`}},
		{failing[*ServiceStatus, statusAnswer], []string{`{"service":"x"}`}},
		{failing[*WarmUpResult, warmUpAnswer], []string{`{"warmed":true}`}},
	} {
		for _, body := range tt.bodies {
			assert.Error(t, tt.read(body), body)
		}
	}
}

func failing[T, A any, P answer[T, A]](body string) error {
	_, _, err := decode[T, A, P]([]byte(body))
	return err
}

// TestConstantsAreTheInterfacesValues holds the exported constants to the
// closed lists, so that neither has a value that the other lacks.
func TestConstantsAreTheInterfacesValues(t *testing.T) {
	for _, tt := range []struct{ constants, values []string }{
		{[]string{string(LLMModeHosted), string(LLMModeBYOK)}, spec.LLMModes},
		{[]string{string(TierFast), string(TierSmart)}, spec.Tiers},
		{[]string{string(ProviderOpenAICompat), string(ProviderOpenAI), string(ProviderAnthropic)}, spec.Providers},
		{[]string{string(SMSModeNone), string(SMSModeSandbox), string(SMSModeManaged), string(SMSModeBYOTwilio)}, spec.SMSModes},
		{[]string{string(SMSModeSandbox), string(SMSModeManaged), string(SMSModeBYOTwilio)}, spec.SMSChannelModes},
		{[]string{
			string(SMSStatusDisabled), string(SMSStatusNeedsCompliance), string(SMSStatusPending),
			string(SMSStatusActive), string(SMSStatusNeedsSetup),
		}, spec.SMSStatuses},
	} {
		assert.Equal(t, tt.values, tt.constants)
	}
}

func TestTimestamp(t *testing.T) {
	at, err := Timestamp("2026-01-02T03:04:05.5+01:00").Time()
	require.NoError(t, err)
	assert.Equal(t, 2, at.UTC().Hour())
	for _, other := range []Timestamp{"", "yesterday", "1767323045"} {
		_, err := other.Time()
		assert.Error(t, err)
	}
}

// TestEncodeEscapesNoHTML, and nothing is taken for an escape that is none.
func TestEncodeEscapesNoHTML(t *testing.T) {
	for _, text := range []string{"", "plain", "a < b && c > d", `a\u003cb`, `a\\u003c <`, "line\nbreak \x01 \u2028", "\xff", "ä€😀"} {
		var buf, want bytes.Buffer
		require.NoError(t, encode(&buf, messageBody{Text: text}))
		require.NoError(t, encodeUnescaped(&want, messageBody{Text: text}))
		assert.Equal(t, want.String(), buf.String(), "%q", text)
	}
}

// TestAddMember to an empty body and to another.
func TestAddMember(t *testing.T) {
	for _, tt := range []struct{ before, want string }{
		{`{}`, `{"metadata":{"n":1}}`},
		{`{"a":"b"}`, `{"a":"b","metadata":{"n":1}}`},
	} {
		buf := bytes.NewBufferString(tt.before)
		addMember(buf, "metadata", json.RawMessage(`{"n":1}`))
		assert.Equal(t, tt.want, buf.String())
	}
}
