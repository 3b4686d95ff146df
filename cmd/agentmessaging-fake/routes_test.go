package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

const wholeAgent = `{"key":"key_000001","agent_id":"a b %","status":"paused","created_at":"2020-01-01T00:00:00Z","updated_at":"2021-01-01T00:00:00Z",
	"system_prompt":"p","customer_ref":"c","metadata":{"k": [1, {"n": null}]},"sms":{"mode":"managed","phone_number":"+1"},
	"llm":{"mode":"byok","tier":"smart","model":"m","provider":"openai","base_url":"https://x","label":"l"}}`

// dialogues are series of calls, each series to a new server.
var dialogues = map[string][]step{
	"agents": {
		{"POST /agents", wholeAgent, 201, wholeAgent},
		{"GET /agents/a%20b%20%25", "", 200, `{"sms":{"mode":"managed","status":"needs_compliance","phone_number":"+1"},"exchanges":0}`},
		{"GET /v1/agents/a%20b%20%25", "", 200, `{"sms":{"phone_number":"+1"}}`},
		{"POST /agents", `{"key":"key_000001","agent_id":"a b %"}`, 400, "add_agent: there is an agent with this ID already"},
		{"POST /keys", "{}", 201, ""},
		{"POST /agents", `{"key":"key_000002"}`, 201, `{"agent_id":"agent_000002","key":"key_000002","status":"active","system_prompt":null,"customer_ref":null,"metadata":null,"sms":null,
			"llm":{"model":null,"provider":null,"base_url":null,"label":null}}`},
		{"GET /agents", "", 200, `{"agents":[{"agent_id":"a b %"},{"agent_id":"agent_000002"}],"total":2}`},
		{"GET /agents?limit=1", "", 200, `{"agents":[{"agent_id":"agent_000002"}],"total":2}`},
		{"PUT /agents/agent_000002/sms", `{"status":"pending"}`, 200, `{"sms":{"mode":null,"phone_number":null}}`},
		{"PUT /agents/agent_000002/sms", `{"status":"active","phone_number":"+2"}`, 200, `{"sms":{"status":"active","phone_number":"+2"}}`},
		{"DELETE /agents/agent_000002", "", 204, ""},
		{"GET /agents/agent_000002", "", 404, "no agent has this identifier"},
		{"POST /agents", `{"key":"key_000002","agent_id":"agent_000004"}`, 201, ""},
		{"POST /agents", `{"key":"key_000002"}`, 201, `{"agent_id":"agent_000005"}`}, // the next number that no agent had
		{"GET /agents", "", 200, `{"agents":[{"agent_id":"a b %"},{"agent_id":"agent_000004"},{"agent_id":"agent_000005"}],"total":3}`},
	},
	"conversation": {
		{"POST /agents", `{"key":"key_000001","agent_id":"a"}`, 201, ""},
		{"GET /agents/a/conversation", "", 200, `{"exchanges":[],"total":0}`},
		{"POST /agents/a/conversation", `{"exchanges":[{"text":"hi","reply_text":"yes","user_ref":"u","warnings":["w"],"time":"2020-01-01T01:00:00+01:00","trace_id":"t"},{"text":"<b>","reply_text":""}]}`,
			201, `{"exchanges":[{"text":"hi","reply_text":"yes","user_ref":"u","warnings":["w"],"time":"2020-01-01T00:00:00Z","trace_id":"t"},{"text":"<b>","user_ref":null,"warnings":null,"time":"2000-01-01T00:00:00Z","trace_id":null}]}`},
		{"POST /agents/a/conversation", `{"exchanges":[]}`, 400, "exchanges: give at least one"},
		{"POST /agents", `{"key":"key_000001","created_at":"9999-12-31T23:59:59-23:00"}`, 400, "add_agent: a time must be in the years 0 to 9999, in UTC"},
		{"POST /v1/agents/a/messages", `{"text":"more","user_ref":"v"}`, 200, ""},
		{"GET /agents/a/conversation?limit=2", "", 200, `{"exchanges":[{"text":"<b>"},{"text":"more","user_ref":"v","trace_id":"trace_000001"}],"total":3}`},
		{"GET /agents/a", "", 200, `{"exchanges":3}`},
	},
	"a call by hand": {
		{"POST /agents", `{"key":"key_000001","agent_id":"a"}`, 201, ""},
		{"POST /calls", `{"key":"key_000001","method":"POST","address":"203.0.113.7","path":"/v1/agents/a/messages","body":"{\"text\":\"x\"}"}`,
			200, `{"status":200,"body":{"reply_text":"You wrote: x","trace_id":"trace_000001"}}`},
		{"GET /calls", "", 200, `{"calls":[{"url":"http://127.0.0.1:8460/v1/agents/a/messages","key":"key_000001","address":"203.0.113.7","body":"{\"text\":\"x\"}"}]}`},
		{"POST /calls", `{"method":"GET","path":"/v1/status"}`, 200, `{"status":401}`}, // without a key, from where it was asked for
		{"GET /calls?key=missing", "", 200, `{"calls":[{"address":"192.0.2.1"}]}`},
	},
	"a call by hand that fails": {
		{"POST /faults", `{"fault":{"kind":"raw_answer","status":502,"content_type":"text/html","body":"<h1>"},"times":1}`, 201, ""},
		{"POST /calls", `{"key":"key_000001","method":"GET","path":"/v1/status"}`, 200, `{"status":502,"body":"<h1>"}`},
		{"POST /faults", `{"fault":{"kind":"truncate_reply","bytes":1},"times":1}`, 201, ""},
		{"POST /calls", `{"key":"key_000001","method":"GET","path":"/v1/status"}`, 502, "its answer did not arrive whole: unexpected EOF"},
		{"POST /faults", `{"fault":{"kind":"reset_connection"},"times":1}`, 201, ""},
		{"POST /calls", `{"key":"key_000001","method":"GET","path":"/v1/status"}`, 502, "its answer did not arrive whole: read: connection reset by peer"},
		{"GET /calls?status=0", "", 200, `{"total":2}`},
	},
	"keys": {
		{"POST /keys", `{"plan":"pro","dashboard":false}`, 201, `{"label":"key_000002","key":"amk_fake_000002","plan":"pro","dashboard":false}`},
		{"POST /keys", "{}", 201, `{"label":"key_000003","key":"amk_fake_000003","plan":"preview","dashboard":true}`},
		{"PATCH /keys/key_000002", `{"revoked":true}`, 200, `{"revoked":true}`},
		{"GET /v1/status amk_fake_000002", "", 401, ""},
		{"PATCH /keys/key_000002", `{"revoked":false,"plan":"free"}`, 200, `{"revoked":false,"plan":"free"}`},
		{"GET /keys", "", 200, `{"keys":[{"label":"key_000001","default":true,"issued_at":"2000-01-01T00:00:00Z","called_from":""},{"label":"key_000002","plan":"free","dashboard":false,"revoked":false,"default":false},{}]}`},
	},
	"limits": {
		{"GET /keys/key_000001", "", 200, `{"address":"127.0.0.1"}`}, // before any call
		{"POST /v1/agents", "{}", 200, ""},                           // from 192.0.2.1, as httptest has it
		{"GET /keys/key_000001", "", 200, `{"address":"192.0.2.1","limits":[{},{"limit_key":"ip_minute","max":120,"used":1,"left":119,"window":"1m0s","opens_at":null},{},{},{},{},{}]}`},
		{"POST /keys/key_000001/limits/agent_create_key_day/exhaust", "", 204, ""},
		{"GET /keys/key_000001", "", 200, `{"limits":[{},{},{},{"max":50,"used":1,"left":0},{},{},{}]}`},
	},
	"BYOK": {
		{"PUT /byok", `{"available":false}`, 200, `{"available":false}`},
		{"PUT /v1/byok", `{"provider":"openai","api_key":"sk-canary-0123","label":"l"}`, 503, ""},
		{"PUT /byok", `{"available":true}`, 200, ""},
		{"GET /keys/key_000001", "", 200, `{"byok":null}`},
		{"PUT /v1/byok", `{"provider":"openai","api_key":"sk-canary-0123","base_url":"https://x","model":"m","label":"l"}`, 200, ""},
		{"GET /keys/key_000001", "", 200, `{"byok":{"provider":"openai","base_url":"https://x","model":"m","label":"l","updated_at":"2000-01-01T00:00:00Z"}}`},
		{"PUT /v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`, 200, ""},
		{"GET /keys/key_000001", "", 200, `{"byok":{"base_url":null,"model":null,"label":null}}`},
	},
	"replies": {
		{"POST /agents", `{"key":"key_000001","agent_id":"a"}`, 201, ""},
		{"POST /agents", `{"key":"key_000001","agent_id":"b"}`, 201, ""},
		{"POST /replies", scripted, 201, scripted},
		{"POST /v1/agents/b/messages", `{"text":"hi"}`, 200, `{"reply_text":"You wrote: hi"}`},
		{"POST /v1/agents/a/messages", `{"text":"ho"}`, 200, `{"reply_text":"You wrote: ho"}`},
		{"POST /v1/agents/a/messages", `{"text":"hi"}`, 200, `{"reply_text":"one","warnings":["w"]}`},
		{"POST /v1/agents/a/messages", `{"text":"hi"}`, 404, `{"error":"odd","reason":"r"}`},
		{"POST /v1/agents/a/messages", `{"text":"hi"}`, 404, ""},
		{"POST /v1/agents/a/messages", `{"text":"hi"}`, 200, `{"reply_text":"You wrote: hi"}`},
		{"POST /replies", `{"replies":[{"text":"exact"}],"match":{"text":"x"},"nth":2}`, 201, `{"id":"reply_000002","nth":2}`},
		{"GET /replies", "", 200, `{"replies":[{"id":"reply_000001","hits":3},{"hits":0}]}`},
		{"POST /v1/agents/b/messages", `{"text":"xx"}`, 200, `{"reply_text":"You wrote: xx"}`},
		{"POST /v1/agents/b/messages", `{"text":"x"}`, 200, `{"reply_text":"You wrote: x"}`},
		{"POST /v1/agents/b/messages", `{"text":"x"}`, 200, `{"reply_text":"exact"}`},
		{"DELETE /replies/reply_000002", "", 204, ""},
	},
	"faults": {
		{"POST /faults", `{"fault":{"kind":"rate_limited","retry_after":"7"},"match":{"endpoint":"GET /v1/status","key":"key_000001"},"from":2,"times":1}`, 201,
			`{"id":"fault_000001","fault":{"kind":"rate_limited","retry_after":"7"},"name":"RateLimited(\"7\")","match":{"endpoint":"GET /v1/status","key":"key_000001"},"from":2,"times":1,"hits":0}`},
		{"GET /v1/status other", "", 401, ""},
		{"GET /v1/status", "", 200, ""},
		{"GET /v1/status", "", 429, ""},
		{"GET /v1/status", "", 200, ""},
		{"GET /faults", "", 200, `{"faults":[{"times":1,"hits":1}]}`},
		{"POST /faults", `{"fault":{"kind":"rate_limited"}}`, 201, `{"name":"RateLimited(\"\")"}`},
		{"POST /faults", `{"fault":{"kind":"close_early"}}`, 201, `{"name":"CloseEarly()"}`},
		{"POST /faults", `{"fault":{"kind":"go_away"}}`, 201, `{"name":"GoAway()"}`},
		{"POST /faults", `{"fault":{"kind":"lose_reply","how":{"kind":"answer","status":504}}}`, 201, `{"name":"LoseReply(Answer(504))"}`},
		{"POST /faults", `{"fault":{"kind":"truncate_reply","bytes":0}}`, 201, `{"name":"TruncateReply(0)"}`},
		{"POST /faults", `{"fault":{"kind":"reset_reply","bytes":5}}`, 201, `{"name":"ResetReply(5)"}`},
		{"POST /faults", `{"fault":{"kind":"drip_reply","bytes":1,"every":"2ms"}}`, 201, `{"name":"DripReply(1, 2ms)"}`},
		{"POST /faults", `{"fault":{"kind":"named","name":"reply_lost"}}`, 201, `{"name":"LoseReply(CloseEarly())"}`},
		{"POST /faults", `{"fault":{"kind":"hang","how":null},"match":{"endpoint":"GET /v1/status"},"times":null,"chance":null}`, 201, `{"name":"Hang()","times":null}`},
		{"DELETE /faults/fault_000002", "", 204, ""},
		{"DELETE /faults", "", 204, ""},
		{"DELETE /v1/byok", "", 200, ""}, // none is left
		// An injected status has the service's own error for the endpoint, and comes before
		// the key is checked.
		{"POST /faults", `{"fault":{"kind":"answer","status":409},"times":2}`, 201, ""},
		{"POST /v1/warmup other", "", 409, `{"error":"byok_not_configured"}`},
		{"POST /v1/agents other", "", 409, `{"error":"conflict"}`},
		// The faults for a sweep in another language: seven with a status, of which two are
		// limits of a minute and of a day, and twelve of connections and proxies.
		{"GET /fitting-faults?endpoint=PUT%20/v1/byok", "", 200, `{"faults":[{"name":"bad_request","says":"The service refuses the body."},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}`},
	},
	"verify": {
		{"GET /verify", "", 200, `{"met":true,"unmet":[]}`},
		{"POST /faults", `{"fault":{"kind":"answer","status":503},"times":1,"required":true}`, 201, ""},
		{"POST /replies", `{"replies":[{"text":"a"}],"required":true}`, 201, ""},
		{"GET /v1/status", "", 503, ""},
		{"GET /verify", "", 200, `{"met":false,"unmet":[{"id":"reply_000001","why":"calls that it matched: 0; no call came near"}]}`},
		{"POST /faults", `{"fault":{"kind":"answer","status":503},"match":{"endpoint":"GET /v1/byok"},"times":2,"required":true}`, 201, ""},
		{"POST /faults", `{"fault":{"kind":"answer","status":503},"match":{"endpoint":"DELETE /v1/byok"},"nth":1,"times":2,"required":true}`, 201, ""},
		{"GET /v1/byok", "", 503, ""},
		{"DELETE /v1/byok", "", 503, ""}, // nth acts once, whatever times says
		{"GET /verify", "", 200, `{"unmet":[{},{"times":2,"hits":1,"why":"acted 1 of 2 times"}]}`},
		{"DELETE /replies", "", 204, ""},
		{"DELETE /faults", "", 204, ""},
		{"GET /verify", "", 200, `{"met":true}`},
	},
	"clock": {
		{"POST /clock", `{"duration":"1500ms"}`, 200, `{"now":"2000-01-01T00:00:01.5Z","advanced":"1.5s"}`},
		{"POST /clock", `{"duration":"875999h"}`, 200, `{"advanced":"875999h0m1.5s"}`},
		{"POST /clock", `{"until":"9999-01-01T00:00:00Z"}`, 400, "until: the clock goes at most 876000h0m0s forward in all"},
		{"POST /clock", `{"duration":"876000h"}`, 400, "duration: the clock goes at most 876000h0m0s forward in all"},
		{"POST /clock", `{"until":"2020-01-01T00:00:00Z"}`, 200, `{"advanced":"875999h0m1.5s"}`}, // it does not go back
	},
	"forgotten calls": {
		{"POST /v1/agents", "{}", 200, ""},
		{"DELETE /calls", "", 204, ""},
		{"GET /calls", "", 200, `{"calls":[],"under_way":[],"total":0,"dropped":0}`},
		{"GET /agents", "", 200, `{"total":1}`}, // nothing else is forgotten
		{"GET /v1/status", "", 200, ""},
		{"GET /calls", "", 200, `{"calls":[{"seq":2}]}`},
	},
}

const scripted = `{"match":{"agent_id":"a","key":"key_000001","text_containing":"hi"},"replies":[{"text":"one","warnings":["w"],"status":null,"code":null,"reason":null},{"status":404,"code":"odd","reason":"r","text":null,"warnings":null}],"times":3}`

// Each call of a dialogue gets the answer of its step. The clock is in the year 2000, as in
// each bubble.
func TestDialogues(t *testing.T) {
	for name, steps := range dialogues {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := newAPI(t).play(steps...)
				assert.NotContains(t, answers, "canary")
				assert.Equal(t, strings.Count(answers, `"key":"amk_`), strings.Count(answers, "amk_"), "only the issue of a key shows its text")
			})
		})
	}
}

// refusals are wrong requests, with the reason in the answer.
var refusals = []step{
	{"GET //info", "", 404, "no route has this method and path"},
	{"PUT /keys", "{}", 404, "no route has this method and path"},
	{"GET /keys/key_000002", "", 404, "no key has this label, such as key_000001; GET keys lists them"},
	{"DELETE /faults/fault_000001", "", 404, "no fault has this id"},
	{"POST /keys", ``, 400, "body: is required, as JSON"},
	{"POST /keys", `{"plan":"pro","plan":"pro"}`, 400, "body: member plan appears twice"},
	{"POST /keys", `{"plan":""}`, 400, "plan: must not be empty; leave it out instead"},
	{"POST /keys", `{"dashboard":"yes"}`, 400, "dashboard: must be of type boolean"},
	{"DELETE /calls", `{"x":1}`, 400, `body: member "x" is not allowed; allowed: none`}, // as on each route without a body
	{"PATCH /keys/key_000001", `{}`, 400, "body: needs plan or revoked"},
	{"PUT /byok", `{}`, 400, "available: is required"},
	{"POST /agents", `{"key":"key_000009"}`, 400, "key: no key has this label"},
	{"POST /calls", `{"path":"/v1/status"}`, 400, "body: needs method and a path that begins with /v1/"},
	{"POST /calls", `{"method":"GET","path":"/_fake/v1/info"}`, 400, "body: needs method and a path"},
	{"POST /calls", `{"method":"B D","path":"/v1/status"}`, 400, "path: no call can be made with this"},
	{"POST /calls", `{"method":"GET","path":"/v1/status","key":"unknown"}`, 400, "key: no key has this label"},
	{"POST /calls", `{"method":"GET","path":"/v1/status","address":"here"}`, 400, "address: must be an IP address such as 203.0.113.7"},
	{"POST /clock", `{}`, 400, "body: needs duration or until"},
	{"POST /clock", `{"duration":60}`, 400, "duration: must be of type string, such as 90s"},
	{"POST /clock", `{"until":"tomorrow"}`, 400, "until: must be a time such as 2030-01-01T00:00:00Z"},
	{"POST /replies", `{"replies":[{"text":"a"},{"tekst":"a"}]}`, 400, `replies[1]: member "tekst" is not allowed; allowed: code, reason, status, text, warnings`},
	{"POST /replies", `{"replies":[{"text":"a"},null]}`, 400, "replies[1]: must be of type object"},
	{"POST /replies", `{"replies":"a"}`, 400, "replies: must be of type array"},
	{"POST /replies", `{"replies":[{"text":"a"},{"text":"a","status":404}]}`, 400, "replies[1]: an error has no text and no warnings"},
	{"POST /replies", `{"replies":[{"text":"a","reason":"r"}]}`, 400, "replies[0]: code and reason need the status of an error"},
	{"POST /replies", `{"replies":[{"status":500}]}`, 400, "replies[0].status: must be one of 400, 401, 402, 404, 429; a fault of kind answer gives any status"},
	{"POST /replies", `{"replies":[{"text":"a"}],"match":{"key":"amk_fake_000001"}}`, 400, "match.key: no key has this label"},
	{"POST /faults", `{"fault":{"kind":"answer","status":503},"times":0}`, 400, "times: 0 is less than 1"},
	{"POST /replies", `{"replies":[{"text":"a"}],"from":2}`, 400, `body: member "from" is not allowed; allowed: chance, match, nth, replies, required, seed, times`},
	{"POST /faults", `{}`, 400, "fault: is required"},
	{"POST /faults", `{"fault":{"kind":"hang"},"match":{"Key":"key_000001"}}`, 400, `match: member "Key" is not allowed; allowed: agent_id, endpoint, key, `},
	{"POST /faults", `{"fault":{"kind":"hang"},"seed":-1}`, 400, "seed: must be of type integer, from 0 on"},
	{"POST /faults", `{"fault":{"kind":"x"}}`, 400, "fault: its kind must be one of answer, close_early, drip_reply"},
	{"POST /faults", `{"fault":{"kind":"latency"}}`, 400, "fault: latency needs duration"},
	{"POST /faults", `{"fault":{"kind":"hang","status":500}}`, 400, "fault: hang does not take status; it takes: kind"},
	{"POST /faults", `{"fault":{"kind":"lose_reply","how":{"kind":"lose_reply","how":{"kind":"hang"}}}}`, 400, "fault: how: its kind must be one of answer, "},
	{"POST /faults", `{"fault":{"kind":"named","name":"refused"}}`, 400, "fault: name: must be one of unauthorized, "},
	{"GET /info?x=1", "", 400, `query: parameter "x" is not allowed; allowed: none`},
	{"GET /calls?limit=1&limit=2", "", 400, "limit: appears twice"},
	{"GET /calls?limit=%zz", "", 400, "query: must be names and values"},
	{"GET /calls?after=x", "", 400, "after: must be an integer from 0"},
	{"GET /calls?limit=0", "", 400, "limit: must be an integer from 1 to 10000"},
	{"GET /calls?endpoint=Status", "", 400, "endpoint: must be one of GET /v1/status, POST /v1/warmup"},
	{"GET /calls?agent_id=", "", 400, "agent_id: must not be empty"},
	{"GET /calls?n=2", "", 400, "n: needs timeout"},
	{"GET /calls?status=6xx", "", 400, "status: must be a status such as 429, a class such as 4xx, or 0"},
	{"GET /calls?key=key_1", "", 400, "key: no key has this label"}, // a label has one form
	{"GET /calls?timeout=10m0.000000001s", "", 400, "timeout: must be a duration such as"},
}

// Each refusal names the mistake and what is allowed, and changes nothing.
func TestRefusals(t *testing.T) {
	a := newAPI(t)
	before := a.play(step{"GET /state", "", 200, ""})
	a.play(refusals...)
	large := strings.Repeat(" ", 1<<20+1)
	a.play(
		step{"POST /keys", large, 413, "body: at most 1048576 bytes"},
		step{"PUT /state", large, 400, "(1048577 bytes)"}, // long conversations take more than that
	)
	assert.Equal(t, before, a.play(step{"GET /state", "", 200, ""}))
	a.play(step{"GET /replies", "", 200, `{"replies":[]}`}, step{"GET /faults", "", 200, `{"faults":[]}`}, step{"GET /v1/status", "", 200, ""})

	status := func() { a.play(step{"GET /v1/status", "", 200, ""}) }
	few := testing.AllocsPerRun(10, status)
	a.play(slices.Repeat([]step{{"POST /faults", `{"fault":{"kind":"hang"},"nth":0}`, 400, ""}, {"POST /replies", `{"replies":[{"text":"a"}],"nth":0}`, 400, ""}}, 100)...)
	assert.Less(t, testing.AllocsPerRun(10, status), few+100, "no call asks what a refused rule matches")
}

// If all routes are called at once, a reset among them, each call gets a documented answer: no
// panic, and no race.
func FuzzBodies(f *testing.F) {
	steps := slices.Concat(slices.Collect(maps.Values(dialogues))...)
	steps = append(steps, refusals...)
	routes := map[string]bool{"GET /keys": true, "GET /agents": true, "GET /calls": true, "GET /clock": true, "GET /state": true}
	f.Add("")
	for _, s := range steps {
		if s.body != "" && !strings.Contains(s.call, " /v1/") && s.call != "POST /calls" { // a fault may hang a call
			routes[s.call] = true
			f.Add(s.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		a := newAPI(t)
		a.play(step{"POST /agents", `{"key":"key_000001","agent_id":"a"}`, 201, ""})
		var all sync.WaitGroup
		for route := range routes {
			all.Go(func() {
				answered := a.request(step{call: route, body: body})
				assert.Contains(t, []int{200, 201, 204, 400, 404, 413}, answered.Code, route)
			})
		}
		all.Wait()
		for _, path := range []string{"/keys", "/agents", "/replies", "/faults", "/clock", "/state"} {
			a.play(step{"GET " + path, "", 200, "{}"})
		}
	})
}

// GET calls returns the calls that all its parameters match, and shows no key.
func TestCalls(t *testing.T) {
	a := newAPI(t, "--calls=5")
	a.play(
		step{"GET /v1/nothing", "", 404, ""},
		step{"POST /v1/agents", `{"customer_ref":"<c>"}`, 200, ""},
		step{"POST /v1/agents/agent_000001/messages", `{"text":"hello \"you\""}`, 200, ""},
		step{"GET /v1/status other", "", 401, ""},
		step{"GET /v1/status ", "", 401, ""}, // without a key
		step{"PUT /v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`, 200, ""},
	)
	for query, want := range map[string][]int{ // the numbers of the calls
		"": {2, 3, 4, 5, 6}, "?limit=2": {5, 6}, "?after=4": {5, 6}, "?key=missing": {5}, "?key=unknown": {4}, "?key=key_000001": {2, 3, 6},
		"?status=401": {4, 5}, "?status=4xx": {4, 5}, "?status=2xx": {2, 3, 6}, "?status=0": {}, "?endpoint=GET%20/v1/status": {4, 5},
		"?agent_id=agent_000001": {3}, "?text=hell": {}, "?before=4&after=2": {3}, "?search=HELLO+%22you%22": {3}, "?search=post+%3Cc%3E": {2}, "?search=hello+put": {}, "?text_containing=hell": {3}, "?endpoint=GET%20/v1/status&key=missing": {5},
	} {
		answer := a.play(step{"GET /calls" + query, "", 200, seqs(want...)})
		assert.Contains(t, answer, `"dropped":1`, query)
		assert.NotRegexp(t, "canary|amk_", answer, query)
	}
	assert.Equal(t, 5, strings.Count(a.play(step{"GET /calls.jsonl", "", 200, ""}), "}\n"))
}

// seqs returns the calls of an answer with these numbers.
func seqs(all ...int) string {
	var calls []string
	for _, seq := range all {
		calls = append(calls, fmt.Sprintf(`{"seq":%d}`, seq))
	}
	return `{"calls":[` + strings.Join(calls, ",") + `]}`
}
