package fakeserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const (
	whole   = `200 [application/json] {"reply_text":"ok","trace_id":"TRACE"}`
	caught  = `,"reason":"injected by the test"}`
	limited = `{"error":"rate_limited","trace_id":"TRACE","limit_key":"key_`
	minute  = limited + `minute"}`
	date    = "Wed, 21 Oct 2099 07:28:00 GMT"
)

type faultRow struct {
	fault fakeserver.Fault
	name  string
	sees  string // over HTTP/1.1
	line  string // what the record says: what was sent, and what the service had decided
	runs  int    // how often the call reaches the service: 1, or 0
}

// faults has every fault, with what the client sees of a message.
var faults = []faultRow{
	{fakeserver.Answer(503, ""), "Answer(503)", `503 [application/json] {"error":"service_unavailable","trace_id":"TRACE"` + caught, "503", 0},
	{fakeserver.Answer(405, ""), "Answer(405)", `405 [application/json] {"error":"method_not_allowed","trace_id":"TRACE"` + caught, "405", 0},
	{fakeserver.Answer(200, ""), "Answer(200)", `200 [application/json] `, "200", 0},
	{fakeserver.Answer(204, "x"), "Answer(204, 1 characters)", `204 [] `, "204", 0},
	{fakeserver.Answer(304, ""), "Answer(304)", `304 [] `, "304", 0},
	{fakeserver.RawAnswer(502, " text/html\t", "<html>"), "RawAnswer(502, 6 characters)", `502 [text/html] <html>`, "502", 0},
	{fakeserver.RawAnswer(200, "", "<html>"), "RawAnswer(200, 6 characters)", `200 [] <html>`, "200", 0},
	{fakeserver.RateLimited(date), "RateLimited(29 characters)", `429 [application/json ` + date + `] ` + limited + `day"}`, "429", 0},
	{fakeserver.RateLimited("60"), `RateLimited("60")`, `429 [application/json 60] ` + minute, "429", 0},
	{fakeserver.RateLimited("99999999999"), `RateLimited("99999999999")`, `429 [application/json 99999999999] ` + limited + `day"}`, "429", 0},
	{fakeserver.RateLimited(" soon,\tperhaps "), "RateLimited(15 characters)", "429 [application/json soon,\tperhaps] " + minute, "429", 0},
	{fakeserver.Answer(429, ""), "Answer(429)", `429 [application/json 1] ` + minute, "429", 0},
	{fakeserver.Hang(), "Hang()", "Canceled", "no answer, hung", 0},
	{fakeserver.CloseEarly(), "CloseEarly()", "EOF", "no answer, closed", 0},
	{fakeserver.ResetConnection(), "ResetConnection()", "ECONNRESET", "no answer, reset", 0},
	{fakeserver.Latency(time.Nanosecond), "Latency(1ns)", whole, "200", 1},
	{fakeserver.LoseReply(fakeserver.Answer(504, "")), "LoseReply(Answer(504))", `504 [application/json] {"error":"gateway_timeout","trace_id":"TRACE"` + caught, "504, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.Hang()), "LoseReply(Hang())", "Canceled", "no answer, hung, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.CloseEarly()), "LoseReply(CloseEarly())", "EOF", "no answer, closed, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.ResetConnection()), "LoseReply(ResetConnection())", "ECONNRESET", "no answer, reset, decided 200", 1},
	{fakeserver.TruncateReply(5), "TruncateReply(5)", `200 45 {"rep ErrUnexpectedEOF`, "200, closed after 5 bytes", 1},
	{fakeserver.TruncateReply(45), "TruncateReply(45)", whole, "200", 1},
	{fakeserver.ResetReply(5), "ResetReply(5)", `200 45 {"rep ECONNRESET`, "200, reset after 5 bytes", 1},
	{fakeserver.DripReply(1, 0), "DripReply(1, 0s)", whole, "200", 1},
	{fakeserver.DripReply(44, time.Nanosecond), "DripReply(44, 1ns)", whole, "200", 1},
	{fakeserver.GoAway(), "GoAway()", whole, "200", 1},
}

// Each fault looks the same over every transport, and the call has its effect or not as the
// row says.
func TestFaults(t *testing.T) {
	fake, c := newFake(t)
	all := ways(t, fake)
	for _, row := range faults {
		t.Run(row.name, func(t *testing.T) {
			assert.Equal(t, row.name, row.fault.String())
			for way, wire := range all {
				fake.Reset()
				fake.OnMessage().Reply("ok")
				agent := c.agent(emptyBody)
				c := caller{t, wire, c.key}
				injection := fake.Inject(row.fault, fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Required()
				ctx, cancel := context.WithCancel(t.Context())
				if strings.Contains(row.name, "Hang") {
					fake.OnCall(func(fakeserver.Call) { cancel() }, fakeserver.ByAgent(agent))
				}
				got := seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx))
				cancel()
				assert.Equal(t, row.seen(way), got, way)
				assert.Equal(t, 1, injection.Hits(), way)
				call := fake.Calls(fakeserver.ByAgent(agent))[0]
				assert.Regexp(t, "^https://", call.URL, way)
				assert.Regexp(t, "^trace_000002 POST /v1/agents/agent_000001/messages key_000001: "+row.line+`( \[|[a-z_ ()]*: )`+regexp.QuoteMeta(row.name), call.String(), way)
				assert.Len(t, fake.Conversation(agent), row.runs, way)
				assert.Equal(t, 200*row.runs, call.Status, way)
			}
		})
	}
}

// seen returns the outcome that the client should see over one transport: HTTP/2
// ends the stream of a call and not its connection, and shows a body that ends too
// early as HTTP/1.1 does.
func (row *faultRow) seen(way string) string {
	sees := strings.ReplaceAll(row.sees, "TRACE", "trace_000002")
	if way == "HTTP/2" {
		sees = regexp.MustCompile(`(^|\W)(EOF|ECONNRESET)$`).ReplaceAllString(sees, "${1}STREAM")
	}
	return sees
}

// net/http does not notice that a client has left before the body was read to its end. A hang
// must end even if the fake does not read the whole body.
func TestHangWithAnEndlessBody(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.Hang())
	for name, wire := range ways(t, fake) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := fake.OnCall(func(fakeserver.Call) { cancel() })
		assert.Equal(t, "Canceled", seen(wire, c.request("POST", "/v1/warmup", strings.Repeat(" ", 3<<20)).WithContext(ctx)), name)
		stop()
	}
}

// A call whose answer nobody reads is not under way forever, whatever time it is.
func TestNothingStaysUnderWay(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithClock(func() time.Time { return time.Time{} }))
	fake.Inject(fakeserver.DripReply(10, 0))
	_, err := c.wire.RoundTrip(c.request("HEAD", anAgent, noBody)) //nolint:bodyclose // there is none
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	fake.OnCall(func(fakeserver.Call) { cancel() })
	assert.Equal(t, "Canceled", seen(c.wire, c.request("GET", anAgent, noBody).WithContext(ctx)))
	assert.Empty(t, fake.UnderWay())
}

// If a connection is refused, nothing of the call is sent, not even over an open connection,
// and the record says so. Only calls that match are counted.
func TestRefusedConnection(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	for way, wire := range transports(t, fake, fakeserver.FromIP("203.0.113.7")) {
		c.wire = wire
		refusal := fake.Inject(fakeserver.RefuseConnection(), fakeserver.ByText("hello"), fakeserver.ByKey(c.key),
			fakeserver.Where(func(call fakeserver.Call) bool { return call.Key == "key_000001" })).From(2)
		c.send(agent, "hello").wantOK(t) // the wire has a connection now
		c.send(agent, "other").wantOK(t)
		looked, hooks := 0, 0
		trace := &httptrace.ClientTrace{GetConn: func(string) { looked++ }, GotConn: func(httptrace.GotConnInfo) { hooks++ }, WroteHeaders: func() { hooks++ }}
		req := c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"hello"}`)
		_, err := c.wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace))) //nolint:bodyclose // there is none
		assert.EqualError(t, err, "dial tcp fake:443: connect: connection refused", "not the name that tells what is missing")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED, way)
		assert.Equal(t, []int{1, 0, 1}, []int{looked, hooks, refusal.Hits()}, way)
		refusal.Remove()
		last := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, []any{0, fakeserver.Sent{Ended: last.Time, Broke: "refused"}, "203.0.113.7"}, []any{last.Status, last.Sent, last.Address}, way)
		assert.Contains(t, last.String(), "key_000001: no answer, refused: RefuseConnection() refused the connection: nothing was sent", way)
	}
	assert.Len(t, fake.Conversation(agent), 2*2, "no refused call had an effect")
}

// inBubbles runs f in a bubble for each of the in-memory transports.
func inBubbles(t *testing.T, f func(t *testing.T, fake *fakeserver.Server, c caller), opts ...fakeserver.Option) {
	for _, name := range []string{"wire", "direct"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakeserver.New(t, opts...)
				f(t, fake, caller{t, transports(t, fake)[name], fake.Key()})
			})
		})
	}
}

// Latencies add up, and do not exclude another fault: an injected answer comes after them, and
// a drip takes additional time.
func TestLatenciesAddUp(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.Answer(500, "")).Nth(3)
		short := fake.Inject(fakeserver.Latency(2*time.Second), fakeserver.ByEndpoint(fakeserver.EndpointStatus))
		long := fake.Inject(fakeserver.Latency(time.Minute)).Nth(2)
		fake.Inject(fakeserver.DripReply(10, 3*time.Second)).Nth(4)
		begun := time.Now()
		for i, want := range []time.Duration{2 * time.Second, 62 * time.Second, 2 * time.Second, 2 * time.Second} {
			before := time.Now()
			r := c.call("GET", "/v1/status", noBody)
			if i == 3 {
				want += time.Duration((len(r.raw)-1)/10) * 3 * time.Second
			}
			assert.Equal(t, want, time.Since(before), "call %d", i+1)
		}
		assert.Equal(t, []int{4, 1}, []int{short.Hits(), long.Hits()})
		calls := fake.Calls()
		assert.Equal(t, "Latency(1m0s), Latency(2s)", calls[1].Fault)
		assert.Equal(t, "Latency(2s), Answer(500)", calls[2].Fault)
		assert.Zero(t, calls[0].Time.Sub(begun), "Call.Time is when the call arrived at the fake")

		fake.Exhaust(c.key, fakeserver.LimitKeyMinute)
		fake.Inject(fakeserver.Latency(time.Minute))
		begun = time.Now()
		agent, _ := fake.Agent(c.agent(emptyBody))
		assert.Equal(t, time.Minute, agent.CreatedAt.Sub(begun), "a call is judged by the time when it reaches the service")
	})
}

// A body may be closed while it is read: the read ends.
func TestCloseEndsARead(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		fake.Inject(fakeserver.DripReply(10, time.Hour))
		resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody))
		require.NoError(t, err)
		ended := make(chan error)
		go func() { _, err := io.ReadAll(resp.Body); ended <- err }()
		synctest.Wait()
		assert.NoError(t, resp.Body.Close())
		assert.Error(t, <-ended)
		_, err = resp.Body.Read(make([]byte, 1))
		assert.EqualError(t, err, "http: read on closed response body")
	})
}

// A record has only the part of an answer that was sent, and when and how sending ended. A call
// whose client leaves before the call arrives has no effect.
func TestSentIsWhatLeft(t *testing.T) {
	for _, row := range []struct {
		fault       fakeserver.Fault
		bytes, runs int
		broke, line string
		why         string
	}{
		{fakeserver.DripReply(10, time.Hour), 10, 1, "left", "200, left after 10 bytes", "sent 10 bytes at a time"},
		{fakeserver.Hang(), 0, 0, "hung", "no answer, hung", "never answered"},
		{fakeserver.Latency(time.Hour), 0, 0, "left", "no answer, left", "The client left after 2s, before the call reached the service: it had no effect."},
	} {
		inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
			agent, begun := c.agent(emptyBody), fake.Now()
			fake.Inject(row.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			req := c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)
			ended := make(chan string)
			go func() { ended <- seen(c.wire, req) }()
			time.Sleep(time.Second)
			under := fake.UnderWay()
			require.Len(t, under, 1, row.fault)
			sent := under[0].Sent
			assert.Equal(t, begun, under[0].Time, row.fault)
			assert.Zero(t, sent.Ended, "%v: the answer is under way", row.fault)
			assert.Equal(t, row.bytes, sent.Bytes, row.fault)
			assert.NotEqual(t, "left", sent.Broke, row.fault)
			assert.Contains(t, <-ended, "DeadlineExceeded", row.fault)
			synctest.Wait()
			assert.Empty(t, fake.UnderWay(), row.fault)
			call := fake.Calls(fakeserver.ByAgent(agent))[0]
			assert.Equal(t, row.bytes, call.Sent.Bytes, row.fault)
			assert.Equal(t, row.broke, call.Sent.Broke, row.fault)
			assert.Equal(t, begun.Add(2*time.Second), call.Sent.Ended, row.fault)
			assert.Contains(t, call.String(), row.line, row.fault)
			assert.Contains(t, call.Why, row.why, row.fault)
			assert.Len(t, call.Sent.Body, row.bytes, row.fault)
			assert.Len(t, fake.Conversation(agent), row.runs, row.fault)
		}, fakeserver.WithMessageTexts())
	}
}

// The first message of a key waits, unless the key was warmed up. It has its effect even if its
// client leaves meanwhile.
func TestColdStart(t *testing.T) {
	inBubbles(t, func(t *testing.T, fake *fakeserver.Server, c caller) {
		took := func(c caller, agent string) time.Duration {
			before := time.Now()
			c.send(agent, "x").wantOK(t)
			return time.Since(before)
		}
		other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		agent := other.agent(emptyBody)
		assert.Equal(t, time.Hour, took(other, agent))
		assert.Zero(t, took(other, agent))
		warm := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		warm.call("POST", "/v1/warmup", noBody).wantOK(t)
		assert.Zero(t, took(warm, warm.agent(emptyBody)))

		agent = c.agent(emptyBody)
		client := &http.Client{Transport: c.wire, Timeout: time.Minute}
		_, err := client.Do(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`)) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "deadline exceeded")
		synctest.Wait()
		assert.Len(t, fake.Conversation(agent), 1)
	}, fakeserver.WithColdStart(time.Hour))
}

// The key of a row says which fault acted on each of six calls: A, B, or a dot for none.
func TestTurns(t *testing.T) {
	a, b := fakeserver.Answer(500, ""), fakeserver.Answer(502, "")
	for want, inject := range map[string]func(*fakeserver.Server){
		"..A...": func(f *fakeserver.Server) { f.Inject(a).Nth(3).Times(2) },
		"..AA..": func(f *fakeserver.Server) { f.Inject(a).From(3).Times(2) },
		"......": func(f *fakeserver.Server) {
			f.Inject(a).Chance(0, 1)
			in := f.Inject(a) // it matches, and is removed before it acts
			f.Inject(b, fakeserver.Where(func(fakeserver.Call) bool { in.Remove(); return false }))
		},
		"AAAA..": func(f *fakeserver.Server) { f.Inject(a).Chance(1, 1).Times(4) },
		".AA.AA": func(f *fakeserver.Server) { f.Inject(a).Chance(0.5, 10) }, // the decisions of a seed must never change
		// The n-th decision of a seed belongs to the n-th call, also where another
		// fault acts.
		"..A.BA": func(f *fakeserver.Server) { f.Inject(a).Chance(0.5, 10).From(3); f.Inject(b).Nth(5) },
		"BAAAAA": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b).Times(1) },
		"A.....": func(f *fakeserver.Server) {
			in := f.Inject(a)
			f.OnCall(func(fakeserver.Call) { in.Times(1).Times(9) })
		},
		// The second call counts as the second, even if another fault acted on the first.
		"BA.B..": func(f *fakeserver.Server) { f.Inject(a).Nth(2); f.Inject(b).Nth(1); f.Inject(b).Nth(4) },
		// A match on which another fault acted is not made up for later.
		"B.....": func(f *fakeserver.Server) { f.Inject(a).Nth(1); f.Inject(b).Nth(1) },
	} {
		fake, c := newFake(t)
		inject(fake)
		var got strings.Builder
		for range 6 {
			got.WriteString(map[int]string{200: ".", 500: "A", 502: "B"}[c.call("GET", "/v1/status", noBody).status])
		}
		assert.Equal(t, want, got.String(), want)
	}
}

// concurrently makes a number of calls at once, each on its own goroutine.
func concurrently(calls int, call func()) {
	var wait sync.WaitGroup
	for range calls {
		wait.Go(call)
	}
	wait.Wait()
}

// Under concurrent calls, each step of a script and each fault acts exactly as often as it
// should.
func TestTurnsUnderConcurrency(t *testing.T) {
	const byOldScript, byNewScript, withoutScript, failed = 100, 600, 100, 1 + 2
	fake, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	fake.OnMessage().Reply("old").Times(byOldScript)
	fake.OnMessage().Reply("one", "two", "three", "last").Times(byNewScript)
	fake.Inject(fakeserver.Answer(500, "")).Nth(50)
	fake.Inject(fakeserver.Answer(500, "")).From(100).Times(2)
	concurrently(byOldScript+byNewScript+withoutScript+failed, func() { c.send(agent, "x") })
	served := map[string]int{}
	for _, exchange := range fake.Conversation(agent) {
		served[exchange.ReplyText]++
	}
	assert.Equal(t, map[string]int{"one": 1, "two": 1, "three": 1, "last": byNewScript - 3, "old": byOldScript, "You wrote: x": withoutScript}, served, "how often each reply was served")
}

// A ReplyFunc may answer with the errors that interface 4.8 lists, after the message
// was accepted. Any other status is a mistake of the test.
func TestReplyFuncErrors(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	var next fakeserver.Reply
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return next })
	for status, code := range map[int]string{400: "bad_request", 401: "unauthorized", 402: "payment_required", 404: "not_found"} {
		next = fakeserver.Reply{Status: status}
		c.send(agent, "x").wantError(t, status, code)
	}
	next = fakeserver.Reply{Status: 429}
	c.send(agent, "x").wantLimited(t, "key_minute", "1")
	assert.Contains(t, spent(fake.Limits(c.key)), "key_minute 6/60")
	next = fakeserver.Reply{Status: 400, Code: "moderated:" + c.key, Reason: "text: not " + c.key}
	r := c.send(agent, "x")
	r.wantError(t, 400, next.Code)
	assert.Equal(t, next.Reason, r.text("reason"))
	assert.Contains(t, fmt.Sprintf("%#v", fake.Calls()), `Code:"moderated:[redacted]", Reason:"text: not [redacted]"`)
	assert.Empty(t, fake.Conversation(agent), "errors are no exchange")
	for i, status := range []int{403, 409, 503, 201, 99, -1} {
		next = fakeserver.Reply{Status: status}
		r = c.send(agent, "x")
		r.wantError(t, 500, "internal_server_error")
		assert.Regexp(t, fmt.Sprintf(`the ReplyFunc of OnMessage\(\) at fault_test.go:\d+: a ReplyFunc may not answer with status %[1]d;.*\na ReplyFunc may not answer with status %[1]d;`, status),
			watch.errors[i]+"\n"+r.text("reason"))
	}
}

// A skipped test does not fail for a Required script that it has not reached.
func TestUnusedRequiredOfASkippedTest(t *testing.T) {
	watch, fake, _ := newSpied(t)
	fake.OnMessage().Required()
	watch.skipped = true
	watch.finish()
	assert.Empty(t, watch.errors)
}

// A Required script or fault that was never used fails the test. The message has the call that
// came nearest, and what kept the rule from acting on it.
func TestUnusedRequired(t *testing.T) {
	byAgent, byText := fakeserver.ByAgent("agent_000001"), fakeserver.ByText("good morning")
	panics := fakeserver.Where(func(fakeserver.Call) bool { panic("of the test") })
	requires := fakeserver.Where(func(fakeserver.Call) bool { runtime.Goexit(); return true })
	const answered = "trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200, "
	const refused = "trace_000003 POST /v1/agents/agent_000009/messages key_000001: 404 not_found: no agent has this identifier, "
	byGet := fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)
	inject := func(f fake) *fakeserver.Injection { return f.Inject(fakeserver.Answer(503, ""), byGet).Required() }
	const rule, nearest = "Inject(Answer(503), ByEndpoint(GET /v1/agents/{agent_id}))", "trace_000004 GET /v1/agents/agent_000001 key_000001: "
	for _, row := range []struct {
		rule    string
		matched int
		nearest string
		given   func(f fake, calls func()) // makes the rule, before or after the calls
	}{
		{"OnMessage(ByAgent(agent_000001), ByText(12 characters))", 0, answered + "not matched by ByText(12 characters)",
			func(f fake, calls func()) { f.OnMessage(byAgent, byText).Required(); calls() }},
		{"OnMessage(ByAgent(…), ByText(12 characters))", 0, refused + "not matched by ByAgent(…), ByText(12 characters)",
			func(f fake, calls func()) { f.OnMessage(fakeserver.ByAgent("amk_x"), byText).Required(); calls() }},
		{"OnMessage(ByAgent(agent_000009))", 0, refused + "which matches: the service refused it, or it came before the rule was made",
			func(f fake, calls func()) { f.OnMessage(fakeserver.ByAgent("agent_000009")).Required(); calls() }},
		{fmt.Sprintf("OnMessage(%v, %v)", panics, requires), 0, refused + fmt.Sprintf("not matched by %v, %v", panics, requires),
			func(f fake, calls func()) { calls(); f.OnMessage(panics, requires).Required() }},
		{"OnMessage(ByAgent(agent_000001)).Nth(2)", 1, answered + "which matches: the rule waits for match 2",
			func(f fake, calls func()) { f.OnMessage(byAgent).Nth(2).Required(); calls() }},

		{rule, 0, nearest + "200, which matches: it came before the rule was made",
			func(f fake, calls func()) { calls(); inject(f) }},
		{rule + ".From(3).Times(2)", 1, nearest + "200, which matches: the rule waits for match 3",
			func(f fake, calls func()) { inject(f).Times(2).From(3); calls() }},
		{rule + ".Chance(0, 7)", 1, nearest + "200, which matches: Chance ruled out the calls that it matched, or another rule acted on them",
			func(f fake, calls func()) { inject(f).Chance(0, 7); calls() }},
		{rule + ".Nth(1)", 1, nearest + "404: Answer(404) answered in place of the service; the call had no effect, which matches: another rule acted on match 1",
			func(f fake, calls func()) { inject(f).Nth(1); f.Inject(fakeserver.Answer(404, ""), byGet); calls() }},
		{rule, 0, nearest + "no answer, refused: RefuseConnection() refused the connection: nothing was sent, which matches: RefuseConnection() took the call before it reached the service",
			func(f fake, calls func()) { inject(f); f.Inject(fakeserver.RefuseConnection(), byGet); calls() }},
		{"OnMessage()", 0, "trace_000003 POST /v1/agents/agent_000009/messages key_000001: no answer, " +
			"closed: CloseEarly() ended the connection without an answer; the call had no effect, which matches: CloseEarly() took the call before it reached the service",
			func(f fake, calls func()) {
				f.OnMessage().Required()
				f.Inject(fakeserver.CloseEarly(), fakeserver.ByText("hello"))
				calls()
			}},
		{"Inject(RefuseConnection(), ByEndpoint(GET /v1/status))", 0, "trace_000001 GET /v1/status missing: 401 unauthorized: the call has no Authorization header " +
			"with one bearer token, which matches: it came over a socket or before the rule was made, or its body cannot be seen yet",
			func(f fake, _ func()) {
				f.Inject(fakeserver.RefuseConnection(), fakeserver.ByEndpoint(fakeserver.EndpointStatus)).Required()
				f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/status", nil))
			}},
	} {
		watch, fake, c := newSpied(t)
		row.given(fake, func() {
			c.agent(emptyBody)
			for _, id := range []string{"agent_000001", "agent_000009"} {
				_ = seen(c.wire, c.request("POST", "/v1/agents/"+id+"/messages", `{"text":"hello"}`))
			}
			_ = seen(c.wire, c.request("GET", anAgent, noBody)) // is not a message, so it is never the nearest call of a script
		})
		watch.finish()
		want := fmt.Sprintf("fakeserver: %s at fault_test.go:LINE is required and was never used; calls that it matched: %d; nearest: %s", row.rule, row.matched, row.nearest)
		require.Len(t, watch.errors, 1, row.rule)
		assert.Equal(t, want, regexp.MustCompile(`(go:)\d+( is)`).ReplaceAllString(watch.errors[0], "${1}LINE${2}"))
	}
}
