package contract_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// reply is an answer of the fake on its way to a case.
type reply struct {
	req    *http.Request
	status int
	header http.Header
	body   map[string]any
}

// tamperings each break one rule of the interface in otherwise right answers.
var tamperings = []struct {
	name   string
	tamper func(r *reply)
}{
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
}

// TestTampering: each of them fails at least one case that is neither a
// decision of this project nor costs more than a minute's calls.
func TestTampering(t *testing.T) {
	var cases []contract.Case
	for _, c := range contract.Cases() {
		if !c.Decision() && c.Spends.Requests <= 130 {
			cases = append(cases, c)
		}
	}
	for _, tt := range tamperings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.True(t, anyFails(t, cases, tt.tamper), "no case notices")
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		assert.False(t, anyFails(t, cases, func(*reply) {}), "a case fails though nothing was changed")
	})
}

func anyFails(t *testing.T, cases []contract.Case, tamper func(*reply)) bool {
	for _, c := range cases {
		fake := fakeserver.New(t, fakeserver.WithUnknownRoutes())
		target := targetOf(fake)
		target.Abilities.Decisions = false
		target.Abilities.Advance = fake.Advance
		client := &http.Client{Transport: tampering{fake.Direct(), tamper}}
		target.HTTPClient = func(testing.TB) *http.Client { return client }
		if failed, log := contract.Verdict(t, c, target); failed {
			t.Logf("%s\n%.500s", c.ID, log)
			return true
		}
	}
	return false
}

// tampering is a transport that changes each answer.
type tampering struct {
	next   http.RoundTripper
	tamper func(*reply)
}

func (t tampering) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	r := &reply{req: req, status: res.StatusCode, header: res.Header}
	if err := json.NewDecoder(res.Body).Decode(&r.body); err != nil {
		return nil, err
	}
	t.tamper(r)
	body, err := json.Marshal(r.body)
	res.StatusCode, res.Body = r.status, io.NopCloser(bytes.NewReader(body))
	return res, err
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
