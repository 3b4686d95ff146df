package fakeserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestRoutes(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	agent := c.agent(emptyBody)
	for _, row := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/v1/status", 200, ""},
		{"GET", "/v1/agents/" + agent, 200, ""},
		{"GET", "/v1/agents/%61gent_000001", 200, ""},
		{"GET", "/v1/status?verbose=1", 200, ""},
		{"GET", "/", 404, ""},
		{"GET", "/v1", 404, ""},
		{"GET", "/v2/status", 404, ""},
		{"GET", "/v1/status/", 404, ""},
		{"GET", "/v1//status", 404, ""},
		{"GET", "//v1/status", 404, ""},
		{"GET", "/v1/./status", 404, ""},
		{"GET", "/v1/agents/../status", 404, ""},
		{"GET", "/v1/agents/", 404, ""},
		{"GET", "/v1/agents/.", 404, ""},
		{"GET", "/v1/agents/..", 404, ""},
		{"POST", "/v1/agents/.", 404, ""},
		{"POST", "/v1/agents/..", 404, ""},
		{"POST", "/v1/agents/%2e%2e", 405, "GET"},
		{"GET", "/v1/agents//messages", 404, ""},
		{"GET", "/v1/agents/%2e%2e", 404, ""},
		{"POST", "/v1/agent%73", 404, ""},
		{"GET", "/v1/agents/..%2Fstatus", 404, ""},
		{"GET", "/v1/agents/" + agent + "%2Fmessages", 404, ""},
		{"POST", "/v1/agents/" + agent + "%2Fmessages", 405, "GET"},
		{"GET", "/v1/Status", 404, ""},
		{"POST", "/v1/status", 405, "GET"},
		{"HEAD", "/v1/warmup", 405, "POST"},
		{"PATCH", "/v1/byok", 405, "GET, PUT, DELETE"},
		{"GET", "/v1/agents", 405, "POST"},
		{"DELETE", "/v1/agents/" + agent, 405, "GET"},
		{"GET", "/v1/agents/" + agent + "/messages", 405, "POST"},
		{"GET", "/v1/agents/" + agent + "/channels/sms", 405, "POST"},
		{"GET", "/v1/agents/" + agent + "/channels", 404, ""},
	} {
		resp, err := c.wire.RoundTrip(c.request(row.method, row.path, noBody))
		if assert.NoError(t, err) {
			assert.Equal(t, row.status, resp.StatusCode, "%s %s", row.method, row.path)
			assert.Equal(t, row.allow, resp.Header.Get("Allow"), "%s %s", row.method, row.path)
			assert.Empty(t, resp.Header.Get("Location"))
		}
	}
	assert.Empty(t, fake.Calls()[5].Endpoint, "no endpoint has the path")
	assert.Equal(t, "GET /v1/agents/{agent_id}", string(fakeserver.EndpointGetAgent))
}

// Braces need an escape, but net/http's server accepts them without.
func TestPathsAreTakenAsTheyWereSent(t *testing.T) {
	fake, _ := newFake(t, fakeserver.WithUnknownRoutes())
	for path, want := range map[string]int{"/v1/agent%73/{a}": 404, "/v1/agents/{a}": 401, "/v1/agents/%7Ba%7D": 401} {
		w := httptest.NewRecorder()
		fake.ServeHTTP(w, httptest.NewRequest("GET", path, http.NoBody))
		assert.Equal(t, want, w.Code, path)
		calls := fake.Calls()
		assert.Equal(t, path, calls[len(calls)-1].Path)
	}
}

func TestStatus(t *testing.T) {
	_, c := newFake(t)
	r := c.call("GET", "/v1/status", `"a body that nobody asked for"`)
	r.wantOK(t)
	assert.JSONEq(t, `{"ok":true,"service":"agent-messaging-fake","version":"v1","mode":"preview","trace_id":"trace_000001"}`, r.raw)
}

func TestWarmUp(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithLimit("warmup_key_hour", 100))
	fake.SetBYOKAvailable(false)
	for body, mode := range map[string]string{noBody: "hosted", emptyBody: "hosted", `{"mode":"hosted"}`: "hosted"} {
		r := c.call("POST", "/v1/warmup", body)
		assert.JSONEq(t, `{"ok":true,"warmed":true,"mode":"`+mode+`","trace_id":"`+r.text("trace_id")+`"}`, r.raw)
	}
	c.call("POST", "/v1/warmup", `{"mode":"byok"}`).wantError(t, 503, "byok_unavailable")
	fake.SetBYOKAvailable(true)
	c.call("POST", "/v1/warmup", `{"mode":"byok"}`).wantError(t, 409, "byok_not_configured")
	c.setBYOK()
	assert.Equal(t, "byok", c.call("POST", "/v1/warmup", `{"mode":"byok"}`).text("mode"))
	c.call("POST", "/v1/warmup", `{"mode":"cold"}`).wantReason(t, "mode: must be one of hosted, byok")
	c.call("POST", "/v1/warmup", " ").wantReason(t, "body: must be one JSON document and nothing else")
}
