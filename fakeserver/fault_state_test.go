package fakeserver_test

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Nothing of a refused call is sent, on a connection that is open neither, and
// its record says so.
func TestRefusedConnection(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	for way, wire := range transports(t, fake, fakeserver.FromIP("203.0.113.7")) {
		c.wire = wire
		c.send(agent, "before").wantOK(t) // the wire has a connection now
		refusal := fake.Inject(fakeserver.RefuseConnection(), fakeserver.ByText("hello"), fakeserver.ByKey(c.key)).From(2)
		c.send(agent, "hello").wantOK(t)
		for range 2 {
			hooks := 0
			trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { hooks++ }, WroteHeaders: func() { hooks++ }}
			req := c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"hello"}`)
			_, err := c.wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace))) //nolint:bodyclose // there is none
			var dial *net.OpError
			require.ErrorAs(t, err, &dial, way)
			assert.Equal(t, "dial", dial.Op)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED, way)
			assert.Zero(t, hooks, way)
		}
		c.send(agent, "other").wantOK(t)
		assert.Equal(t, 2, refusal.Hits())
		refusal.Remove()
		c.send(agent, "hello").wantOK(t)
		calls := fake.Calls(fakeserver.Where(func(c fakeserver.Call) bool { return c.Fault == "RefuseConnection()" }))
		last := calls[len(calls)-1]
		assert.Equal(t, []any{0, fakeserver.Sent{Broke: "refused"}, "203.0.113.7", "key_000001", agent},
			[]any{last.Status, last.Sent, last.Address, last.Key, last.AgentID})
		assert.Contains(t, last.String(), ": no answer, refused [")
	}
	assert.Len(t, fake.Conversation(agent), 2*4, "no refused call had an effect")
}

func TestFromTheNthCallOn(t *testing.T) {
	fake, c := newFake(t)
	in := fake.Inject(fakeserver.Answer(500, "")).From(3).Times(2)
	var got []int
	for range 6 {
		got = append(got, c.call("GET", "/v1/status", noBody).status)
	}
	assert.Equal(t, []int{200, 200, 500, 500, 200, 200}, got)
	assert.Equal(t, "fakeserver: From: 0 is less than 1; the first call is 1", panicOf(func() { in.From(0) }))
}

// The state changes at a call, which is then answered in the new state.
func TestChangeAtACall(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.Change("the plan ends", func() { fake.SetPlan(c.key, fakeserver.PlanFree) })).Nth(2)
	c.call("GET", "/v1/status", noBody).wantOK(t)
	c.call("GET", "/v1/status", noBody).wantError(t, 402, "payment_required")
	assert.Equal(t, "Change(the plan ends)", fake.Calls()[1].Fault)
	assert.Equal(t, 402, fake.Calls()[1].Status)
	assert.Contains(t, panicOf(func() { fakeserver.Change("x", nil) }), "Change: the function is nil")

	watch, fake, c := newSpied(t)
	fake.Inject(fakeserver.Change("nothing", func() { panic("oops") })).Times(1)
	assert.Equal(t, "EOF", seen(c.wire, c.request("GET", "/v1/status", noBody)))
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "the function of Inject(Change(nothing)) panicked: oops")
}

func TestAgentsAndKeysComeAndGo(t *testing.T) {
	fake, c := newFake(t)
	first, second := c.agent(emptyBody), c.agent(emptyBody)
	assert.Equal(t, first, fake.Calls()[0].Created)
	fake.RemoveAgent(first)
	c.send(first, "x").wantError(t, 404, "not_found")
	c.send(second, "x").wantOK(t)
	assert.Len(t, fake.Agents(), 1)
	assert.Contains(t, panicOf(func() { fake.RemoveAgent(first) }), "RemoveAgent: no agent has the identifier")
	third := c.agent(emptyBody)
	assert.Equal(t, "agent_000003", third, "an identifier is not given twice")

	fake.RevokeKey(c.key)
	c.send(second, "x").wantError(t, 401, "unauthorized")
	fake.ReinstateKey(c.key)
	c.send(second, "x").wantOK(t)
	assert.Contains(t, panicOf(func() { fake.ReinstateKey("other") }), "ReinstateKey: this fake did not issue")
}

// An injected status reads as the service's own.
func TestInjectedStatusesAreTheServices(t *testing.T) {
	provoke := map[string]func(*fakeserver.Server, caller) reply{
		"POST /v1/warmup 409": func(_ *fakeserver.Server, c caller) reply { return c.call("POST", "/v1/warmup", `{"mode":"byok"}`) },
		"POST /v1/warmup 503": func(f *fakeserver.Server, c caller) reply {
			f.SetBYOKAvailable(false)
			return c.call("POST", "/v1/warmup", `{"mode":"byok"}`)
		},
		"PUT /v1/byok 503": func(f *fakeserver.Server, c caller) reply {
			f.SetBYOKAvailable(false)
			return c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"k"}`)
		},
		"GET /v1/byok 403": func(f *fakeserver.Server, c caller) reply {
			return c.with(f.IssueKey(fakeserver.KeyOptions{NotDashboard: true})).call("GET", "/v1/byok", noBody)
		},
		"GET /v1/byok 402": func(f *fakeserver.Server, c caller) reply {
			f.SetPlan(c.key, fakeserver.PlanFree)
			return c.call("GET", "/v1/byok", noBody)
		},
		"GET /v1/byok 401": func(f *fakeserver.Server, c caller) reply {
			f.RevokeKey(c.key)
			return c.call("GET", "/v1/byok", noBody)
		},
		"GET /v1/agents/a 404": func(_ *fakeserver.Server, c caller) reply { return c.call("GET", "/v1/agents/a", noBody) },
		"POST /v1/warmup 429": func(f *fakeserver.Server, c caller) reply {
			f.Exhaust(c.key, fakeserver.LimitKeyMinute)
			return c.call("POST", "/v1/warmup", noBody)
		},
	}
	for name, does := range provoke {
		t.Run(name, func(t *testing.T) {
			fake, c := newFake(t, frozen())
			own := does(fake, c)
			fake.Reset()
			parts := strings.Fields(name)
			status, _ := strconv.Atoi(parts[2])
			require.Equal(t, status, own.status)
			fake.Inject(fakeserver.Answer(status, ""))
			injected := c.call(parts[0], parts[1], noBody)
			for _, r := range []reply{own, injected} {
				r.header.Del("Retry-After")
				r.header.Del("Content-Length")
				delete(r.body, "trace_id")
			}
			assert.Equal(t, own.body, injected.body)
			assert.Equal(t, own.header, injected.header)
		})
	}
}

// A limit that is closed for an hour is not the minute's.
func TestRateLimitedNamesALimitOfItsLength(t *testing.T) {
	for _, row := range []struct{ method, path, retryAfter, limit string }{
		{"GET", "/v1/agents/a", "60", "key_minute"},
		{"GET", "/v1/agents/a", "61", "key_day"},
		{"GET", "/v1/agents/a", "90000", "key_day"},
		{"GET", "/v1/agents/a", "soon", "key_minute"},
		{"GET", "/v1/agents/a", "1e300", "key_day"},
		{"GET", "/v1/agents/a", "Sun, 01 Jan 2040 12:00:00 GMT", "key_day"},
		{"POST", "/v1/warmup", "3600", "warmup_key_hour"},
		{"PUT", "/v1/byok", "61", "byok_set_key_hour"},
		{"POST", "/v1/agents", "3601", "key_day"},
		{"GET", "/v1/status", "61", "key_day"},
	} {
		fake, c := newFake(t, frozen())
		fake.Inject(fakeserver.RateLimited(row.retryAfter))
		r := c.call(row.method, row.path, noBody)
		assert.Equal(t, row.limit, r.text("limit_key"), row)
		assert.Equal(t, http.StatusTooManyRequests, r.status)
	}
}
