package fakeserver_test

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Nothing of a refused call is sent, on a connection that is open neither, and
// its record says so. Only calls that match are counted.
func TestRefusedConnection(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	for way, wire := range transports(t, fake, fakeserver.FromIP("203.0.113.7")) {
		c.wire = wire
		refusal := fake.Inject(fakeserver.RefuseConnection(), fakeserver.ByText("hello"), fakeserver.ByKey(c.key)).From(2)
		c.send(agent, "hello").wantOK(t) // the wire has a connection now
		c.send(agent, "other").wantOK(t)
		hooks := 0
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { hooks++ }, WroteHeaders: func() { hooks++ }}
		req := c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"hello"}`)
		_, err := c.wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace))) //nolint:bodyclose // there is none
		var dial *net.OpError
		require.ErrorAs(t, err, &dial, way)
		assert.Equal(t, "dial tcp fake:443: connect: connection refused", dial.Error(), "not the name that tells what is missing")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED, way)
		assert.Zero(t, hooks, way)
		assert.Equal(t, 1, refusal.Hits())
		refusal.Remove()
		last := fake.Calls()[fake.CallCount()-1]
		assert.Equal(t, []any{0, fakeserver.Sent{Ended: last.Time, Broke: "refused"}, "203.0.113.7"}, []any{last.Status, last.Sent, last.Address})
		assert.Contains(t, last.String(), "/v1/agents/agent_000001/messages key_000001: no answer, refused: RefuseConnection() refused the connection: nothing was sent")
		c.send(agent, "hello").wantOK(t)
	}
	assert.Len(t, fake.Conversation(agent), 2*3, "no refused call had an effect")
}

// An injected status reads as the service's own.
func TestInjectedStatusesAreTheServices(t *testing.T) {
	const byok, wants = `{"provider":"openai","api_key":"k"}`, `{"mode":"byok"}`
	down := func(f *fakeserver.Server, _ string) { f.SetBYOKAvailable(false) }
	for _, row := range []struct {
		status             int
		method, path, body string
		provoke            func(f *fakeserver.Server, key string)
	}{
		{401, "GET", "/v1/byok", "", (*fakeserver.Server).RevokeKey},
		{402, "GET", "/v1/byok", "", func(f *fakeserver.Server, key string) { f.SetPlan(key, fakeserver.PlanFree) }},
		{403, "GET", "/v1/byok", "", nil},
		{404, "GET", "/v1/agents/a", "", nil},
		{409, "POST", "/v1/warmup", wants, nil},
		{429, "POST", "/v1/warmup", "", func(f *fakeserver.Server, key string) { f.Exhaust(key, fakeserver.LimitKeyMinute) }},
		{503, "POST", "/v1/warmup", wants, down},
		{503, "PUT", "/v1/byok", byok, down},
		{404, "GET", "/v1/nothing", "", nil},
		{404, "DELETE", "/v1/byok", "", nil},
	} {
		fake, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes(), fakeserver.WithDecision("clear_nothing", 404))
		c = c.with(fake.IssueKey(fakeserver.KeyOptions{NotDashboard: row.status == 403}))
		if row.provoke != nil {
			row.provoke(fake, c.key)
		}
		own := c.call(row.method, row.path, row.body)
		require.Equal(t, row.status, own.status)
		fault := fake.Inject(fakeserver.Answer(row.status, ""))
		injected := c.call(row.method, row.path, noBody)
		c.with("").call(row.method, row.path, noBody).wantError(t, row.status, injected.text("error")) // it comes before the key
		assert.Equal(t, 2, fault.Hits(), row.path)
		for _, r := range []reply{own, injected} {
			r.header.Del("Retry-After")
			r.header.Del("Content-Length")
			delete(r.body, "trace_id")
		}
		assert.Equal(t, own.body, injected.body)
		assert.Equal(t, own.header, injected.header)
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
	} {
		fake, c := newFake(t, frozen())
		fake.Inject(fakeserver.RateLimited(row.retryAfter))
		r := c.call(row.method, row.path, noBody)
		assert.Equal(t, row.limit, r.text("limit_key"), row)
		assert.Equal(t, http.StatusTooManyRequests, r.status)
	}
}
