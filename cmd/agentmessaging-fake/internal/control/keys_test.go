package control_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

func TestKeys(t *testing.T) {
	a := newAPI(t, control.Options{})
	r := a.must(201, "POST", "/keys", `{"plan":"pro","dashboard":false}`)
	assert.JSONEq(t, `{"label":"key_000002","key":"amk_fake_000002","plan":"pro","dashboard":false}`, r.raw)
	key := r.text("key")
	assert.JSONEq(t, `{"label":"key_000003","key":"amk_fake_000003","plan":"preview","dashboard":true}`, a.must(201, "POST", "/keys", `{}`).raw)
	assert.Equal(t, 403, a.service(key, "GET", "/v1/byok", "").status)
	a.must(200, "PATCH", "/keys/key_000002", `{"revoked":true}`)
	assert.Equal(t, 401, a.service(key, "GET", "/v1/status", "").status)
	assert.Equal(t, "free", a.must(200, "PATCH", "/keys/key_000002", `{"revoked":false,"plan":"free"}`).text("plan"))
	assert.Equal(t, 402, a.service(key, "GET", "/v1/status", "").status)
	keys := a.must(200, "GET", "/keys", "")
	assert.NotContains(t, keys.raw, "amk_", "the text is shown once")
	second := keys.list("keys")[1].(map[string]any)
	assert.Equal(t, []any{"key_000002", "free", false, false, false}, pick(second, "label", "plan", "dashboard", "revoked", "default"))
	assert.NotEmpty(t, second["issued_at"])
	assert.Equal(t, true, keys.list("keys")[0].(map[string]any)["default"])
}

func TestLimits(t *testing.T) {
	a := newAPI(t, control.Options{})
	limit := func(query string, i int) map[string]any {
		return a.must(200, "GET", "/keys/key_000001"+query, "").list("limits")[i].(map[string]any)
	}
	assert.Equal(t, "127.0.0.1", a.must(200, "GET", "/keys/key_000001", "").text("address"), "before any call")
	a.service(a.server.Key(), "POST", "/v1/agents", "{}") // from 192.0.2.1, as httptest has it
	assert.Equal(t, "192.0.2.1", a.must(200, "GET", "/keys/key_000001", "").text("address"))
	assert.Equal(t, []any{120., 1., 119., "1m0s", nil}, pick(limit("", 1), "max", "used", "left", "window", "opens_at"))
	assert.Equal(t, 0., limit("?address=203.0.113.1", 1)["used"])
	a.must(204, "POST", "/keys/key_000001/limits/agent_create_key_day/exhaust", "")
	day := limit("", 3)
	assert.Equal(t, []any{50., 1., 0.}, pick(day, "max", "used", "left"))
	assert.NotNil(t, day["opens_at"])
	assert.Equal(t, "agent_create_key_day", a.service(a.server.Key(), "POST", "/v1/agents", "{}").text("limit_key"))
	a.must(200, "POST", "/clock", `{"duration":"24h"}`)
	assert.Nil(t, limit("", 3)["opens_at"])
	assert.Equal(t, 200, a.service(a.server.Key(), "POST", "/v1/agents", "{}").status)
}

func TestBYOK(t *testing.T) {
	a := newAPI(t, control.Options{})
	set := func() int {
		return a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123","label":"l"}`).status
	}
	assert.JSONEq(t, `{"available":false}`, a.must(200, "PUT", "/byok", `{"available":false}`).raw)
	assert.Equal(t, 503, set())
	a.must(200, "PUT", "/byok", `{"available":true}`)
	assert.Nil(t, a.must(200, "GET", "/keys/key_000001", "").body["byok"])
	assert.Equal(t, 200, set())
	shown := a.must(200, "GET", "/keys/key_000001", "")
	assert.Equal(t, []any{"openai", "l"}, pick(shown.body["byok"].(map[string]any), "provider", "label"))
	assert.NotContains(t, shown.raw, "canary")
}
