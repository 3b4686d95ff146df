package control_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

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
