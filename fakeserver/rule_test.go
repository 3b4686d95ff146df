package fakeserver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// pattern makes n calls and says which a fault acted on.
func pattern(c caller, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(map[int]string{200: ".", 500: "A", 502: "B"}[c.call("GET", "/v1/status", noBody).status])
	}
	return b.String()
}

func TestTurns(t *testing.T) {
	a, b := fakeserver.Answer(500, ""), fakeserver.Answer(502, "")
	for want, inject := range map[string]func(*fakeserver.Server){
		"AAAAAA": func(f *fakeserver.Server) { f.Inject(a) },
		"A.....": func(f *fakeserver.Server) { f.Inject(a).Times(1) },
		"AAA...": func(f *fakeserver.Server) { f.Inject(a).Times(3) },
		".A....": func(f *fakeserver.Server) { f.Inject(a).Nth(2) },
		"..A...": func(f *fakeserver.Server) { f.Inject(a).Nth(3).Times(2) },
		"..AA..": func(f *fakeserver.Server) { f.Inject(a).From(3).Times(2) },
		"......": func(f *fakeserver.Server) { f.Inject(a).Chance(0, 1) },
		"AAAA..": func(f *fakeserver.Server) { f.Inject(a).Chance(1, 1).Times(4) },
		"BBBBBB": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b) },
		"BAAAAA": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b).Times(1) },
		"BA....": func(f *fakeserver.Server) { f.Inject(a).Times(1); f.Inject(b).Times(1) },
		"BABAAA": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b).Nth(1); f.Inject(b).Nth(3) },
		// The second call counts as the second, whoever acted on the first.
		"BA.B..": func(f *fakeserver.Server) { f.Inject(a).Nth(2); f.Inject(b).Nth(1); f.Inject(b).Nth(4) },
		// Nor is a turn put off that another fault had taken.
		"B.....": func(f *fakeserver.Server) { f.Inject(a).Nth(1); f.Inject(b).Nth(1) },
		// A latency takes no turn away.
		"A....A": func(f *fakeserver.Server) {
			f.Inject(a).Nth(1)
			f.Inject(a).Nth(6)
			f.Inject(fakeserver.Latency(0))
		},
	} {
		fake, c := newFake(t)
		inject(fake)
		assert.Equal(t, want, pattern(c, 6))
	}
}

// The same seed makes the same decisions, whatever else goes on.
func TestChanceIsSeeded(t *testing.T) {
	run := func(seed uint64, others ...fakeserver.Fault) string {
		fake, c := newFake(t)
		fake.Inject(fakeserver.Answer(500, "")).Chance(0.25, seed)
		for _, other := range others {
			fake.Inject(other).Times(10)
		}
		return pattern(c, 200)
	}
	first := run(7)
	assert.Equal(t, "..AA..A.......A..A.A", first[:20], "in every version")
	assert.InDelta(t, 50, strings.Count(first, "A"), 20)
	assert.NotEqual(t, first, run(8))
	shadowed := run(7, fakeserver.Answer(502, ""))
	assert.Equal(t, strings.Repeat("B", 10)+first[10:], shadowed, "the n-th decision belongs to the n-th call")
	fake, c := newFake(t)
	fake.Inject(fakeserver.Answer(500, "")).Chance(0.25, 7).From(3)
	assert.Equal(t, "..AA", pattern(c, 4), "also to one that has no other turn")
}

// concurrently makes calls on many goroutines at once.
func concurrently(goroutines, each int, call func()) {
	var wait sync.WaitGroup
	for range goroutines {
		wait.Go(func() {
			for range each {
				call()
			}
		})
	}
	wait.Wait()
}

// Each step of a script and each turn of a fault comes exactly as often as it
// should.
func TestTurnsUnderConcurrency(t *testing.T) {
	const all = 64 * 20
	fake, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	fake.OnMessage().Reply("old").Times(100)
	fake.OnMessage().Reply("one", "two", "three", "four").Times(all - 203)
	fake.Inject(fakeserver.Answer(500, "")).Nth(50)
	fake.Inject(fakeserver.Answer(500, "")).From(100).Times(2)
	var mu sync.Mutex
	served := map[string]int{}
	concurrently(64, all/64, func() {
		text := c.send(agent, "x").text("reply_text")
		mu.Lock()
		defer mu.Unlock()
		served[text]++
	})
	assert.Equal(t, map[string]int{"": 3, "one": 1, "two": 1, "three": 1, "four": all - 206, "old": 100, "You wrote: x": 100}, served)
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
	assert.Equal(t, 6, fake.Limits(c.key)[0].Used)
	next = fakeserver.Reply{Status: 400, Code: "moderated", Reason: "text: not " + c.key}
	r := c.send(agent, "x")
	r.wantError(t, 400, "moderated")
	assert.Equal(t, next.Reason, r.text("reason"))
	assert.Equal(t, "text: not [redacted]", fake.Calls()[fake.CallCount()-1].Reason)
	assert.Empty(t, fake.Conversation(agent), "errors are no exchange")
	for i, status := range []int{403, 409, 503, 201, 99, -1} {
		next = fakeserver.Reply{Status: status}
		assert.Equal(t, 500, c.send(agent, "x").status)
		require.Len(t, watch.errors, i+1)
		assert.Contains(t, watch.errors[i], fmt.Sprintf("a ReplyFunc answered with status %d", status))
	}
}

// What a panic is blamed on, and what is left of its call.
func TestPanickingCallbacks(t *testing.T) {
	watch, fake, c := newSpied(t)
	agent := c.agent(emptyBody)
	oops := fakeserver.Where(func(fakeserver.Call) bool { panic("oops") })
	fake.OnMessage(fakeserver.ByText("reply")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { panic("oops") })
	fake.OnMessage(fakeserver.ByText("match"), oops)
	fake.Inject(fakeserver.Latency(0), fakeserver.ByText("inject"), oops)
	fake.Inject(fakeserver.Change("x", func() { panic("oops") }), fakeserver.ByText("change"))
	for text, want := range map[string]string{
		"reply":  `the ReplyFunc of OnMessage\(ByText\(5 characters\)\)`,
		"match":  `a matcher of OnMessage\(ByText\(5 characters\), Where\(rule_test.go:\d+\)\)`,
		"inject": `a matcher of Inject\(Latency\(0s\), ByText\(6 characters\), Where\(rule_test.go:\d+\)\)`,
		"change": `the function of Inject\(Change\(x\), ByText\(6 characters\)\)`,
	} {
		watch.errors = nil
		assert.Equal(t, "EOF", seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"`+text+`"}`)))
		require.Len(t, watch.errors, 1)
		assert.Regexp(t, "^fakeserver: "+want+" panicked: oops$", watch.errors[0])
	}
	assert.Empty(t, fake.UnderWay())
	assert.Empty(t, fake.Conversation(agent))
	for _, call := range fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)) {
		assert.NotEmpty(t, call.TraceID)
		assert.Zero(t, call.Status)
	}
}

// A script that is required and was never used fails the test with the message that
// came nearest to it.
func TestUnusedRequiredNamesTheNearestCall(t *testing.T) {
	const message = "nearest: trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200, "
	const refused = "nearest: trace_000003 POST /v1/agents/agent_000009/messages key_000001: 404 not_found: no agent has this identifier"
	byAgent, byText := fakeserver.ByAgent("agent_000001"), fakeserver.ByText("good morning")
	panics := fakeserver.Where(func(fakeserver.Call) bool { panic("of the test") })
	for _, row := range []struct {
		want     string
		matchers []fakeserver.Matcher
	}{
		{message + "not matched by ByText(12 characters)", []fakeserver.Matcher{byAgent, byText}},
		{refused + ", not matched by ByAgent(…), ByText(12 characters)", []fakeserver.Matcher{fakeserver.ByAgent("amk_x"), byText}},
		{message + "which matches: it came before the rule was made, or another acted on it", []fakeserver.Matcher{byAgent}},
		{message + "not matched by ByTextContaining(4 characters)", []fakeserver.Matcher{byAgent, fakeserver.ByTextContaining("good")}},
		{message + "not matched by " + panics.String(), []fakeserver.Matcher{byAgent, panics}},
		{refused + ", which matches, but was not accepted", []fakeserver.Matcher{fakeserver.ByAgent("agent_000009")}},
	} {
		watch, fake, c := newSpied(t)
		c.send(c.agent(emptyBody), "hello")
		c.send("agent_000009", "hello")
		c.call("GET", "/v1/agents/agent_000001", noBody).wantOK(t) // no message, so never near
		fake.OnMessage(row.matchers...).Required()
		watch.finish()
		require.Len(t, watch.errors, 1)
		assert.True(t, strings.HasSuffix(watch.errors[0], "; "+row.want), watch.errors[0])
	}
}
