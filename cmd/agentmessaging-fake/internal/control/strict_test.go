package control_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

var long = strings.Repeat("é", 4001)

// badBodies are what no body may be, and what is said of it.
var badBodies = []struct{ method, path, body, want string }{
	{"POST", "/keys", ``, "body: is required, a JSON object"},
	{"POST", "/keys", `{}{}`, "body: must be one JSON document and nothing else"},
	{"POST", "/keys", "{\"plan\":\"\xff\"}", "body: must be valid UTF-8"},
	{"POST", "/keys", `null`, "body: must be an object"},
	{"POST", "/keys", `{"plan":null}`, "plan: must be a string"},
	{"POST", "/keys", `{"Plan":"pro"}`, `body: member "Plan" is not allowed; allowed: plan, dashboard`},
	{"POST", "/keys", `{"plan":"pro","plan":"pro"}`, "plan: is there twice"},
	{"POST", "/keys", `{"` + long + `":1}`, strings.Repeat("é", 64) + `…" is not allowed`},
	{"POST", "/keys", `{"plan":"\ud800"}`, "plan: must be valid Unicode"},
	{"POST", "/keys", `{"plan":"gold"}`, "plan: must be one of preview, free, pro, byok"},
	{"POST", "/keys", `{"dashboard":"yes"}`, "dashboard: must be a boolean"},
	{"PATCH", "/keys/key_000001", `{}`, "body: needs plan or revoked"},
	{"PUT", "/byok", `{}`, "available: is required, a boolean"},
	{"PUT", "/keys/key_000001/byok", `{"provider":"openai"}`, "api_key: is required"},
	{"PUT", "/keys/key_000001/byok", `{"provider":"x","api_key":"k"}`, "provider: must be one of openai_compat, openai, anthropic"},
	{"PUT", "/keys/key_000001/byok", `{"provider":"openai","api_key":""}`, "api_key: must not be empty"},
	{"POST", "/agents", `{}`, "key: is required"},
	{"POST", "/agents", `{"key":"key_000009"}`, "key: no key has this label"},
	{"POST", "/agents", `{"key":"key_000001","agent_id":""}`, "agent_id: must be 1 to 256 characters"},
	{"POST", "/agents", `{"key":"key_000001","agent_id":".."}`, "agent_id: no path can name it"},
	{"POST", "/agents", `{"key":"key_000001","status":""}`, "status: must be 1 to 64 characters"},
	{"POST", "/agents", `{"key":"key_000001","created_at":"today"}`, "created_at: must be a time as RFC 3339 has it"},
	{"POST", "/agents", `{"key":"key_000001","updated_at":"9999-12-31T23:59:59-10:00"}`, "updated_at: must be from the year 1 to the year 9999"},
	{"POST", "/agents", `{"key":"key_000001","system_prompt":"` + long + `"}`, "system_prompt: at most 2000 characters"},
	{"POST", "/agents", `{"key":"key_000001","metadata":[]}`, "metadata: must be an object"},
	{"POST", "/agents", `{"key":"key_000001","metadata":{"a":[{"b":1,"b":2}]}}`, `metadata: member "b" is there twice`},
	{"POST", "/agents", `{"key":"key_000001","metadata":{"a":"` + strings.Repeat("m", 4096) + `"}}`, "metadata: at most 4096 characters of compact JSON"},
	{"POST", "/agents", `{"key":"key_000001","sms":{}}`, "sms: needs a mode or a status"},
	{"POST", "/agents", `{"key":"key_000001","llm":{"tier":"x"}}`, "llm.tier: must be one of fast, smart"},
	{"POST", "/agents", `{"key":"key_000001","llm":{"model":"` + long + `"}}`, "llm.model: at most 200"},
	{"POST", "/agents", `{"key":"key_000001","llm":{"api_key":"k"}}`, `llm: member "api_key" is not allowed; allowed: mode, tier`},
	{"POST", "/agents/a/conversation", `{}`, "exchanges: is required, an array"},
	{"POST", "/agents/a/conversation", `{"exchanges":[]}`, "exchanges: must hold at least one"},
	{"POST", "/agents/a/conversation", `{"exchanges":[{"text":"a","reply_text":"b"},{"text":"a"}]}`, "exchanges[1].reply_text: is required"},
	{"POST", "/agents/a/conversation", `{"exchanges":[{"text":"` + long + `","reply_text":"b"}]}`, "exchanges[0].text: at most 4000"},
	{"POST", "/calls", `{}`, "body: needs seq, or method and a path that begins with /v1/"},
	{"POST", "/calls", `{"method":"GET","path":"/_fake/v1/info"}`, "body: needs seq, or method and a path"},
	{"POST", "/calls", `{"seq":1,"key":"key_000001"}`, "seq: goes with body and address only"},
	{"POST", "/calls", `{"method":"GET","path":"/v1/status","address":"here"}`, "address: must be an IP address"},
	{"POST", "/clock", `{}`, "body: needs duration or until"},
	{"POST", "/clock", `{"duration":60}`, "duration: must be a string"},
	{"POST", "/clock", `{"duration":"-1s"}`, "duration: must be a duration such as"},
	{"POST", "/clock", `{"duration":"1000000h"}`, "from 0s to 876000h0m0s"},
}

// What is wrong is named, and what is allowed is said.
func TestStrictBodies(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	for _, tt := range badBodies {
		a.do(tt.method, tt.path, tt.body).wantRefused(t, 400, tt.want)
	}
	assert.Len(t, a.must(200, "GET", "/agents", "").list("agents"), 1, "nothing happened")
	assert.Len(t, a.must(200, "GET", "/keys", "").list("keys"), 1)
	assert.Equal(t, "0s", a.must(200, "GET", "/clock", "").body["advanced"])
}

func TestExchangesAreBounded(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	add := func(members string) reply {
		return a.do("POST", "/agents/a/conversation", `{"exchanges":[{"text":"a","reply_text":"`+strings.Repeat("b", 64<<10-1)+`"`+members+`}]}`)
	}
	assert.Equal(t, 201, add("").status)
	for _, more := range []string{`,"user_ref":"c"`, `,"trace_id":"c"`, `,"warnings":["",""]`} {
		add(more).wantRefused(t, 400, "exchanges[0]: its texts must have at most 65536 bytes")
	}
}

func TestBodiesAreNotDeep(t *testing.T) {
	deep := strings.Repeat(`{"kind":"lose_reply","how":`, 9000) + `{"kind":"hang"}` + strings.Repeat("}", 9000)
	newAPI(t, control.Options{}).do("POST", "/faults", `{"fault":`+deep+`}`).wantRefused(t, 400, "body: must be at most 32 levels deep")
}

// badRules are rules of replies and faults that cannot be.
var badRules = []struct{ path, body, want string }{
	{"/replies", `{}`, "replies: is required"},
	{"/replies", `{"replies":[]}`, "replies: must hold at least one"},
	{"/replies", `{"replies":[{}]}`, "replies[0]: must have a text, or an error status"},
	{"/replies", `{"replies":[{"text":"a","status":400}]}`, "replies[0]: must have a text, or an error status"},
	{"/replies", `{"replies":[{"text":"a"},{"text":"b","code":"x"}]}`, "replies[1]: code and reason go with an error status"},
	{"/replies", `{"replies":[{"status":400,"warnings":["x"]}]}`, "replies[0]: warnings go with a text"},
	{"/replies", `{"replies":[{"status":500}]}`, "replies[0].status: must be one of 400, 401, 402, 404, 429"},
	{"/replies", `{"replies":[{"status":4e2}]}`, "replies[0].status: must be an integer"},
	{"/replies", `{"replies":[{"text":"a"}],"match":{"endpoint":"GET /v1/status"}}`, `match: member "endpoint" is not allowed; allowed: agent_id, key, text, text_containing`},
	{"/replies", `{"replies":[{"text":"a"}],"match":{"key":"amk_fake_000001"}}`, "match.key: no key has this label"},
	{"/replies", `{"replies":[{"text":"a"}],"match":{"agent_id":""}}`, "match.agent_id: must not be empty"},
	{"/replies", `{"replies":[{"text":"a"}],"times":0}`, "times: must be an integer from 1 to 1000000000"},
	{"/replies", `{"replies":[{"text":"a"}],"chance":1.1}`, "chance: must be from 0 to 1"},
	{"/replies", `{"replies":[{"text":"a"}],"chance":1,"seed":-1}`, "seed: must be an integer from 0 to 9007199254740991"},
	{"/replies", `{"replies":[{"text":"a"}],"seed":1}`, "seed: goes with chance only"},
	{"/faults", `{}`, "fault: is required, an object"},
	{"/faults", `{"fault":{}}`, "fault.kind: is required"},
	{"/faults", `{"fault":{"kind":"x"}}`, "fault.kind: must be one of latency, answer, raw_answer, rate_limited, hang, close_early, reset_connection, lose_reply, truncate_reply, reset_reply, drip_reply, go_away, named"},
	{"/faults", `{"fault":{"kind":"latency"}}`, "fault.duration: is required for latency"},
	{"/faults", `{"fault":{"kind":"latency","duration":"61m"}}`, "fault.duration: must be a duration such as"},
	{"/faults", `{"fault":{"kind":"latency","duration":"1s","bytes":1}}`, "fault.bytes: latency does not take it; it takes: duration"},
	{"/faults", `{"fault":{"kind":"hang","status":500}}`, "fault.status: hang does not take it; it takes: none"},
	{"/faults", `{"fault":{"kind":"answer"}}`, "fault.status: is required for answer"},
	{"/faults", `{"fault":{"kind":"answer","status":199}}`, "fault.status: must be an integer from 200 to 599"},
	{"/faults", `{"fault":{"kind":"raw_answer","status":200,"content_type":"a\nb"}}`, "fault.content_type: must hold no control character"},
	{"/faults", `{"fault":{"kind":"rate_limited","retry_after":"1\r\n"}}`, "fault.retry_after: must hold no control character"},
	{"/faults", `{"fault":{"kind":"rate_limited","retry_after":"` + strings.Repeat("1", 1025) + `"}}`, "fault.retry_after: at most 1024 bytes"},
	{"/faults", `{"fault":{"kind":"truncate_reply","bytes":-1}}`, "fault.bytes: must be an integer from 0"},
	{"/faults", `{"fault":{"kind":"drip_reply","bytes":0}}`, "fault.bytes: must be from 1"},
	{"/faults", `{"fault":{"kind":"lose_reply"}}`, "fault.how: is required for lose_reply"},
	{"/faults", `{"fault":{"kind":"lose_reply","how":{"kind":"latency","duration":"1s"}}}`, "fault.how.kind: must be one of answer, raw_answer, rate_limited, hang, close_early, reset_connection"},
	{"/faults", `{"fault":{"kind":"hang"},"match":{"endpoint":"GET /v1/no"}}`, "match.endpoint: must be one of GET /v1/status"},
	{"/faults", `{"fault":{"kind":"hang"},"match":{"key":"x"}}`, "match.key: no key"},
}

func TestStrictRules(t *testing.T) {
	a := newAPI(t, control.Options{})
	for _, tt := range badRules {
		a.do("POST", tt.path, tt.body).wantRefused(t, 400, tt.want)
	}
	assert.Empty(t, a.must(200, "GET", "/replies", "").list("replies"))
	assert.Empty(t, a.must(200, "GET", "/faults", "").list("faults"))
}

func TestStrictQueries(t *testing.T) {
	a := newAPI(t, control.Options{})
	for query, want := range map[string]string{
		"/info?x=1":                                 `query: parameter "x" is not allowed here; allowed: none`,
		"/calls?Key=key_000001":                     "allowed: endpoint, method, status, decided, fault, key,",
		"/calls?limit=1&limit=2":                    "limit: is there twice",
		"/calls?limit=%zz":                          "query: must be names and values",
		"/calls?limit=0":                            "limit: must be an integer from 1 to 10000",
		"/calls?after=-1":                           "after: must be an integer from 0",
		"/calls?endpoint=Status":                    "endpoint: must be one of GET /v1/status",
		"/calls?status=6xx":                         "status: must be a status such as 429, a class such as 4xx, or 0",
		"/calls?key=key_000002":                     "key: no key has this label",
		"/calls?n=0":                                "n: must be an integer from 1",
		"/calls?timeout=11m":                        "timeout: must be a duration such as",
		"/keys/key_000001/limits?address=localhost": "address: must be an IP address",
	} {
		a.do("GET", query, "").wantRefused(t, 400, want)
	}
	a.do("GET", "/calls/stream", "", "Last-Event-ID: x").wantRefused(t, 400, "Last-Event-ID: must be the id")
}
