package contract

import (
	"regexp"
	"slices"
	"time"
)

func agentCases() []testCase {
	return slices.Concat(agentLifeCases(), agentTimeCases(), agentMemberCases(), agentOwnerCases())
}

func agentLifeCases() []testCase {
	return []testCase{
		{
			ID: "4.6/empty-object", Core: true, Spends: Spend{Requests: 1, Creations: 1},
			Rule: "The body may be an empty object because all members are optional.",
			run:  func(s *session) { s.call(createAgent, `{}`).is(200).holds("status", "active") },
		},
		{
			ID: "2.3/every-member", Core: true, Spends: Spend{Requests: 1, Creations: 1},
			Rule: "Every top-level field is optional.",
			run: func(s *session) {
				s.call(createAgent, `{
					"system_prompt": "Be brief.", "customer_ref": "customer-1", "metadata": {"team": "a", "n": [1, null]},
					"sms": {"mode": "none"}, "llm": {"mode": "hosted", "tier": "smart", "model": "m-1", "label": "work"}
				}`).is(200)
			},
		},
		{
			ID: "4.7/read", Core: true, Needs: []need{needAgent}, Spends: Spend{Requests: 1},
			Rule: "Response: agent_id, status, created_at, updated_at, trace_id (all required)",
			run:  func(s *session) { s.call(readAgent, "").is(200).holds("agent_id", s.ledger.agent) },
		},
		{
			ID: "1/ids-differ", Rule: "The service creates an agent for the caller and returns its identifier.",
			Spends: Spend{Requests: 2, Creations: 2},
			run: func(s *session) {
				first := s.newAgent()
				s.want(s.newAgent() != first, "two agents are %s", first)
			},
		},
	}
}

func agentTimeCases() []testCase {
	return []testCase{
		{
			ID: "fake/read-after-creation", Rule: "an agent stays active; ids, times: RFC 3339 UTC", Spends: Spend{Requests: 2, Creations: 1},
			run: func(s *session) {
				read := s.call(readAgent.of(s.newAgent()), "").is(200).holds("status", "active")
				read.want(!read.time("updated_at").Before(read.time("created_at")), "updated before it was created")
			},
		},
		{
			ID: "fake/created-at", Rule: "ids, times: RFC 3339 UTC, by the clock that the limits go by",
			Spends: Spend{Requests: 4, Creations: 2, Wait: time.Hour},
			run: func(s *session) {
				first := s.call(readAgent.of(s.newAgent()), "").is(200).time("created_at")
				s.wait(time.Hour)
				s.call(readAgent.of(s.newAgent()), "").is(200).isAt("created_at", first.Add(time.Hour))
			},
		},
		{
			ID: "fake/updated-at", Rule: "enabling SMS moves updated_at; nothing moves created_at",
			Spends: Spend{Requests: 4, Creations: 1, Wait: time.Hour},
			run: func(s *session) {
				id := s.newAgent()
				before := s.call(readAgent.of(id), "").is(200)
				s.wait(time.Hour)
				s.call(enableSMS.of(id), enableSMS.body).is(200)
				after := s.call(readAgent.of(id), "").is(200).holds("created_at", before.at("created_at"))
				after.isAt("updated_at", before.time("updated_at").Add(time.Hour))
			},
		},
		{
			ID: "fake/ids-in-order", Rule: "ids: agent_000001, trace_000001 in order", Spends: Spend{Requests: 2, Creations: 2},
			run: func(s *session) {
				first, second := s.call(createAgent, `{}`).is(200), s.call(createAgent, `{}`).is(200)
				for member, form := range map[string]string{"agent_id": `^agent_\d{6}$`, "trace_id": `^trace_\d{6}$`} {
					first.want(regexp.MustCompile(form).MatchString(first.text(member)), "%s is not %s", member, form)
					second.want(second.text(member) > first.text(member), "%s is not behind %s", member, first.text(member))
				}
			},
		},
	}
}

func agentMemberCases() []testCase {
	const (
		closed = "No additional properties are allowed at any level."
		mode   = "sms.mode | string | enum none, sandbox, managed, byo_twilio"
	)
	return slices.Concat(
		rows("2.3/sms.mode", mode, createAgent, 200, each(`{"sms":{"mode":%q}}`, "none", "sandbox", "managed", "byo_twilio")...),
		rows("2.3/sms.mode-refused", mode, createAgent, 400, each(`{"sms":{"mode":%q}}`, "", "sms", "NONE", "byo-twilio", "hosted")...),
		rows("2.3/sms-mode-required", "sms | object | required member: mode", createAgent, 400, row{"empty", `{"sms":{}}`}),
		core(rows("2.3/no-other-member", closed, createAgent, 400, row{"top", `{"name":"Ada"}`})),
		rows("2.3/no-other-member", closed, createAgent, 400,
			row{"top-null", `{"name":null}`},
			row{"top-response-only", `{"agent_id":"a"}`},
			row{"sms", `{"sms":{"mode":"none","phone_number":"+1"}}`},
			row{"llm", `{"llm":{"temperature":1}}`},
			row{"llm-null", `{"llm":{"temperature":null}}`}),
	)
}

// agentOwnerCases: an agent belongs to the key that made it. For any other key
// it does not exist.
func agentOwnerCases() []testCase {
	cases := core(slices.Concat(
		rows("7/agent-unknown", "404 | Not found", readAgent.of("agent-of-nobody"), 404, row{"read-agent", ""}),
		rows("7/agent-unknown", "404 | Not found", sendMessage.of("agent-of-nobody"), 404, row{"send-message", sendMessage.body}),
		rows("7/agent-unknown", "404 | Not found", enableSMS.of("agent-of-nobody"), 404, row{"enable-sms", enableSMS.body}),
	))
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		cases = append(cases, testCase{
			ID: "fake/agent-of-another-key/" + e.name, Rule: "who sees an agent: the key that created it; any other key gets 404",
			Needs: []need{needAbilities}, Spends: Spend{Requests: 3, Creations: 1},
			run: func(s *session) {
				mine, other := s.issue("preview", true), s.issue("preview", true)
				id := mine.newAgent()
				other.call(e.of(id), e.body).is(404)
				mine.call(e.of(id), e.body).is(200)
			},
		})
	}
	return cases
}
