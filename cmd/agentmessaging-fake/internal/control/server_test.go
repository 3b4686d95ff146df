package control_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestReset(t *testing.T) {
	a := newAPI(t, control.Options{
		Fake: []fakeserver.Option{fakeserver.WithPlan(fakeserver.PlanPro)}, Latency: time.Millisecond,
		Replies: []byte(`[{"replies":[{"text":"from the file"}]}]`),
	})
	key := a.server.Key()
	second := a.must(201, "POST", "/keys", `{}`).text("key")
	agent := a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	a.must(201, "POST", "/faults", `{"fault":{"kind":"hang"}}`)
	a.must(201, "POST", "/replies", `{"replies":[{"text":"mine"}]}`)
	a.must(200, "PATCH", "/keys/key_000001", `{"plan":"free"}`)
	a.must(200, "POST", "/clock", `{"duration":"1m"}`)
	a.must(204, "POST", "/reset", "")
	assert.Equal(t, 401, a.service(second, "GET", "/v1/status", "").status)
	assert.Equal(t, 404, a.service(key, "GET", "/v1/agents/"+agent, "").status)
	assert.Contains(t, a.must(200, "GET", "/keys", "").raw, `"plan":"pro"`)
	assert.JSONEq(t, `{"faults":[{"id":"fault_000001","name":"Latency(1ms)","fault":{"kind":"latency","duration":"1ms"},"match":{},"hits":2}]}`,
		a.must(200, "GET", "/faults", "").raw)
	assert.JSONEq(t, `{"replies":[{"id":"reply_000001","replies":[{"text":"from the file"}],"match":{},"hits":0}]}`, a.must(200, "GET", "/replies", "").raw)
	assert.Equal(t, "0s", a.must(200, "GET", "/clock", "").body["advanced"])
	agent = a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	assert.Equal(t, "from the file", a.service(key, "POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).text("reply_text"))
}

// A reset ends the calls under way, and they change nothing afterwards.
func TestResetLetsCallsGo(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/faults", `{"fault":{"kind":"latency","duration":"1h"}}`)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() { a.service(a.server.Key(), "POST", "/v1/agents", "{}") })
	})
	for len(a.must(200, "GET", "/calls", "").list("under_way")) == 0 {
		continue
	}
	a.must(204, "POST", "/reset", "")
	waiting.Wait()
	assert.Empty(t, a.must(200, "GET", "/agents", "").list("agents"))
	assert.Empty(t, a.must(200, "GET", "/calls", "").list("calls"))
	assert.Equal(t, 200, a.service(a.server.Key(), "GET", "/v1/status", "").status)
}

func TestRepliesOfTheOptions(t *testing.T) {
	for want, replies := range map[string]string{
		"replies: body: is required":             "",
		"replies[1].match.key: no key":           `[{"replies":[{"text":"a"}]},{"replies":[{"text":"a"}],"match":{"key":"key_000002"}}]`,
		"Answer: 1 is no status from 200 to 599": `{"fault":{"kind":"answer","status":1}}`,
	} {
		_, err := control.New(control.Options{Replies: []byte(replies)})
		assert.ErrorContains(t, err, want)
	}
}

// What is written and read is tested in package fakeserver.
func TestState(t *testing.T) {
	a, b := newAPI(t, control.Options{}), newAPI(t, control.Options{})
	agent := a.service(a.server.Key(), "POST", "/v1/agents", "{}").text("agent_id")
	b.must(204, "PUT", "/state", a.must(200, "GET", "/state", "").raw)
	assert.Equal(t, 200, b.service(b.server.Key(), "GET", "/v1/agents/"+agent, "").status)
	b.do("PUT", "/state", `{"format":"another"}`).wantRefused(t, 400, "ReadState: ")
}

// Many requests at once, among them resets: no panic.
func TestRequestsAtOnce(t *testing.T) {
	a := newAPI(t, control.Options{})
	var all sync.WaitGroup
	for _, act := range []string{
		"POST /reset ",
		"POST /keys {}",
		`PATCH /keys/key_000002 {"plan":"pro"}`,
		`POST /agents {"key":"key_000001","agent_id":"agent_000001"}`,
		`POST /calls {"key":"key_000001","method":"POST","path":"/v1/agents/agent_000001/messages","body":"{\"text\":\"x\"}"}`,
		`POST /agents/agent_000001/conversation {"exchanges":[{"text":"a","reply_text":"b"}]}`,
		`POST /faults {"fault":{"kind":"answer","status":503},"chance":0.5}`,
		"GET /keys/key_000002 ",
		"GET /calls?timeout=1ms ",
	} {
		parts := strings.SplitN(act, " ", 3)
		all.Go(func() {
			for range 30 {
				a.do(parts[0], parts[1], parts[2])
			}
		})
	}
	all.Wait()
}

// badRequests are what cannot be meant, and what is said of it.
var badRequests = []struct{ request, body, want string }{
	{"POST /keys", ``, "body: is required, as JSON"},
	{"POST /keys", `{}{}`, "body: must be one JSON document and nothing else"},
	{"POST /keys", `{"plan":"\ud800"}`, "body: must be valid Unicode"},
	{"POST /keys", `{"plan":"pro","plan":"pro"}`, "body: member plan is there twice"},
	{"POST /keys", `{"plans":"pro"}`, `body: member "plans" is not allowed; allowed: plan, dashboard`},
	{"POST /keys", `{"dashboard":"yes"}`, "dashboard: must be of type boolean"},
	{"PATCH /keys/key_000001", `{}`, "body: needs plan or revoked"},
	{"PUT /byok", `{}`, "available: is required"},
	{"POST /agents", `{"key":"key_000009"}`, "key: no key has this label"},
	{"POST /agents", `{"key":"key_000001","llm":{"api_key":"k"}}`, `body: member "api_key" is not allowed`},
	{"POST /calls", `{}`, "body: needs seq, or method and a path that begins with /v1/"},
	{"POST /calls", `{"method":"GET","path":"/_fake/v1/info"}`, "body: needs seq, or method and a path"},
	{"POST /calls", `{"method":"B D","path":"/v1/status"}`, "path: no call can be made with this"},
	{"POST /calls", `{"seq":1,"key":"key_000001"}`, "seq: goes with body and address only"},
	{"POST /calls", `{"method":"GET","path":"/v1/status","address":"here"}`, "Direct: \"here\" is not an IP address"},
	{"POST /clock", `{}`, "body: needs duration or until"},
	{"POST /clock", `{"duration":60}`, "a duration must be a string such as 250ms"},
	{"POST /clock", `{"duration":"-1s"}`, "a duration must be a string such as 250ms, 90s, 1h30m or 24h, and must not be negative"},
	{"POST /clock", `{"duration":"1000000h"}`, "duration: the clock goes at most 876000h0m0s forward"},
	{"POST /replies", `{"replies":[]}`, "replies: give at least one reply, and no fault"},
	{"POST /replies", `{"replies":[{"tekst":"a"}]}`, `body: member "tekst" is not allowed; allowed: fault, replies, replies.text, replies.warnings,`},
	{"POST /replies", `{"replies":[{"status":500}]}`, "replies[0].status: must be one of [400 401 402 404 429]"},
	{"POST /replies", `{"replies":[{"text":"a"}],"match":{"key":"amk_fake_000001"}}`, "match.key: no key has this label"},
	{"POST /replies", `{"replies":[{"text":"a"}],"times":-1}`, "times, nth, from: must be at least 1"},
	{"POST /replies", `{"replies":[{"text":"a"}],"from":2}`, "from: goes with a fault only"},
	{"POST /replies", `{"replies":[{"text":"a"}],"chance":1.1}`, "chance: must be from 0 to 1"},
	{"POST /replies", `{"replies":[{"text":"a"}],"seed":-1}`, "seed: must be of type integer"},
	{"POST /faults", `{}`, "fault: give one, and no replies"},
	{"POST /faults", `{"fault":{"kind":"x"}}`, "fault: its kind must be one of answer, close_early, drip_reply"},
	{"POST /faults", `{"fault":{"kind":"latency"}}`, "fault: latency needs duration"},
	{"POST /faults", `{"fault":{"kind":"hang","status":500}}`, "fault: hang does not take status; it takes: kind"},
	{"POST /faults", `{"fault":{"kind":"answer","status":199}}`, "Answer: "},
	{"POST /faults", `{"fault":{"kind":"lose_reply","how":{"kind":"latency","duration":"1s"}}}`, "how: fault: its kind must be one of answer, close_early, hang"},
	{"POST /faults", `{"fault":{"kind":"named","name":"x"}}`, "fault: its name must be one of unauthorized, "},
	{"POST /faults", `{"fault":{"kind":"named","name":"refused"}}`, "fault: its name must be one of"},
	{"GET /info?x=1", "", `query: parameter "x" is not allowed here; allowed: none`},
	{"GET /calls?Key=key_000001", "", "allowed: endpoint, status, decided, key,"},
	{"GET /calls?limit=1&limit=2", "", "limit: is there twice"},
	{"GET /calls?limit=%zz", "", "query: must be names and values"},
	{"GET /calls?limit=0", "", "limit: must be an integer from 1 to 10000"},
	{"GET /agents?limit=-1", "", "limit: must be an integer from 1"},
	{"GET /agents/a/conversation?limit=-1", "", "limit: must be an integer from 1 to 1000"},
	{"GET /calls?endpoint=Status", "", `ByEndpoint: unknown endpoint "Status"; the endpoints are GET /v1/status, POST /v1/warmup,`},
	{"GET /calls?status=6xx", "", "status: must be a status such as 429, a class such as 4xx, or 0"},
	{"GET /calls?key=key_000002", "", "key: no key has this label"},
	{"GET /calls?timeout=11m", "", "timeout: must be a duration such as"},
	{"GET /fitting-faults", "", "endpoint: must be one of GET /v1/status, POST /v1/warmup"},
}

// What is wrong is named, what is allowed is said, and nothing happens.
func TestBadRequests(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	before := a.must(200, "GET", "/state", "").raw
	for _, tt := range badRequests {
		method, path, _ := strings.Cut(tt.request, " ")
		a.do(method, path, tt.body).wantRefused(t, 400, tt.want)
	}
	a.do("GET", "/calls/stream", "", "Last-Event-ID: x").wantRefused(t, 400, "Last-Event-ID: must be the id")
	assert.Equal(t, before, a.must(200, "GET", "/state", "").raw)
	assert.Empty(t, a.must(200, "GET", "/replies", "").list("replies"))
	assert.Empty(t, a.must(200, "GET", "/faults", "").list("faults"))
}
