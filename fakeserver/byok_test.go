package fakeserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The reason names the member that asks for what is not there.
func TestBYOKFailuresNameTheirMember(t *testing.T) {
	fake, c := newFake(t)
	const creation = `{"llm":{"provider":"openai","api_key":"sk"}}`
	for _, row := range []struct {
		available                  bool
		method, path, body, member string
	}{
		{true, "POST", "/v1/warmup", `{"mode":"byok"}`, "mode"},
		{true, "POST", "/v1/agents", `{"llm":{"mode":"byok"}}`, "llm.mode"},
		{true, "POST", "/v1/agents", `{"llm":{"api_key":"sk"}}`, "llm.provider"},
		{false, "POST", "/v1/warmup", `{"mode":"byok"}`, "mode"},
		{false, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`, "api_key"},
		{false, "POST", "/v1/agents", creation, "llm.api_key"},
	} {
		fake.SetBYOKAvailable(row.available)
		r := c.call(row.method, row.path, row.body)
		assert.True(t, strings.HasPrefix(r.text("reason"), row.member+": "), "%+v: %s", row, clipped(r.raw))
		assert.Equal(t, row.member, fake.Calls()[fake.CallCount()-1].Member)
	}
}

func TestStoreBYOK(t *testing.T) {
	fake, c := newFake(t, frozen())
	other := fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
	read, set := fake.BYOK(c.key)
	assert.Equal(t, []any{fakeserver.BYOK{}, false}, []any{read, set}, "before StoreBYOK")
	fake.SetBYOKAvailable(false)
	want := fakeserver.BYOK{Provider: "anthropic", BaseURL: "https://x", Model: "m", Label: "l"}
	stored := fake.StoreBYOK(c.key, "sk-canary", want)
	assert.Regexp(t, "^[0-9a-f]{16}$", stored.Fingerprint)
	want.Fingerprint, want.UpdatedAt = stored.Fingerprint, time.Unix(year2040, 0).UTC()
	read, set = fake.BYOK(c.key)
	assert.Equal(t, []any{want, want, true}, []any{stored, read, set}, "after StoreBYOK")
	assert.Equal(t, fakeserver.BYOK{Provider: "openai", Fingerprint: stored.Fingerprint, UpdatedAt: want.UpdatedAt},
		fake.StoreBYOK(other, "sk-canary", fakeserver.BYOK{Provider: "openai"}), "the same provider key")
	assert.Zero(t, fake.Limits(c.key)[3].Used)
	assert.Empty(t, fake.Calls())
	wire := c.call("GET", "/v1/byok", noBody).body["byok"]
	assert.Equal(t, map[string]any{"provider": "anthropic", "base_url": "https://x", "model": "m", "fingerprint": read.Fingerprint, "updated_at": "2040-01-01T00:00:00Z"}, wire)
	assert.NotEqual(t, stored.Fingerprint, fake.StoreBYOK(other, "sk-another", fakeserver.BYOK{Provider: "openai"}).Fingerprint)
	c.agent(`{"llm":{"mode":"byok"}}`)
}
