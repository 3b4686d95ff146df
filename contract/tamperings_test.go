package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// tampering changes otherwise right answers, or what a call does.
type tampering struct {
	name string
	// fails is the case that notices: of a rule of the interface, or of a decision of
	// this project ("fake/..."). "": the interface leaves open what the tampering changes.
	fails  string
	tamper func(r *reply)
}

func (tt tampering) decision() bool { return strings.HasPrefix(tt.fails, "fake/") }

var tamperings = []tampering{
	{"rate_limited respelt", "7/endpoints-without-429", set("limit_key", "error", "rate-limited")},
	{"a number at creation", "2.3/every-member", to("/agents", set("agent_id", "sms", map[string]any{"status": "active", "phone_number": "+1"}))},
	{"warnings as text", "4.8/reply", set("reply_text", "warnings", "none")},
	{"a warning that is no text", "4.8/reply", set("reply_text", "warnings", []any{1})},
	{"member more in status", "4.1/shape", set("version", "uptime", 1)},
	{"member more in byok", "4.4/set-read-clear", set("fingerprint", "label", "x")},
	{"a redirect to the answer", "4.1/shape", to("/status", func(r *reply) {
		if r.req.URL.RawQuery == "" {
			r.header.Set("Location", "?again")
			r.status = 307
		}
	})},
	{"service key echoed", "2.3/every-member", func(r *reply) { r.header.Set("X-Key", r.req.Header.Get("Authorization")) }},
	{"provider key echoed", "4.4/set-read-clear", func(r *reply) { r.header.Set("X-Provider-Key", r.providerKey()) }},
	{"fingerprint is the last five", "2.4/fingerprint", set("fingerprint", "fingerprint", "sk-...~Jw4")},
	{"Content-Type text", "2.3/every-member", func(r *reply) { r.header.Set("Content-Type", "text/plain") }},
	{"Retry-After with a fraction", "7/endpoints-without-429", retryAfter(func(n int) string { return strconv.Itoa(n) + ".0" })},
	{"Retry-After too early", "8.1/key_minute", retryAfter(func(n int) string { return strconv.Itoa(max(1, n-2)) })},
	{"Retry-After twice as long", "8.1/key_minute", retryAfter(func(n int) string { return strconv.Itoa(2 * n) })},
	{"Retry-After of 0", "7/endpoints-without-429", retryAfter(func(int) string { return "0" })},
	{"Retry-After twice", "7/endpoints-without-429", func(r *reply) { r.header["Retry-After"] = append(r.header["Retry-After"], r.header["Retry-After"]...) }},
	{"429 that stores the key", "7/429-changes-no-byok", on(429, storing("PUT"))},
	{"400 that stores the key", "7/400-changes-no-byok", on(400, storing("PUT"))},
	{"429 creation that stores the key", "7/429-creation-stores-no-byok", on(429, storing("POST"))},
	{"400 that clears the key", "7/400-changes-no-byok", on(400, to("/byok", func(r *reply) { r.also("DELETE", "/v1/byok", "") }))},
	{"400 that enables SMS", "7/400-changes-no-sms", on(400, to("/sms", func(r *reply) { r.also("POST", r.req.URL.Path, `{"mode":"sandbox"}`) }))},
	{"503 from creation", "7/creation-without-503", to("/agents", func(r *reply) {
		if r.body["error"] == "byok_unavailable" {
			r.status = 503
		}
	})},
	{"503 from messages", "7/endpoints-without-503", to("/messages", func(r *reply) {
		if !fakedoor.Of[fakeserver.Call](r.fake).BYOKAvailable() {
			r.refuse(503, "byok_unavailable")
		}
	})},
	{"403 for an agent of another key", "7/agent-of-another-key/read-agent", on(404, to("/agent_000001", func(r *reply) { r.refuse(403, "forbidden") }))},

	{"created_at moves", "4.7/created-at-stays", member("created_at", func(in map[string]any, name string) { in[name] = in["updated_at"] })},
	{"status is limited", "7/status-without-429", to("/status", func(r *reply) {
		if r.fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointStatus)) > 62 {
			r.header.Set("Retry-After", "30")
			r.refuse(429, "rate_limited")
			r.body["limit_key"] = "status"
		}
	})},
	{"400 creation that stores the key", "7/400-creation-stores-no-byok", on(400, storing("POST"))},
	{"SMS enabling does not count", "8.1/key_minute-counts/enable-sms", on(429, func(r *reply) {
		if r.fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointEnableSMS)) >= 59 {
			r.fake.Advance(time.Minute)
			r.send(r.req.Method, r.req.URL.RequestURI(), r.sent)
		}
	})},

	{"ok is false", "fake/clear-with-none-set", set("ok", "ok", false)},
	{"updated_at never moves", "fake/updated-at", member("created_at", func(in map[string]any, name string) { in["updated_at"] = in[name] })},
	{"updated before it was created", "fake/read-after-creation", set("created_at", "updated_at", "2001-01-01T00:00:00Z")},
	{"times with an offset", "fake/read-after-creation", member("created_at", func(in map[string]any, name string) {
		at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(in[name]))
		in[name] = at.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano)
	})},
	{"member more in an answer", "fake/ids-in-order", set("agent_id", "region", "eu")},
	{"two trace_ids in turn", "fake/reply-fixed", func(r *reply) { r.body["trace_id"] = fmt.Sprintf("trace_%06d", 1+(r.fake.CallCount()+1)%2) }},
	{"another error", "fake/order/409-before-operation-429", on(409, set("error", "error", "wrong"))},
	{"limit_key in capitals", "fake/counted/400-404-409", member("limit_key", func(in map[string]any, name string) { in[name] = strings.ToUpper(fmt.Sprint(in[name])) })},
	{"no Allow", "fake/method/status/POST", func(r *reply) { r.header.Del("Allow") }},
	{"one reply for all", "fake/reply-fixed", set("reply_text", "reply_text", "Hello")},
	{"another reply each time", "fake/reply-fixed", member("reply_text", func(in map[string]any, name string) { in[name] = in["trace_id"] })},
	{"one fingerprint for all", "fake/fingerprint-tells-keys-apart", set("fingerprint", "fingerprint", "fp_8c1d")},
	{"a number in every channel", "fake/sms-absent", set("created_at", "sms", map[string]any{"status": "disabled", "phone_number": "+1"})},

	{"sms member though none was asked for", "", set("agent_id", "sms", map[string]any{"status": "disabled"})},
	{"member more in sms", "", member("sms", func(in map[string]any, name string) { in[name].(map[string]any)["carrier"] = "x" })},
	{"member more in errors", "", set("error", "detail", map[string]any{"a": 1})},
	{"errors without trace_id", "", on(404, func(r *reply) { delete(r.body, "trace_id") })},
	{"Retry-After with a reserve", "fake/window-exact/key_minute", retryAfter(func(n int) string { return strconv.Itoa(n + 5) })},
	{"Content-Type with charset", "", func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }},
	{"base_url and model absent for null", "", member("fingerprint", func(in map[string]any, _ string) {
		maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	})},
	{"read status idle", "", set("created_at", "status", "idle")},
	{"warmed is false", "", set("warmed", "warmed", false)},
	{"an empty reply", "", set("reply_text", "reply_text", "")},
	{"warnings", "", set("reply_text", "warnings", []any{"slow"})},
	{"a spaced token is the key", "", func(r *reply) {
		if token := r.key(); r.status == 401 && strings.Contains(token, " ") && strings.ReplaceAll(token, " ", "") == r.fake.Key() {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.send(r.req.Method, r.req.URL.Path, r.sent)
		}
	}},
}

// answered is a case that each endpoint answers with success.
var answered = map[string]string{
	"status": "4.1/shape", "warmup": "4.2/body-absent", "get-byok": "4.4/set-read-clear", "set-byok": "4.4/set-read-clear", "clear-byok": "4.4/set-read-clear",
	"create-agent": "4.6/empty-object", "read-agent": "4.7/read", "send-message": "4.8/reply", "enable-sms": "4.9/mode/sandbox",
}

// wrongServices break one rule of the interface each: those of the table, and
// for each row of the document a service that does not keep to it.
func wrongServices() []tampering {
	all := slices.DeleteFunc(slices.Clone(tamperings), func(tt tampering) bool { return tt.fails == "" || tt.decision() })
	for _, e := range rawcall.Endpoints {
		all = append(all, tampering{e.Name + " takes any caller", "5/credential-missing/" + e.Name, calls(e, on(401, func(r *reply) {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.send(r.req.Method, r.req.URL.Path, r.sent)
		}))})
		for sh := range strings.SplitSeq(string(e.Reply), ", ") {
			words := strings.Fields(sh)
			if slices.Contains(words, "optional") || strings.HasPrefix(words[0], "sms.") {
				continue
			}
			name := words[0][strings.Index(words[0], ".")+1:]
			all = append(all,
				tampering{e.Name + " without " + words[0], answered[e.Name], calls(e, member(name, func(in map[string]any, name string) { delete(in, name) }))},
				tampering{e.Name + " with another " + words[0], answered[e.Name], calls(e, member(name, func(in map[string]any, name string) { in[name] = []any{"?"} }))})
		}
	}
	for _, b := range contract.Members() {
		for value := range strings.FieldsSeq(b.Values) {
			all = append(all, tampering{b.Endpoint.Name + " refuses " + b.Path + " " + value, b.ID + "/" + value, calls(b.Endpoint, func(r *reply) {
				if r.member(b.Path) == value {
					r.refuse(400, "bad_request")
				}
			})})
		}
		if b.Max == 0 {
			continue
		}
		all = append(all,
			tampering{b.Path + " one too short", "8.4/" + b.Path + "/max", calls(b.Endpoint, func(r *reply) {
				if utf8.RuneCountInString(r.member(b.Path)) == b.Max {
					r.refuse(400, "bad_request")
				}
			})},
			tampering{b.Path + " one too long", "8.4/" + b.Path + "/over", calls(b.Endpoint, on(400, func(r *reply) {
				if long := r.member(b.Path); utf8.RuneCountInString(long) == b.Max+1 {
					r.send(r.req.Method, r.req.URL.Path, strings.Replace(r.sent, long, long[:1], 1))
				}
			}))})
	}
	return all
}

// calls tampers with the calls to one endpoint.
func calls(e rawcall.Endpoint, tamper func(*reply)) func(*reply) {
	return func(r *reply) {
		if called, _, _ := rawcall.Find(r.req.Method, r.req.URL.EscapedPath()); called.Name == e.Name {
			tamper(r)
		}
	}
}

// member is a text at a dotted path of what was sent, or "".
func (r *reply) member(path string) string {
	x := rawcall.Exchange{}.Answered([]byte(r.sent))
	text, _ := x.At(path).(string)
	return text
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
