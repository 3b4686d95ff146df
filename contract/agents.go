package contract

import (
	"slices"
	"strings"
	"time"
)

func agentCases() []testCase {
	cases := slices.Concat(agentLifeCases(), agentMemberCases(), metadataCases())
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		cases = append(cases,
			rule("7/agent-unknown/"+e.name, "404 | Not found", e.of(noAgent).is(404)),
			rule("fake/agent-of-another-key/"+e.name, "who sees an agent: the key that created it; any other key gets 404",
				createAgent.is(200).by(another), e.is(404).by(third), e.is(200).by(another)),
		)
	}
	return cases
}

func agentLifeCases() []testCase {
	return []testCase{
		rule("4.6/empty-object", "The body may be an empty object because all members are optional.",
			createAgent.with(`{}`).is(200).holds("status", "active")),
		rule("2.3/every-member", "Every top-level field is optional.",
			createAgent.with(`{
				"system_prompt": "Be brief.", "customer_ref": "customer-1", "metadata": {"team": "a", "n": [1, null]},
				"sms": {"mode": "none"}, "llm": {"mode": "hosted", "tier": "smart", "model": "m-1", "label": "work"}
			}`).is(200)),
		rule("4.7/read", "Response: agent_id, status, created_at, updated_at, trace_id (all required)",
			readAgent.is(200).check(ofItsPath)),
		rule("1/ids-differ", "The service creates an agent for the caller and returns its identifier.",
			createAgent.is(200), createAgent.is(200).holds("agent_id", differs)),
		rule("5/agents-of-any-key",
			"The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key.",
			createAgent.is(200).by(undashboard), readAgent.is(200).by(undashboard),
			sendMessage.is(200).by(undashboard), enableSMS.is(200).by(undashboard)),

		rule("fake/read-after-creation", "an agent stays active; ids, times: RFC 3339 UTC",
			createAgent.is(200),
			readAgent.is(200).holds("status", "active").holds("created_at", isUTC).holds("updated_at", isUTC).check(
				func(a answer) string {
					return unless(!timeOf(a.at("updated_at")).Before(timeOf(a.at("created_at"))), "updated before it was created")
				})),
		rule("fake/created-at", "ids, times: RFC 3339 UTC, by the clock that the limits go by",
			createAgent.is(200), readAgent.is(200), wait(time.Hour),
			createAgent.is(200), readAgent.is(200).holds("created_at", later(time.Hour))),
		rule("fake/updated-at", "enabling SMS moves updated_at; nothing moves created_at",
			createAgent.is(200), readAgent.is(200), wait(time.Hour), enableSMS.is(200),
			readAgent.is(200).holds("created_at", same).holds("updated_at", later(time.Hour))),
		rule("fake/ids-in-order", "ids: agent_000001, trace_000001 in order",
			createAgent.is(200).holds("agent_id", like(`^agent_\d{6}$`)).holds("trace_id", like(`^trace_\d{6}$`)),
			createAgent.is(200).holds("agent_id", behind).holds("trace_id", behind)),
	}
}

func agentMemberCases() []testCase {
	const (
		closed = "No additional properties are allowed at any level."
		mode   = "sms.mode | string | enum none, sandbox, managed, byo_twilio"
	)
	return slices.Concat(
		rows("2.3/sms.mode", mode, createAgent, 200, each(`{"sms":{"mode":VALUE}}`, "none", "sandbox", "managed", "byo_twilio")...),
		rows("2.3/sms.mode-refused", mode, createAgent, 400, each(`{"sms":{"mode":VALUE}}`, "", "sms", "NONE", "byo-twilio", "hosted")...),
		rows("2.3/sms-mode-required", "sms | object | required member: mode", createAgent, 400, row{"empty", `{"sms":{}}`}),
		rows("2.3/no-other-member", closed, createAgent, 400,
			row{"top", `{"name":"Ada"}`},
			row{"top-null", `{"name":null}`},
			row{"top-response-only", `{"agent_id":"a"}`},
			row{"sms", `{"sms":{"mode":"none","phone_number":"+1"}}`},
			row{"llm", llmBody(`"temperature":1`)},
			row{"llm-null", llmBody(`"temperature":null`)}),
		rows("fake/creation-empty", "a bound that the interface does not state is not invented", createAgent, 200,
			row{"system_prompt", `{"system_prompt":""}`},
			row{"customer_ref", `{"customer_ref":""}`},
			row{"llm.model", llmBody(`"model":""`)},
			row{"llm.api_key", llmBody(`"provider":"openai","api_key":""`)}),
	)
}

// metadataCases: the cap that the interface does not show is 4096 characters
// of compact JSON on a target that claims the decisions.
func metadataCases() []testCase {
	const capped = "metadata cap: 4096 characters of compact JSON"
	return slices.Concat(
		rows("2.3/metadata", "metadata | object | any properties", createAgent, 200,
			row{"empty", `{"metadata":{}}`},
			row{"null-member", `{"metadata":{"a":null}}`},
			row{"nested", `{"metadata":{"a":{"b":[1,2.5,true,null,"x",{"c":{}}]},"":"empty name"}}`},
			row{"names-of-other-members", `{"metadata":{"llm":1,"sms":2,"api_key_hint":"x"}}`}),
		rows("fake/metadata-cap", capped, createAgent, 200,
			row{"at", metadataOf(4096, "")},
			row{"at-with-space", metadataOf(4096, strings.Repeat(" ", 500))}),
		rows("fake/metadata-cap", capped, createAgent, 400, row{"over", metadataOf(4097, "")}),
	)
}

// metadataOf is a creation body. Its metadata has n characters as compact JSON,
// and space in two places that compact JSON does not have.
func metadataOf(n int, space string) string {
	const frame = `{"a":""}`
	return `{"metadata":{` + space + `"a":` + space + `"` + strings.Repeat("x", n-len(frame)) + `"}}`
}
