package control_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
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

func TestKeys(t *testing.T) {
	a := newAPI(t, control.Options{})
	r := a.must(201, "POST", "/keys", `{"plan":"pro","dashboard":false}`)
	assert.JSONEq(t, `{"label":"key_000002","key":"amk_fake_000002","plan":"pro","dashboard":false}`, r.raw)
	key := r.text("key")
	assert.JSONEq(t, `{"label":"key_000003","key":"amk_fake_000003","plan":"preview","dashboard":true}`, a.must(201, "POST", "/keys", `{}`).raw)
	assert.Equal(t, 403, a.service(key, "GET", "/v1/byok", "").status)
	a.must(200, "PATCH", "/keys/key_000002", `{"revoked":true}`)
	assert.Equal(t, 401, a.service(key, "GET", "/v1/status", "").status)
	assert.Equal(t, "free", a.must(200, "PATCH", "/keys/key_000002", `{"revoked":false,"plan":"free"}`).text("plan"))
	assert.Equal(t, 402, a.service(key, "GET", "/v1/status", "").status)
	keys := a.must(200, "GET", "/keys", "")
	assert.NotContains(t, keys.raw, "amk_", "the text is shown once")
	second := keys.list("keys")[1].(map[string]any)
	assert.Equal(t, []any{"key_000002", "free", false, false, false}, pick(second, "label", "plan", "dashboard", "revoked", "default"))
	assert.NotEmpty(t, second["issued_at"])
	assert.Equal(t, true, keys.list("keys")[0].(map[string]any)["default"])
}

func TestLimits(t *testing.T) {
	a := newAPI(t, control.Options{})
	limit := func(query string, i int) map[string]any {
		return a.must(200, "GET", "/keys/key_000001"+query, "").list("limits")[i].(map[string]any)
	}
	assert.Equal(t, "127.0.0.1", a.must(200, "GET", "/keys/key_000001", "").text("address"), "before any call")
	a.service(a.server.Key(), "POST", "/v1/agents", "{}") // from 192.0.2.1, as httptest has it
	assert.Equal(t, "192.0.2.1", a.must(200, "GET", "/keys/key_000001", "").text("address"))
	assert.Equal(t, []any{120., 1., 119., "1m0s", nil}, pick(limit("", 1), "max", "used", "left", "window", "opens_at"))
	assert.Equal(t, 0., limit("?address=203.0.113.1", 1)["used"])
	a.must(204, "POST", "/keys/key_000001/limits/agent_create_key_day/exhaust", "")
	day := limit("", 3)
	assert.Equal(t, []any{50., 1., 0.}, pick(day, "max", "used", "left"))
	assert.NotNil(t, day["opens_at"])
	assert.Equal(t, "agent_create_key_day", a.service(a.server.Key(), "POST", "/v1/agents", "{}").text("limit_key"))
	a.must(200, "POST", "/clock", `{"duration":"24h"}`)
	assert.Nil(t, limit("", 3)["opens_at"])
	assert.Equal(t, 200, a.service(a.server.Key(), "POST", "/v1/agents", "{}").status)
}

func TestBYOK(t *testing.T) {
	a := newAPI(t, control.Options{})
	set := func() int {
		return a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123","label":"l"}`).status
	}
	assert.JSONEq(t, `{"available":false}`, a.must(200, "PUT", "/byok", `{"available":false}`).raw)
	assert.Equal(t, 503, set())
	a.must(200, "PUT", "/byok", `{"available":true}`)
	assert.Nil(t, a.must(200, "GET", "/keys/key_000001", "").body["byok"])
	assert.Equal(t, 200, set())
	shown := a.must(200, "GET", "/keys/key_000001", "")
	assert.Equal(t, []any{"openai", "l"}, pick(shown.body["byok"].(map[string]any), "provider", "label"))
	assert.NotContains(t, shown.raw, "canary")
}

func (a api) says(agent, text string) any {
	a.t.Helper()
	r := a.service(a.server.Key(), "POST", "/v1/agents/"+agent+"/messages", `{"text":"`+text+`"}`)
	if r.status != 200 {
		return r.status
	}
	return r.text("reply_text")
}

func TestReplies(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"b"}`)
	made := a.must(201, "POST", "/replies", `{"match":{"agent_id":"a","key":"key_000001","text_containing":"hi"},"replies":[{"text":"one","warnings":["w"]},{"status":404,"code":"odd","reason":"r"}],"times":3}`)
	assert.JSONEq(t, `{"id":"reply_000001","match":{"agent_id":"a","key":"key_000001","text_containing":"hi"},
		"replies":[{"text":"one","warnings":["w"]},{"status":404,"code":"odd","reason":"r"}],"times":3,"hits":0}`, made.raw)
	assert.Equal(t, []any{"You wrote: hi", "You wrote: ho", "one", 404, 404, "You wrote: hi"},
		[]any{a.says("b", "hi"), a.says("a", "ho"), a.says("a", "hi"), a.says("a", "hi"), a.says("a", "hi"), a.says("a", "hi")})
	assert.Contains(t, a.must(200, "GET", "/replies", "").raw, `"hits":3`)
	assert.Equal(t, "reply_000002", a.must(201, "POST", "/replies", `{"replies":[{"text":"exact"}],"match":{"text":"x"}}`).text("id"))
	assert.Equal(t, []any{"exact", "You wrote: xx"}, []any{a.says("b", "x"), a.says("b", "xx")})
	a.must(204, "DELETE", "/replies/reply_000002", "")
	assert.Equal(t, "You wrote: x", a.says("b", "x"))
}

func TestFaults(t *testing.T) {
	a := newAPI(t, control.Options{})
	for i, tt := range []struct{ fault, name string }{
		{`{"kind":"latency","duration":"1ms"}`, "Latency(1ms)"},
		{`{"kind":"answer","status":503,"body":"b"}`, "Answer(503, 1 characters)"},
		{`{"kind":"raw_answer","status":502,"body":"b","content_type":"text/html"}`, "RawAnswer(502, 1 characters)"},
		{`{"kind":"rate_limited","retry_after":"7"}`, `RateLimited("7")`},
		{`{"kind":"rate_limited"}`, `RateLimited("")`},
		{`{"kind":"hang"}`, "Hang()"},
		{`{"kind":"close_early"}`, "CloseEarly()"},
		{`{"kind":"reset_connection"}`, "ResetConnection()"},
		{`{"kind":"go_away"}`, "GoAway()"},
		{`{"kind":"lose_reply","how":{"kind":"answer","status":504}}`, "LoseReply(Answer(504))"},
		{`{"kind":"truncate_reply","bytes":0}`, "TruncateReply(0)"},
		{`{"kind":"reset_reply","bytes":5}`, "ResetReply(5)"},
		{`{"kind":"drip_reply","bytes":1,"every":"2ms"}`, "DripReply(1, 2ms)"},
		{`{"kind":"named","name":"reply_lost"}`, "LoseReply(CloseEarly())"},
	} {
		made := a.must(201, "POST", "/faults", `{"fault":`+tt.fault+`,"match":{"endpoint":"DELETE /v1/byok"}}`)
		assert.JSONEq(t, fmt.Sprintf(`{"id":"fault_%06d","fault":%s,"name":%q,"match":{"endpoint":"DELETE /v1/byok"},"hits":0}`, i+1, tt.fault, tt.name), made.raw)
		a.must(204, "DELETE", "/faults/"+made.text("id"), "")
	}
	assert.Equal(t, 200, a.service(a.server.Key(), "DELETE", "/v1/byok", "").status, "removed")
	a.must(201, "POST", "/faults", `{"fault":{"kind":"rate_limited","retry_after":"7"},"match":{"endpoint":"GET /v1/status","key":"key_000001"},"times":1}`)
	first := a.service(a.server.Key(), "GET", "/v1/status", "")
	assert.Equal(t, []any{429, "7"}, []any{first.status, first.header.Get("Retry-After")})
	assert.Equal(t, 200, a.service(a.server.Key(), "GET", "/v1/status", "").status)
	assert.Contains(t, a.must(200, "GET", "/faults", "").raw, `"times":1,"hits":1`)
}

// A sweep from outside: each fault that fits an endpoint is listed, and acts by
// its name.
func TestFaultsByName(t *testing.T) {
	a := newAPI(t, control.Options{})
	listed := a.must(200, "GET", "/fitting-faults?endpoint=PUT%20/v1/byok", "").raw
	names := regexp.MustCompile(`"name":"(\w+)","says":"\w`).FindAllStringSubmatch(listed, -1)
	require.Len(t, names, 19, "seven of a status, with a minute and a day, and twelve of the way there")
	for _, name := range names {
		made := a.must(201, "POST", "/faults", `{"fault":{"kind":"named","name":"`+name[1]+`"}}`)
		a.must(204, "DELETE", "/faults/"+made.text("id"), "")
	}
	a.must(201, "POST", "/faults", `{"fault":{"kind":"named","name":"limited_day"},"times":1}`)
	assert.Equal(t, "86400", a.service(a.server.Key(), "GET", "/v1/status", "").header.Get("Retry-After"))
}

func TestClock(t *testing.T) {
	a := newAPI(t, control.Options{})
	assert.Equal(t, "1.5s", a.must(200, "POST", "/clock", `{"duration":"1500ms"}`).body["advanced"])
	assert.Equal(t, "1m31.5s", a.must(200, "POST", "/clock", `{"duration":"1m30s"}`).body["advanced"])
	a.must(200, "POST", "/clock", `{"duration":"875999h"}`)
	a.do("POST", "/clock", `{"duration":"1h"}`).wantRefused(t, 400, "duration: the clock goes at most")
	now := a.must(200, "GET", "/clock", "").text("now")
	assert.Contains(t, now, "21", "a hundred years on, JSON still holds the year")
	assert.Equal(t, "875999h1m31.5s", a.must(200, "POST", "/clock", `{"until":"2020-01-01T00:00:00Z"}`).text("advanced"), "the clock does not go back")
}

func TestVerify(t *testing.T) {
	a := newAPI(t, control.Options{})
	assert.JSONEq(t, `{"met":true,"unmet":[]}`, a.must(200, "GET", "/verify", "").raw)
	a.must(201, "POST", "/faults", `{"fault":{"kind":"answer","status":503},"times":1,"required":true}`)
	a.must(201, "POST", "/replies", `{"replies":[{"text":"a"}],"required":true}`)
	a.service(a.server.Key(), "GET", "/v1/status", "")
	unmet := a.must(200, "GET", "/verify", "")
	assert.Equal(t, []any{false, "reply_000001"}, []any{unmet.body["met"], unmet.list("unmet")[0].(map[string]any)["id"]})
	assert.Len(t, unmet.list("unmet"), 1)
	a.must(204, "DELETE", "/replies", "")
	a.must(204, "DELETE", "/faults", "")
	assert.Equal(t, true, a.must(200, "GET", "/verify", "").body["met"])
	assert.Empty(t, a.must(200, "GET", "/faults", "").list("faults"))
}

func TestDecisions(t *testing.T) {
	like := `{"format":1,"decisions":{"metadata_cap":{"answer":100}}}`
	a := newAPI(t, control.Options{Fake: []fakeserver.Option{fakeserver.Like([]byte(like)), fakeserver.WithDecision("windows", "sliding")}})
	found := map[any][]any{}
	for _, d := range a.must(200, "GET", "/decisions", "").list("decisions") {
		d := d.(map[string]any)
		found[d["id"]] = pick(d, "answer", "default", "observed")
	}
	assert.Equal(t, []any{"sliding", "fixed", false}, found["windows"])
	assert.Equal(t, []any{100., 4096., true}, found["metadata_cap"])
}

func (r reply) seqs() (all []float64) {
	for _, c := range r.list("calls") {
		all = append(all, c.(map[string]any)["seq"].(float64))
	}
	return all
}

func TestCalls(t *testing.T) {
	a := newAPI(t, control.Options{Fake: []fakeserver.Option{fakeserver.WithCallLimit(5)}})
	key := a.server.Key()
	a.service(key, "GET", "/v1/nothing", "")
	agent := a.service(key, "POST", "/v1/agents", `{"customer_ref":"<c>"}`).text("agent_id")
	a.service(key, "POST", "/v1/agents/"+agent+"/messages", `{"text":"hello \"you\""}`)
	a.service("other", "GET", "/v1/status", "")
	a.send("GET", "/v1/status", "")
	a.service(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	for query, want := range map[string][]float64{
		"": {2, 3, 4, 5, 6}, "?limit=2": {5, 6}, "?after=4": {5, 6}, "?key=missing": {5}, "?key=unknown": {4}, "?key=key_000001": {2, 3, 6},
		"?status=401": {4, 5}, "?status=4xx": {4, 5}, "?status=2xx": {2, 3, 6}, "?status=0": nil, "?decided=401": {4, 5}, "?endpoint=GET%20/v1/status": {4, 5},
		"?agent_id=" + agent: {3}, "?text=hell": nil, "?before=4&after=2": {3}, "?search=HELLO+%22you%22": {3}, "?search=post+%3Cc%3E": {2}, "?search=hello+put": nil, "?text_containing=hell": {3}, "?endpoint=GET%20/v1/status&key=missing": {5},
	} {
		r := a.must(200, "GET", "/calls"+query, "")
		assert.Equal(t, want, r.seqs(), query)
		assert.Equal(t, 1., r.body["dropped"])
		assert.NotContains(t, r.raw, "canary")
		assert.NotContains(t, r.raw, "amk_")
	}
	call := a.must(200, "GET", "/calls?text_containing=hello", "").list("calls")[0].(map[string]any)
	assert.Equal(t, `{"text":"hello \"you\""}`, call["body"], "texts are there to be seen")
	assert.Equal(t, 5, strings.Count(a.must(200, "GET", "/calls.har", "").raw, `"startedDateTime"`))
}

func TestForgetCalls(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.service(a.server.Key(), "POST", "/v1/agents", "{}")
	a.must(204, "DELETE", "/calls", "")
	assert.JSONEq(t, `{"calls":[],"under_way":[],"total":0,"dropped":0}`, a.must(200, "GET", "/calls", "").raw)
	assert.Len(t, a.must(200, "GET", "/agents", "").list("agents"), 1, "nothing else is forgotten")
	a.service(a.server.Key(), "GET", "/v1/status", "")
	assert.Equal(t, []float64{2}, a.must(200, "GET", "/calls", "").seqs())
}

func TestAwait(t *testing.T) {
	a := newAPI(t, control.Options{})
	key := a.server.Key()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		r := a.must(200, "GET", "/calls?n=2&timeout=1m&endpoint=GET%20/v1/status", "")
		assert.Equal(t, []float64{1, 3}, r.seqs())
	})
	a.service(key, "GET", "/v1/status", "")
	a.service(key, "GET", "/v1/byok", "")
	a.service(key, "GET", "/v1/status", "")
	waiting.Wait()
	assert.Equal(t, []float64{1}, a.must(200, "GET", "/calls?timeout=5s", "").seqs()[:1], "one, and those that were made already count")
	late := a.do("GET", "/calls?after=2&n=2&timeout=0s&key=key_000001", "")
	assert.Equal(t, 504, late.status)
	assert.Equal(t, "timeout", late.text("error"))
	assert.Contains(t, late.reason(), "1 of 2 calls came")
	assert.Equal(t, []float64{3}, late.seqs())
}

func TestAwaitEndsWithTheProgram(t *testing.T) {
	a := newAPI(t, control.Options{})
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.Equal(t, 504, a.do("GET", "/calls?n=1&timeout=10m", "").status) })
	a.server.End()
	waiting.Wait()
}

func TestSendAgain(t *testing.T) {
	a := newAPI(t, control.Options{})
	agent := a.service(a.server.Key(), "POST", "/v1/agents", `{}`).text("agent_id")
	a.service(a.server.Key(), "POST", "/v1/agents/"+agent+"/messages", `{"text":"one"}`)
	a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	a.service("nobody", "GET", "/v1/status", "")
	sent := a.must(200, "POST", "/calls", `{"seq":2}`)
	assert.JSONEq(t, `{"status":200,"body":{"reply_text":"You wrote: one","trace_id":"trace_000005"}}`, sent.raw)
	edited := a.must(200, "POST", "/calls", `{"seq":2,"body":"{\"text\":5}"}`)
	assert.EqualValues(t, 400, edited.body["status"])
	a.do("POST", "/calls", `{"seq":3}`).wantRefused(t, 409, "was not kept whole")
	a.do("POST", "/calls", `{"seq":4}`).wantRefused(t, 409, "the key of this call is none of this fake")
	a.do("POST", "/calls", `{"seq":99}`).wantRefused(t, 404, "seq")
}
