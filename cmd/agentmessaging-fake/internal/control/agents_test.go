package control_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

const wholeAgent = `{"key":"key_000001","agent_id":"a/b %","status":"paused","created_at":"2020-01-01T00:00:00Z","updated_at":"2021-01-01T00:00:00Z",
	"system_prompt":"p","customer_ref":"c","metadata":{"k": [1, {"n": null}]},"sms":{"mode":"managed","phone_number":"+1"},
	"llm":{"mode":"byok","tier":"smart","model":"m","provider":"openai","base_url":"https://x","label":"l"}}`

func TestAgents(t *testing.T) {
	a := newAPI(t, control.Options{})
	want := `{"agent_id":"a/b %","status":"paused","created_at":"2020-01-01T00:00:00Z","updated_at":"2021-01-01T00:00:00Z","key":"key_000001",
		"system_prompt":"p","customer_ref":"c","metadata":{"k":[1,{"n":null}]},"sms":{"mode":"managed","status":"needs_compliance","phone_number":"+1"},
		"llm":{"mode":"byok","tier":"smart","model":"m","provider":"openai","base_url":"https://x","label":"l"},"exchanges":0}`
	assert.JSONEq(t, want, a.must(201, "POST", "/agents", wholeAgent).raw)
	assert.JSONEq(t, want, a.must(200, "GET", "/agents/a%2Fb%20%25", "").raw)
	assert.Equal(t, "+1", a.service(a.server.Key(), "GET", "/v1/agents/a%2Fb%20%25", "").body["sms"].(map[string]any)["phone_number"])
	a.do("POST", "/agents", `{"key":"key_000001","agent_id":"a/b %"}`).wantRefused(t, 400, "AddAgent: there is an agent with this ID already")
	a.must(201, "POST", "/keys", `{}`)
	least := a.must(201, "POST", "/agents", `{"key":"key_000002"}`)
	assert.Equal(t, []any{"agent_000002", "active", nil, nil, nil, nil}, pick(least.body, "agent_id", "status", "system_prompt", "customer_ref", "metadata", "sms"))
	assert.Len(t, a.must(200, "GET", "/agents", "").list("agents"), 2)
	newest := a.must(200, "GET", "/agents?limit=1", "")
	assert.EqualValues(t, 2, newest.body["total"])
	assert.Equal(t, "agent_000002", newest.list("agents")[0].(map[string]any)["agent_id"])
	set := a.must(200, "PUT", "/agents/agent_000002/sms", `{"status":"active","phone_number":"+2"}`)
	assert.Equal(t, map[string]any{"status": "active", "phone_number": "+2"}, set.body["sms"])
	a.must(204, "DELETE", "/agents/agent_000002", "")
	a.do("GET", "/agents/agent_000002", "").wantRefused(t, 404, "no agent has this identifier")
}

func TestConversation(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	assert.JSONEq(t, `{"exchanges":[],"total":0}`, a.must(200, "GET", "/agents/a/conversation", "").raw)
	seeded := a.must(201, "POST", "/agents/a/conversation", `{"exchanges":[
		{"text":"hi","reply_text":"yes","user_ref":"u","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"},{"text":"<b>","reply_text":""}]}`)
	assert.Contains(t, seeded.raw, `{"text":"hi","user_ref":"u","reply_text":"yes","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"}`)
	assert.Contains(t, seeded.raw, `{"text":"\u003cb\u003e","reply_text":"","time":`)
	sent := a.must(200, "POST", "/calls", `{"key":"key_000001","method":"POST","address":"203.0.113.7","path":"/v1/agents/a/messages","body":"{\"text\":\"more\",\"user_ref\":\"v\"}"}`)
	assert.JSONEq(t, `{"status":200,"body":{"reply_text":"You wrote: more","trace_id":"trace_000001"}}`, sent.raw)
	all := a.must(200, "GET", "/agents/a/conversation", "").list("exchanges")
	assert.Equal(t, []any{"more", "v", "trace_000001"}, pick(all[2].(map[string]any), "text", "user_ref", "trace_id"))
	newest := a.must(200, "GET", "/agents/a/conversation?limit=2", "")
	assert.Equal(t, all[1:], newest.list("exchanges"))
	assert.EqualValues(t, 3, newest.body["total"])
	call := a.must(200, "GET", "/calls", "").list("calls")[0].(map[string]any)
	assert.Equal(t, []any{"key_000001", "203.0.113.7", `{"text":"more","user_ref":"v"}`}, pick(call, "key", "address", "body"), "a real call")
	assert.EqualValues(t, 401, a.must(200, "POST", "/calls", `{"method":"GET","path":"/v1/status"}`).body["status"], "without a key")
	call = a.must(200, "GET", "/calls?key=missing", "").list("calls")[0].(map[string]any)
	assert.Equal(t, "192.0.2.1", call["address"], "from where it was asked for")
}

// Whatever the service answers is passed on.
func TestMessagesThatFail(t *testing.T) {
	a := newAPI(t, control.Options{})
	for fault, want := range map[string]any{ // status and body
		`{"kind":"raw_answer","status":502,"content_type":"text/html","body":"<h1>"}`: []any{502., "<h1>"},
		`{"kind":"answer","status":500,"body":"{\"a\":1}"}`:                           []any{500., map[string]any{"a": 1.}},
		`{"kind":"close_early"}`:              "no_answer",
		`{"kind":"truncate_reply","bytes":1}`: "no_answer",
	} {
		a.must(201, "POST", "/faults", `{"fault":`+fault+`,"times":1}`)
		r := a.do("POST", "/calls", `{"key":"key_000001","method":"GET","path":"/v1/status"}`)
		if want == "no_answer" {
			r.wantRefused(t, 502, "its answer did not arrive whole")
			assert.Equal(t, want, r.text("error"))
		} else {
			assert.Equal(t, want, pick(r.body, "status", "body"), fault)
		}
	}
	assert.NotEmpty(t, a.must(200, "GET", "/calls?status=0", "").list("calls"))
}
