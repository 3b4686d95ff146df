package contract_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// silentDifferences are services that differ from the fake only where the
// interface is silent, besides those that Observe asks about.
var silentDifferences = []tampering{
	{"members more in success bodies", set("agent_id", "region", "eu")},
	{"member more in sms", func(r *reply) {
		if sms, ok := r.body["sms"].(map[string]any); ok {
			sms["carrier"] = "x"
		}
	}},
	{"member more in errors", set("error", "detail", map[string]any{"a": 1})},
	{"errors without trace_id", func(r *reply) {
		if r.status >= 400 && r.status != 429 {
			delete(r.body, "trace_id")
		}
	}},
	{"one trace_id for all", set("trace_id", "trace_id", "t")},
	{"Retry-After with a reserve", retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
	{"Content-Type with charset", func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }},
	{"one fingerprint for all", set("fingerprint", "fingerprint", "fp_8c1d")},
	{"base_url and model absent for null", member("fingerprint", func(in map[string]any, _ string) {
		maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	})},
	{"SMS always pending", func(r *reply) {
		set("status", "status", "pending")(r)
		if r.body["agent_id"] != nil {
			r.body["status"] = "active"
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
			r.send(r.req.Method, r.req.URL.Path, r.sent)
		}
	}},
}

// TestSilentDifferences: without Decisions the suite refuses nothing that the
// interface leaves open.
func TestSilentDifferences(t *testing.T) {
	if firstFailure(t, false, func(*reply) {}) != "" {
		t.Skip("a case fails on the fake itself; TestFake shows it")
	}
	for _, tt := range silentDifferences {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, firstFailure(t, false, tt.tamper))
		})
	}
	for all := range services() {
		t.Run(all[0].id, func(t *testing.T) {
			t.Parallel()
			failure := firstFailure(t, false, func(*reply) {}, like(t, all...))
			breaks := slices.ContainsFunc(all, func(d difference) bool { return d.breaks })
			assert.Equal(t, breaks, failure != "", failure)
		})
	}
}
