package fakeserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
)

// The record of a refused body names the wrong member. It hides the whole body or, with
// WithMessageTexts, the strings that look like a key.
func TestRefusedBodies(t *testing.T) {
	long := strings.Repeat("x", 4001)
	for _, row := range []struct{ method, path, body, shown, member string }{
		{"POST", "/v1/agents/a/messages", `{"text":5}`, `{"text":5}`, "text"},
		{"POST", "/v1/agents/a/messages", `{"text": "` + long + `"}`, `{"text": "` + long + `"}`, "text"},
		{"POST", "/v1/agents/a/messages", `1 :text=Hello&api_key=abc`, `[redacted, 25 characters]`, "body"},
		{"POST", "/v1/agents", `{"llm":{"mode":"turbo","api_key":"k","label":"x"}}`, `{"llm":{"mode":"turbo","api_key":"[redacted]","label":"x"}}`, "llm.mode"},
		{"POST", "/v1/agents", `{"llm":{"secret":"k"}}`, `{"llm":{"secret":"[redacted]"}}`, "llm.secret"},
		{"POST", "/v1/agents", `{"customer_ref":["sk-proj-1",1234567890123456789012345]}`, `{"customer_ref":["[redacted]","[redacted]"]}`, "customer_ref"},
		{"POST", "/v1/agents", `{"amk_fake_000001":"amk_fake_000001"}`, `{"[redacted]":"[redacted]"}`, "…"},
		{"POST", "/v1/agent", `{"a":"AbCdEfGhIjKlMnOpQrStUv12","n":null}`, `{"a":"[redacted]","n":null}`, ""},
	} {
		for _, opts := range [][]fakeserver.Option{nil, {fakeserver.WithMessageTexts()}} {
			fake, c := newFake(t, append(opts, fakeserver.WithUnknownRoutes())...)
			c.call(row.method, row.path, row.body)
			shown := row.shown
			if opts == nil {
				shown = fmt.Sprintf("[redacted, %d characters]", len(row.body))
			}
			assert.Equal(t, shown, fake.Calls()[0].Body, row.body)
			assert.Equal(t, row.member, fake.Calls()[0].Member, row.body)
		}
	}
}

// The size of a record is bounded, whatever was sent. ByAgent also finds an identifier that the
// record cuts.
func TestRecordsAreBounded(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithDecision("metadata_cap", 100_000), fakeserver.WithMessageTexts())
	long := strings.Repeat("é", 40_000)
	fake.OnMessage().Reply(long)
	c.send(c.agent(emptyBody), "hello").wantOK(t)
	kept := []string{fake.Calls()[1].ReplyBody, fake.Calls()[1].Sent.Body}
	for _, name := range []string{"a", "aa"} { // so that a character is cut
		body := `{"metadata":{"` + name + `":"` + long + `"}}`
		c.call("POST", "/v1/agents", body)
		call := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, len(body), call.BodyBytes, name)
		kept = append(kept, call.Body)
	}
	for i, body := range kept {
		assert.True(t, utf8.ValidString(body), "body %d: %q", i, body[len(body)-8:])
		assert.InDelta(t, 64<<10-0.5, len(body), 0.5, i)
	}
	id := strings.Repeat("a", 10_000)
	req := c.request("X"+id, "/v1/agents/"+id, noBody, "X-Long: "+id)
	for i := range 500 {
		req.Header.Set(fmt.Sprint("X-", i), "1")
	}
	_ = seen(c.wire, req)
	c.call("GET", "/v1/agents/"+id, noBody, "X-Long: "+id)
	for _, call := range fake.Calls() {
		assert.LessOrEqual(t, max(len(call.Method), len(call.Path), len(call.AgentID)), 256, call.TraceID)
		assert.LessOrEqual(t, len(call.Header), 100, call.TraceID)
		assert.LessOrEqual(t, len(call.String()), 512, call.TraceID)
		assert.LessOrEqual(t, len(call.Header.Get("X-Long")), 4<<10, call.TraceID)
	}
	assert.Equal(t, 1, fake.CallCount(fakeserver.ByAgent(id)))
}

// Each line is a Call. The names of its members must not change.
func TestWriteCalls(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"customer_ref":"<b> & c"}`)
	c.send(agent, "a <secret> text")
	c.call("POST", "/v1/warmup", `{"mode":1}`)
	fake.Exhaust(c.key, "key_minute")
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection()))
	_ = seen(c.wire, c.request("POST", anAgent+"/messages", `{"text":"b"}`))
	want, err := os.ReadFile("testdata/calls.jsonl") // which an earlier fake wrote
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	assert.Equal(t, string(want), out.String())
}

// A test that fails logs the newest 50 calls, with the time since the first of them.
func TestTranscript(t *testing.T) {
	watch, fake, c := newSpied(t, frozen(), fakeserver.WithCallLimit(60))
	for range 69 {
		c.call("GET", "/v1/status", noBody)
	}
	fake.Advance(1500 * time.Millisecond)
	fake.Inject(fakeserver.Answer(503, ""))
	c.call("GET", "/v1/byok", noBody)
	watch.Errorf("the test's own failure")
	watch.finish()
	require.Len(t, watch.logs, 1)
	lines := strings.Split(watch.logs[0], "\n")
	require.Len(t, lines, 51)
	assert.Equal(t, "fakeserver: the last 50 of 70 calls:", lines[0])
	assert.Equal(t, "    +0.000s  trace_000021 GET /v1/status key_000001: 200", lines[1])
	assert.Equal(t, "    +1.500s  trace_000070 GET /v1/byok key_000001: 503: Answer(503) answered in place of the service; the call had no effect", lines[50])
}

func traces(calls []fakeserver.Call) (ids []string) {
	for _, call := range calls {
		ids = append(ids, call.TraceID)
	}
	return ids
}

// AwaitCalls counts earlier calls, and later calls without polling: in a bubble, time moves
// only when every goroutine waits. A call that Calls or Reset drops stays counted.
func TestAwaitCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, fakeserver.WithCallLimit(1))
		get := func() { c.call("GET", "/v1/byok", noBody).wantOK(t) }
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		get()
		calls, err := fake.AwaitCalls(ended, 1)
		require.NoError(t, err, "what has come has come")
		assert.Equal(t, []string{"trace_000001"}, traces(calls))
		calls, err = fake.AwaitCalls(ended, 2, fakeserver.ByKey(c.key), fakeserver.ByEndpoint(fakeserver.EndpointGetBYOK))
		require.ErrorIs(t, err, context.Canceled)
		assert.EqualError(t, err, "fakeserver: AwaitCalls: 1 of 2 calls came that match ByKey(key_000001), ByEndpoint(GET /v1/byok): context canceled")
		assert.Equal(t, []string{"trace_000001"}, traces(calls))
		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			c.call("GET", "/v1/status", noBody)
			get()
			time.Sleep(time.Hour)
			fake.Reset()
			get()
			get()
		}()
		calls, err = fake.AwaitCalls(t.Context(), 3, fakeserver.ByEndpoint(fakeserver.EndpointGetBYOK))
		require.NoError(t, err)
		assert.Equal(t, 2*time.Hour, time.Since(start))
		assert.Equal(t, []string{"trace_000001", "trace_000003", "trace_000001"}, traces(calls), "no more than asked for")
		synctest.Wait() // for the answers to the last calls
	})
}

// A matcher that fails ends the wait, because the call might have been the last one.
func TestAwaitCallsEndsWithItsMatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fail := range []func(){func() { panic("oops") }, runtime.Goexit} {
			watch, fake, c := newSpied(t)
			ended := make(chan error, 1)
			await := func() {
				_, err := fake.AwaitCalls(t.Context(), 1, fakeserver.Where(func(fakeserver.Call) bool { fail(); return true }))
				ended <- err
			}
			go await()
			synctest.Wait() // until it waits
			go c.call("GET", "/v1/status", noBody)
			assert.ErrorContains(t, <-ended, "fakeserver: AwaitCalls: 0 of 1 calls came that match Where(records_test.go:")
			synctest.Wait()
			c.call("GET", "/v1/status", noBody)
			assert.Len(t, watch.errors, 1, "no later call is matched")
			await()
			assert.ErrorContains(t, <-ended, "a matcher failed")
			assert.Len(t, watch.errors, 2, "the second of the calls that have come is not matched")
		}
	})
}

// A call that is answered just as AwaitCalls begins counts once. Here the first call is in
// Calls and is still being shown to earlier watchers, and the second call is answered while
// AwaitCalls reads the first. The result is in the order of the answers.
func TestAwaitCallsCountsACallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t)
		call := func() { c.call("GET", "/v1/status", noBody).wantOK(t) }
		var begun, looked atomic.Bool
		second := fakeserver.Where(func(fakeserver.Call) bool {
			if !looked.Swap(true) {
				call()
			}
			return true
		})
		ended := make(chan []fakeserver.Call)
		fake.OnCall(func(fakeserver.Call) {
			if !begun.Swap(true) {
				go func() { calls, _ := fake.AwaitCalls(t.Context(), 3, second); ended <- calls }()
				synctest.Wait() // until it waits for the third
			}
		})
		call()
		call()
		assert.Equal(t, []string{"trace_000001", "trace_000002", "trace_000003"}, traces(<-ended))
	})
}

// reasons has the Why of a call for each refusal and each fault.
var reasons = []struct {
	why                string
	method, path, body string
	given              func(f fake, c *caller)
}{
	{"400: text has 4001 characters, 4000 are allowed.", "POST", anAgent + "/messages", `{"text":"` + strings.Repeat("é", 4001) + `"}`, nil},
	{"400: mode: must be one of hosted, byok.", "POST", "/v1/warmup", `{"mode":"x"}`, nil},
	{"400: metadata has 4099 characters, 4096 are allowed.", "POST", "/v1/agents", `{"metadata":{"a":"` + strings.Repeat("x", 4091) + `"}}`, nil},
	{"401: the call has no Authorization header with one bearer token.", "GET", "/v1/status", "", func(_ fake, c *caller) { c.key = "" }},
	{"401: key_000001 was revoked 3m0s ago.", "GET", "/v1/status", "", func(f fake, c *caller) { f.RevokeKey(c.key); f.Advance(3*time.Minute + 1) }},
	{"403: key_000002 was not issued through the dashboard, which BYOK requires.", "GET", "/v1/byok", "",
		func(f fake, c *caller) { c.key = f.IssueKey(fakeserver.KeyOptions{NotDashboard: true}) }},
	{"404: the agent belongs to key_000001.", "GET", anAgent, "", func(f fake, c *caller) { c.agent(emptyBody); c.key = f.IssueKey(fakeserver.KeyOptions{}) }},
	{"404: no endpoint has this path.", "GET", "/v1/nothing", "", nil},
	{"409: no BYOK configuration was ever set for key_000001.", "POST", "/v1/warmup", `{"mode":"byok"}`, func(_ fake, c *caller) { c.call("DELETE", "/v1/byok", noBody) }},
	{"409: the BYOK configuration of key_000001 was cleared less than 1s ago.", "POST", "/v1/warmup", `{"mode":"byok"}`, func(_ fake, c *caller) { c.setBYOK(); c.call("DELETE", "/v1/byok", noBody) }},
	{"400: the BYOK configuration of key_000001 was cleared less than 1s ago.", "POST", anAgent + "/messages", `{"text":"x"}`, func(f fake, c *caller) {
		c.setBYOK()
		c.agent(`{"llm":{"mode":"byok"}}`)
		c.call("DELETE", "/v1/byok", noBody).wantOK(c.t)
		f.Advance(time.Second - 1)
	}},
	{"429: key_000001 has spent 60 of 60 in this minute; it opens in 41s.", "GET", anAgent, "", func(f fake, c *caller) {
		c.times(60, "GET", anAgent, noBody)
		f.Advance(19*time.Second + 1) // rounded up
	}},
	{"429: 192.0.2.1 has spent 10 of 10 agent creations in this minute; it opens in 1m0s.", "POST", "/v1/agents", emptyBody, func(_ fake, c *caller) {
		c.times(10, "POST", "/v1/agents", emptyBody)
	}},
	{"429: Exhaust closed key_day for key_000001; it opens in 24h0m0s.", "GET", anAgent, "", func(f fake, c *caller) { f.Exhaust(c.key, "key_day") }},
	{"503: the test has made the BYOK store unavailable.", "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, func(f fake, _ *caller) { f.SetBYOKAvailable(false) }},
	{"LoseReply(ResetConnection()) ended the connection without an answer; the call had its effect.", "GET", anAgent, "", injecting(fakeserver.LoseReply(fakeserver.ResetConnection()))},
	{"LoseReply(Answer(504)) replaced the answer; the call had its effect.", "GET", anAgent, "", injecting(fakeserver.LoseReply(fakeserver.Answer(504, "")))},
	{"LoseReply(CloseEarly()) ended the connection without an answer; the agent has the message.", "POST", anAgent + "/messages", `{"text":"x"}`, injecting(fakeserver.LoseReply(fakeserver.CloseEarly()))},
	{"TruncateReply(5) cut the answer after 5 of 143 bytes; the call had its effect.", "GET", anAgent, "", injecting(fakeserver.TruncateReply(5))},
	{"404: no agent has this identifier. TruncateReply(5) cut the answer after 5 of 103 bytes; the service had refused it with 404.", "GET", "/v1/agents/x", "", injecting(fakeserver.TruncateReply(5))},
	{"", "GET", anAgent, "", injecting(fakeserver.Latency(0))},
}

func injecting(fault fakeserver.Fault) func(fake, *caller) {
	return func(f fake, c *caller) { c.agent(emptyBody); f.Inject(fault) }
}

// Why explains each refusal and each fault in a sentence.
func TestWhy(t *testing.T) {
	for _, row := range reasons {
		f, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes())
		if row.given != nil {
			row.given(f, &c)
		}
		_ = seen(c.wire, c.request(row.method, row.path, row.body))
		assert.Equal(t, row.why, f.Calls()[f.CallCount()-1].Why, "%s %s %s", row.method, row.path, row.body)
	}
}

// plugged has the kinds of callbacks that a test can give the fake, by the name that reports
// use. The value installs do as such a callback.
var plugged = map[string]func(f fake, do func()){
	`the ReplyFunc of OnMessage\(ByText\(1 characters\)\) at records_test.go:\d+`: func(f fake, do func()) {
		f.OnMessage(fakeserver.ByText("x")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { do(); return fakeserver.Reply{} })
	},
	`a matcher of OnMessage\(Where\(records_test.go:\d+\)\) at records_test.go:\d+`: func(f fake, do func()) {
		f.Inject(fakeserver.Latency(0), fakeserver.Where(func(fakeserver.Call) bool { panic("it runs after a failure") }))
		f.OnMessage(fakeserver.Where(func(fakeserver.Call) bool { do(); return false }))
	},
	`a matcher of Inject\(Latency\(0s\), Where\(records_test.go:\d+\)\) at records_test.go:\d+`: func(f fake, do func()) {
		f.Inject(fakeserver.Latency(0), fakeserver.Where(func(fakeserver.Call) bool { do(); return false }))
	},
	`the function of OnCall\(\) at records_test.go:\d+`: func(f fake, do func()) { f.OnCall(func(fakeserver.Call) { do() }) },
	`the function of Inject\(Change\(x\)\) at records_test.go:\d+`: func(f fake, do func()) {
		f.Inject(fakeserver.Change("y", func() { panic("it runs after a failure") }))
		f.Inject(fakeserver.Change("x", do))
	},
}

// A callback that panics, or ends its goroutine as require does, fails the test and the call.
// Only the callback of OnCall leaves the call alone, since it runs after the answer was
// decided. The call is recorded in both cases, and shown to the other watchers.
func TestFunctionsThatFail(t *testing.T) {
	for _, row := range []struct {
		way, report string
		fail        func()
	}{
		{"direct", " panicked: oops", func() { panic("oops") }},
		{"wire", " ended its goroutine, as require and FailNow do; use assert there", func() { runtime.Goexit() }},
	} {
		for part, plug := range plugged {
			watch, fake, c := newSpied(t)
			agent := c.agent(emptyBody)
			shown := make(chan fakeserver.Call, 2)
			see := func(call fakeserver.Call) { shown <- call }
			fake.OnCall(see)
			plug(fake, row.fail)
			fake.OnCall(see)
			got := seen(transports(t, fake)[row.way], c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`))
			require.Len(t, watch.errors, 1, part)
			assert.Regexp(t, "^fakeserver: "+part+row.report+`\n(.*\n)+\t.*records_test.go:\d+ `, watch.errors[0], part)
			require.Len(t, shown, 2, part)
			call, decided := <-shown, strings.Contains(part, "OnCall")
			assert.Equal(t, "trace_000002", call.TraceID, part)
			assert.Equal(t, decided, got != "EOF", "%s%s: %s", part, row.report, got)
			assert.Equal(t, []bool{decided, !decided}, []bool{call.Status == 200, call.Sent.Broke == "closed"}, part)
			assert.Equal(t, decided, len(fake.Conversation(agent)) == 1, part)
			last := fake.Calls()[1]
			assert.Equal(t, got == "EOF", last.Sent.Broke == "closed", "%s: what is recorded is what the client got", part)
			assert.NotZero(t, last.Sent.Ended, part)
			assert.Equal(t, decided, last.Why == "", part)
			assert.Regexp(t, "^("+part+" failed, so there was no answer.)?$", last.Why, part)
			assert.Empty(t, fake.UnderWay(), part)
		}
	}
}

// The function of WithClock may call the fake. It may go back, or fail in the middle of a call.
func TestClockOfATest(t *testing.T) {
	var f fake
	now, works := time.Unix(year2040, 0), math.MaxInt // how many more readings of the clock work
	panics := func() { panic("no time") }
	fails := panics
	watch, f, c := newSpied(t, fakeserver.WithClock(func() time.Time {
		if f != nil {
			_ = f.CallCount()
		}
		if works--; works < 0 {
			fails()
		}
		now = now.Add(-time.Second)
		return now
	}))
	c.agent(emptyBody)
	assert.Zero(t, f.Calls()[0].Took, "no time is negative")
	assert.NoError(t, f.Sleep(t.Context(), time.Hour))
	f.Reset()
	drip, refuse := fakeserver.DripReply(200, 0), fakeserver.RefuseConnection()
	for i, fault := range []fakeserver.Fault{drip, drip, refuse} {
		fails = []func(){runtime.Goexit, panics, panics}[i]
		f.Inject(fault)
		for n := range 4 {
			works = n
			var answered bool
			var caller sync.WaitGroup
			caller.Go(func() { answered = strings.HasPrefix(seen(c.wire, c.request("GET", "/v1/status", noBody)), "200") })
			caller.Wait()
			assert.Equal(t, i == 1 && n == 3, answered) // the fourth reading is after the answer
			works = math.MaxInt
		}
	}
	require.Len(t, watch.errors, 7)
	assert.Contains(t, watch.errors[0], "fakeserver: the fake, or the function of WithClock, panicked: no time\n")
	assert.Empty(t, f.UnderWay())
}

// Each secret has characters that the encodings below change.
const (
	canaryKey     = "cnrY-key/+=&<é>\"8"
	canaryText    = "cnrY-text/+=&<é>\"8"
	canaryPrompt  = "cnrY-prompt/+=&<é>\"8"
	canaryReply   = "cnrY-reply/+=&<é>\"8"
	canaryUnknown = "amk_cnrY-stranger" // no key of the fake
)

// forms returns a secret, and the secret in each encoding. It also has each key without the
// first letter, since a call may escape only that letter.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	return []string{
		secret, strings.Trim(string(quoted), `"`), strings.Trim(strconv.Quote(secret), `"`), strings.Replace(secret, "_", "%5f", 1)[1:], secret[1:],
		url.QueryEscape(secret), url.PathEscape(secret), fmt.Sprintf("%+q", secret), fmt.Sprintf("%x", secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}

// canaryCalls are every endpoint, with secrets where they belong and where they do not:
// <provider> is a provider key, and <key> the API key of the call.
var canaryCalls = []string{
	`GET /v1/status `,
	`POST /v1/warmup {"mode":"byok"}`,
	`PUT /v1/byok {"provider":"openai","api_key":<provider>,"label":<provider>}`,
	`PUT /v1/byok {"provider":"no","api_key":<provider>}`,
	`GET /v1/byok {"x":<text>}`,
	`POST /v1/agents {"system_prompt":<prompt>,"llm":{"mode":"byok","provider":"openai","api_key":<provider>},"metadata":{"k":<provider>}}`,
	`POST /v1/agents {"customer_ref":"<key>","llm":{"provider":"openai","api_key":<provider>},<provider>:1}`,
	`GET /v1/agents/agent_000001 `,
	`GET /v1/agents/<key> `,
	`POST /v1/agents/agent_000001/messages {"text":<text>}`,
	`POST /v1/agents/agent_000001/channels/sms {"mode":"sandbox"}`,
	`DELETE /v1/byok `,
}

// oddCalls have secrets at places that are easily overlooked; <half> is the API key with
// an escape inside.
var oddCalls = []string{
	// The API key, escaped in a value, in a name and in a path.
	`POST /v1/agents {"customer_ref":"a \u0061<key without its first letter> b"}`,
	`POST /v1/agents {"metadata":{"\u0061<key without its first letter>":1}}`,
	`GET /v1/agents/%61<key without its first letter> `,
	`GET /v1/%2F/<half>%0A `,
	// A provider key before its member, in another object, as a name, in another case,
	// alone, and at the end of a name that is cut.
	`PUT /v1/byok {"label":"\u0063nrY-key/+=&<é>\"8","provider":"openai","api_key":<provider>}`,
	`POST /v1/agents {"metadata":{"provider_key":<provider>},"llm":{"provider":"openai","api_key":<provider>}}`,
	`POST /v1/agents {"metadata":{"a":[{"API_KEY":[{"api_key":1,"x":<provider>}]}],"b":<provider>}}`,
	`PUT /v1/byok {<provider>:1,"provider":"openai","api_key":<provider>}`,
	`PUT /v1/byok {"` + strings.Repeat("x", 54) + `cnrY-only is cut":1,"provider":"openai","api_key":"cnrY-only"}`,
	`POST /v1/agents {"customer_ref":"cnrY-1234-cnrY-only","metadata":{"api_key":["cnrY-1234","cnrY-1234-cnrY-only"]}}`,
	`PUT /v1/byok {"provider":"openai","api\u005fkey":<provider>}`,
	`POST /v1/agents {<provider>:1}`,
	// A password in an address, which later answers repeat.
	`PUT /v1/byok {"provider":"openai","api_key":<provider>,"base_url":"https:\/\/user:cnrY-pw@x/v1"}`,
	`POST /v1/agents {"llm":{"mode":"byok","base_url":"user:cnrY-pw@x/v1"}}`,
}

// sendCanaries makes the calls and returns the refusals.
func (c caller) sendCanaries(calls []string) (refusals string) {
	quote := func(text string) string { quoted, _ := json.Marshal(text); return string(quoted) }
	fill := strings.NewReplacer("<provider>", quote(canaryKey), "<text>", quote(canaryText), "<prompt>", quote(canaryPrompt), "<key>", c.key,
		"<key without its first letter>", c.key[1:], "<half>", strings.Replace(c.key, "_", "%5f", 1))
	for _, line := range calls {
		call := strings.SplitN(fill.Replace(line), " ", 3)
		note := "X-Note: " + c.key
		if strings.Contains(strings.ToLower(line), `"api_key":<`) { // otherwise the fake cannot know that it is a key
			note += canaryKey
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		got := seen(c.wire, c.request(call[0], call[1], call[2], note, "X-"+c.key+": 1", "X-Api-Key: "+canaryKey, "Cookie: "+canaryKey, "X-Token: "+canaryKey, "Secret: "+canaryKey).WithContext(ctx))
		cancel()
		if strings.HasPrefix(got, "4") || strings.HasPrefix(got, "5") {
			refusals += got
		}
	}
	return refusals
}

// After calls with secrets through every endpoint and every fault, nothing that the fake shows
// has a secret. It shows texts only if the test asks for them.
func TestCanaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { showCanaries(t, []string{canaryText, canaryPrompt, canaryReply}) })
	synctest.Test(t, func(t *testing.T) {
		shown := showCanaries(t, nil, fakeserver.WithMessageTexts())
		for _, text := range []string{"cnrY-text", "cnrY-prompt", "cnrY-reply"} {
			assert.True(t, strings.Contains(shown, text), "%s was asked for", text)
		}
	})
}

// actOnCanaries sends secrets through every endpoint and every fault. It returns everything
// that the fake shows afterwards.
func actOnCanaries(watch *spy, fake fake, c caller, issued string) (shown []any) {
	script := fake.OnMessage(fakeserver.ByText(canaryText)).Reply(canaryReply)
	never := fake.OnMessage(fakeserver.ByKey(issued), fakeserver.ByAgent(canaryText), fakeserver.ByTextContaining("never"+canaryText)).Required()
	shown = []any{fake, script, *script, never, *never, fakeserver.ByKey(issued), fakeserver.ByAgent(issued), fakeserver.ByText(canaryText), fakeserver.ByTextContaining(canaryText)}
	for _, key := range []string{c.key, issued, canaryUnknown} {
		shown = append(shown, c.with(key).sendCanaries(canaryCalls), c.with(key).sendCanaries(oddCalls))
	}
	stored, err := json.Marshal(fake.Agents()[0].LLM)
	require.NoError(c.t, err)
	shown = append(shown, string(stored))
	for _, row := range append([]faultRow{
		{fault: fakeserver.Answer(500, canaryText)}, {fault: fakeserver.RateLimited(canaryText)},
		{fault: fakeserver.LoseReply(fakeserver.RawAnswer(502, canaryText, canaryText))}, {fault: fakeserver.RawAnswer(200, "", `"\u0063`+canaryKey[1:])},
	}, faults...) {
		in := fake.Inject(row.fault, fakeserver.ByKey(c.key))
		shown = append(shown, row.fault, in, *in)
		c.sendCanaries(canaryCalls)
		in.Remove()
	}
	watch.Errorf("fail, so that the transcript is logged")
	watch.finish()
	require.NotEmpty(c.t, watch.logs, "the transcript")
	return append(shown, fake.Limits(issued), fake.Calls(), fake.Calls()[0], watch.logs, watch.errors)
}

// showCanaries returns everything that the fake shows, and fails the test if it holds a secret
// or a hidden text.
func showCanaries(t *testing.T, hidden []string, opts ...fakeserver.Option) string {
	watch, fake, c := newSpied(t, append(append(opts, unlimited()...), fakeserver.WithUnknownRoutes(), fakeserver.WithCallLimit(math.MaxInt))...)
	issued := fake.IssueKey(fakeserver.KeyOptions{})
	shown := actOnCanaries(watch, fake, c, issued)
	var out bytes.Buffer
	require.NoError(t, fake.WriteCalls(&out))
	require.Contains(t, out.String(), "LoseReply", "the faults acted")
	require.Contains(t, out.String(), `"path":"/v1/agents/%5Bredacted%5D"`, "where a key was escaped")
	require.Contains(t, out.String(), `\"base_url\":\"https://[redacted]@x/v1\"`, "an address shows, without its password")
	for _, v := range shown {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	require.Contains(t, out.String(), "fakeserver.Server\n", "a fake shows its name")
	everything := strings.ToLower(out.String())
	for _, secret := range append(hidden, c.key, issued, canaryUnknown, canaryKey, "cnrY-on", "cnrY-1234", "cnrY-pw") {
		for _, form := range forms(secret) {
			assert.False(t, strings.Contains(everything, strings.ToLower(form)), "%s shows", form)
		}
	}
	return out.String()
}

// A body may be sent in part, and may be cut inside an escape or a secret. The part that was
// sent then shows no piece of either.
func TestPartsOfBodies(t *testing.T) {
	const secret = `sk-"12345`
	for _, body := range []string{
		`{"reply_text":"a \"b\" \u00e9\ud83d\ude00","trace_id":"x ` + `sk-\"12345` + `"}`,
		`{"error":"bad\ngate`, `{"api_key":["sk-\"12345",5],"a":"b"}`, `"\`, `["\u12 sk-\"12345`, "<h1>sk-\"12345</h1>", "}]\x00\xff\"",
	} {
		for n := range len(body) + 1 {
			for _, b := range []mask.Body{{}, {Texts: true}, {Unchecked: true}, {Texts: true, Unchecked: true}} {
				b.Secrets, b.Unchecked = mask.Secrets{secret}, b.Unchecked || !json.Valid([]byte(body))
				shown := b.Show([]byte(body), n)
				assert.NotContains(t, shown, "1234", "%q of %q", body[:n], body)
				assert.NotContains(t, shown, `sk-\"`, "%q of %q", body[:n], body)
			}
		}
	}
	shown := mask.Body{Secrets: mask.Secrets{secret}, Texts: true}
	assert.Equal(t, `{"a":"[redacted]"`, shown.Show([]byte(`{"a":"sk-\"12345","b":1}`), 10), "a piece that is hidden is hidden whole")
	assert.Equal(t, `{"a":"x`, shown.Show([]byte(`{"a":"xyz","b":"sk-\"12345"}`), 7))

	// People's words are hidden at any depth, but not inside metadata, whatever its members are
	// named.
	const words, hidden = `"text":["hi",{"a":"by"}]`, `"text":["[redacted, 2 characters]",{"a":"[redacted, 2 characters]"}]`
	nested := `{"metadata":{` + words + `},"messages":[{` + words + `,"metadata":{` + words + `},"role":"human"}],"role":"agent"}`
	masked := `{"metadata":{` + words + `},"messages":[{` + hidden + `,"metadata":{` + hidden + `},"role":"human"}],"role":"agent"}`
	assert.Equal(t, masked, new(mask.Body).Show([]byte(nested), len(nested)))

	assert.Equal(t, `{"api_key":""}`, shown.Show([]byte(`{"api_key":""}`), 14), "an empty key is seen to be empty")

	// A body that is not JSON is shown if texts are shown, unless it may have a secret.
	shown = mask.Body{Secrets: mask.Secrets{"user:canary"}, Texts: true, Unchecked: true}
	assert.Equal(t, "[redacted, 19 characters]", shown.Show([]byte("of user:canary, and"), 19))
	assert.Equal(t, "[redacted, 11 characters]", shown.Show([]byte("user%3acanary"), 11), "it may be escaped")
	assert.Equal(t, "[redacted, 28 characters]", shown.Show([]byte(`{"API_KEY":"hunter2-prod",,}`), 28), "a key of any form")
	assert.Equal(t, "<h1>Bad", shown.Show([]byte("<h1>Bad gateway</h1>"), 7))
	assert.Equal(t, "[redacted, 7 characters]", (&mask.Body{Unchecked: true}).Show([]byte("<h1>Bad gateway</h1>"), 7))
	many := mask.Body{Secrets: strings.Fields(strings.Repeat("long-key ", 101))} // too many to search for
	assert.Equal(t, "[redacted, 7 characters] map[A:[[redacted]]]", fmt.Sprint(many.Show([]byte(`{"a":1}`), 7), " ", many.Secrets.CleanHeader(map[string][]string{"A": {"b"}})))
}
