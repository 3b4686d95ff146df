package fakeserver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Every refusal and every fault says why, with the numbers.
func TestWhy(t *testing.T) {
	const byok, setBYOK = `{"mode":"byok"}`, `{"provider":"openai","api_key":"sk"}`
	agentOfAnother := func(f fake, c *caller) { c.agent(emptyBody); c.key = f.IssueKey(fakeserver.KeyOptions{}) }
	inject := func(fault fakeserver.Fault) func(fake, *caller) {
		return func(f fake, c *caller) { c.agent(emptyBody); f.Inject(fault) }
	}
	for _, row := range []struct {
		why                string
		method, path, body string
		given              func(f fake, c *caller)
	}{
		{"400: text has 4,001 characters, 4,000 are allowed.", "POST", anAgent + "/messages", `{"text":"` + strings.Repeat("é", 4001) + `"}`, nil},
		{"400: mode: must be one of hosted, byok.", "POST", "/v1/warmup", `{"mode":"x"}`, nil},
		{"400: metadata has 4,099 characters, 4,096 are allowed.", "POST", "/v1/agents", `{"metadata":{"a":"` + strings.Repeat("x", 4091) + `"}}`, nil},
		{"401: the call has no Authorization header with one bearer token.", "GET", "/v1/status", "", func(_ fake, c *caller) { c.key = "" }},
		{"401: this fake did not issue the API key of the call.", "GET", "/v1/status", "", func(_ fake, c *caller) { c.key = "amk_other" }},
		{"401: key_000001 was revoked 3m0s ago.", "GET", "/v1/status", "", func(f fake, c *caller) { f.RevokeKey(c.key); f.Advance(3 * time.Minute) }},
		{"402: key_000001 is on a plan that is not active.", "GET", "/v1/status", "", func(f fake, c *caller) { f.SetPlan(c.key, fakeserver.PlanFree) }},
		{"403: key_000002 was not issued through the dashboard, which BYOK requires.", "GET", "/v1/byok", "",
			func(f fake, c *caller) { c.key = f.IssueKey(fakeserver.KeyOptions{NotDashboard: true}) }},
		{"404: the agent belongs to key_000001.", "GET", anAgent, "", agentOfAnother},
		{"404: no agent has this identifier.", "GET", anAgent, "", nil},
		{"404: no endpoint has this path.", "GET", "/v1/nothing", "", nil},
		{"405: this path takes GET, PUT, DELETE.", "POST", "/v1/byok", "", nil},
		{"409: no BYOK configuration was ever set for key_000001.", "POST", "/v1/warmup", byok, nil},
		{"409: the BYOK configuration of key_000001 was cleared 1m0s ago.", "POST", "/v1/warmup", byok, func(f fake, c *caller) {
			c.setBYOK()
			c.call("DELETE", "/v1/byok", noBody).wantOK(t)
			f.Advance(time.Minute)
		}},
		{"429: key_000001 has spent 60 of 60 in this minute; it opens in 41s.", "GET", anAgent, "", func(f fake, c *caller) {
			c.times(60, "GET", anAgent, noBody)
			f.Advance(19 * time.Second)
		}},
		{"429: 192.0.2.1 has spent 10 of 10 agent creations in this minute; it opens in 1m0s.", "POST", "/v1/agents", emptyBody, func(_ fake, c *caller) {
			c.times(10, "POST", "/v1/agents", emptyBody)
		}},
		{"429: Exhaust closed key_day for key_000001; it opens in 24h0m0s.", "GET", anAgent, "", func(f fake, c *caller) { f.Exhaust(c.key, "key_day") }},
		{"503: the BYOK store is not available, by SetBYOKAvailable(false).", "PUT", "/v1/byok", setBYOK, func(f fake, _ *caller) { f.SetBYOKAvailable(false) }},
		{"Answer(503) answered in place of the service; the call had no effect.", "GET", anAgent, "", inject(fakeserver.Answer(503, ""))},
		{"LoseReply(ResetConnection()) ended the connection without an answer; the call had its effect.", "GET", anAgent, "", inject(fakeserver.LoseReply(fakeserver.ResetConnection()))},
		{"LoseReply(CloseEarly()) ended the connection without an answer; the agent has the message.", "POST", anAgent + "/messages", `{"text":"x"}`, inject(fakeserver.LoseReply(fakeserver.CloseEarly()))},
		{"TruncateReply(5) cut the answer after 5 of 143 bytes; the call had its effect.", "GET", anAgent, "", inject(fakeserver.TruncateReply(5))},
		{"404: no agent has this identifier. TruncateReply(5) cut the answer after 5 of 103 bytes; the service had refused it with 404.", "GET", "/v1/agents/x", "", inject(fakeserver.TruncateReply(5))},
		{"", "GET", anAgent, "", inject(fakeserver.Latency(0))},
	} {
		f, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes())
		if row.given != nil {
			row.given(f, &c)
		}
		_ = seen(c.wire, c.request(row.method, row.path, row.body))
		call := f.Calls()[f.CallCount()-1]
		assert.Equal(t, row.why, call.Why)
		words := strings.TrimSuffix(row.why[strings.Index(row.why, " ")+1:], ".")
		assert.Contains(t, call.String(), words)
	}
}

// plugged are the parts that a test brings, each as it installs f.
var plugged = map[string]func(f fake, do func()){
	"ReplyFunc": func(f fake, do func()) {
		f.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { do(); return fakeserver.Reply{} })
	},
	"matcher of a script": func(f fake, do func()) {
		f.OnMessage(fakeserver.Where(func(fakeserver.Call) bool { do(); return false }))
	},
	"matcher of a fault": func(f fake, do func()) {
		f.Inject(fakeserver.Latency(0), fakeserver.Where(func(fakeserver.Call) bool { do(); return false }))
	},
	"OnCall": func(f fake, do func()) { f.OnCall(func(fakeserver.Call) { do() }) },
	"Change": func(f fake, do func()) { f.Inject(fakeserver.Change("x", do)) },
}

// While a part waits other callers are served, and it may call the fake.
func TestPluggedInParts(t *testing.T) {
	for part, plug := range plugged {
		for _, way := range []string{"wire", "direct"} {
			t.Run(part+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					watch, fake, c := newSpied(t)
					c.wire = transports(t, fake)[way]
					agent := c.agent(emptyBody)
					wait, once := make(chan bool), true
					plug(fake, func() {
						if !once {
							return
						}
						once = false
						<-wait
						fake.Advance(time.Second)
						fake.SetPlan(c.key, fakeserver.PlanPro)
						fake.OnMessage().Remove()
						fake.Inject(fakeserver.Hang()).Remove()
						_, _, _ = fake.Calls(), fake.UnderWay(), fake.Limits(c.key)
						assert.NoError(t, fake.Sleep(context.Background(), time.Second))
					})
					ended := make(chan reply, 1)
					go func() { ended <- c.send(agent, "x") }()
					synctest.Wait()
					c.with(fake.IssueKey(fakeserver.KeyOptions{})).call("GET", "/v1/status", noBody).wantOK(t) // another caller
					close(wait)
					(<-ended).wantOK(t)
					synctest.Wait()
					assert.Empty(t, watch.errors)
					assert.Empty(t, fake.UnderWay(), "no call is left")
				})
			})
		}
	}
}

// The clock of a test may look at the fake.
func TestClockThatCallsTheFake(t *testing.T) {
	var f fake
	f, c := newFake(t, fakeserver.WithClock(func() time.Time {
		if f != nil {
			_ = f.CallCount()
		}
		return time.Unix(year2040, 0)
	}))
	c.agent(emptyBody)
	assert.NoError(t, f.Sleep(t.Context(), time.Hour))
	f.Reset()
}
