package agentmessaging

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
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
	"error":                      nil, // read by describe: TestErrorDocument
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
	read := func(body string, into any) error { return json.Unmarshal([]byte(body), into) }
	var agent agentAnswer
	require.NoError(t, read(`{"agent_id":"a","status":"hibernating","sms":null,"created_at":null,"new":{"x":1},"trace_id":null}`, &agent))
	result, err := agent.result()
	require.NoError(t, err)
	assert.Equal(t, &Agent{ID: "a", Status: "hibernating"}, result)
	var reply replyAnswer
	require.NoError(t, read(`{"reply_text":"","warnings":null}`, &reply))
	_, err = reply.result()
	assert.NoError(t, err)

	for body, sms := range map[string]*SMS{
		`{"agent_id":"a","SMS":5,"trace_id":"t"}`:                                             nil,
		`{"agent_id":"a","sms":{"phone_number":[5],"status":"pending"},"trace_id":"t"}`:       {Status: "pending"},
		`{"agent_id":"a","sms":5,"Sms":{"phone_number":1,"status":"pending"},"trace_id":"t"}`: nil,
	} {
		agentResult, trace, err := decode[*Agent, agentAnswer]([]byte(body))
		require.NoError(t, err, "a mistyped optional member")
		assert.Equal(t, &Agent{ID: "a", SMS: sms, TraceID: "t"}, agentResult)
		assert.Equal(t, "t", trace)
	}
	replied, _, err := decode[*Reply, replyAnswer]([]byte(`{"warnings":[5],"reply_text":"hi","trace_id":"t"}`))
	require.NoError(t, err)
	assert.Equal(t, &Reply{Text: "hi", TraceID: "t"}, replied)

	for _, tt := range []struct {
		body   string
		result func(body string) error
	}{
		{`{"agent_id":5}`, failing[*Agent, agentAnswer]},
		{`[]`, failing[*Agent, agentAnswer]},
		{`{"status":"active"}`, failing[*Agent, agentAnswer]},
		{`{"agent_id":null}`, failing[*Agent, agentAnswer]},
		{`{"trace_id":"t"}`, failing[*Reply, replyAnswer]},
		{`{"reply_text":null}`, failing[*Reply, replyAnswer]},
		{`{"trace_id":"t"}`, failing[*SMS, smsAnswer]},
		{`{"ok":true}`, failing[*BYOKConfig, byokAnswer]},
		{`{"ok":true,"byok":5}`, failing[*BYOKConfig, byokAnswer]},
		{`{"ok":true,"byok":null}`, failing[*BYOKConfig, setBYOKAnswer]},
		{`{"ok":false,"byok":{"provider":"openai"}}`, failing[*BYOKConfig, setBYOKAnswer]},
		{`{"ok":false}`, failing[struct{}, okAnswer]},
		{`{}`, failing[struct{}, okAnswer]},
		{`{"service":"x"}`, failing[*ServiceStatus, statusAnswer]},
		{`{"warmed":true}`, failing[*WarmUpResult, warmUpAnswer]},
	} {
		assert.Error(t, tt.result(tt.body), tt.body)
	}
}

func failing[T, A any, P answer[T, A]](body string) error {
	_, _, err := decode[T, A, P]([]byte(body))
	return err
}

func TestErrorDocument(t *testing.T) {
	c := &call{
		client: &Client{secret: func() scrub.Secret { return scrub.Hide("") }},
		out:    outcome{status: http.StatusTooManyRequests, body: document(t, "error")},
	}
	e := c.describe()
	assert.Equal(t, "rate_limited trace_1 key_minute slow down", strings.Join([]string{e.Code, e.TraceID, e.LimitKey, e.Reason}, " "))
	assert.Equal(t, map[string]json.RawMessage{"extra": json.RawMessage(`{"a":1}`)}, e.Extra)
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
