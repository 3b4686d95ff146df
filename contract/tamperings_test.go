package contract_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
)

// tampering changes otherwise right answers, or what a call does. It breaks a
// rule of the interface, or a decision of this project, or nothing: what the
// interface leaves open.
type tampering struct {
	name   string
	breaks int
	tamper func(r *reply)
}

const (
	nothing = iota
	aDecision
	aRule
)

var tamperings = []tampering{
	{"rate_limited respelt", aRule, set("limit_key", "error", "rate-limited")},
	{"error missing", aRule, func(r *reply) { delete(r.body, "error") }},
	{"mode unknown", aRule, set("warmed", "mode", "local")},
	{"provider unknown", aRule, set("fingerprint", "provider", "OpenAI")},
	{"sms status unknown", aRule, to("/sms", set("status", "status", "on"))},
	{"a number at creation", aRule, to("/agents", set("agent_id", "sms", map[string]any{"status": "active", "phone_number": "+1"}))},
	{"agent not active", aRule, set("agent_id", "status", "new")},
	{"warnings as text", aRule, set("reply_text", "warnings", "none")},
	{"a warning that is no text", aRule, set("reply_text", "warnings", []any{1})},
	{"member more in status", aRule, set("version", "uptime", 1)},
	{"member more in byok", aRule, set("fingerprint", "label", "x")},
	{"a redirect to the answer", aRule, to("/status", func(r *reply) {
		if r.req.URL.RawQuery == "" {
			r.header.Set("Location", "?again")
			r.status = 307
		}
	})},
	{"service key echoed", aRule, func(r *reply) { r.header.Set("X-Key", r.req.Header.Get("Authorization")) }},
	{"provider key echoed", aRule, func(r *reply) { r.header.Set("X-Provider-Key", r.providerKey()) }},
	{"fingerprint is the last five", aRule, set("fingerprint", "fingerprint", "sk-...~Jw4")},
	{"another agent", aRule, set("created_at", "agent_id", "agent_1")},
	{"Content-Type text", aRule, func(r *reply) { r.header.Set("Content-Type", "text/plain") }},
	{"version empty", aRule, set("version", "version", "")},
	{"Retry-After with a fraction", aRule, retryAfter(func(n int) string { return strconv.Itoa(n) + ".0" })},
	{"Retry-After too early", aRule, retryAfter(func(n int) string { return strconv.Itoa(max(1, n-2)) })},
	{"Retry-After twice as long", aRule, retryAfter(func(n int) string { return strconv.Itoa(2 * n) })},
	{"Retry-After twice", aRule, func(r *reply) { r.header["Retry-After"] = append(r.header["Retry-After"], r.header["Retry-After"]...) }},
	{"429 that stores the key", aRule, on(429, storing("PUT"))},
	{"400 that stores the key", aRule, on(400, storing("PUT"))},
	{"429 creation that stores the key", aRule, on(429, storing("POST"))},
	{"400 that clears the key", aRule, on(400, to("/byok", func(r *reply) { r.also("DELETE", "/v1/byok", "") }))},
	{"400 that enables SMS", aRule, on(400, to("/sms", func(r *reply) { r.also("POST", r.req.URL.Path, `{"mode":"sandbox"}`) }))},
	{"503 from creation", aRule, to("/agents", func(r *reply) {
		if r.body["error"] == "byok_unavailable" {
			r.status = 503
		}
	})},
	{"503 from messages", aRule, to("/messages", func(r *reply) {
		if !fakedoor.Of[fakeserver.Call](r.fake).BYOKAvailable() {
			r.refuse(503, "byok_unavailable")
		}
	})},
	{"403 for an agent of another key", aRule, on(404, to("/agent_000001", func(r *reply) { r.refuse(403, "forbidden") }))},

	{"created_at moves", aRule, member("created_at", func(in map[string]any, name string) { in[name] = in["updated_at"] })},
	{"fingerprint is the key backwards", aRule, set("fingerprint", "fingerprint", "4wJ~nwo~ton")},
	{"fingerprint is the key rotated", aRule, set("fingerprint", "fingerprint", "fx-pbagenpg~7s3")},
	{"status is limited", aRule, to("/status", func(r *reply) {
		if r.fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointStatus)) > 62 {
			r.header.Set("Retry-After", "30")
			r.refuse(429, "rate_limited")
			r.body["limit_key"] = "status"
		}
	})},
	{"400 creation that stores the key", aRule, on(400, storing("POST"))},

	{"ok is false", aDecision, set("ok", "ok", false)},
	{"updated_at never moves", aDecision, member("created_at", func(in map[string]any, name string) { in["updated_at"] = in[name] })},
	{"updated before it was created", aDecision, set("created_at", "updated_at", "2001-01-01T00:00:00Z")},
	{"times with an offset", aDecision, member("created_at", func(in map[string]any, name string) {
		at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(in[name]))
		in[name] = at.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
	})},
	{"member more in an answer", aDecision, set("agent_id", "region", "eu")},
	{"two trace_ids in turn", aDecision, func(r *reply) { r.body["trace_id"] = fmt.Sprintf("trace_%06d", 1+(r.fake.CallCount()+1)%2) }},
	{"another error", aDecision, on(409, set("error", "error", "wrong"))},
	{"limit_key in capitals", aDecision, member("limit_key", func(in map[string]any, name string) { in[name] = strings.ToUpper(fmt.Sprint(in[name])) })},
	{"no Allow", aDecision, func(r *reply) { r.header.Del("Allow") }},
	{"one reply for all", aDecision, set("reply_text", "reply_text", "Hello")},
	{"another reply each time", aDecision, member("reply_text", func(in map[string]any, name string) { in[name] = in["trace_id"] })},
	{"one fingerprint for all", aDecision, set("fingerprint", "fingerprint", "fp_8c1d")},
	{"a number in every channel", aDecision, set("created_at", "sms", map[string]any{"status": "disabled", "phone_number": "+1"})},

	{"sms member though none was asked for", nothing, set("agent_id", "sms", map[string]any{"status": "disabled"})},
	{"member more in sms", nothing, member("sms", func(in map[string]any, name string) { in[name].(map[string]any)["carrier"] = "x" })},
	{"member more in errors", nothing, set("error", "detail", map[string]any{"a": 1})},
	{"errors without trace_id", nothing, on(404, func(r *reply) { delete(r.body, "trace_id") })},
	{"Retry-After with a reserve", aDecision, retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
	{"Content-Type with charset", nothing, func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }},
	{"base_url and model absent for null", nothing, member("fingerprint", func(in map[string]any, _ string) {
		maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	})},
	{"read status idle", nothing, set("created_at", "status", "idle")},
	{"warmed is false", nothing, set("warmed", "warmed", false)},
	{"an empty reply", nothing, set("reply_text", "reply_text", "")},
	{"warnings", nothing, set("reply_text", "warnings", []any{"slow"})},
	{"a spaced token is the key", nothing, func(r *reply) {
		if token := r.key(); r.status == 401 && strings.Contains(token, " ") && strings.ReplaceAll(token, " ", "") == r.fake.Key() {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.send(r.req.Method, r.req.URL.Path, r.sent)
		}
	}},
}

// member changes one member, of the answer or of an object in it.
func member(name string, change func(in map[string]any, name string)) func(*reply) {
	return func(r *reply) {
		for _, in := range r.objects() {
			if _, ok := in[name]; ok {
				change(in, name)
			}
		}
	}
}

func (r *reply) objects() []map[string]any {
	all := []map[string]any{r.body}
	for _, v := range r.body {
		if inner, ok := v.(map[string]any); ok {
			all = append(all, inner)
		}
	}
	return all
}

// set sets a member in the objects that have the member where.
func set(where, name string, value any) func(*reply) {
	return member(where, func(in map[string]any, _ string) { in[name] = value })
}

func on(status int, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if r.status == status {
			tamper(r)
		}
	}
}

func to(path string, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, path) {
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
