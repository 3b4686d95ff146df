package fakeserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// furnished is a fake with something of everything in its state.
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

// visible is all that can be seen of a fake's state.
func visible(fake *fakeserver.Server) string {
	all := []any{fake.Admin().Keys(), fake.Agents(), fake.Now(), fake.Admin().BYOKAvailable()}
	for _, a := range fake.Agents() {
		all = append(all, fake.Conversation(a.ID))
	}
	for _, k := range fake.Admin().Keys() {
		key, _ := fake.Admin().KeyWithLabel(k.Label)
		config, set := fake.BYOK(key)
		all = append(all, config, set)
		for _, address := range []string{"192.0.2.1", "2001:db8::1", "203.0.113.9"} {
			all = append(all, fake.Admin().LimitsFrom(key, address))
		}
	}
	text, _ := json.Marshal(all)
	return string(text)
}

// slidingWindows counts calls in the other kind of windows.
func slidingWindows() fakeserver.Option { return fakeserver.WithDecision("windows", "sliding") }

// A fake goes on from the file of another, whichever windows the two have. Key
// labels stay, and key texts are those of the fake that reads.
func TestStateRoundTrip(t *testing.T) {
	kinds := map[string]fakeserver.Option{"fixed": frozen(), "sliding": slidingWindows()}
	for from, writes := range kinds {
		for to, reads := range kinds {
			fake, old := furnished(t, writes)
			file := written(t, fake)
			assert.False(t, strings.Contains(file, "sk-canary"), "a provider key")
			again, c := newFake(t, frozen(), reads, fakeserver.WithKey("other"))
			require.NoError(t, again.ReadState(strings.NewReader(file)))
			wantSame(t, visible(fake), visible(again), from+" to "+to)
			if from == to {
				wantSame(t, file, written(t, again), from)
			}
			assert.Equal(t, "agent_000003", c.agent(emptyBody), "numbers go on")
			assert.Equal(t, "trace_000006", again.Calls()[0].TraceID)
			c.call("GET", "/v1/agents/agent_000001", noBody).wantOK(t)
			c.call("GET", "/v1/agents/agent_000002", noBody).wantError(t, 404, "not_found")
			c.with(old.key).call("GET", "/v1/agents/agent_000001", noBody).wantError(t, 401, "unauthorized")
			c.with("other_000002").call("GET", "/v1/agents/agent_000002", noBody).wantLimited(t, "key_day", "86400")
			c.with("other_000003").call("GET", "/v1/status", noBody).wantError(t, 401, "unauthorized")
			assert.Equal(t, "other_000004", again.IssueKey(fakeserver.KeyOptions{}))
		}
	}
}

// The names in the file of version 1 stay, since it may be years old.
func TestStateFile(t *testing.T) {
	fake, _ := furnished(t)
	old := document(t, "state.json")
	file := regexp.MustCompile(`"fingerprint":"[0-9a-f]{16}"`).ReplaceAllString(written(t, fake), `"fingerprint":"0123456789abcdef"`)
	wantSame(t, old, file, "the state")
	again, _ := newFake(t, frozen())
	require.NoError(t, again.ReadState(strings.NewReader(old)))
	wantSame(t, old, written(t, again), "the state that was read")
}

// Calls at several times keep their order, and what was dropped stays counted.
func TestStateOfALongerLife(t *testing.T) {
	opts := []fakeserver.Option{frozen(), slidingWindows(), fakeserver.WithLimit("warmup_key_hour", 2)}
	fake, c := newFake(t, opts...)
	agent := c.agent(emptyBody)
	fake.AddExchanges(agent, make([]fakeserver.Exchange, 999)...)
	for range 2 {
		c.send(agent, "hello")
		c.call("POST", "/v1/warmup", noBody).wantOK(t)
		fake.Advance(20 * time.Minute)
	}
	file := written(t, fake)
	assert.Contains(t, file, `"exchanges_dropped":1`)
	again, _ := newFake(t, opts...)
	require.NoError(t, again.ReadState(strings.NewReader(file)))
	wantSame(t, file, written(t, again), "the state")
	again.Advance(20 * time.Minute)
	assert.Equal(t, 1, again.Limits(again.Key())[4].Used, "the older of the two has left")
	fixed, _ := newFake(t, frozen())
	require.NoError(t, fixed.ReadState(strings.NewReader(file)))
	assert.Equal(t, 2, fixed.Limits(fixed.Key())[4].Used)
	fixed.Advance(20 * time.Minute)
	assert.Zero(t, fixed.Limits(fixed.Key())[4].Used, "a fixed window starts with its first call")
}

// A batch of more than a thousand messages can be looked at whole, where the
// fake is asked to keep more: as it was sent, seeded or read from a file.
func TestLongConversation(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithCallLimit(1002))
	agent := c.agent(emptyBody)
	fake.AddExchanges(agent, make([]fakeserver.Exchange, 1001)...)
	c.send(agent, "hello").wantOK(t)
	require.NoError(t, fake.ReadState(strings.NewReader(written(t, fake))))
	assert.Len(t, fake.Conversation(agent), 1002)
	c.send(agent, "hello").wantOK(t)
	assert.Len(t, fake.Conversation(agent), 1002, "the newest")
}

// churn changes everything that a snapshot of a furnished fake keeps.
func churn(fake *fakeserver.Server, c caller) {
	fake.SetBYOKAvailable(true)
	c.send("agent_000001", "hello again").wantOK(c.t)
	c.call("POST", anAgent+"/channels/sms", `{"mode":"managed"}`).wantOK(c.t)
	c.from(fake, "198.51.100.7").agent(`{"llm":{"mode":"byok","provider":"openai","api_key":"sk-x"}}`)
	c.call("POST", "/v1/warmup", noBody).wantOK(c.t)
	for _, a := range fake.Agents() {
		fake.AddExchanges(a.ID, fakeserver.Exchange{Text: "hi", Warnings: []string{"w"}})
		fake.SetSMS(a.ID, "active", "+1")
	}
	fake.RemoveAgent("agent_000002")
	fake.StoreBYOK(c.key, "sk-z", fakeserver.BYOK{Provider: "openai"})
	fake.SetPlan(c.key, fakeserver.PlanPro)
	fake.Exhaust("amk_fake_000002", fakeserver.LimitWarmUpKeyHour)
	fake.ReinstateKey("amk_fake_000003")
	fake.RevokeKey("amk_fake_000002")
	fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
}

// Restore leads back to exactly the state of the snapshot, however often, and
// nothing that happens reaches the snapshot. Only the identifiers of calls go on.
func TestSnapshotAndRestore(t *testing.T) {
	traces := regexp.MustCompile(`"traces":\d+`)
	for _, kind := range []fakeserver.Option{frozen(), slidingWindows()} {
		fake, c := furnished(t, kind)
		state := func() string { return traces.ReplaceAllString(written(t, fake), "") }
		snapshot, before := fake.Snapshot(), state()
		for range 3 {
			churn(fake, c)
			require.False(t, state() == before, "churn changes nothing of %s", clipped(before))
			fake.Restore(snapshot)
			wantSame(t, before, state(), "the state")
		}
		assert.Equal(t, "agent_000003", c.agent(emptyBody), "the key is the agent's again, and numbers are as before")
	}
}

// Scripts, records and the clock belong to the test.
func TestStateLeavesTheTestsOwnAlone(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := fake.AddAgent(c.key, fakeserver.Agent{}).ID
	file, snapshot := written(t, fake), fake.Snapshot()
	script := fake.OnMessage().Reply("scripted")
	fake.Advance(48 * time.Hour)
	for i, back := range []func(){func() { require.NoError(t, fake.ReadState(strings.NewReader(file))) }, func() { fake.Restore(snapshot) }} {
		assert.Equal(t, "scripted", c.send(agent, "hello").text("reply_text"))
		back()
		assert.Empty(t, fake.Conversation(agent))
		assert.Equal(t, []int{i + 1, i + 1}, []int{script.Hits(), fake.CallCount()})
		assert.Equal(t, fmt.Sprintf("trace_%06d", i+1), fake.Calls()[i].TraceID, "an identifier names one call")
		assert.Equal(t, 48*time.Hour, fake.Admin().Advanced(), "the clock does not go back")
	}
}
