package fakeserver_test

import (
	"math"
	"strings"
	"testing"
	"time"

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

// Only calls that match are counted.
func TestTurnsCountWhatMatches(t *testing.T) {
	fake, c := newFake(t)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	injection := fake.Inject(fakeserver.Answer(500, ""), fakeserver.ByKey(other.key), fakeserver.ByEndpoint(fakeserver.EndpointStatus)).Nth(2)
	c.call("GET", "/v1/status", noBody).wantOK(t)
	other.call("GET", "/v1/status", noBody).wantOK(t)
	other.call("GET", "/v1/byok", noBody).wantOK(t)
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.Zero(t, injection.Hits())
	other.call("GET", "/v1/status", noBody).wantError(t, 500, "internal_server_error")
	assert.Equal(t, 1, injection.Hits())
}

// The same seed makes the same decisions, whatever else goes on.
func TestChanceIsSeeded(t *testing.T) {
	run := func(seed uint64, p float64, more func(*fakeserver.Server)) string {
		fake, c := newFake(t)
		fake.Inject(fakeserver.Answer(500, "")).Chance(p, seed)
		more(fake)
		return pattern(c, 200)
	}
	alone := func(*fakeserver.Server) {}
	first := run(7, 0.25, alone)
	assert.Equal(t, "..AA..A.......A..A.A", first[:20], "in every version")
	assert.InDelta(t, 50, strings.Count(first, "A"), 20)
	require.Equal(t, first, run(7, 0.25, alone))
	assert.NotEqual(t, first, run(8, 0.25, alone))
	shadowed := run(7, 0.25, func(f *fakeserver.Server) { f.Inject(fakeserver.Answer(502, "")).Times(10) })
	assert.Equal(t, strings.Repeat("B", 10)+first[10:], shadowed, "the n-th decision belongs to the n-th call")
	fake, c := newFake(t)
	fake.Inject(fakeserver.Answer(500, "")).Chance(0.25, 7).Nth(3)
	assert.Equal(t, "..A.", pattern(c, 4), "also to one that has no other turn")
}

func TestScriptsTakeTurns(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	old := fake.OnMessage().Reply("old 1", "old 2").Times(2)
	young := fake.OnMessage().Reply("young 1", "young 2").Times(3)
	third := fake.OnMessage(fakeserver.ByText("x")).Reply("third").Nth(3)
	never := fake.OnMessage().Reply("never").Chance(0, 0)
	var got []string
	for range 7 {
		got = append(got, c.send(agent, "x").text("reply_text"))
	}
	assert.Equal(t, []string{"young 1", "young 2", "third", "young 2", "old 1", "old 2", "You wrote: x"}, got)
	assert.Equal(t, []int{2, 3, 1, 0}, []int{old.Hits(), young.Hits(), third.Hits(), never.Hits()})
}

func TestRemoveInjection(t *testing.T) {
	watch, fake, c := newSpied(t)
	injection := fake.Inject(fakeserver.Answer(500, "")).Required()
	other := fake.Inject(fakeserver.Answer(502, "")).Nth(2)
	injection.Remove()
	injection.Remove()
	assert.Equal(t, ".B.", pattern(c, 3))
	other.Remove()
	fake.Inject(fakeserver.Answer(500, ""))
	fake.Reset()
	assert.Equal(t, ".", pattern(c, 1))
	assert.Zero(t, injection.Hits())
	watch.finish()
	assert.Empty(t, watch.errors)
}

func TestRequiredInjection(t *testing.T) {
	watch, fake, c := newSpied(t)
	fake.Inject(fakeserver.Answer(500, ""), fakeserver.ByEndpoint(fakeserver.EndpointStatus)).Times(1).Required()
	fake.Inject(fakeserver.LoseReply(fakeserver.Hang()), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage), fakeserver.ByText("twelve chars")).Required()
	fake.Inject(fakeserver.Latency(0)).Nth(9).Required()
	assert.Equal(t, "A..", pattern(c, 3))
	fake.Reset()
	require.Len(t, watch.errors, 2)
	assert.Contains(t, watch.errors[0], "fakeserver: Inject(LoseReply(Hang()), ByEndpoint(POST /v1/agents/{agent_id}/messages), ByText(12 characters)) is required and was never used; calls that it matched: 0")
	assert.Contains(t, watch.errors[1], "fakeserver: Inject(Latency(0s)) is required and was never used; calls that it matched: 3")
	fake.Inject(fakeserver.Hang()).Required()
	watch.finish()
	require.Len(t, watch.errors, 3)
	assert.Contains(t, watch.errors[2], "Inject(Hang())")
}

func TestFaultMisuse(t *testing.T) {
	fake, _ := newFake(t)
	for want, f := range map[string]func(){
		"Inject: the fault is the zero Fault; RefuseConnection, Change, Answer, ": func() { fake.Inject(fakeserver.Fault{}) },
		"Inject: matcher 1 is the zero Matcher":                                   func() { fake.Inject(fakeserver.Hang(), fakeserver.Matcher{}) },
		"Answer: 199 is no status from 200 to 599":                                func() { fakeserver.Answer(199, "") },
		"Answer: 600 is no status":                                                func() { fakeserver.Answer(600, "") },
		"RawAnswer: 101 is no status":                                             func() { fakeserver.RawAnswer(101, "", "") },
		"RawAnswer: the header's value holds a control":                           func() { fakeserver.RawAnswer(200, "a\nsk-canary", "") },
		"RateLimited: the header's value holds a control":                         func() { fakeserver.RateLimited("sk-canary\r\n") },
		"RateLimited: the header's value holds":                                   func() { fakeserver.RateLimited("\x7f") },
		"Latency: -1ns is negative":                                               func() { fakeserver.Latency(-1) },
		"LoseReply: Fault{} is no way to lose a reply; Answer, ":                  func() { fakeserver.LoseReply(fakeserver.Fault{}) },
		"LoseReply: Latency(1s) is no way":                                        func() { fakeserver.LoseReply(fakeserver.Latency(time.Second)) },
		"LoseReply: LoseReply(Hang()) is no way":                                  func() { fakeserver.LoseReply(fakeserver.LoseReply(fakeserver.Hang())) },
		"LoseReply: RefuseConnection() is no way":                                 func() { fakeserver.LoseReply(fakeserver.RefuseConnection()) },
		"LoseReply: TruncateReply(1) is no way":                                   func() { fakeserver.LoseReply(fakeserver.TruncateReply(1)) },
		"TruncateReply: -1 is negative":                                           func() { fakeserver.TruncateReply(-1) },
		"ResetReply: -1 is negative":                                              func() { fakeserver.ResetReply(-1) },
		"DripReply: 0 bytes every 1s: at least 1 byte":                            func() { fakeserver.DripReply(0, time.Second) },
		"DripReply: 1 bytes every -1ns":                                           func() { fakeserver.DripReply(1, -1) },
		"Times: 0 is less than 1":                                                 func() { fake.Inject(fakeserver.Hang()).Times(0) },
		"Nth: 0 is less than 1; the first call is 1":                              func() { fake.Inject(fakeserver.Hang()).Nth(0) },
		"Chance: 1.1 is not between 0 and 1":                                      func() { fake.Inject(fakeserver.Hang()).Chance(1.1, 0) },
		"Chance: -0.1 is not between 0 and 1":                                     func() { fake.OnMessage().Chance(-0.1, 0) },
		"Chance: NaN is not between 0 and 1":                                      func() { fake.OnMessage().Chance(math.NaN(), 0) },
		"Nth: -1 is less than 1":                                                  func() { fake.OnMessage().Nth(-1) },
		"Times: -1 is less than 1":                                                func() { fake.OnMessage().Times(-1) },
	} {
		text := panicOf(f)
		assert.Contains(t, text, want)
		assert.NotContains(t, text, "canary")
	}
}

// A matcher that panics fails the test, and aborts its call.
func TestPanicInMatcherOfInject(t *testing.T) {
	watch, fake, c := newSpied(t)
	fake.Inject(fakeserver.Latency(0), fakeserver.Where(func(fakeserver.Call) bool { panic("oops") }))
	_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
	require.Error(t, err)
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "a matcher of Inject(Latency(0s), Where(rule_test.go:")
	assert.Contains(t, watch.errors[0], "panicked: oops")
}

// net/http by itself repeats a GET on a connection that was used before, as it
// does with any server; the documentation says so.
func TestTransportRepeatsOnUsedConnection(t *testing.T) {
	fake, c := newFake(t)
	c.wire = fake.HTTPClient(t).Transport
	c.call("GET", "/v1/status", noBody).wantOK(t)
	injection := fake.Inject(fakeserver.CloseEarly()).Times(1)
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.Equal(t, 1, injection.Hits())
	assert.Equal(t, 3, fake.CallCount())
	fake.Inject(fakeserver.CloseEarly())
	assert.Equal(t, "EOF", seen(c.wire, c.request("POST", "/v1/warmup", emptyBody)), "but no POST")
	assert.Equal(t, 4, fake.CallCount())
}
