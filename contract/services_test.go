package contract_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// difference is one question that a service answers otherwise than the fake:
// by an option of the fake, or by a proxy.
type difference struct {
	id, answer string
	tamper     func(r *reply)
	opt        fakeserver.Option
	breaks     bool // it breaks a rule of the interface besides
}

func (d difference) change(r *reply) {
	if d.tamper != nil {
		d.tamper(r)
	}
}

func (d difference) options() []fakeserver.Option {
	if d.opt == nil {
		return nil
	}
	return []fakeserver.Option{d.opt}
}

var differences = []difference{
	{id: "status", answer: `{"mode":"live","service":"agents","version":"2026-01"}`, tamper: func(r *reply) {
		if r.req.URL.Path == "/v1/status" && r.status == 200 {
			r.body["service"], r.body["version"], r.body["mode"] = "agents", "2026-01", "live"
		}
	}},
	{id: "error_names", answer: `{"not_found":"E404"}`, tamper: on(404, set("error", "error", "E404"))},
	{id: "error_names", answer: `{"bad_request":"invalid","forbidden":"no_access"}`, tamper: func(r *reply) {
		on(400, set("error", "error", "invalid"))(r)
		on(403, set("error", "error", "no_access"))(r)
	}},
	{id: "reason", answer: `false`, tamper: without("reason")},
	{id: "unknown_method", answer: `404`, tamper: status(405, 404)},
	{id: "path_before_key", answer: `false`, tamper: on(404, func(r *reply) {
		if r.req.Header.Get("Authorization") == "" {
			r.refuse(401, "unauthorized")
		}
	})},
	{id: "body_before_agent", answer: `false`, tamper: on(400, func(r *reply) {
		if strings.Contains(r.req.URL.Path, "/agent-of-nobody/") {
			r.refuse(404, "not_found")
		}
	})},
	{id: "times", answer: `"unix seconds"`, tamper: set("created_at", "created_at", "1767225600")},
	{id: "times", answer: `"rfc3339 with an offset"`, tamper: set("created_at", "created_at", "2026-01-01T01:00:00+01:00")},
	{id: "unknown_members", answer: `true`, tamper: accepting(`"mood"`)},
	{id: "null_members", answer: `true`, tamper: accepting(`_ref":null`)},
	{id: "duplicate_members", answer: `true`, tamper: accepting(`"Hello","text"`)},
	{id: "other_case_members", answer: `true`, tamper: accepting(`"Text"`)},
	{id: "behind_body", answer: `true`, tamper: accepting(`} x`)},
	{id: "content_type", answer: `true`, tamper: on(400, func(r *reply) {
		if r.req.Header.Get("Content-Type") == "text/plain" {
			r.req.Header.Set("Content-Type", "application/json")
			r.again("POST", r.req.URL.Path)
		}
	})},
	{id: "length_unit", answer: `"UTF-16 units"`, tamper: on(200, func(r *reply) {
		if strings.Count(r.sent, "😀") > 100 {
			r.refuse(400, "bad_request")
		}
	})},
	{id: "length_unit", answer: `"bytes"`, breaks: true, tamper: on(200, func(r *reply) {
		if strings.Count(r.sent, "😀")+strings.Count(r.sent, "é") > 100 {
			r.refuse(400, "bad_request")
		}
	})},
	{id: "metadata_cap", answer: `100`, opt: fakeserver.WithMetadataCap(100)},
	{id: "metadata_cap", answer: `4095`, opt: fakeserver.WithMetadataCap(4095)},
	{id: "metadata_cap", answer: `30001`, opt: fakeserver.WithMetadataCap(30001)},
	{id: "agent_of_another_key", answer: `200`, tamper: on(404, func(r *reply) {
		if strings.HasPrefix(r.req.URL.Path, "/v1/agents/agent_0") {
			r.req.Header.Set("Authorization", "Bearer "+r.fake.Key())
			r.again(r.req.Method, r.req.URL.Path)
		}
	})},
	{id: "clear_nothing", answer: `404`, tamper: on(200, func(r *reply) {
		if r.req.Method == "DELETE" && r.fake.CallCount(fakeserver.Where(stores)) == 0 {
			r.refuse(404, "not_found")
		}
	})},
	{id: "sms_status", answer: `{"none":"disabled","sandbox":"pending","managed":"needs_compliance","byo_twilio":"needs_setup"}`, tamper: on(200, func(r *reply) {
		if strings.Contains(r.sent, `"sandbox"`) {
			in("sms", set("status", "status", "pending"))(r)
		}
	})},
	{id: "creation_stores_key", answer: `false`, breaks: true, tamper: on(200, func(r *reply) {
		if r.req.URL.Path == "/v1/agents" && r.member("api_key") != "" {
			r.aside("DELETE", "/v1/byok", "")
		}
	})},
	{id: "byok_cleared", answer: `200`, tamper: func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/messages") && r.body["error"] == "byok_not_configured" {
			r.status, r.body = 200, map[string]any{"reply_text": "Hello", "trace_id": "t"}
		}
	}},
	{id: "several_limits", answer: `false`, tamper: on(429, func(r *reply) {
		if r.body["limit_key"] == "warmup_key_hour" && r.spent("key_minute") {
			r.body["limit_key"] = "key_minute"
		}
	})},
	{id: "warmup_limit_name", answer: `"warm"`, tamper: renaming("warmup_key_hour", "warm")},
	{id: "minute_limit_name", answer: `"rpm"`, tamper: renaming("key_minute", "rpm")},
	{id: "refused_operations_spend", answer: `true`, tamper: on(400, func(r *reply) {
		if r.req.URL.Path == "/v1/warmup" {
			r.aside("POST", "/v1/warmup", `{}`)
		}
	})},
	{id: "body_before_operation_limit", answer: `false`, tamper: on(400, func(r *reply) {
		if r.req.URL.Path == "/v1/warmup" && r.spent("warmup_key_hour") {
			r.refuse(429, "rate_limited")
		}
	})},
	{id: "windows", answer: `"sliding"`, opt: fakeserver.WithSlidingWindows()},
	{id: "retry_after", answer: `false`, breaks: true, tamper: retryAfter(func(n int) string { return fmt.Sprint(max(1, n-2)) })},
	{id: "limit_before_body", answer: `false`, tamper: on(429, func(r *reply) {
		if r.sent == `{"x":1}` {
			r.refuse(400, "bad_request")
			r.body["reason"] = "x"
		}
	})},
	{id: "refused_requests_spend", answer: `{"401":false,"404":true,"400":true,"409":true,"status":true}`, tamper: on(200, func(r *reply) {
		if r.req.URL.Path == "/v1/status" {
			r.aside("GET", "/v1/agents/x", "")
		}
	})},
}

// accepting sends a message again, without what a body of that sort has too
// much.
func accepting(sort string) func(*reply) {
	return on(400, func(r *reply) {
		if strings.HasSuffix(r.req.URL.Path, "/messages") && strings.Contains(r.sent, sort) {
			r.send("POST", r.req.URL.Path, `{"text":"Hello"}`)
		}
	})
}

func renaming(from, to string) func(*reply) {
	return on(429, func(r *reply) {
		if r.body["limit_key"] == from {
			r.body["limit_key"] = to
		}
	})
}

// service is a fake with the differences, and what Observe should find.
func service(t *testing.T, all []difference) (contract.Target, map[string]string) {
	var opts []fakeserver.Option
	want := contract.FakeAnswers()
	for _, d := range all {
		want[d.id] = d.answer
		opts = append(opts, d.options()...)
	}
	target, fake := observedFake(t, opts...)
	target.HTTPClient = &http.Client{Transport: proxy{fake, fake.Direct(), func(r *reply) {
		for _, d := range all {
			d.change(r)
		}
	}}}
	return target, want
}

// TestObserveDifferences: services that differ in one question, and forty that
// differ in up to five: Observe finds each difference and nothing else.
func TestObserveDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	services := make([][]difference, 0, len(differences)+40)
	for _, d := range differences {
		services = append(services, []difference{d})
	}
	for range 40 {
		services = append(services, choose(random))
	}
	for _, all := range services {
		target, want := service(t, all)
		o, err := contract.Observe(t.Context(), target, plenty)
		require.NoError(t, err)
		wantAnswers(t, want, o)
		if t.Failed() {
			t.Fatalf("the service differs in %v", idsOf(all))
		}
	}
}

// choose takes two to five differences in other questions each.
func choose(random *rand.Rand) []difference {
	chosen := map[string]difference{}
	for n := 2 + random.IntN(4); len(chosen) < n; {
		d := differences[random.IntN(len(differences))]
		chosen[d.id] = d
	}
	all := make([]difference, 0, len(chosen))
	for _, d := range differences { // in their order: some change what others have changed
		if chosen[d.id].answer == d.answer {
			all = append(all, d)
		}
	}
	return all
}

func idsOf(all []difference) (ids []string) {
	for _, d := range all {
		ids = append(ids, d.id)
	}
	return ids
}
