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
	assert.JSONEq(t, want, a.must(201, "POST", w+"/agents", wholeAgent).raw)
	assert.JSONEq(t, want, a.must(200, "GET", w+"/agents/a%2Fb%20%25", "").raw)
	assert.Equal(t, "+1", a.service(a.server.Key(), "GET", "/v1/agents/a%2Fb%20%25", "").body["sms"].(map[string]any)["phone_number"])
	a.do("POST", w+"/agents", `{"key":"key_000001","agent_id":"a/b %"}`).wantRefused(t, 409, "agent_id: there is an agent")
	a.must(201, "POST", w+"/keys", `{}`)
	least := a.must(201, "POST", w+"/agents", `{"key":"key_000002"}`)
	assert.Equal(t, []any{"agent_000002", "active", nil, nil, nil, nil}, pick(least.body, "agent_id", "status", "system_prompt", "customer_ref", "metadata", "sms"))
	assert.Len(t, a.must(200, "GET", w+"/agents", "").list("agents"), 2)
	for query, want := range map[string][]any{
		"?key=key_000002": {"agent_000002"}, "?limit=1": {"agent_000002"}, "?search=_000002": {"agent_000002"},
		"?search=nobody": nil, "?search=AGENT_&limit=1": {"agent_000002"},
	} {
		var ids []any
		for _, found := range a.must(200, "GET", w+"/agents"+query, "").list("agents") {
			ids = append(ids, found.(map[string]any)["agent_id"])
		}
		assert.Equal(t, want, ids, query)
	}
	assert.EqualValues(t, 2, a.must(200, "GET", w+"/agents?limit=1", "").body["total"])
	set := a.must(200, "PUT", w+"/agents/agent_000002/sms", `{"status":"active","phone_number":"+2"}`)
	assert.Equal(t, map[string]any{"status": "active", "phone_number": "+2"}, set.body["sms"])
}

func TestConversation(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", w+"/agents", `{"key":"key_000001","agent_id":"a"}`)
	assert.JSONEq(t, `{"exchanges":[],"total":0,"continues":false}`, a.must(200, "GET", w+"/agents/a/conversation", "").raw)
	seeded := a.must(201, "POST", w+"/agents/a/conversation", `{"exchanges":[
		{"text":"hi","reply_text":"yes","user_ref":"u","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"},{"text":"<b>","reply_text":""}]}`)
	assert.Contains(t, seeded.raw, `{"text":"hi","user_ref":"u","reply_text":"yes","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"}`)
	assert.Contains(t, seeded.raw, `{"text":"\u003cb\u003e","reply_text":"","time":`)
	sent := a.must(200, "POST", w+"/agents/a/messages", `{"text":"more","user_ref":"v"}`)
	assert.JSONEq(t, `{"status":200,"body":{"reply_text":"You wrote: more","trace_id":"trace_000001"}}`, sent.raw)
	all := a.must(200, "GET", w+"/agents/a/conversation", "").list("exchanges")
	assert.Equal(t, []any{"more", "v", "trace_000001"}, pick(all[2].(map[string]any), "text", "user_ref", "trace_id"))
	for query, want := range map[string][]any{ // texts, total, continues
		"?limit=2": {"<b>", "more", 3., false}, "?limit=1&after=t": {"more", 3., false}, "?after=t": {"<b>", "more", 3., true}, "?limit=2&after=t": {"<b>", "more", 3., true},
		"?after=trace_000001": {3., true}, "?after=nobody&limit=1": {"more", 3., false},
	} {
		r := a.must(200, "GET", w+"/agents/a/conversation"+query, "")
		var got []any
		for _, e := range r.list("exchanges") {
			got = append(got, e.(map[string]any)["text"])
		}
		assert.Equal(t, want, append(got, r.body["total"], r.body["continues"]), query)
	}
	call := a.must(200, "GET", w+"/calls", "").list("calls")[0].(map[string]any)
	assert.Equal(t, []any{"key_000001", "192.0.2.1", `{"text":"more","user_ref":"v"}`}, pick(call, "key", "address", "body"), "a real call, from where it was asked for")
}

// Whatever the service answers is passed on.
func TestMessagesThatFail(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", w+"/agents", `{"key":"key_000001","agent_id":"a"}`)
	send := func() reply { return a.do("POST", w+"/agents/a/messages", `{"text":"x"}`) }
	for _, tt := range []struct{ fault, want string }{
		{`{"kind":"raw_answer","status":502,"content_type":"text/html","body":"<h1>"}`, `{"status":502,"body":"<h1>"}`},
		{`{"kind":"answer","status":500,"body":"{\"a\":1}"}`, `{"status":500,"body":{"a":1}}`},
	} {
		id := a.must(201, "POST", w+"/faults", `{"fault":`+tt.fault+`}`).text("id")
		assert.JSONEq(t, tt.want, send().raw)
		a.must(204, "DELETE", w+"/faults/"+id, "")
	}
	for _, fault := range []string{`{"kind":"close_early"}`, `{"kind":"reset_connection"}`, `{"kind":"truncate_reply","bytes":1}`} {
		id := a.must(201, "POST", w+"/faults", `{"fault":`+fault+`}`).text("id")
		r := send()
		r.wantRefused(t, 502, "its answer did not arrive whole")
		assert.Equal(t, "no_answer", r.text("error"))
		a.must(204, "DELETE", w+"/faults/"+id, "")
	}
	assert.Len(t, a.must(200, "GET", w+"/calls?status=0", "").list("calls"), 5, "decided nothing, or broke off")
	a.must(204, "DELETE", w+"/keys/key_000001", "")
	assert.Equal(t, 401., send().body["status"])
}

func TestKeys(t *testing.T) {
	a := newAPI(t, control.Options{})
	r := a.must(201, "POST", w+"/keys", `{"plan":"pro","dashboard":false}`)
	assert.JSONEq(t, `{"label":"key_000002","key":"amk_fake_000002","plan":"pro","dashboard":false}`, r.raw)
	key := r.text("key")
	assert.JSONEq(t, `{"label":"key_000003","key":"amk_fake_000003","plan":"preview","dashboard":true}`, a.must(201, "POST", w+"/keys", `{}`).raw)
	assert.Equal(t, 403, a.service(key, "GET", "/v1/byok", "").status)
	changed := a.must(200, "PATCH", w+"/keys/key_000002", `{"plan":"free"}`)
	assert.Equal(t, "free", changed.text("plan"))
	assert.Equal(t, 402, a.service(key, "GET", "/v1/status", "").status)
	a.must(204, "DELETE", w+"/keys/key_000002", "")
	assert.Equal(t, 401, a.service(key, "GET", "/v1/status", "").status)
	keys := a.must(200, "GET", w+"/keys", "")
	assert.NotContains(t, keys.raw, "amk_", "the text is shown once")
	second := keys.list("keys")[1].(map[string]any)
	assert.Equal(t, []any{"key_000002", "free", false, true, false}, pick(second, "label", "plan", "dashboard", "revoked", "default"))
	assert.NotEmpty(t, second["issued_at"])
	assert.Equal(t, true, keys.list("keys")[0].(map[string]any)["default"])
}

func TestLimits(t *testing.T) {
	a := newAPI(t, control.Options{})
	limit := func(query string, i int) map[string]any {
		return a.must(200, "GET", w+"/keys/key_000001/limits"+query, "").list("limits")[i].(map[string]any)
	}
	assert.Equal(t, "127.0.0.1", a.must(200, "GET", w+"/keys/key_000001/limits", "").text("address"), "before any call")
	a.service(a.server.Key(), "POST", "/v1/agents", "{}") // from 192.0.2.1, as httptest has it
	assert.Equal(t, "192.0.2.1", a.must(200, "GET", w+"/keys/key_000001/limits", "").text("address"))
	assert.Equal(t, []any{120., 1., 119., "1m0s", nil}, pick(limit("", 1), "max", "used", "left", "window", "opens_at"))
	assert.Equal(t, 0., limit("?address=203.0.113.1", 1)["used"])
	assert.Equal(t, 1., limit("?address=%3A%3Affff%3A192.0.2.1", 1)["used"])
	a.must(204, "POST", w+"/keys/key_000001/limits/agent_create_key_day/exhaust", "")
	day := limit("", 3)
	assert.Equal(t, []any{50., 1., 0.}, pick(day, "max", "used", "left"))
	assert.NotNil(t, day["opens_at"])
	assert.Equal(t, "agent_create_key_day", a.service(a.server.Key(), "POST", "/v1/agents", "{}").text("limit_key"))
	a.must(200, "POST", w+"/clock/advance", `{"duration":"24h"}`)
	assert.Nil(t, limit("", 3)["opens_at"])
	assert.Equal(t, 200, a.service(a.server.Key(), "POST", "/v1/agents", "{}").status)
}

func pick(m map[string]any, names ...string) (values []any) {
	for _, n := range names {
		values = append(values, m[n])
	}
	return values
}

func TestBYOK(t *testing.T) {
	a := newAPI(t, control.Options{})
	path := w + "/keys/key_000001/byok"
	assert.JSONEq(t, `{"byok":null}`, a.must(200, "GET", path, "").raw)
	stored := a.must(200, "PUT", path, `{"provider":"openai","api_key":"sk-canary-0123","base_url":"https://x","model":"m","label":"l"}`)
	assert.Equal(t, stored.raw, a.must(200, "GET", path, "").raw)
	assert.Regexp(t, `^{"byok":{"provider":"openai","base_url":"https://x","model":"m","label":"l","fingerprint":"\w+","updated_at":"20[^"]+"}}\s$`, stored.raw)
	for _, bad := range []string{
		`{"provider":"sk-canary-0123","api_key":"x"}`, `{"provider":"openai","api_key":"sk-canary-0123","label":1}`,
		`{"provider":"openai","api_key":["sk-canary-0123"]}`, `{"provider":"openai","api_key":"sk-canary-0123"`,
	} {
		assert.NotContains(t, a.do("PUT", path, bad).raw, "canary", "no reason repeats a value")
	}
	a.must(200, "PUT", w+"/byok", `{"available":false}`)
	assert.JSONEq(t, `{"available":false}`, a.must(200, "GET", w+"/byok", "").raw)
	assert.Equal(t, 503, a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).status)
	a.must(200, "PUT", w+"/byok", `{"available":true}`)
	assert.Equal(t, 200, a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).status)
}
