package fakeserver_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestExhaust(t *testing.T) {
	setKey := `{"provider":"openai","api_key":"sk"}`
	for _, sliding := range []bool{false, true} {
		for _, row := range []struct {
			limit, method, path, body string
			window                    time.Duration
		}{
			{fakeserver.LimitKeyMinute, "GET", anAgent, "", time.Minute},
			{fakeserver.LimitIPMinute, "GET", anAgent, "", time.Minute},
			{fakeserver.LimitKeyDay, "GET", anAgent, "", 24 * time.Hour},
			{fakeserver.LimitAgentCreateKeyDay, "POST", "/v1/agents", "{}", 24 * time.Hour},
			{fakeserver.LimitAgentCreateIPMinute, "POST", "/v1/agents", "{}", time.Minute},
			{fakeserver.LimitBYOKSetKeyHour, "PUT", "/v1/byok", setKey, time.Hour},
			{fakeserver.LimitWarmUpKeyHour, "POST", "/v1/warmup", "", time.Hour},
		} {
			t.Run(fmt.Sprint(row.limit, " sliding ", sliding), func(t *testing.T) {
				opts := []fakeserver.Option{frozen()}
				if sliding {
					opts = append(opts, fakeserver.WithDecision("windows", "sliding"))
				}
				fake, c := newFake(t, opts...)
				fake.Exhaust(c.key, fakeserver.Limit(row.limit))
				fake.Advance(time.Second)
				fake.Exhaust(c.key, fakeserver.Limit(row.limit)) // the window that is open keeps its end
				fake.SetPlan(c.key, fakeserver.PlanBYOK)
				left := strconv.Itoa(int(row.window/time.Second) - 1)
				for _, ip := range []string{"192.0.2.1", "198.51.100.9"} {
					c.from(fake, ip).call(row.method, row.path, row.body).wantLimited(t, row.limit, left)
				}
				other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
				other.times(1, row.method, row.path, row.body)
				fake.Advance(row.window - time.Second)
				c.times(1, row.method, row.path, row.body)
			})
		}
	}
}

// The limits per address have no window of the key's.
func TestExhaustOfAnAddressLimitIsAWholeWindow(t *testing.T) {
	for limit, method := range map[string]string{fakeserver.LimitIPMinute: "GET", fakeserver.LimitAgentCreateIPMinute: "POST"} {
		path := map[string]string{"GET": anAgent, "POST": "/v1/agents"}[method]
		fake, c := newFake(t, frozen())
		c.times(1, method, path, noBody)
		fake.Advance(30 * time.Second)
		fake.Exhaust(c.key, fakeserver.Limit(limit))
		c.call(method, path, emptyBody).wantLimited(t, limit, "60")
	}
}

// A window with a second left is shut for a second; a sliding one until its
// oldest call leaves.
func TestExhaustAtTheEndOfAWindow(t *testing.T) {
	for _, opts := range [][]fakeserver.Option{{frozen()}, {frozen(), fakeserver.WithDecision("windows", "sliding")}} {
		fake, c := newFake(t, opts...)
		c.times(1, "GET", anAgent, noBody)
		fake.Advance(59 * time.Second)
		c.times(1, "GET", anAgent, noBody)
		fake.Exhaust(c.key, fakeserver.LimitKeyMinute)
		c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "1")
		fake.Advance(time.Second)
		c.times(1, "GET", anAgent, noBody)
	}
}

// The message was accepted before its script ran; an injected 429 comes before.
func TestScripted429HasSpent(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Status: 429} })
	used := fake.Limits(c.key)[0].Used
	c.send(agent, "x").wantLimited(t, "key_minute", "1")
	assert.Equal(t, used+1, fake.Limits(c.key)[0].Used)
	fake.Inject(fakeserver.RateLimited("1"))
	c.send(agent, "x").wantLimited(t, "key_minute", "1")
	assert.Equal(t, used+1, fake.Limits(c.key)[0].Used)
}

func TestTwoClocksFailTheTest(t *testing.T) {
	now := time.Unix(year2040, 0)
	watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }), fakeserver.WithLimit("key_minute", 2))
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	c.times(2, "GET", anAgent, noBody)
	now = now.Add(-24 * time.Hour)
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "86460")
	now = now.Add(-time.Nanosecond)
	other.call("GET", anAgent, noBody).wantError(t, 404, "not_found")
	assert.Empty(t, watch.errors, "an address may be used under several clocks")
	c.times(2, "GET", anAgent, noBody)
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "key_000001 was used under two clocks")
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	assert.Len(t, watch.errors, 1)
}

// An address starts afresh under another clock, and nobody is told: bubbles
// and the outside share the default one.
func TestAddressUnderTwoClocks(t *testing.T) {
	now := time.Unix(year2040, 0)
	watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }), fakeserver.WithLimit("ip_minute", 1))
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	c.times(1, "GET", anAgent, noBody)
	now = now.AddDate(-40, 0, 0)
	other.times(1, "GET", anAgent, noBody)
	other.call("GET", anAgent, noBody).wantLimited(t, "ip_minute", "60")
	assert.Empty(t, watch.errors)
}

// What Exhaust did under one clock is as useless under another.
func TestExhaustUnderTwoClocks(t *testing.T) {
	now := time.Unix(year2040, 0)
	watch, fake, c := newSpied(t, fakeserver.WithClock(func() time.Time { return now }))
	fake.Exhaust(c.key, "key_minute")
	now = now.AddDate(-40, 0, 0)
	c.times(1, "GET", anAgent, noBody)
	assert.Len(t, watch.errors, 1)
}
