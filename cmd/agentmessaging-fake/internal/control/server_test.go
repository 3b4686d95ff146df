package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
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

// A name that an attacker's site resolves to 127.0.0.1 reaches nothing.
func TestHost(t *testing.T) {
	a := newAPI(t, control.Options{})
	for host, want := range map[string]int{
		"127.0.0.1:8460": 200, "127.0.0.1": 200, "127.9.9.9": 200, "localhost:1": 200, "LOCALHOST": 200, "localhost.:80": 200,
		"app.localhost": 200, "[::1]:8460": 200, "[::1]": 200, "[::ffff:127.0.0.1]:1": 200,
		"evil.example": 403, "evil.example:8460": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
		"notlocalhost": 403, "192.168.0.1:8460": 403, "0.0.0.0:8460": 403, "": 403, "[::2]:1": 403, "2130706433": 403,
	} {
		assert.Equal(t, want, a.do("GET", "/info", "", "Host: "+host).status, host)
		assert.Equal(t, want, a.send("GET", "/v1/status", "", "Host: "+host, "Authorization: Bearer "+a.server.Key()).status, "the service: %s", host)
	}
	a.do("GET", "/info", "", "Host: evil.example").wantRefused(t, 403, "Host: must be a loopback name or address; with --allow-remote, any")
	assert.Empty(t, a.must(200, "GET", "/calls?status=403", "").list("calls"), "a refused call does not reach the fake")
}

func TestOrigin(t *testing.T) {
	a := newAPI(t, control.Options{})
	for origin, want := range map[string]int{
		"http://127.0.0.1:8460": 204, "https://127.0.0.1:8460": 204, "HTTP://127.0.0.1:8460": 204,
		"http://127.0.0.1": 403, "http://127.0.0.1:3000": 403, "http://localhost:8460": 403, "http://evil.example": 403,
		"null": 403, "127.0.0.1:8460": 403, "": 403, "://": 403, "http://evil.example/127.0.0.1:8460": 403,
	} {
		assert.Equal(t, want, a.do("POST", "/reset", "", "Origin: "+origin).status, origin)
	}
	for site, want := range map[string]int{"same-origin": 204, "none": 204, "": 204, "same-site": 403, "cross-site": 403, "odd": 403} {
		assert.Equal(t, want, a.do("POST", "/reset", "", "Sec-Fetch-Site: "+site).status, site)
	}
	a.do("GET", "/info", "", "Origin: null").wantRefused(t, 403, "Origin: must be the program's own")
	assert.Empty(t, a.do("GET", "/info", "", "Origin: http://127.0.0.1:8460").header.Get("Access-Control-Allow-Origin"))
}

func TestToken(t *testing.T) {
	const token = "a-token-of-16-or-more"
	a := newAPI(t, control.Options{Guard: jsonapi.Guard{Token: token}})
	for header, want := range map[string]int{
		"Authorization: Bearer " + token: 200, "Authorization: bearer  " + token: 200,
		"Authorization: Bearer " + token + "x": 401, "Authorization: Bearer " + token[:20]: 401, "Authorization: Basic " + token: 401,
		"Authorization: " + token: 401, "Authorization: Bearer ": 401, "X-Token: " + token: 401, "Authorization: Bearer " + a.server.Key(): 401,
	} {
		assert.Equal(t, want, a.do("GET", "/info", "", header).status, header)
	}
	assert.Regexp(t, `^{"version":"","base_url":"","started_at":"20[^"]+","remote":false,"key":"amk_fake_000001"}\s$`, a.do("GET", "/info", "", "Authorization: Bearer "+token).raw)
	refused := a.do("GET", "/info", "")
	refused.wantRefused(t, 401, "Bearer, a space, and the token")
	assert.Equal(t, "Bearer", refused.header.Get("WWW-Authenticate"))
	assert.NotContains(t, refused.raw, token)
	a.do("GET", "/no/such", "").wantRefused(t, 401, "")
	assert.Equal(t, 200, a.service(a.server.Key(), "GET", "/v1/status", "").status, "the service needs its keys only")
}

// What a form of another site can send.
func TestContentType(t *testing.T) {
	a := newAPI(t, control.Options{})
	for kind, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON;charset=UTF-8": 201,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data": 415, "": 415, "application/json; charset=latin1": 415, `application/json; charset=""`: 415,
		"application/jsonp": 415, "application/json, text/plain": 415,
	} {
		assert.Equal(t, want, a.do("POST", "/keys", "{}", "Content-Type: "+kind).status, kind)
	}
	a.do("POST", "/keys", "{}", "Content-Type: text/plain").wantRefused(t, 415, "Content-Type: must be application/json")
}

func TestHeadersOfAnswers(t *testing.T) {
	for _, path := range []string{"/openapi.yaml", "/none"} {
		h := newAPI(t, control.Options{}).do("GET", path, "").header
		assert.Equal(t, []string{"no-store", "nosniff"}, []string{h.Get("Cache-Control"), h.Get("X-Content-Type-Options")})
	}
}

// What every route refuses, at each of them.
func TestEveryRouteRefuses(t *testing.T) {
	a := newAPI(t, control.Options{Guard: jsonapi.Guard{Token: "a-token-of-16-or-more"}})
	const known = "Authorization: Bearer a-token-of-16-or-more"
	fill := strings.NewReplacer("{key}", "k", "{limit_key}", "key_day", "{agent_id}", "a", "{id}", "i", "{seq}", "1")
	for _, r := range control.Routes() {
		method, path, _ := strings.Cut(fill.Replace(r), " ")
		for _, tt := range []struct {
			want        int
			query, body string
			header      []string
		}{
			{401, "", "", nil},
			{403, "", "", []string{"Origin: http://evil.example"}},
			{403, "", "", []string{"Host: evil.example"}},
			{400, "?odd=1", "", []string{known}},
			{413, "", strings.Repeat(" ", 1<<20+1), []string{known}},
			{415, "", "x", []string{known, "Content-Type: text/plain"}},
		} {
			assert.Equal(t, tt.want, a.send(method, "/_fake/v1"+path+tt.query, tt.body, tt.header...).status, r)
		}
	}
}

func TestNotFound(t *testing.T) {
	a := newAPI(t, control.Options{})
	for _, tt := range [][3]string{
		{"GET", "", "no route has this method and path"},
		{"GET", "/info/", "no route has this method and path"},
		{"GET", "//info", "no route has this method and path"},
		{"PUT", "/keys", "no route has this method and path"},
		{"GET", "/keys/key_000002", "no key has this label, such as key_000001; GET keys lists them"},
		{"PATCH", "/keys/amk_fake_000001", "no key"},
		{"GET", "/agents/x", "no agent"},
		{"PUT", "/agents/x/sms", "no agent"},
		{"DELETE", "/replies/reply_000001", "no reply has this id"},
		{"DELETE", "/faults/fault_000001", "no fault has this id"},
	} {
		body := ""
		if tt[0] == "PUT" || tt[0] == "PATCH" {
			body = "{}"
		}
		a.do(tt[0], tt[1], body).wantRefused(t, 404, tt[2])
	}
	a.do("POST", "/keys/key_000001/limits/key_hour/exhaust", "").wantRefused(t, 400, "Exhaust: unknown limit; the limits are key_minute, ip_minute")
}

func newStreams(t *testing.T, o control.Options) (a api, base string) {
	a = newAPI(t, o)
	server := httptest.NewServer(a.all)
	t.Cleanup(server.Close)
	t.Cleanup(a.server.End) // before Close, which waits for streams
	return a, server.URL
}

// changes are calls that change something, and what they change.
var changes = []struct{ method, path, body, want string }{
	{"POST", "/keys", `{}`, "keys"},
	{"PATCH", "/keys/key_000002", `{"plan":"pro"}`, "keys"},
	{"PATCH", "/keys/key_000002", `{"revoked":true}`, "keys"},
	{"POST", "/agents", `{"key":"key_000001","agent_id":"a"}`, "agents"},
	{"POST", "/agents/a/conversation", `{"exchanges":[{"text":"a","reply_text":"b"}]}`, "agents"},
	{"PUT", "/agents/a/sms", `{"status":"pending"}`, "agents"},
	{"POST", "/faults", `{"fault":{"kind":"hang"},"match":{"key":"key_000002"}}`, "faults"},
	{"DELETE", "/faults/fault_000001", ``, "faults"},
	{"POST", "/replies", `{"replies":[{"text":"a"}]}`, "replies"},
	{"DELETE", "/replies/reply_000001", ``, "replies"},
	{"POST", "/clock", `{"duration":"1s"}`, "clock"},
	{"PUT", "/byok", `{"available":true}`, "byok"},
	{"POST", "/keys/key_000001/limits/key_day/exhaust", ``, "limits"},
	{"DELETE", "/calls", ``, "calls"},
	{"POST", "/reset", ``, "reset"},
}

func TestStream(t *testing.T) {
	a, base := newStreams(t, control.Options{})
	key := a.server.Key()
	a.service(key, "GET", "/v1/status", "")
	s := a.open(base, "/calls/stream")
	a.service(key, "GET", "/v1/byok", "")
	e := s.next()
	assert.Equal(t, []string{"2", "call"}, []string{e.id, e.name}, "from now on")
	var call map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.data), &call))
	assert.Equal(t, a.must(200, "GET", "/calls?after=1", "").list("calls")[0], any(call), "as in the list")
	for _, tt := range changes {
		a.do(tt.method, tt.path, tt.body)
		assert.Equal(t, []string{tt.want}, s.kinds(1), "%s %s", tt.method, tt.path)
	}
	state := a.must(200, "GET", "/state", "").raw
	a.must(204, "PUT", "/state", state)
	assert.Equal(t, []string{"agents", "byok", "clock", "keys", "limits"}, s.kinds(5))
	a.service(key, "POST", "/v1/agents", `{}`)
	assert.Equal(t, []string{"agents"}, s.kinds(1), "what the service changes, shows too")
	assert.Equal(t, "3", s.next().id, "the reset has not been missed calls")
	a.service(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"k"}`)
	assert.Equal(t, []string{"byok"}, s.kinds(1))
}

func TestStreamResumes(t *testing.T) {
	a, base := newStreams(t, control.Options{Fake: []fakeserver.Option{fakeserver.WithCallLimit(3)}})
	status := func(n int) {
		for range n {
			a.service(a.server.Key(), "GET", "/v1/status", "")
		}
	}
	status(3)
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, "/calls/stream?after=0").calls(3))
	s := a.open(base, "/calls/stream", "Last-Event-ID: 2")
	assert.Equal(t, []string{"agents", "byok", "clock", "faults", "keys", "limits", "replies"}, s.kinds(7))
	assert.Equal(t, []string{"3"}, s.calls(1))
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, "/calls/stream", "Last-Event-ID: 400").calls(3), "an id of an earlier run")
	status(3)
	s = a.open(base, "/calls/stream?after=2")
	assert.Equal(t, event{"", "gap", `{"missed":1}`}, s.next())
	assert.Equal(t, []string{"4", "5", "6"}, s.calls(3))
}

// A reader that takes nothing keeps nobody waiting, and learns how many calls it missed.
func TestSlowReader(t *testing.T) {
	opts := []fakeserver.Option{fakeserver.WithCallLimit(10)}
	for _, limit := range []fakeserver.Limit{fakeserver.LimitKeyMinute, fakeserver.LimitIPMinute, fakeserver.LimitKeyDay} {
		opts = append(opts, fakeserver.WithLimit(limit, control.NoLimit))
	}
	a, base := newStreams(t, control.Options{Fake: opts})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	s := a.open(base, "/calls/stream")
	const made = 2000
	text := strings.Repeat("x", 4000)
	for range made { // 16 MB, more than any socket holds
		a.service(a.server.Key(), "POST", "/v1/agents/a/messages", `{"text":"`+text+`"}`)
	}
	missed, received := 0, 0
	for last := ""; last != fmt.Sprint(made); {
		switch e := s.next(); e.name {
		case "call":
			last = e.id
			received++
		case "gap":
			var gap struct{ Missed int }
			require.NoError(t, json.Unmarshal([]byte(e.data), &gap))
			missed += gap.Missed
		case "":
			require.Fail(t, "the stream has ended")
		}
	}
	assert.Equal(t, made, received+missed)
	assert.Positive(t, missed)
}

// event is one server-sent event; a comment has a name of ":".
type event struct{ id, name, data string }

// stream reads events as an EventSource does.
type stream struct {
	t     testing.TB
	lines *bufio.Scanner
	end   context.CancelFunc
}

// open begins a stream and reads its first comment.
func (a api) open(base, path string, header ...string) *stream {
	ctx, cancel := context.WithCancel(a.t.Context())
	a.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/_fake/v1"+path, nil)
	require.NoError(a.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(a.t, 200, resp.StatusCode)
	require.Equal(a.t, "text/event-stream", resp.Header.Get("Content-Type"))
	record(a.t, req, "", reply{status: resp.StatusCode, header: resp.Header})
	s := &stream{a.t, bufio.NewScanner(resp.Body), cancel}
	s.lines.Buffer(nil, 1<<20)
	require.Equal(a.t, ":", s.next().name)
	return s
}

// next is the next event; the zero event is the end.
func (s *stream) next() (e event) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case s.lines.Text() == "":
			return e
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		default:
			e.name = ":"
		}
	}
	return event{}
}

// calls reads n calls and returns their numbers; other events are left out.
func (s *stream) calls(n int) (seqs []string) {
	s.t.Helper()
	for len(seqs) < n {
		e := s.next()
		require.NotZero(s.t, e, "the stream has ended")
		if e.name == "call" {
			seqs = append(seqs, e.id)
		}
	}
	return seqs
}

// kinds reads n "state" events, and returns what each says has changed.
func (s *stream) kinds(n int) (all []string) {
	for range n {
		e := s.next()
		assert.Equal(s.t, "state", e.name)
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(e.data, `{"what":"`), `"}`))
	}
	return all
}

// api makes calls of the control interface, and of the service behind it.
type api struct {
	t      testing.TB
	server *control.Server
	all    http.Handler
}

func newAPI(t testing.TB, o control.Options) api {
	t.Helper()
	s, err := control.New(o)
	require.NoError(t, err)
	t.Cleanup(s.End)
	return api{t, s, handler(s)}
}

// handler is the server as the program puts it together.
func handler(s *control.Server) http.Handler {
	service := s.Service()
	return s.CheckHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_fake/") {
			s.ServeHTTP(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}))
}

type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r reply) reason() string { s, _ := r.body["reason"].(string); return s }
func (r reply) text(name string) string {
	s, _ := r.body[name].(string)
	return s
}

func (r reply) list(name string) []any { l, _ := r.body[name].([]any); return l }

// do calls the control interface; header lines are "Name: value".
func (a api) do(method, path, body string, header ...string) reply {
	a.t.Helper()
	return a.send(method, "/_fake/v1"+path, body, header...)
}

// service calls the service with a key.
func (a api) service(key, method, path, body string) reply {
	a.t.Helper()
	return a.send(method, path, body, "Authorization: Bearer "+key)
}

func (a api) send(method, path, body string, header ...string) reply {
	a.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(a.t.Context())
	req.Host = "127.0.0.1:8460"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	a.all.ServeHTTP(rec, req)
	r := reply{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	_ = json.Unmarshal(rec.Body.Bytes(), &r.body)
	if strings.HasPrefix(path, "/_fake/") {
		record(a.t, req, body, r)
	}
	return r
}

var recording sync.Mutex

// record writes a call to the file that the module tools/openapi names, which
// holds each to openapi.yaml.
func record(t testing.TB, req *http.Request, body string, r reply) {
	name := os.Getenv("AGENTMESSAGING_FAKE_RECORD")
	if name == "" || len(body) > 1<<20 {
		return
	}
	recording.Lock()
	defer recording.Unlock()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(file).Encode(map[string]any{
		"Method": req.Method, "URL": req.URL.RequestURI(), "Header": req.Header, "Body": body,
		"Status": r.status, "Answered": r.header, "Answer": r.raw,
	}))
	require.NoError(t, file.Close())
}

// must calls and wants a status of success.
func (a api) must(status int, method, path, body string) reply {
	a.t.Helper()
	r := a.do(method, path, body)
	require.Equal(a.t, status, r.status, r.raw)
	return r
}

// wantRefused wants an error with a reason that begins as told.
func (r reply) wantRefused(t testing.TB, status int, reason string) {
	t.Helper()
	assert.Equal(t, status, r.status, r.raw)
	assert.Contains(t, r.reason(), reason)
	assert.NotEmpty(t, r.text("error"))
	assert.Equal(t, "application/json", r.header.Get("Content-Type"))
}

func pick(m map[string]any, names ...string) (values []any) {
	for _, n := range names {
		values = append(values, m[n])
	}
	return values
}
