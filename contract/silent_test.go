package contract_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// silentDifferences are services that differ from the fake only where the
// interface is silent.
var silentDifferences = []struct {
	name   string
	opts   []fakeserver.Option
	tamper func(r *reply)
}{
	{"sliding windows", []fakeserver.Option{fakeserver.WithSlidingWindows()}, func(*reply) {}},
	{"small metadata cap", []fakeserver.Option{fakeserver.WithMetadataCap(100)}, func(*reply) {}},
	{"member more in success bodies", nil, on(200, func(r *reply) {
		if r.req.URL.Path != "/v1/status" {
			r.body["region"] = "eu"
		}
	})},
	{"member more in sms", nil, in("sms", func(r *reply) { r.body["carrier"] = "x" })},
	{"member more in errors", nil, on(400, func(r *reply) { r.body["detail"] = map[string]any{"a": 1} })},
	{"DELETE with nothing stored is 404", nil, func(r *reply) {
		if r.req.Method == "DELETE" && r.status == 200 && r.fake.CallCount(fakeserver.Where(stores)) == 0 {
			r.refuse(404, "not_found")
		}
	}},
	{"other error names", nil, func(r *reply) {
		if code, ok := r.body["error"].(string); ok && r.status != 429 {
			r.body["error"] = "E_" + strings.ToUpper(code)
		}
	}},
	{"other limit names", nil, set("limit_key", "limit_key", "requests")},
	{"no reason", nil, without("reason")},
	{"errors without trace_id", nil, func(r *reply) {
		if r.status >= 400 && r.status != 429 {
			delete(r.body, "trace_id")
		}
	}},
	{"one trace_id for all", nil, set("trace_id", "trace_id", "t")},
	{"Retry-After with a reserve", nil, retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
	{"404 for 405", nil, status(405, 404)},
	{"Content-Type with charset", nil, func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }},
	{"UTF-16 units", nil, on(200, func(r *reply) {
		for _, max := range []int{60, 200, 400, 2000, 4000} {
			if text := r.text(); len([]rune(text)) == max && len(utf16.Encode([]rune(text))) > max {
				r.refuse(400, "bad_request")
			}
		}
	})},
	{"times as Unix seconds", nil, func(r *reply) {
		for _, name := range []string{"created_at", "updated_at"} {
			if text, ok := r.body[name].(string); ok {
				at, _ := time.Parse(time.RFC3339Nano, text)
				r.body[name] = strconv.FormatInt(at.Unix(), 10)
			}
		}
	}},
	{"another fingerprint each time", nil, in("byok", set("fingerprint", "fingerprint", "fp_8c1d"))},
	{"base_url and model absent for null", nil, in("byok", func(r *reply) {
		for _, name := range []string{"base_url", "model"} {
			if r.body[name] == nil {
				delete(r.body, name)
			}
		}
	})},
	{"SMS always pending", nil, func(r *reply) {
		in("sms", set("status", "status", "pending"))(r)
		if strings.HasSuffix(r.req.URL.Path, "/sms") && r.status == 200 {
			r.body["status"] = "pending"
		}
	}},
	{"sms member though none was asked for", nil, set("agent_id", "sms", map[string]any{"status": "disabled"})},
	{"read status idle", nil, set("created_at", "status", "idle")},
	{"warmed is false", nil, set("warmed", "warmed", false)},
	{"ok is false", nil, set("ok", "ok", false)},
	{"an empty reply", nil, set("reply_text", "reply_text", "")},
	{"warnings", nil, set("reply_text", "warnings", []any{"slow"})},
	{"status of a live service", nil, func(r *reply) {
		if r.req.URL.Path == "/v1/status" && r.status == 200 {
			r.body["service"], r.body["version"], r.body["mode"] = "agents", "2026-01", "live"
		}
	}},
	{"a spaced token is the key", nil, func(r *reply) {
		if token := r.key(); r.status == 401 && strings.Contains(token, " ") && strings.ReplaceAll(token, " ", "") == r.fake.Key() {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.again(r.req.Method, r.req.URL.Path)
		}
	}},
	{"an unknown member of a message accepted", nil, on(400, func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/messages") && strings.Contains(r.sent, `"mood"`) {
			r.send("POST", r.req.URL.Path, `{"text":"Hello"}`)
		}
	})},
}

// stores reports whether a call stored a provider key.
func stores(c fakeserver.Call) bool { return c.Status == 200 && c.Method == "PUT" }

// TestSilentDifferences: without Decisions the suite refuses nothing that the
// interface leaves open.
func TestSilentDifferences(t *testing.T) {
	cases := documentCases()
	if firstFailure(t, cases, func(*reply) {}, false) != "" {
		t.Skip("a case fails on the fake itself; TestFake shows it")
	}
	for _, tt := range silentDifferences {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, firstFailure(t, cases, tt.tamper, false, tt.opts...))
		})
	}
}
