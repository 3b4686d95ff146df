package fakeserver_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
)

// Values that a test gives to the fake, or gets from it, share no memory with the fake's state.
func TestCopies(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(`{"metadata":{"a":1},"sms":{"mode":"sandbox"}}`)
	given, replied := []string{"w"}, []string{"w"}
	var message fakeserver.Message
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		message = m
		return fakeserver.Reply{Warnings: replied}
	})
	var call fakeserver.Call
	matchers := []fakeserver.Matcher{fakeserver.Where(func(c fakeserver.Call) bool { call = c; return true })}
	fake.Inject(fakeserver.Latency(0), matchers...)
	matchers[0] = fakeserver.Matcher{} // would panic at the next call
	fake.AddExchanges(agent, fakeserver.Exchange{Warnings: given})
	c.send(agent, "hello").wantOK(t)
	answer := httptest.NewRecorder()
	fake.ServeHTTP(answer, httptest.NewRequest("GET", "/v1/status", nil))
	kept := func() string { return fmt.Sprintf("%s\n%#v", written(t, fake), fake.Calls()) }
	want := kept()
	for what, change := range map[string]func(){
		"the warnings given to AddExchanges": func() { given[0] = "x" },
		"the warnings of a ReplyFunc":        func() { replied[0] = "x" },
		"the agent of a message":             func() { message.Agent.Metadata[0], message.Agent.SMS.Status = 'x', "x" },
		"the history of a message":           func() { message.History[0].ReplyText, message.History[0].Warnings[0] = "x", "x" },
		"the call that a matcher sees":       func() { call.Header.Set("User-Agent", "x") },
		"an answer's header in a handler":    func() { answer.Header()["Content-Type"][0] = "x" },
		"a call of Calls":                    func() { fake.Calls()[1].Header.Set("User-Agent", "x") },
		"an agent of Agents":                 func() { a := fake.Agents()[0]; a.Metadata[0], a.SMS.Status = 'x', "x" },
		"the agent of Agent":                 func() { a, _ := fake.Agent(agent); a.Metadata[0], a.SMS.Status = 'x', "x" },
		"an exchange of Conversation":        func() { e := fake.Conversation(agent)[1]; e.Warnings[0] = "x" },
	} {
		change()
		assert.Equal(t, want, kept(), "after a change of %s", what)
	}
}

// AddAgent fills the empty fields, and leaves the other fields unchanged.
func TestAddAgent(t *testing.T) {
	start := time.Unix(year2040, 0).UTC()
	created := time.Date(2020, 5, 1, 12, 0, 0, 0, time.FixedZone("", 7200))
	hosted := fakeserver.LLM{Mode: "hosted", Tier: "fast"}
	byok := fakeserver.LLM{Mode: "byok", Tier: "smart", Model: "m", Provider: "openai", BaseURL: "https://x", Label: "l"}
	fresh := fakeserver.Agent{ID: "agent_000001", Status: "active", CreatedAt: start, UpdatedAt: start, Key: "key_000001", LLM: hosted}
	withSMS := func(sms fakeserver.SMS) fakeserver.Agent { a := fresh; a.SMS = &sms; return a }
	for _, row := range []struct{ given, want fakeserver.Agent }{
		{fakeserver.Agent{}, fresh},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "sandbox"}}, withSMS(fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+12025550101"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "sandbox", PhoneNumber: "+1"}}, withSMS(fakeserver.SMS{Mode: "sandbox", Status: "active", PhoneNumber: "+1"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "byo_twilio"}}, withSMS(fakeserver.SMS{Mode: "byo_twilio", Status: "needs_setup"})},
		{fakeserver.Agent{SMS: &fakeserver.SMS{Status: "pending"}}, withSMS(fakeserver.SMS{Status: "pending"})},
		{fakeserver.Agent{
			ID: "agent one", Status: "suspended", CreatedAt: created, UpdatedAt: created.Add(time.Hour), Key: "key_000099",
			SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(` {"a": [1, "<"]} `), LLM: byok,
		}, fakeserver.Agent{
			ID: "agent one", Status: "suspended", CreatedAt: created.UTC(), UpdatedAt: created.Add(time.Hour).UTC(), Key: "key_000001",
			SystemPrompt: "Be brief.", CustomerRef: "c-1", Metadata: json.RawMessage(`{"a":[1,"<"]}`), LLM: byok,
		}},
	} {
		fake, c := newFake(t, frozen())
		assert.Equal(t, row.want, fake.AddAgent(c.key, row.given), row.given)
		assert.Empty(t, fake.Calls(), "it is no call")
		assert.Contains(t, spent(fake.Limits(c.key)), "key_minute 0/60, key_day 0/1000, agent_create_key_day 0/50", "and spends nothing")
		stored, there := fake.Agent(row.want.ID)
		assert.Equal(t, []any{row.want, true}, []any{stored, there}, row.given)
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).send("agent_000001", "hello").wantError(t, 404, "not_found")
		fake.AddAgent(c.key, fakeserver.Agent{ID: "agent_000003", CreatedAt: created})
		fake.RemoveAgent(c.agent(emptyBody)) // agent_000004
		assert.Equal(t, "agent_000005", c.agent(emptyBody), "no identifier is given twice")
		assert.Equal(t, created.UTC(), fake.Agents()[1].UpdatedAt, "in the order of creation; the times are equal unless given")
	}
}

// furnished returns a fake whose state has at least one thing of each kind.
func furnished(t testing.TB, opts ...fakeserver.Option) (*fakeserver.Server, caller) {
	fake, c := newFake(t, append([]fakeserver.Option{frozen()}, opts...)...)
	second := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanPro, NotDashboard: true})
	fake.RevokeKey(fake.IssueKey(fakeserver.KeyOptions{}))
	fake.Advance(time.Hour)
	agent := c.agent(`{"system_prompt":"p","customer_ref":"c","metadata":{"k":[1,"é"]},"sms":{"mode":"sandbox"},` +
		`"llm":{"mode":"byok","tier":"smart","provider":"openai","api_key":"sk-canary-one","base_url":"https://x","model":"m","label":"l"}}`)
	fake.OnMessage().ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: "yes, " + m.UserRef, Warnings: []string{"slow"}}
	}).Times(1)
	c.call("POST", "/v1/agents/"+agent+"/messages", `{"text":"<hello>","user_ref":"u"}`).wantOK(t)
	c.send(agent, "again")
	c.with(second).from(fake, "2001:db8::1").agent(emptyBody)
	fake.StoreBYOK(second, "sk-canary-two", fakeserver.BYOK{Provider: "anthropic"})
	fake.SetSMS("agent_000002", "pending", "")
	c.call("POST", "/v1/warmup", noBody).wantOK(t)
	fake.Exhaust(second, "key_day")
	fake.SetBYOKAvailable(false)
	return fake, c
}

func written(t testing.TB, fake *fakeserver.Server) string {
	var out bytes.Buffer
	require.NoError(t, fake.WriteState(&out))
	return out.String()
}

// A fake goes on from the state file of another fake. The labels of keys stay, but their texts
// are those of the fake that reads. If that fake counts calls in another way, its limits start
// empty. It keeps at most as many exchanges as in its own conversations.
func TestStateRoundTrip(t *testing.T) {
	kinds := []string{"fixed", "sliding", "aligned", "weighted", "token bucket", "token bucket of 10"}
	for i, kind := range kinds {
		fake, old := furnished(t, fakeserver.WithDecision("windows", kind))
		file := written(t, fake)
		assert.NotContains(t, file, "sk-canary", kind)
		assert.NotContains(t, file, old.key, kind)
		again, c := newFake(t, frozen(), fakeserver.WithDecision("windows", kind), fakeserver.WithKey("other"))
		require.NoError(t, again.ReadState(strings.NewReader(file)), kind)
		assert.Equal(t, file, written(t, again), kind)
		for _, tt := range []struct{ name, key, agent, want string }{
			{"a key keeps its agent", c.key, "agent_000001", "active"},
			{"and gets no other", c.key, "agent_000002", "not_found"},
			{"what is exhausted stays so", "other_000002", "agent_000002", "key_day"},
			{"what is revoked stays so", "other_000003", "agent_000001", "unauthorized"},
			{"the text of an old key is none", old.key, "agent_000001", "unauthorized"},
		} {
			r := c.with(tt.key).call("GET", "/v1/agents/"+tt.agent, noBody)
			assert.Equal(t, tt.want, cmp.Or(r.text("limit_key"), r.text("error"), r.text("status")), "%s: %s", kind, tt.name)
		}
		assert.Equal(t, "trace_000006", again.Calls()[0].TraceID, kind)
		assert.Equal(t, "agent_000003", c.agent(emptyBody), kind)
		assert.Equal(t, "other_000004", again.IssueKey(fakeserver.KeyOptions{}), kind)
		another, _ := newFake(t, frozen(), fakeserver.WithDecision("windows", kinds[(i+1)%len(kinds)]))
		require.NoError(t, another.ReadState(strings.NewReader(file)), kind)
		assert.Contains(t, spent(another.Limits(another.Key())), "key_minute 0/60", "%s: windows of the next kind", kind)
	}
	many, c := newFake(t, fakeserver.WithCallLimit(2000))
	agent := c.agent(emptyBody)
	longest := fakeserver.Exchange{Text: strings.Repeat("é", 4000)} // characters, not bytes
	many.AddExchanges(agent, append(make([]fakeserver.Exchange, 1000), longest)...)
	few, _ := newFake(t)
	require.NoError(t, few.ReadState(strings.NewReader(written(t, many))))
	few.AddExchanges(agent, longest)
	assert.Len(t, few.Conversation(agent), 1000, "a fake that keeps fewer exchanges")
}

// The names of members in a state file of version 1 must not change, since a file may be years
// old.
func TestStateFile(t *testing.T) {
	same := func(file string) string { // without the random parts
		return regexp.MustCompile(`"(fingerprint|sha256)":"[0-9a-f]+"|\n`).ReplaceAllString(file, "")
	}
	old, err := os.ReadFile("testdata/state.json") // which an earlier fake wrote
	require.NoError(t, err)
	again, _ := newFake(t, frozen())
	require.NoError(t, again.ReadState(bytes.NewReader(old)))
	fake, _ := furnished(t)
	assert.Equal(t, same(string(old)), same(written(t, again)), "read and written again")
	assert.Equal(t, same(string(old)), same(written(t, fake)), "written of the same state")
	bucket, c := newFake(t, fakeserver.WithDecision("windows", "token bucket"))
	c.setBYOK()
	c.call("DELETE", "/v1/byok", noBody).wantOK(t)
	assert.Contains(t, written(t, bucket), `"full":`, "which only a token bucket has")
	assert.Contains(t, written(t, bucket), `"byok_cleared_at":`, "which only a cleared key has")
}

// The limits of a file from years ahead start empty: a bubble may read a file from outside.
func TestStateFromTheFuture(t *testing.T) {
	later, _ := furnished(t)
	fake, c := newFake(t)
	require.NoError(t, fake.ReadState(strings.NewReader(written(t, later))))
	assert.Contains(t, spent(fake.Limits(c.key, "192.0.2.1")), "key_minute 0/60, ip_minute 0/120")
	c.call("GET", "/v1/agents/agent_000001", noBody).wantOK(t)
	assert.Contains(t, spent(fake.Limits(c.key)), "key_minute 1/60")
}

// A file that is cut, edited or of another program is refused, and changes nothing.
func TestReadStateRefuses(t *testing.T) {
	from, _ := furnished(t)
	file := written(t, from)
	fake, _ := newFake(t, frozen())
	before := written(t, fake)
	signed := func(old, edited string) string {
		state, _, _ := strings.Cut(strings.Replace(file, old, edited, 1), `,"sha256":`)
		return fmt.Sprintf(`%s,"sha256":"%x"}`, state, sha256.Sum256([]byte(state)))
	}
	for given, want := range map[string]string{
		"": "not one whole JSON document", file[:len(file)-5]: "or only a part of one", file + "{}": "not one whole JSON document",
		"[]": "not the state of a fake", `{"log":{}}`: "its format is not agentmessaging-fake-state",
		strings.Replace(file, `"version":1`, `"version":2`, 1):    "the state has version 2; this fake reads version 1",
		strings.Replace(file, `"traces":5`, `"traces":"5"`, 1):    "the state is damaged, or was edited",
		strings.Replace(file, `"plan":"pro"`, `"plan":"byok"`, 1): "its sha256 does not match",
		strings.Replace(file, `"plan":"pro",`, ``, 1):             "its sha256 does not match",
		strings.TrimSuffix(file, "}\n") + `,"keys":[null]}`:       "its sha256 does not match",
		signed(`"keys":[`, `"keys":[null,`):                       "a value has a type that WriteState does not write",
		signed(`"agent_list":[`, `"agent_list":[null,`):           "a value has a type that WriteState does not write",
		signed(`"traces":5`, `"traces":"5"`):                      "a value has a type that WriteState does not write",
	} {
		assert.ErrorContains(t, fake.ReadState(strings.NewReader(given)), want, clipped(given))
	}
	assert.Equal(t, before, written(t, fake), "the state has not changed")
	assert.ErrorContains(t, fake.ReadState(iotest.ErrReader(errors.New("the disk is gone"))), "fakeserver: ReadState: the disk is gone")
	var noFile *os.File // refuses every write
	assert.ErrorIs(t, from.WriteState(noFile), os.ErrInvalid)
	assert.ErrorIs(t, from.WriteCalls(noFile), os.ErrInvalid)
}

// ReadState keeps scripts and records, and does not set the clock back.
func TestReadStateKeepsRulesAndCalls(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := fake.AddAgent(c.key, fakeserver.Agent{}).ID
	file := written(t, fake)
	fake.OnMessage().Reply("scripted")
	fake.Advance(48 * time.Hour)
	c.send(agent, "hello").wantOK(t)
	require.NoError(t, fake.ReadState(strings.NewReader(file)))
	assert.Empty(t, fake.Conversation(agent))
	assert.Equal(t, "scripted", c.send(agent, "hello").text("reply_text"))
	assert.Equal(t, []string{"trace_000001", "trace_000002"}, traces(fake.Calls()), "an identifier names one call")
	assert.Equal(t, 48*time.Hour, fakeadmin.Of[fakeserver.Call](fake).Advanced(), "the clock does not go back")
}

// frozen stops the clock: only Advance moves it.
func frozen() fakeserver.Option {
	return fakeserver.WithClock(func() time.Time { return time.Unix(year2040, 0) })
}

const anAgent = "/v1/agents/agent_000001"

// TestTwoClocks: one call fills a limit of one call a minute, or Exhaust closes the limit of a
// day, and the next call comes under a clock that is behind.
func TestTwoClocks(t *testing.T) {
	for _, row := range []struct {
		rule       string
		exhausted  bool // Exhaust closed the limit of a day, and no call was made
		anotherKey bool // makes the next call, from the same address
		behind     time.Duration
		limit      string // the limit that refuses the next call; "" if the call goes through
		retryAfter string
		reports    int // how often the test is told that the key was used under two clocks
	}{
		{rule: "a limit of a key goes on by a clock that is a day behind", behind: 24 * time.Hour, limit: "key_minute", retryAfter: "86460"},
		{rule: "by one that is further behind it starts afresh, and the test fails", behind: 24*time.Hour + 1, reports: 1},
		{rule: "an exhausted limit stays closed", exhausted: true, behind: 24 * time.Hour, limit: "key_day", retryAfter: "172800"},
		{rule: "an exhausted limit starts afresh too", exhausted: true, behind: 24*time.Hour + 1, reports: 1},
		{rule: "a limit of an address goes on by a clock that is a minute behind", anotherKey: true, behind: time.Minute, limit: "ip_minute", retryAfter: "120"},
		{rule: "bubbles share the address, so it starts afresh without a report", anotherKey: true, behind: time.Minute + 1},
	} {
		now := time.Unix(year2040, 0)
		watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }),
			fakeserver.WithLimit("key_minute", 1), fakeserver.WithLimit("ip_minute", 1))
		if row.exhausted {
			fake.Exhaust(c.key, "key_day")
		} else {
			c.times(1, "GET", anAgent, noBody)
		}
		if row.anotherKey {
			c = c.with(fake.IssueKey(fakeserver.KeyOptions{}))
		}
		now = now.Add(-row.behind)
		c.call("GET", "/v1/status", noBody)
		assert.Empty(t, watch.errors, "%s: no limit counts such a call, so it reports nothing", row.rule)
		assert.Equal(t, row.limit != "", strings.Contains(spent(fake.Limits(c.key, "192.0.2.1")), " +"), "%s: Limits shows what is closed", row.rule)
		r := c.call("GET", anAgent, noBody)
		assert.Equal(t, []string{row.limit, row.retryAfter}, []string{r.text("limit_key"), r.header.Get("Retry-After")}, row.rule)
		c.call("GET", anAgent, noBody)
		assert.Equal(t, row.reports, strings.Count(strings.Join(watch.errors, ""), " was used under two clocks"), row.rule)
	}
}

// Limits changes nothing, even if it is called under another clock, such as outside a bubble.
func TestLimitsByAnotherClock(t *testing.T) {
	now := time.Unix(year2040, 0)
	clock := fakeserver.WithClock(func() time.Time { return now })
	fake, c := newFake(t, clock, fakeserver.WithDecision("windows", "sliding"), fakeserver.WithLimit("key_minute", 1))
	c.times(1, "GET", anAgent, noBody)
	now = now.Add(time.Hour)
	assert.Contains(t, spent(fake.Limits(c.key)), "key_minute 0/1,")
	now = now.Add(-time.Hour)
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
}

// times makes the same call n times, each of which must be let through.
func (c caller) times(n int, method, path, body string) {
	c.t.Helper()
	for range n {
		r := c.call(method, path, body)
		require.NotEqual(c.t, 429, r.status, clipped(r.raw))
	}
}

// spent lists the limits with used and maximum. A closed limit also has + and when it opens,
// counted from 2040-01-01.
func spent(states []fakeserver.LimitState) string {
	var lines []string
	for _, l := range states {
		line := fmt.Sprintf("%s %d/%d", l.Key, l.Used, l.Max)
		if !l.Opens.IsZero() {
			line += " +" + l.Opens.Sub(time.Unix(year2040, 0)).String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// The same address counts once in every spelling: IPv4 inside IPv6 is the IPv4 address, and a
// zone is dropped.
func TestLimitsOfAnAddress(t *testing.T) {
	fake, c := newFake(t, frozen())
	c.from(fake, "203.0.113.7").agent(emptyBody)
	c.from(fake, "fe80::1%eth0").agent(emptyBody)
	for _, address := range []fakeserver.FromIP{"203.0.113.7", "::ffff:203.0.113.7", "fe80::1", "fe80::1%eth1"} {
		assert.Contains(t, spent(fake.Limits(c.key, address)), "ip_minute 1/120", address)
	}
}
