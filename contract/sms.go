package contract

import (
	"slices"
)

// smsTable is the decided status of each mode, at creation and when enabled.
var smsTable = []struct{ mode, status string }{
	{"none", "disabled"}, // at creation only
	{"sandbox", "active"},
	{"managed", "needs_compliance"},
	{"byo_twilio", "needs_setup"},
}

func smsCases() []testCase {
	const (
		modes    = "mode (required; sandbox, managed or byo_twilio)"
		closed   = "Body (required; no additional properties): mode (required; sandbox, managed or byo_twilio)."
		notNone  = "The value none is not accepted here."
		response = "Response: status (disabled, needs_compliance, pending, active or needs_setup), trace_id. Both required."
	)
	return slices.Concat(
		core(rows("4.9/response", response, enableSMS, 200, row{"sandbox", `{"mode":"sandbox"}`})),
		rows("4.9/mode", modes, enableSMS, 200, each(`{"mode":%q}`, "sandbox", "managed", "byo_twilio")...),
		core(rows("4.9/mode-none-refused", notNone, enableSMS, 400, row{"none", `{"mode":"none"}`})),
		rows("4.9/mode-refused", modes, enableSMS, 400, each(`{"mode":%q}`, "", "Sandbox", "twilio")...),
		rows("4.9/mode-required", modes, enableSMS, 400, row{"empty", `{}`}),
		rows("4.9/no-other-member", closed, enableSMS, 400,
			row{"unknown", `{"mode":"sandbox","phone_number":"+1"}`},
			row{"unknown-null", `{"mode":"sandbox","x":null}`}),
		smsStatusCases(),
	)
}

func smsStatusCases() []testCase {
	const (
		creation = "SMS at creation: none: disabled; sandbox: active; managed: needs_compliance; byo_twilio: needs_setup; absent: no sms member"
		enabling = "enabling uses the same table; phone number once active"
	)
	cases := []testCase{{
		ID: "fake/sms-absent", Rule: creation, Spends: Spend{Requests: 2, Creations: 1},
		run: func(s *session) {
			made := s.call(createAgent, `{}`).is(200).holds("sms", nil)
			s.call(readAgent.of(made.text("agent_id")), "").is(200).holds("sms", nil)
		},
	}}
	for _, row := range smsTable {
		cases = append(cases, testCase{
			ID: "fake/sms-created/" + row.mode, Rule: creation, Spends: Spend{Requests: 2, Creations: 1},
			run: func(s *session) {
				made := s.call(createAgent, `{"sms":{"mode":"`+row.mode+`"}}`).is(200).holds("sms.status", row.status)
				wantSMS(s, made.text("agent_id"), row.status)
			},
		})
	}
	for _, row := range smsTable[1:] {
		cases = append(cases, testCase{
			ID: "fake/sms-enabled/" + row.mode, Rule: enabling, Spends: Spend{Requests: 3, Creations: 1},
			run: func(s *session) {
				id := s.newAgent()
				s.call(enableSMS.of(id), `{"mode":"`+row.mode+`"}`).is(200).holds("status", row.status)
				wantSMS(s, id, row.status)
			},
		})
	}
	return cases
}

// wantSMS reads the agent: its channel has the status, and a phone number if
// and only if it is active.
func wantSMS(s *session, agentID, status string) {
	s.Helper()
	read := s.call(readAgent.of(agentID), "").is(200).holds("sms.status", status)
	read.want((status == "active") == (read.at("sms.phone_number") != nil), "a phone number stands in an active channel and in no other")
}
