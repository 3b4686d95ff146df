package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestEachAnswerIsHeld: each case notices a service that refuses what it
// should accept, or accepts what it should refuse, in any one of its calls. Of
// a case that fills a limit that is the last one.
func TestEachAnswerIsHeld(t *testing.T) {
	for _, c := range contract.AllCases() {
		if c.Spends.Requests > 200 {
			continue
		}
		lied := func(which int) (failed bool, calls int) {
			failed, _ = tampered(t, c, true, func(r *reply) {
				if calls++; calls == which && r.status == 200 {
					r.refuse(405, "method_not_allowed")
				} else if calls == which {
					r.status, r.body = 200, map[string]any{"trace_id": "t"}
				}
			})
			return failed, calls
		}
		_, calls := lied(0)
		for which := calls; which > 0 && which > calls-8; which-- {
			failed, _ := lied(which)
			assert.True(t, failed, "%s passes though answer %d is a lie", c.ID, which)
		}
	}
}

// TestEachMemberIsHeld: each success body is refused where a member is missing
// or of another type.
func TestEachMemberIsHeld(t *testing.T) {
	optional := []string{"base_url", "model"}
	for _, c := range contract.Successes() {
		var members []string
		failed, log := tampered(t, c, false, func(r *reply) { members = leaves(r.body) })
		assert.False(t, failed, log)
		for _, name := range members {
			failed, _ := tampered(t, c, false, member(name, func(in map[string]any, name string) { in[name] = []any{} }))
			assert.True(t, failed, "%s passes with an array for %s", c.ID, name)
			failed, _ = tampered(t, c, false, member(name, func(in map[string]any, name string) { delete(in, name) }))
			assert.Equal(t, !slices.Contains(optional, name), failed, "%s without %s", c.ID, name)
		}
	}
}

// leaves are the names of the members, those inside an object too.
func leaves(body map[string]any) []string {
	names := slices.Sorted(maps.Keys(body))
	for _, v := range body {
		if inner, ok := v.(map[string]any); ok {
			names = append(names, leaves(inner)...)
		}
	}
	return names
}

// member changes one member, wherever it is.
func member(name string, change func(in map[string]any, name string)) func(*reply) {
	var find func(map[string]any)
	find = func(in map[string]any) {
		for _, v := range in {
			if inner, ok := v.(map[string]any); ok {
				find(inner)
			}
		}
		if _, ok := in[name]; ok {
			change(in, name)
		}
	}
	return func(r *reply) { find(r.body) }
}

// set sets a member in the objects that have the member where.
func set(where, name string, value any) func(*reply) {
	return member(where, func(in map[string]any, _ string) { in[name] = value })
}

// tampering changes otherwise right answers, or what a call does.
type tampering struct {
	name   string
	tamper func(r *reply)
}

// brokenRules each break one rule of the interface.
var brokenRules = []tampering{
	{"refusal without trace_id", on(429, func(r *reply) { delete(r.body, "trace_id") })},
	{"refusal without limit_key", on(429, func(r *reply) { delete(r.body, "limit_key") })},
	{"rate_limited respelt", set("limit_key", "error", "rate-limited")},
	{"error missing", func(r *reply) { delete(r.body, "error") }},
	{"mode unknown", set("warmed", "mode", "local")},
	{"provider unknown", set("fingerprint", "provider", "OpenAI")},
	{"sms status unknown", func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/sms") {
			set("status", "status", "on")(r)
		}
	}},
	{"agent not active", set("agent_id", "status", "new")},
	{"warnings as text", set("reply_text", "warnings", "none")},
	{"a warning that is no text", set("reply_text", "warnings", []any{1})},
	{"member more in status", set("version", "uptime", 1)},
	{"member more in byok", set("fingerprint", "label", "x")},
	{"service key echoed", func(r *reply) { r.header.Set("X-Key", r.req.Header.Get("Authorization")) }},
	{"provider key echoed", set("fingerprint", "model", "sk-contract~7f3~a9c~2e4~not~own~Jw4")},
	{"fingerprint is the last five", set("fingerprint", "fingerprint", "sk-...~Jw4")},
	{"another agent", set("created_at", "agent_id", "agent_1")},
	{"Content-Type text", func(r *reply) { r.header.Set("Content-Type", "text/plain") }},
	{"Retry-After missing", func(r *reply) { r.header.Del("Retry-After") }},
	{"Retry-After 0", retryAfter(func(int) string { return "0" })},
	{"Retry-After with a fraction", retryAfter(func(n int) string { return strconv.Itoa(n) + ".0" })},
	{"Retry-After too early", retryAfter(func(n int) string { return strconv.Itoa(max(1, n-2)) })},
	{"Retry-After twice", func(r *reply) { r.header["Retry-After"] = append(r.header["Retry-After"], r.header["Retry-After"]...) }},
	{"429 that stores the key", on(429, storing("PUT"))},
	{"400 that stores the key", on(400, storing("PUT"))},
	{"429 creation that stores the key", on(429, storing("POST"))},
	{"400 that clears the key", on(400, func(r *reply) {
		if r.req.Method == "PUT" {
			r.also("DELETE", "/v1/byok", "")
		}
	})},
	{"400 that enables SMS", on(400, func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/sms") && strings.Contains(r.sent, `"sandbox"`) {
			r.also("POST", r.req.URL.Path, `{"mode":"sandbox"}`)
		}
	})},
	{"lengths in bytes", on(200, func(r *reply) {
		if n := utf8.RuneCountInString(r.sent); n > 60 && n < 4100 && len(r.sent) > n+60 {
			r.refuse(400, "bad_request")
		}
	})},
	{"429 on status", func(r *reply) {
		if r.req.URL.Path == "/v1/status" && r.exhausted() {
			r.refuse(429, "rate_limited")
		}
	}},
	{"503 from creation", func(r *reply) {
		if r.req.URL.Path == "/v1/agents" && r.body["error"] == "byok_unavailable" {
			r.status = 503
		}
	}},
	{"503 from messages", func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/messages") && !r.fake.Admin().BYOKAvailable() {
			r.refuse(503, "byok_unavailable")
		}
	}},
	{"403 for an agent of another key", on(404, func(r *reply) {
		if strings.HasPrefix(r.req.URL.Path, "/v1/agents/agent_0") {
			r.refuse(403, "forbidden")
		}
	})},
}

// brokenDecisions each break a decision of this project.
var brokenDecisions = []tampering{
	{"ok is false", set("ok", "ok", false)},
	{"created_at moves", func(r *reply) { r.body["created_at"] = r.body["updated_at"] }},
	{"updated_at never moves", member("updated_at", func(in map[string]any, name string) { in[name] = in["created_at"] })},
	{"updated before it was created", set("created_at", "updated_at", "2001-01-01T00:00:00Z")},
	{"times with an offset", set("created_at", "created_at", "2026-01-01T01:00:00+01:00")},
	{"member more in an answer", set("agent_id", "region", "eu")},
	{"one trace_id for all", set("trace_id", "trace_id", "trace_000001")},
	{"another error", set("error", "error", "wrong")},
	{"limit_key in capitals", member("limit_key", func(in map[string]any, name string) { in[name] = strings.ToUpper(fmt.Sprint(in[name])) })},
	{"no Allow", func(r *reply) { r.header.Del("Allow") }},
	{"one reply for all", set("reply_text", "reply_text", "Hello")},
	{"another reply each time", member("reply_text", func(in map[string]any, name string) { in[name] = in["trace_id"] })},
	{"one fingerprint for all", set("fingerprint", "fingerprint", "fp_8c1d")},
	{"a number in every channel", set("sms", "sms", map[string]any{"status": "disabled", "phone_number": "+1"})},
}

// TestTampering: each broken rule fails at least one case that is no decision
// of this project, and each broken decision fails one with them. The cases
// cost no more than a minute's calls.
func TestTampering(t *testing.T) {
	for _, tt := range slices.Concat(brokenRules, brokenDecisions) {
		decided := slices.ContainsFunc(brokenDecisions, func(d tampering) bool { return d.name == tt.name })
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.NotEmpty(t, firstFailure(t, decided, tt.tamper), "no case notices")
		})
	}
}

func on(status int, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if r.status == status {
			tamper(r)
		}
	}
}

func retryAfter(change func(seconds int) string) func(*reply) {
	return func(r *reply) {
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil {
			r.header.Set("Retry-After", change(n))
		}
	}
}

// storing stores the provider key of a refused call.
func storing(method string) func(*reply) {
	return func(r *reply) {
		if key := r.providerKey(); r.req.Method == method && key != "" {
			r.fake.StoreBYOK(r.key(), key, fakeserver.BYOK{Provider: "anthropic"})
		}
	}
}
