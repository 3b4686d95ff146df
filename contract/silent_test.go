package contract_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// silentDifferences are services that differ from the fake only where the
// interface is silent, besides those that Observe asks about.
var silentDifferences = []tampering{
	{"member more in success bodies", on(200, func(r *reply) {
		if r.req.URL.Path != "/v1/status" {
			r.body["region"] = "eu"
		}
	})},
	{"member more in sms", in("sms", func(r *reply) { r.body["carrier"] = "x" })},
	{"member more in errors", on(400, func(r *reply) { r.body["detail"] = map[string]any{"a": 1} })},
	{"errors without trace_id", func(r *reply) {
		if r.status >= 400 && r.status != 429 {
			delete(r.body, "trace_id")
		}
	}},
	{"one trace_id for all", set("trace_id", "trace_id", "t")},
	{"Retry-After with a reserve", retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
	{"Content-Type with charset", func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }},
	{"another fingerprint each time", in("byok", set("fingerprint", "fingerprint", "fp_8c1d"))},
	{"base_url and model absent for null", in("byok", func(r *reply) {
		maps.DeleteFunc(r.body, func(_ string, v any) bool { return v == nil })
	})},
	{"SMS always pending", func(r *reply) {
		in("sms", set("status", "status", "pending"))(r)
		if strings.HasSuffix(r.req.URL.Path, "/sms") && r.status == 200 {
			r.body["status"] = "pending"
		}
	}},
	{"sms member though none was asked for", set("agent_id", "sms", map[string]any{"status": "disabled"})},
	{"read status idle", set("created_at", "status", "idle")},
	{"warmed is false", set("warmed", "warmed", false)},
	{"ok is false", set("ok", "ok", false)},
	{"an empty reply", set("reply_text", "reply_text", "")},
	{"warnings", set("reply_text", "warnings", []any{"slow"})},
	{"a spaced token is the key", func(r *reply) {
		if token := r.key(); r.status == 401 && strings.Contains(token, " ") && strings.ReplaceAll(token, " ", "") == r.fake.Key() {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.again(r.req.Method, r.req.URL.Path)
		}
	}},
}

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
			assert.Empty(t, firstFailure(t, cases, tt.tamper, false))
		})
	}
	for _, d := range differences {
		t.Run(d.id, func(t *testing.T) {
			t.Parallel()
			failure := firstFailure(t, cases, func(*reply) {}, false, like(t, d))
			assert.Equal(t, d.breaks, failure != "", failure)
		})
	}
}
