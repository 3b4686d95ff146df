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
		`"llm":{"mode":"byok","provider":"openai","api_key":"sk-canary-one","base_url":"https://x","model":"m","label":"l"}}`)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: "yes", Warnings: []string{"slow"}}
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

// wantSameState compares all that can be seen of two fakes.
func wantSameState(t *testing.T, want, got *fakeserver.Server) {
	assert.Equal(t, want.Admin().Keys(), got.Admin().Keys())
	assert.Equal(t, want.Agents(), got.Agents())
	assert.Equal(t, want.Now(), got.Now())
	assert.Equal(t, want.Admin().BYOKAvailable(), got.Admin().BYOKAvailable())
	for _, a := range want.Agents() {
		assert.Equal(t, want.Conversation(a.ID), got.Conversation(a.ID))
	}
	for _, k := range want.Admin().Keys() {
		mine, _ := want.Admin().KeyWithLabel(k.Label)
		theirs, _ := got.Admin().KeyWithLabel(k.Label)
		b, set := want.BYOK(mine)
		again, setAgain := got.BYOK(theirs)
		assert.Equal(t, b, again)
		assert.Equal(t, set, setAgain)
		for _, address := range []string{"192.0.2.1", "2001:db8::1", "203.0.113.9"} {
			assert.Equal(t, want.Admin().LimitsFrom(mine, address), got.Admin().LimitsFrom(theirs, address), address)
		}
	}
}

func TestStateRoundTrip(t *testing.T) {
	for name, opts := range map[string][]fakeserver.Option{"fixed": nil, "sliding": {fakeserver.WithDecision("windows", "sliding")}} {
		t.Run(name, func(t *testing.T) {
			fake, _ := furnished(t, opts...)
			file := written(t, fake)
			again, c := newFake(t, append([]fakeserver.Option{frozen()}, opts...)...)
			require.NoError(t, again.ReadState(strings.NewReader(file)))
			wantSameState(t, fake, again)
			assert.Equal(t, file, written(t, again), "to the same bytes")

			second, _ := again.Admin().KeyWithLabel("key_000002")
			assert.Equal(t, "agent_000003", c.agent(emptyBody), "numbers go on")
			assert.Equal(t, "trace_000006", again.Calls()[0].TraceID)
			assert.Equal(t, 404, c.call("GET", "/v1/agents/agent_000002", noBody).status, "agents belong to their keys")
			c.with(second).call("GET", "/v1/agents/agent_000002", noBody).wantLimited(t, "key_day", "86400")
			c.call("POST", "/v1/warmup", `{"mode":"byok"}`)
			assert.Equal(t, "amk_fake_000004", again.IssueKey(fakeserver.KeyOptions{}))
			revoked, _ := again.Admin().KeyWithLabel("key_000003")
			assert.Equal(t, 401, c.with(revoked).call("GET", "/v1/status", noBody).status)
		})
	}
}

// What was counted in windows of one kind counts in those of the other.
func TestStateBetweenKindsOfWindows(t *testing.T) {
	fixed, _ := furnished(t)
	sliding, _ := newFake(t, frozen(), fakeserver.WithDecision("windows", "sliding"))
	require.NoError(t, sliding.ReadState(strings.NewReader(written(t, fixed))))
	wantSameState(t, fixed, sliding)
	again, _ := newFake(t, frozen())
	require.NoError(t, again.ReadState(strings.NewReader(written(t, sliding))))
	wantSameState(t, fixed, again)
}

// Labels stay, texts are those of the fake that reads.
func TestStateWithAnotherKey(t *testing.T) {
	fake, c := furnished(t)
	file := written(t, fake)
	again, _ := newFake(t, frozen(), fakeserver.WithKey("other"))
	require.NoError(t, again.ReadState(strings.NewReader(file)))
	wantSameState(t, fake, again)
	c.wire = again.Direct()
	c.with("other").call("GET", "/v1/agents/agent_000001", noBody).wantOK(t)
	assert.Equal(t, 401, c.call("GET", "/v1/agents/agent_000001", noBody).status)
}

func TestStateKeepsTheTestsOwn(t *testing.T) {
	fake, c := newFake(t, frozen())
	fake.OnMessage().Reply("scripted")
	fake.Advance(48 * time.Hour)
	c.call("GET", "/v1/status", noBody)
	from, _ := furnished(t)
	require.NoError(t, fake.ReadState(strings.NewReader(written(t, from))))
	assert.Equal(t, "scripted", c.send("agent_000001", "x").text("reply_text"))
	assert.Len(t, fake.Calls(), 2)
	assert.Equal(t, 48*time.Hour, fake.Admin().Advanced(), "the clock does not go back")
}

// No key in any form, whatever it went through.
func TestStateFileHoldsNoKey(t *testing.T) {
	for _, opts := range [][]fakeserver.Option{nil, {fakeserver.WithKey("cnrY-service-key")}} {
		fake, c := newFake(t, append(unlimited(), opts...)...)
		issued := fake.IssueKey(fakeserver.KeyOptions{})
		quoted, _ := json.Marshal(canaryKey)
		for _, key := range []string{c.key, issued} {
			c.with(key).call("PUT", "/v1/byok", `{"provider":"openai","api_key":`+string(quoted)+`}`).wantOK(t)
			agent := c.with(key).agent(`{"llm":{"mode":"byok","provider":"openai","api_key":` + string(quoted) + `}}`)
			c.with(key).send(agent, "hello")
			c.with(key).call("GET", "/v1/agents/"+key, noBody)
		}
		file := written(t, fake)
		assert.Contains(t, file, "hello")
		b, _ := fake.BYOK(issued)
		assert.Contains(t, file, b.Fingerprint)
		for _, secret := range []string{canaryKey, c.key, issued} {
			for _, form := range forms(secret) {
				assert.NotContains(t, file, form)
			}
		}
	}
}

func TestReadStateRefuses(t *testing.T) {
	from, _ := furnished(t)
	file := written(t, from)
	fake, _ := newFake(t, frozen())
	before := written(t, fake)
	for _, tt := range []struct{ old, now, want string }{
		{file, "", "not one JSON document"},
		{file, file[:len(file)-5], "not one JSON document"},
		{file, file + "{}", "not one JSON document"},
		{file, "[]", "not the state of a fake"},
		{file, `{"log":{}}`, "its format is not agentmessaging-fake-state"},
		{`"version":1`, `"version":2`, "the state has version 2; this fake reads version 1"},
		{`"version":1`, `"version":"1"`, "not the state of a fake"},
		{`"traces":5`, `"traces":5,"extra":1`, `damaged: json: unknown field "extra"`},
		{`"traces":5`, `"traces":-5`, "at least 0"},
		{`"advanced_ns":3600000000000`, `"advanced_ns":-1`, "at least 0"},
		{`"agents":2`, `"agents":-2`, "at least 0"},
		{`"label":"key_000002"`, `"label":"key_000001"`, "keys[1].label: is not key_000002"},
		{`"plan":"pro"`, `"plan":"gold"`, "keys[1].plan: is none of preview"},
		{`"plan":"pro"`, `"plan":""`, "keys[1].plan: is none of preview"},
		{`"provider":"anthropic"`, `"provider":"x"`, "keys[1].byok.provider: is none of openai_compat"},
		{`"limit_key":"key_minute"`, `"limit_key":"key_hour"`, "keys[0].windows: a limit_key is unknown"},
		{`"limit_key":"key_minute"`, `"limit_key":"key_day"`, "keys[0].windows: a limit_key is unknown or stands twice"},
		{`"limit_key":"key_minute"`, `"limit_key":"ip_minute"`, "keys[0].windows: ip_minute does not count here"},
		{`"limit_key":"ip_minute"`, `"limit_key":"key_minute"`, "addresses[0].windows: key_minute does not count here"},
		{`"calls":4}`, `"calls":0}`, "keys[0].windows: key_minute: calls: each has a time"},
		{`"calls":4}`, `"calls":1099511627777}`, "keys[0].windows: key_minute: calls: each has a time"},
		{`"called_from":"192.0.2.1"`, `"called_from":"here"`, "keys[0].called_from: is no IP address"},
		{`"calls":4}`, `"calls":4},{"at":"2001-01-01T00:00:00Z","calls":1}`, "calls: each has a time, in order"},
		{`"calls":4}`, `"calls":4},{"at":"2101-01-01T00:00:00Z","calls":1}`, "keys[0].last: is missing, or before"},
		{`"address":"2001:db8::1",`, `"address":"192.0.2.1",`, "addresses[1].address: stands twice"},
		{`"address":"2001:db8::1",`, `"address":"here",`, "damaged"},
		{`"number":1`, `"number":0`, "agent_list[0].agent_id, status and number: one is missing"},
		{`"agent_id":"agent_000002"`, `"agent_id":"agent_000001"`, "agent_list[1].agent_id: stands twice"},
		{`"agent_id":"agent_000002"`, `"agent_id":".."`, "agent_list[1].ID: no path can name it"},
		{`"key":"key_000002"`, `"key":"key_000009"`, "agent_list[1].key: no key has this label"},
		{`"sms":{"status":"pending"}`, `"sms":{"status":""}`, "agent_list[1].sms.status: is missing"},
		{`"sms":{"status":"pending"}`, `"sms":{"status":"odd"}`, "agent_list[1].SMS.Status: must be one of"},
		{`"text":"again"`, `"text":"` + strings.Repeat("a", 4001) + `"`, "agent_list[0].exchanges[1].text: at most 4000 characters"},
		{`"system_prompt":"p"`, `"system_prompt":"` + strings.Repeat("p", 2001) + `"`, "agent_list[0].SystemPrompt: at most 2000 characters"},
		{`{"k":[1,"é"]}`, `{"k":1,"k":2}`, "agent_list[0].Metadata: a member stands twice"},
	} {
		require.Contains(t, file, tt.old)
		damaged := strings.Replace(file, tt.old, tt.now, 1)
		assert.ErrorContains(t, fake.ReadState(strings.NewReader(damaged)), tt.want, tt.now)
	}
	assert.Equal(t, before, written(t, fake), "nothing has changed")
	assert.ErrorContains(t, fake.ReadState(goneReader{}), "fakeserver: ReadState: the disk is gone")
	assert.ErrorIs(t, fake.WriteState(fullDisk{}), errFull)
}

// A window without times would have closed: its limit would be open again.
func TestReadStateRefusesWithoutTimes(t *testing.T) {
	from, _ := furnished(t)
	file := written(t, from)
	fake, _ := newFake(t, frozen())
	times := regexp.MustCompile(`"(issued_at|at|created_at|updated_at|time|last)":"2[^"]*"`).FindAllStringIndex(file, -1)
	require.Greater(t, len(times), 10)
	for _, at := range times {
		name, _, _ := strings.Cut(file[at[0]:], ":")
		assert.Error(t, fake.ReadState(strings.NewReader(file[:at[0]]+name+`:"0001-01-01T00:00:00Z"`+file[at[1]:])), file[at[0]-20:at[1]])
	}
}

type goneReader struct{}

func (goneReader) Read([]byte) (int, error) { return 0, fmt.Errorf("the disk is gone") }

// However many calls a file claims for one window, reading it takes little.
func TestStateWithManyCalls(t *testing.T) {
	from, c := newFake(t, frozen())
	c.call("POST", "/v1/warmup", noBody)
	file := strings.ReplaceAll(written(t, from), `"calls":1}`, `"calls":1000000000}`)
	fixed, _ := newFake(t, frozen())
	require.NoError(t, fixed.ReadState(strings.NewReader(file)))
	assert.Equal(t, 1_000_000_000, fixed.Limits(fixed.Key())[0].Used)
	sliding, _ := newFake(t, frozen(), fakeserver.WithDecision("windows", "sliding"))
	require.NoError(t, sliding.ReadState(strings.NewReader(file)))
	assert.Equal(t, 1_000_000_000, sliding.Limits(sliding.Key())[0].Used)
}

func FuzzReadState(f *testing.F) {
	fake, _ := furnished(f)
	file := written(f, fake)
	f.Add([]byte(file))
	f.Add([]byte(file[:len(file)/2]))
	f.Add([]byte(`{"format":"agentmessaging-fake-state","version":1,"keys":[{"label":"key_000001","plan":"free"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		again, _ := newFake(t, fakeserver.WithDecision("windows", "sliding"))
		if again.ReadState(bytes.NewReader(raw)) != nil {
			return
		}
		file := written(t, again)
		twin, _ := newFake(t, fakeserver.WithDecision("windows", "sliding"))
		require.NoError(t, twin.ReadState(strings.NewReader(file)), "what was read can be written and read again")
		assert.Equal(t, file, written(t, twin))
	})
}

// Calls at several times keep their order, and what was dropped stays counted.
func TestStateOfALongerLife(t *testing.T) {
	opts := []fakeserver.Option{frozen(), fakeserver.WithDecision("windows", "sliding"), fakeserver.WithLimit("warmup_key_hour", 2)}
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
	assert.Equal(t, file, written(t, again))
	wantSameState(t, fake, again)
	again.Advance(20 * time.Minute)
	assert.Equal(t, 1, again.Limits(again.Key())[4].Used, "the older of the two has left")
}
