package fakeserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestAuthorization(t *testing.T) {
	fake, c := newFake(t)
	key := fake.Key()
	for _, row := range []struct {
		values []string
		want   int
	}{
		{nil, 401},
		{[]string{"Bearer " + key}, 200},
		{[]string{"bearer " + key}, 200},
		{[]string{"BEARER " + key}, 200},
		{[]string{"Bearer   " + key}, 200},
		{[]string{""}, 401},
		{[]string{"Bearer"}, 401},
		{[]string{"Bearer "}, 401},
		{[]string{key}, 401},
		{[]string{"Basic " + key}, 401},
		{[]string{"Bearer" + key}, 401},
		{[]string{"Bearer " + key + " " + key}, 401},
		{[]string{"Bearer " + key + ", " + key}, 401},
		{[]string{"Bearer\t" + key}, 401},
		{[]string{"Bearer " + key + "x"}, 401},
		{[]string{"Bearer AMK_FAKE_000001"}, 401},
		{[]string{"Bearer " + key, "Bearer " + key}, 401},
	} {
		req := c.with("").request("GET", "/v1/status", noBody)
		if row.values != nil {
			req.Header["Authorization"] = row.values
		}
		resp, err := c.wire.RoundTrip(req)
		require.NoError(t, err)
		r := read(t, resp)
		assert.Equal(t, row.want, r.status, row.values)
		if row.want == 401 {
			assert.Equal(t, "unauthorized", r.text("error"))
			assert.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		} else {
			assert.Empty(t, r.header.Get("WWW-Authenticate"))
		}
	}
}

func TestKeysAndPlans(t *testing.T) {
	fake, c := newFake(t)
	assert.Equal(t, "amk_fake_000001", fake.Key())
	second := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree})
	assert.Equal(t, "amk_fake_000002", second)
	c.with(second).call("GET", "/v1/status", noBody).wantError(t, 402, "payment_required")
	for _, plan := range []fakeserver.Plan{"", fakeserver.PlanPreview, fakeserver.PlanPro, fakeserver.PlanBYOK} {
		fake.SetPlan(second, plan)
		c.with(second).call("GET", "/v1/status", noBody).wantOK(t)
	}
	fake.RevokeKey(second)
	fake.RevokeKey(second)
	c.with(second).call("GET", "/v1/status", noBody).wantError(t, 401, "unauthorized")
	fake.SetPlan(second, fakeserver.PlanFree)
	c.with(second).call("GET", "/v1/status", noBody).wantError(t, 401, "unauthorized")
	c.call("GET", "/v1/status", noBody).wantOK(t)
}

// Interface 5: BYOK and warm-up in byok mode require a dashboard-issued key.
func TestNotDashboard(t *testing.T) {
	fake, c := newFake(t)
	c = c.with(fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true}))
	for _, call := range [][3]string{
		{"GET", "/v1/byok", noBody},
		{"PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`},
		{"DELETE", "/v1/byok", noBody},
		{"POST", "/v1/warmup", `{"mode":"byok"}`},
	} {
		c.call(call[0], call[1], call[2]).wantError(t, 403, "forbidden")
	}
	c.call("GET", "/v1/status", noBody).wantOK(t)
	c.call("POST", "/v1/warmup", noBody).wantOK(t)
	c.call("POST", "/v1/warmup", `{"mode":"hosted"}`).wantOK(t)
	c.send(c.agent(emptyBody), "hello").wantOK(t)
}

// Interface 2.4 and 5: everything is scoped to the API key.
func TestKeysAreIsolated(t *testing.T) {
	fake, c := newFake(t)
	other := c.with(fake.IssueKey(fakeserver.KeyOptions{}))
	c.setBYOK()
	assert.Nil(t, other.call("GET", "/v1/byok", noBody).body["byok"])
	agent := c.agent(`{"llm":{"mode":"byok"}}`)
	other.call("POST", "/v1/agents", `{"llm":{"mode":"byok"}}`).wantError(t, 400, "byok_not_configured")
	other.call("GET", "/v1/agents/"+agent, noBody).wantError(t, 404, "not_found")
	other.send(agent, "hello").wantError(t, 404, "not_found")
	other.call("POST", "/v1/agents/"+agent+"/channels/sms", `{"mode":"sandbox"}`).wantError(t, 404, "not_found")
	other.call("DELETE", "/v1/byok", noBody).wantOK(t)
	c.send(agent, "hello").wantOK(t)
	fake.Exhaust(other.key, "key_minute")
	c.send(agent, "hello").wantOK(t)

	second, mine := newFake(t)
	mine.call("GET", "/v1/agents/"+agent, noBody).wantError(t, 404, "not_found")
	assert.Empty(t, second.Agents())
}
