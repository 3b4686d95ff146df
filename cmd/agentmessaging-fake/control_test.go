package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reset restores the state that the flags describe. The tests of package fakeserver check its
// other effects.
func TestReset(t *testing.T) {
	a := newAPI(t, "--plan=pro", "--latency=1ms", "--replies", tempFile(t, `[{"replies":[{"text":"from the file"}]}]`))
	a.play(
		step{"POST /v1/agents", "{}", 200, `{"agent_id":"agent_000001"}`},
		step{"POST /faults", `{"fault":{"kind":"hang"}}`, 201, ""},
		step{"POST /replies", `{"replies":[{"text":"mine"}]}`, 201, ""},
		step{"PATCH /keys/key_000001", `{"plan":"free"}`, 200, ""},
		step{"POST /clock", `{"duration":"1m"}`, 200, ""},
		step{"POST /reset", " ", 204, ""},
		step{"GET /keys", "", 200, `{"keys":[{"plan":"pro"}]}`},
		step{"GET /faults", "", 200, `{"faults":[{"id":"fault_000001","name":"Latency(1ms)","fault":{"kind":"latency","duration":"1ms"},"match":{},"hits":0}]}`},
		step{"GET /replies", "", 200, `{"replies":[{"id":"reply_000001","replies":[{"text":"from the file"}],"match":{},"hits":0}]}`},
		step{"GET /clock", "", 200, `{"advanced":"0s"}`},
		step{"POST /v1/agents", "{}", 200, `{"agent_id":"agent_000001"}`},
	)
}

// A reset ends the calls under way, also those of POST calls, and they change nothing
// afterwards.
func TestResetEndsCalls(t *testing.T) {
	a := newAPI(t)
	a.play(step{"POST /faults", `{"fault":{"kind":"latency","duration":"1h"}}`, 201, ""})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() { a.play(step{"POST /v1/agents", "{}", 200, ""}) })
	})
	waiting.Go(func() {
		a.play(step{"POST /calls", `{"key":"key_000001","method":"POST","path":"/v1/agents","body":"{}"}`, 502, "its answer did not arrive whole"})
	})
	for strings.Count(a.get("/calls"), `"seq":0`) < 2 {
		// each check is an HTTP call, during which the two calls go on
	}
	a.play(step{"POST /reset", "", 204, ""})
	waiting.Wait()
	a.play(
		step{"GET /agents", "", 200, `{"agents":[]}`},
		step{"GET /calls", "", 200, `{"calls":[]}`},
		step{"GET /v1/status", "", 200, ""},
	)
}

// GET calls with a timeout waits for n calls. It answers 504 if they do not come in time, or
// if the program ends.
func TestAwait(t *testing.T) {
	a := newAPI(t)
	var waiting sync.WaitGroup
	waiting.Go(func() { a.play(step{"GET /calls?n=2&timeout=1m&endpoint=GET%20/v1/status", "", 200, seqs(1, 3)}) })
	a.play(step{"GET /v1/status", "", 200, ""}, step{"GET /v1/byok", "", 200, ""}, step{"GET /v1/status", "", 200, ""})
	waiting.Wait()
	a.play(
		step{"GET /calls?timeout=5s", "", 200, seqs(1)}, // one, and those that were made already count
		step{"GET /calls?after=2&n=2&timeout=0s&key=key_000001", "", 504, `{"reason":"1 of 2 calls came in time","calls":[{"seq":3}]}`},
	)
	waiting.Go(func() { a.play(step{"GET /calls?n=9&timeout=10m", "", 504, `{"error":"timeout"}`}) })
	a.stop() // the program ends
	waiting.Wait()
}

// The program refuses a request under a name that an attacker's site resolves to 127.0.0.1, a
// request of another site's page, and any request that a form there can send.
func TestOtherSites(t *testing.T) {
	a, issued := newAPI(t), 1
	for header, want := range map[string]int{
		"Host: 127.0.0.1:8460": 201, "Host: 127.0.0.1": 201, "Host: 127.9.9.9": 201, "Host: localhost:1": 201, "Host: LOCALHOST": 201, "Host: localhost.:80": 201,
		"Host: app.localhost": 201, "Host: [::1]:8460": 201, "Host: [::1]": 201, "Host: [::ffff:127.0.0.1]:1": 201,
		"Host: evil.example": 403, "Host: evil.example:8460": 403, "Host: 127.0.0.1.evil.example": 403, "Host: localhost.evil.example": 403,
		"Host: notlocalhost": 403, "Host: 192.168.0.1:8460": 403, "Host: 0.0.0.0:8460": 403, "Host: ": 403, "Host: [::2]:1": 403, "Host: 2130706433": 403,
		"Origin: http://127.0.0.1:8460": 201, "Origin: http://127.0.0.1:3000": 403, "Origin: http://localhost:8460": 403, "Origin: null": 403,
		"Sec-Fetch-Site: same-origin": 201, "Sec-Fetch-Site: none": 201, "Sec-Fetch-Site: same-site": 403, "Sec-Fetch-Site: cross-site": 403,
		"Content-Type: application/json": 201, "Content-Type: application/json; charset=utf-8": 201, "Content-Type: Application/JSON;charset=UTF-8": 201,
		"Content-Type: text/plain": 415, "Content-Type: application/x-www-form-urlencoded": 415, "Content-Type: multipart/form-data": 415, "Content-Type: ": 415,
		"Content-Type: application/json; charset=latin1": 415, `Content-Type: application/json; charset=""`: 415, "Content-Type: application/jsonp": 415, "Content-Type: application/json, text/plain": 415,
	} {
		answer := a.send("POST", "/_fake/v1/keys", "{}", header)
		assert.Equal(t, want, answer.Code, header)
		issued += map[int]int{201: 1}[want]
		assert.Equal(t, issued, strings.Count(a.get("/keys"), `"label"`), "%s: what is refused has no effect", header)
		assert.Empty(t, answer.Header().Get("Access-Control-Allow-Origin"), header)
		name, _, _ := strings.Cut(header, ":")
		assert.Equal(t, want != 201, strings.Contains(answer.Body.String(), ": must be"), header)
		if name == "Host" { // the service is guarded in the same way
			status := a.send("GET", "/v1/status", "", header, "Authorization: Bearer "+a.startup.APIKey).Code
			assert.Equal(t, want == 201, status == 200, header)
		}
	}
	a.play(step{"GET /calls?status=403", "", 200, `{"calls":[]}`}) // a refused call does not reach the fake
}

// On an address that other machines reach, the control interface accepts only the token that
// was given or made. On loopback it needs no token.
func TestToken(t *testing.T) {
	a := newAPI(t, "--allow-remote", "--addr=0.0.0.0:0")
	token := a.startup.Token
	assert.Len(t, token, 26)
	assert.Contains(t, string(a.startup.text(false)), "export AGENT_MESSAGING_FAKE_TOKEN="+token+"\n")
	assert.Contains(t, a.startup.BaseURL, "http://127.0.0.1:")
	for header, want := range map[string]int{
		"Authorization: Bearer " + token: 200, "Authorization: bearer  " + token: 200,
		"Authorization: Bearer " + token + "x": 401, "Authorization: Bearer " + token[:20]: 401, "Authorization: Basic " + token: 401,
		"Authorization: " + token: 401, "Authorization: Bearer ": 401, "X-Token: " + token: 401, "Authorization: Bearer " + a.startup.APIKey: 401,
	} {
		answered := a.send("GET", "/_fake/v1/info", "", header, "Host: fake.internal")
		assert.Equal(t, want, answered.Code, header)
		assert.Equal(t, want == 200, strings.Contains(answered.Body.String(), `"remote":true`), header)
	}
	refused := a.send("GET", "/_fake/v1/info", "")
	assert.Contains(t, refused.Body.String(), "Bearer, a space, and the token")
	assert.Equal(t, "Bearer", refused.Header().Get("WWW-Authenticate"))
	assert.Equal(t, []string{"no-store", "nosniff"}, []string{refused.Header().Get("Cache-Control"), refused.Header().Get("X-Content-Type-Options")})
	assert.NotContains(t, refused.Body.String(), token)
	a.play(step{"GET /no/such", "", 401, ""}, step{"GET /v1/status", "", 200, ""}) // the service itself asks only for an API key

	given := newAPI(t, "--allow-remote", "--addr=0.0.0.0:0", "--token=a-token-of-16-or-more")
	assert.Empty(t, given.startup.Token, "a token that was given is not repeated")
	assert.Equal(t, 200, given.send("GET", "/_fake/v1/info", "", "Authorization: Bearer a-token-of-16-or-more").Code)
	newAPI(t, "--allow-remote", "--token=a-token-of-16-or-more").play(step{"GET /info", "", 200, `{"remote":false}`})
}

// changes are calls that change something, and what they change.
var changes = []struct{ method, path, body, want string }{
	{"POST", "/keys", `{}`, "keys"},
	{"PATCH", "/keys/key_000002", `{"plan":"pro"}`, "keys"},
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

// A stream brings each call as the list has it, and each change, in their order.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		sent := make(chan string, 1)
		go func() { sent <- a.send("GET", "/_fake/v1/calls/stream", "").Body.String() }()
		synctest.Wait()
		a.play(step{"POST /v1/agents", `{}`, 200, ""})
		listed := a.get("/calls")
		var want []string
		for _, tt := range changes {
			synctest.Wait()
			a.send(tt.method, "/_fake/v1"+tt.path, tt.body)
			want = append(want, tt.want)
		}
		state := a.get("/state")
		synctest.Wait()
		a.play(step{"PUT /state", state, 204, ""})
		want = append(want, "agents", "byok", "clock", "keys", "limits")
		synctest.Wait()
		a.play(step{"GET /v1/status", "", 200, ""})
		synctest.Wait()
		a.stop() // the program ends, and with it the stream

		blocks := strings.Split(<-sent, "\n\n")
		require.Len(t, blocks, len(want)+4, "a comment at the beginning, two calls, and the end")
		assert.Equal(t, ": calls and changes", blocks[0])
		call, _ := strings.CutPrefix(blocks[1], "event: call\ndata: ")
		assert.Contains(t, listed, call)
		for i, what := range want {
			assert.Equal(t, `event: state`+"\n"+`data: {"what":"`+what+`"}`, blocks[2+i])
		}
		assert.Contains(t, blocks[2+len(want)], `"seq":2,`, "the reset has not been missed calls")
	})
}

// A stream shows a call when it arrives and again when its answer has ended, and sends a
// heartbeat every 3 s.
func TestStreamOfOneSlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		a.play(
			step{"POST /faults", `{"fault":{"kind":"latency","duration":"2s"}}`, 201, ""},
			step{"POST /faults", `{"fault":{"kind":"drip_reply","bytes":60,"every":"1s"}}`, 201, ""},
		)
		go a.send("GET", "/v1/status", "", "Authorization: Bearer "+a.startup.APIKey)
		time.AfterFunc(10*time.Second, a.stop)
		sent := a.send("GET", "/_fake/v1/calls/stream", "").Body.String()
		assert.Regexp(t, `(?s)event: under_way\ndata: {"calls":\[{"seq":0,.*event: call\ndata: {"seq":1,.*event: call\ndata: {"seq":1,[^\n]*"ended":`, sent)
		assert.Equal(t, 2, strings.Count(sent, "event: call\n"), "once on arrival, once at its end")
		assert.Contains(t, sent, "event: under_way\ndata: {\"calls\":[]}")
		assert.Equal(t, 3, strings.Count(sent, ": still here\n\n"))
	})
}

// slowWriter is the connection of a reader that takes nothing until it is open.
type slowWriter struct {
	*httptest.ResponseRecorder
	open chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	<-w.open
	return w.ResponseRecorder.Write(b)
}

func (w slowWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// A reader that takes nothing delays no call, and learns later how many calls it missed.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, "--calls=10", "--limits=off")
		w := slowWriter{httptest.NewRecorder(), make(chan struct{})}
		go a.all.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/_fake/v1/calls/stream", nil))
		synctest.Wait()
		for range 200 {
			a.play(step{"GET /v1/status", "", 200, ""})
		}
		close(w.open)
		synctest.Wait()
		a.stop()
		synctest.Wait()
		assert.Contains(t, w.Body.String(), "event: gap\ndata: {\"missed\":190}\n\nevent: call\ndata: {\"seq\":191,")
		assert.Equal(t, 10, strings.Count(w.Body.String(), "event: call\n"))
	})
}
