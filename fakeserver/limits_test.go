package fakeserver_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// frozen makes time stand still but for Advance.
func frozen() fakeserver.Option {
	return fakeserver.WithClock(func() time.Time { return time.Unix(year2040, 0) })
}

const anAgent = "/v1/agents/agent_000001"

// The seven limits of interface 8.1, in its own digits. Addresses keep those
// per key and per address apart.
func TestPreviewLimits(t *testing.T) {
	setKey := `{"provider":"openai","api_key":"sk"}`
	for _, row := range []struct {
		limit, method, path, body string
		max                       int
		wait                      string
	}{
		{"key_minute", "GET", anAgent, "", 60, "60"},
		{"byok_set_key_hour", "PUT", "/v1/byok", setKey, 5, "3600"},
		{"byok_set_key_hour", "POST", "/v1/agents", `{"llm":{"provider":"openai","api_key":"sk"}}`, 5, "3600"},
		{"warmup_key_hour", "POST", "/v1/warmup", "", 3, "3600"},
		{"agent_create_ip_minute", "POST", "/v1/agents", "{}", 10, "60"},
	} {
		t.Run(row.limit+" "+row.path, func(t *testing.T) {
			_, c := newFake(t, frozen())
			c.times(row.max, row.method, row.path, row.body)
			c.call(row.method, row.path, row.body).wantLimited(t, row.limit, row.wait)
		})
	}
}

func TestPreviewLimitsOfADayAndAnAddress(t *testing.T) {
	t.Run("key_day", func(t *testing.T) {
		fake, c := newFake(t, frozen())
		for range 20 {
			c.times(50, "GET", anAgent, noBody)
			fake.Advance(time.Minute)
		}
		c.call("GET", anAgent, noBody).wantLimited(t, "key_day", strconv.Itoa(86400-20*60))
	})
	t.Run("agent_create_key_day", func(t *testing.T) {
		fake, c := newFake(t, frozen())
		for range 5 {
			c.times(10, "POST", "/v1/agents", emptyBody)
			fake.Advance(time.Minute)
		}
		c.call("POST", "/v1/agents", emptyBody).wantLimited(t, "agent_create_key_day", strconv.Itoa(86400-5*60))
		assert.Len(t, fake.Agents(), 50)
	})
	t.Run("ip_minute", func(t *testing.T) {
		fake, c := newFake(t, frozen())
		for range 3 {
			c.with(fake.IssueKey(fakeserver.KeyOptions{})).times(40, "GET", anAgent, noBody)
		}
		c.call("GET", anAgent, noBody).wantLimited(t, "ip_minute", "60")
		c.from(fake, "2001:db8::1").call("GET", anAgent, noBody).wantError(t, 404, "not_found")
		c.from(fake, "::ffff:192.0.2.1").call("GET", anAgent, noBody).wantLimited(t, "ip_minute", "60")
	})
}

// The first two columns of interface 8.2, in its own digits; the day is tested
// inside the package.
func TestPlanLimits(t *testing.T) {
	for _, row := range []struct {
		plan                fakeserver.Plan
		keyMinute, ipMinute int
	}{
		{fakeserver.PlanPreview, 60, 120},
		{fakeserver.PlanPro, 300, 500},
		{fakeserver.PlanBYOK, 600, 1000},
	} {
		fake, c := newFake(t, frozen())
		issue := func() caller { return c.with(fake.IssueKey(fakeserver.KeyOptions{Plan: row.plan})) }
		c = issue()
		c.times(row.keyMinute, "GET", anAgent, noBody)
		c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
		issue().times(row.ipMinute-row.keyMinute, "GET", anAgent, noBody)
		issue().call("GET", anAgent, noBody).wantLimited(t, "ip_minute", "60")
	}
}

// What was counted stays counted when the plan changes.
func TestSetPlanKeepsCounts(t *testing.T) {
	fake, c := newFake(t, frozen())
	c.times(60, "GET", anAgent, noBody)
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	fake.SetPlan(c.key, fakeserver.PlanPro)
	c.times(240, "GET", anAgent, noBody)
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	fake.SetPlan(c.key, fakeserver.PlanPreview)
	c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
}

// What spends: a call that got past 402, unless it was itself refused. An
// operation limit is spent by an operation that goes through only.
func TestAccounting(t *testing.T) {
	const limit = 3
	bad, setKey := `{"x":1}`, `{"provider":"openai","api_key":"sk"}`
	for _, row := range []struct {
		name, method, path, body string
		spends                   bool
	}{
		{"404 of an agent", "GET", anAgent, "", true},
		{"400", "POST", "/v1/agents", bad, true},
		{"409", "POST", "/v1/warmup", `{"mode":"byok"}`, true},
		{"200", "POST", "/v1/warmup", "", true},
		{"404 of a route", "GET", "/v1/nothing", "", false},
		{"405", "POST", "/v1/status", "", false},
		{"status", "GET", "/v1/status", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes(), fakeserver.WithLimit("key_minute", limit))
			c.times(limit, row.method, row.path, row.body)
			limited := c.call("GET", anAgent, noBody).status == 429
			assert.Equal(t, row.spends, limited)
		})
	}
	t.Run("401 and 402 spend nothing", func(t *testing.T) {
		fake, c := newFake(t, frozen(), fakeserver.WithLimit("ip_minute", limit))
		free := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree})
		c.with("amk_unknown").times(2*limit, "GET", anAgent, noBody)
		c.with(free).times(2*limit, "GET", anAgent, noBody)
		c.times(limit, "GET", anAgent, noBody)
	})
	t.Run("403 and 503 spend requests, not operations", func(t *testing.T) {
		fake, c := newFake(t, frozen())
		fake.SetBYOKAvailable(false)
		c.times(55, "PUT", "/v1/byok", setKey)
		fake.SetBYOKAvailable(true)
		c.times(5, "PUT", "/v1/byok", setKey)
		c.call("PUT", "/v1/byok", setKey).wantLimited(t, "byok_set_key_hour", "3600")
		other := c.with(fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true}))
		other.times(60, "GET", anAgent, noBody)
		other.call("PUT", "/v1/byok", setKey).wantLimited(t, "key_minute", "60")
	})
}

// A call that is answered 429 takes nothing, from any limit.
func TestRefusedCallsSpendNothing(t *testing.T) {
	fake, c := newFake(t, frozen())
	fake.Exhaust(c.key, "byok_set_key_hour")
	withKey := `{"llm":{"provider":"openai","api_key":"sk"}}`
	for range 100 {
		c.call("POST", "/v1/agents", withKey).wantLimited(t, "byok_set_key_hour", "3600")
	}
	assert.Empty(t, fake.Agents())
	assert.Nil(t, c.call("GET", "/v1/byok", noBody).body["byok"])
	c.times(10, "POST", "/v1/agents", emptyBody) // no creation was taken
	c.times(50, "GET", anAgent, noBody)          // nor any request
	for range 100 {
		c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	}
	fake.Advance(time.Minute)
	c.times(60, "GET", anAgent, noBody)
}

// The limit that opens last is named, and waiting for it is enough.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, sliding := range []bool{false, true} {
		opts := []fakeserver.Option{frozen()}
		if sliding {
			opts = append(opts, fakeserver.WithSlidingWindows())
		}
		t.Run(fmt.Sprint("sliding ", sliding), func(t *testing.T) {
			fake, c := newFake(t, opts...)
			fake.Advance(300 * time.Millisecond)
			c.times(3, "POST", "/v1/warmup", noBody)
			fake.Advance(30*time.Second + 100*time.Millisecond)
			c.times(57, "GET", anAgent, noBody)
			r := c.call("POST", "/v1/warmup", noBody)
			r.wantLimited(t, "warmup_key_hour", "3570") // key_minute opens earlier
			c.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "30")
			c.call("POST", "/v1/warmup", "{").wantLimited(t, "key_minute", "30") // would not be carried out
			wait, err := strconv.Atoi(r.header.Get("Retry-After"))
			require.NoError(t, err)
			fake.Advance(time.Duration(wait-1) * time.Second)
			c.call("POST", "/v1/warmup", noBody).wantLimited(t, "warmup_key_hour", "1")
			fake.Advance(time.Second)
			c.call("POST", "/v1/warmup", noBody).wantOK(t)
		})
	}
}

func TestConcurrentCallsTakeExactly(t *testing.T) {
	const callers, each = 64, 20
	fake, c := newFake(t, frozen(), fakeserver.WithLimit("key_minute", 500), fakeserver.WithLimit("ip_minute", 10_000))
	agent := c.agent(emptyBody)
	fake.OnMessage().Reply("a", "b", "c")
	var accepted, refused atomic.Int64
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for range each {
				switch c.send(agent, "hello").status {
				case 200:
					accepted.Add(1)
				case 429:
					refused.Add(1)
				}
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, 499, accepted.Load())
	assert.EqualValues(t, callers*each-499, refused.Load())
	assert.Len(t, fake.Conversation(agent), 499)
	assert.Equal(t, 1000, fake.CallCount())
	assert.Equal(t, callers*each+1-1000, fake.Admin().DroppedCalls())
	replies := map[string]int{}
	for _, e := range fake.Conversation(agent) {
		replies[e.ReplyText]++
	}
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 497}, replies)
}

func TestManyAddresses(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithLimit("key_minute", 1<<20), fakeserver.WithLimit("key_day", 1<<20))
	for i := range 3000 {
		c.from(fake, fmt.Sprintf("10.0.%d.%d", i/250, i%250)).call("GET", anAgent, noBody)
		fake.Advance(time.Second)
	}
	c.call("GET", anAgent, noBody).wantError(t, 404, "not_found")
}
