package contract_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// tampering changes otherwise right answers, or what a call does.
type tampering struct {
	name   string
	tamper func(r *reply)
}

// brokenRules each break one rule of the interface.
var brokenRules = []tampering{
	{"success without trace_id", on(200, without("trace_id"))},
	{"refusal without trace_id", on(429, without("trace_id"))},
	{"rate_limited respelt", on(429, set("error", "error", "rate-limited"))},
	{"error renamed", rename("error", "code")},
	{"limit_key renamed", rename("limit_key", "limit")},
	{"reply_text renamed", rename("reply_text", "text")},
	{"agent_id renamed", rename("agent_id", "id")},
	{"created_at renamed", rename("created_at", "createdAt")},
	{"updated_at missing", without("updated_at")},
	{"warmed missing", without("warmed")},
	{"ok as text", set("ok", "ok", "true")},
	{"mode unknown", set("warmed", "mode", "local")},
	{"sms status unknown", set("status", "status", "on")},
	{"warnings as text", set("reply_text", "warnings", "none")},
	{"member more in status", set("version", "uptime", 1)},
	{"member more in byok", in("byok", set("provider", "label", "x"))},
	{"fingerprint missing", in("byok", without("fingerprint"))},
	{"base_url a number", in("byok", set("provider", "base_url", 1))},
	{"byok missing for null", func(r *reply) { maps.DeleteFunc(r.body, func(_ string, v any) bool { return v == nil }) }},
	{"service key echoed", func(r *reply) { r.header.Set("X-Key", r.req.Header.Get("Authorization")) }},
	{"201 for 200", status(200, 201)},
	{"422 for 400", status(400, 422)},
	{"403 for 401", status(401, 403)},
	{"403 for 402", status(402, 403)},
	{"401 for 403", status(403, 401)},
	{"410 for 404", status(404, 410)},
	{"400 for 409", status(409, 400)},
	{"503 for 429", status(429, 503)},
	{"500 for 503", status(503, 500)},
	{"Retry-After missing", func(r *reply) { r.header.Del("Retry-After") }},
	{"Retry-After 0", retryAfter(func(int) string { return "0" })},
	{"Retry-After with a fraction", retryAfter(func(n int) string { return strconv.Itoa(n) + ".0" })},
	{"Retry-After too early", retryAfter(func(n int) string { return strconv.Itoa(max(1, n-2)) })},
	{"Content-Type text", func(r *reply) { r.header.Set("Content-Type", "text/plain") }},
	{"Retry-After twice", func(r *reply) { r.header["Retry-After"] = append(r.header["Retry-After"], r.header["Retry-After"]...) }},
	{"fingerprint is the last four", fingerprint(func(key string) string { return key[len(key)-4:] })},
	{"fingerprint shows the last five", fingerprint(func(key string) string { return "sk-..." + key[len(key)-5:] })},
	{"fingerprint is the key backwards", fingerprint(backwards)},
	{"fingerprint is the key moved by one", fingerprint(func(key string) string { return moved(key, 1) })},
	{"fingerprint is rot13", fingerprint(rot13)},
	{"fingerprint is hexadecimal", fingerprint(func(key string) string { return hex.EncodeToString([]byte(key)) })},
	{"fingerprint is base64", fingerprint(func(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) })},
	{"fingerprint is a plain SHA-256", fingerprint(func(key string) string {
		sum := sha256.Sum256([]byte(key))
		return "sha256:" + hex.EncodeToString(sum[:8])
	})},
	{"429 that stores the key", on(429, storing("PUT"))},
	{"400 that stores the key", on(400, storing("PUT"))},
	{"429 creation that stores the key", on(429, storing("POST"))},
	{"400 that clears the key", on(400, func(r *reply) {
		if r.req.Method == "PUT" {
			r.again("DELETE", "/v1/byok")
		}
	})},
	{"400 that enables SMS", on(400, func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/sms") && strings.Contains(r.sent, `"sandbox"`) {
			r.send("POST", r.req.URL.Path, `{"mode":"sandbox"}`)
		}
	})},
	{"lengths in bytes", on(200, func(r *reply) {
		for _, max := range []int{60, 200, 400, 2000, 4000} {
			if n := utf8.RuneCountInString(r.text()); n == max && len(r.text()) > max {
				r.refuse(400, "bad_request")
			}
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
	{"empty system_prompt refused", refusing(`{"system_prompt":""}`)},
	{"empty customer_ref refused", refusing(`{"customer_ref":""}`)},
	{"empty llm.api_key refused", refusing(`{"llm":{"provider":"openai","api_key":""}}`)},
	{"ok is false", set("ok", "ok", false)},
	{"created_at moves", func(r *reply) {
		if at, ok := r.body["updated_at"]; ok {
			r.body["created_at"] = at
		}
	}},
	{"updated_at never moves", func(r *reply) {
		if at, ok := r.body["created_at"]; ok {
			r.body["updated_at"] = at
		}
	}},
	{"a path is cleaned", func(r *reply) {
		if strings.Contains(r.req.URL.Path, "/..") {
			r.again("GET", "/v1/status")
		}
	}},
	{"spaces taken out of the token", func(r *reply) {
		token := strings.TrimPrefix(r.req.Header.Get("Authorization"), "Bearer ")
		if r.status == 401 && strings.ReplaceAll(token, " ", "") == r.fake.Key() {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.again(r.req.Method, r.req.URL.Path)
		}
	}},
	{"member more in an answer", set("agent_id", "region", "eu")},
	{"limit_key in capitals", func(r *reply) {
		if name, ok := r.body["limit_key"].(string); ok {
			r.body["limit_key"] = strings.ToUpper(name)
		}
	}},
}

// TestTampering: each broken rule fails at least one case that is no decision
// of this project and costs no more than a minute's calls.
func TestTampering(t *testing.T) {
	cases := documentCases()
	for _, tt := range brokenRules {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.NotEmpty(t, firstFailure(t, cases, tt.tamper, false), "no case notices")
		})
	}
}

// TestTamperingWithDecisions: what breaks no rule of the interface, but a
// decision, fails a case too.
func TestTamperingWithDecisions(t *testing.T) {
	decided := slices.DeleteFunc(contract.AllCases(), func(c contract.Case) bool { return c.Spends.Requests > 130 })
	for _, tt := range brokenDecisions {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.NotEmpty(t, firstFailure(t, decided, tt.tamper, true), "no case notices")
		})
	}
}

func documentCases() []contract.Case {
	return slices.DeleteFunc(contract.AllCases(), func(c contract.Case) bool {
		return c.Decision() || c.Spends.Requests > 130
	})
}

// firstFailure runs the cases, each on a fake of its own behind the proxy, and
// returns the id of the first that fails with what it printed, or "".
func firstFailure(t *testing.T, cases []contract.Case, tamper func(*reply), decisions bool, opts ...fakeserver.Option) string {
	for _, c := range cases {
		if needsFrozenClock(c) {
			continue
		}
		fake := newFake(t, append(opts, fakeserver.WithUnknownRoutes())...)
		target := targetOf(fake, func(ip string) http.RoundTripper {
			return proxy{fake, fake.Direct(from(ip)...), tamper}
		})
		target.Decisions, target.BulkClient = decisions, nil
		if failed, log := contract.Verdict(t, c, target); failed {
			return c.ID + "\n" + log
		}
	}
	return ""
}

func needsFrozenClock(c contract.Case) bool {
	return slices.ContainsFunc(c.Needs, func(n contract.Need) bool { return n == "Bubble" })
}

func on(status int, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if r.status == status {
			tamper(r)
		}
	}
}

// in tampers with an object inside the body, where there is one.
func in(name string, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if members, ok := r.body[name].(map[string]any); ok {
			tamper(&reply{body: members})
		}
	}
}

func without(name string) func(*reply) {
	return func(r *reply) { delete(r.body, name) }
}

func rename(from, to string) func(*reply) {
	return func(r *reply) {
		if v, ok := r.body[from]; ok {
			delete(r.body, from)
			r.body[to] = v
		}
	}
}

// set sets a member in the bodies that have the member where.
func set(where, name string, value any) func(*reply) {
	return func(r *reply) {
		if _, ok := r.body[where]; ok {
			r.body[name] = value
		}
	}
}

func status(from, to int) func(*reply) {
	return func(r *reply) {
		if r.status == from {
			r.status = to
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

func fingerprint(of func(key string) string) func(*reply) {
	return func(r *reply) {
		if key := r.member("api_key"); len(key) > 5 {
			in("byok", set("fingerprint", "fingerprint", of(key)))(r)
		}
	}
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func moved(s string, by byte) string {
	b := []byte(s)
	for i := range b {
		b[i] += by
	}
	return string(b)
}

func rot13(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s)
}

// storing stores the provider key of a refused call.
func storing(method string) func(*reply) {
	return func(r *reply) {
		if key := r.member("api_key"); r.req.Method == method && key != "" {
			r.fake.StoreBYOK(r.key(), key, fakeserver.BYOK{Provider: "anthropic"})
		}
	}
}

// refusing refuses one body.
func refusing(body string) func(*reply) {
	return func(r *reply) {
		if r.sent == body {
			r.refuse(400, "bad_request")
		}
	}
}
