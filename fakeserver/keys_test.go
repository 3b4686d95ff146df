package fakeserver_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// frozen stops the clock: only Advance moves it.
func frozen() fakeserver.Option {
	return fakeserver.WithClock(func() time.Time { return time.Unix(year2040, 0) })
}

const anAgent = "/v1/agents/agent_000001"

// The constants are written out, so that go doc shows them.
func TestEndpoints(t *testing.T) {
	for i, e := range []fakeserver.Endpoint{
		fakeserver.EndpointStatus, fakeserver.EndpointWarmUp, fakeserver.EndpointGetBYOK, fakeserver.EndpointSetBYOK,
		fakeserver.EndpointClearBYOK, fakeserver.EndpointCreateAgent, fakeserver.EndpointGetAgent, fakeserver.EndpointSendMessage, fakeserver.EndpointEnableSMS,
	} {
		assert.EqualValues(t, spec.Endpoints[i].Call, e)
	}
}

// Exhaust shuts one limit of one key for its window, on every plan and from every address.
func TestExhaust(t *testing.T) {
	for _, row := range []struct {
		limit, method, path, body string
		window                    time.Duration
	}{
		{fakeserver.LimitIPMinute, "GET", anAgent, "", time.Minute},
		{fakeserver.LimitKeyDay, "GET", anAgent, "", 24 * time.Hour},
		{fakeserver.LimitAgentCreateIPMinute, "POST", "/v1/agents", "{}", time.Minute},
		{fakeserver.LimitBYOKSetKeyHour, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, time.Hour},
	} {
		fake, c := newFake(t, frozen())
		fake.Exhaust(c.key, fakeserver.Limit(row.limit))
		fake.Advance(time.Second)
		fake.Exhaust(c.key, fakeserver.Limit(row.limit)) // the window that is open keeps its end
		fake.SetPlan(c.key, fakeserver.PlanBYOK)
		left := strconv.Itoa(int(row.window/time.Second) - 1)
		for _, ip := range []string{"192.0.2.1", "198.51.100.9"} {
			c.from(fake, ip).call(row.method, row.path, row.body).wantLimited(t, row.limit, left)
		}
		c.with(fake.IssueKey(fakeserver.KeyOptions{})).times(1, row.method, row.path, row.body)
		fake.Advance(row.window - time.Second)
		c.times(1, row.method, row.path, row.body)
	}
}

// A window with a second left is shut for a second; a sliding one until its
// oldest call leaves. The limits per address have no window of the key's.
func TestExhaustInAWindow(t *testing.T) {
	for _, windows := range []string{"fixed", "sliding"} {
		for limit, wait := range map[string]string{fakeserver.LimitKeyMinute: "1", fakeserver.LimitIPMinute: "60"} {
			fake, c := newFake(t, frozen(), fakeserver.WithDecision("windows", windows))
			c.times(1, "GET", anAgent, noBody)
			fake.Advance(59 * time.Second)
			c.times(1, "GET", anAgent, noBody)
			fake.Exhaust(c.key, fakeserver.Limit(limit))
			c.call("GET", anAgent, noBody).wantLimited(t, limit, wait)
			fake.Advance(time.Minute)
			c.times(1, "GET", anAgent, noBody)
		}
	}
}

// A key that is used under two clocks fails the test, once. Its limits start
// afresh, also one that Exhaust has shut. An address does so in silence: bubbles
// and the outside share the default one.
func TestTwoClocks(t *testing.T) {
	now := time.Unix(year2040, 0)
	clock := fakeserver.WithClock(func() time.Time { return now })
	watch, fake, c := newSpied(t, clock, fakeserver.WithLimit("key_minute", 2), fakeserver.WithLimit("ip_minute", 3))
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	c.times(2, "GET", anAgent, noBody)
	now = now.Add(-24 * time.Hour) // a clock may be set back by as much
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "86460")
	fake.Exhaust(c.key, "key_day")
	now = now.Add(-time.Nanosecond)
	other.times(2, "GET", anAgent, noBody)
	assert.Empty(t, watch.errors)
	c.times(1, "GET", anAgent, noBody)
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "key_000001 was used under two clocks")
	c.call("GET", anAgent, noBody).wantLimited(t, "ip_minute", "60")
	assert.Len(t, watch.errors, 1)
}

// times makes the same call n times, each of which must be let through.
func (c caller) times(n int, method, path, body string) {
	c.t.Helper()
	for range n {
		r := c.call(method, path, body)
		require.NotEqual(c.t, 429, r.status, clipped(r.raw))
	}
}

// spent describes what a key and an address have spent, as of start.
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

func TestLimits(t *testing.T) {
	fake, c := newFake(t, frozen(), fakeserver.WithLimit("byok_set_key_hour", 2))
	const address = "203.0.113.7"
	here := c.from(fake, address)
	of := func(address string) string { return spent(fake.Limits(c.key, fakeserver.FromIP(address))) }
	here.agent(emptyBody)
	here.with(fake.IssueKey(fakeserver.KeyOptions{})).agent(emptyBody)
	here.setBYOK()
	here.setBYOK()
	here.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).wantLimited(t, "byok_set_key_hour", "3600")
	fake.Exhaust(c.key, "ip_minute")
	fake.SetPlan(c.key, fakeserver.PlanPro)
	assert.Equal(t, "key_minute 3/300, ip_minute 4/500 +1m0s, key_day 3/10000, agent_create_key_day 1/50, agent_create_ip_minute 2/10, "+
		"byok_set_key_hour 2/2 +1h0m0s, warmup_key_hour 0/3", of(address), "the address counts all keys")
	assert.Equal(t, of(address), of("::ffff:"+address))
	assert.Contains(t, of("203.0.113.8"), "ip_minute 0/500 +1m0s, ")
	assert.Equal(t, "key_minute 3/300, key_day 3/10000, agent_create_key_day 1/50, byok_set_key_hour 2/2 +1h0m0s, warmup_key_hour 0/3", spent(fake.Limits(c.key)))
	fake.Advance(time.Hour)
	assert.Equal(t, "key_minute 0/300, ip_minute 0/500, key_day 3/10000, agent_create_key_day 1/50, agent_create_ip_minute 0/10, "+
		"byok_set_key_hour 0/2, warmup_key_hour 0/3", of(address))
}
