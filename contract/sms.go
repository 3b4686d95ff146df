package contract

import "slices"

func smsCases() []testCase {
	const (
		modes    = "mode (required; sandbox, managed or byo_twilio)"
		closed   = "Body (required; no additional properties): mode (required; sandbox, managed or byo_twilio)."
		response = "Response: status (disabled, needs_compliance, pending, active or needs_setup), trace_id. Both required."
	)
	return slices.Concat(
		rows("4.9/response", response, enableSMS, 200, row{"sandbox", `{"mode":"sandbox"}`}),
		rows("4.9/mode", modes, enableSMS, 200, each(`{"mode":VALUE}`, "sandbox", "managed", "byo_twilio")...),
		rows("4.9/mode-none-refused", "The value none is not accepted here.", enableSMS, 400, row{"none", `{"mode":"none"}`}),
		rows("4.9/mode-refused", modes, enableSMS, 400, each(`{"mode":VALUE}`, "", "Sandbox", "twilio")...),
		rows("4.9/mode-required", modes, enableSMS, 400, row{"empty", `{}`}),
		rows("4.9/no-other-member", closed, enableSMS, 400,
			row{"unknown", `{"mode":"sandbox","phone_number":"+1"}`},
			row{"unknown-null", `{"mode":"sandbox","x":null}`}),
		smsStatusCases(),
	)
}

// smsStatusCases: which status each mode leads to is decided by this project.
// An active channel has a phone number, and no other has.
func smsStatusCases() []testCase {
	const (
		creation = "SMS at creation: none: disabled; sandbox: active; managed: needs_compliance; byo_twilio: needs_setup; absent: no sms member"
		enabling = "enabling uses the same table; phone number once active"
	)
	cases := []testCase{rule("fake/sms-absent", creation,
		createAgent.is(200).holds("sms", nil), readAgent.is(200).holds("sms", nil))}
	for _, c := range []struct {
		mode, status string
		phone        any
	}{
		{"none", "disabled", nil}, // at creation only
		{"sandbox", "active", isText},
		{"managed", "needs_compliance", nil},
		{"byo_twilio", "needs_setup", nil},
	} {
		mode := `{"mode":"` + c.mode + `"}`
		read := readAgent.is(200).holds("sms.status", c.status).holds("sms.phone_number", c.phone)
		cases = append(cases, rule("fake/sms-created/"+c.mode, creation,
			createAgent.with(`{"sms":`+mode+`}`).is(200).holds("sms.status", c.status), read))
		if c.mode != "none" {
			cases = append(cases, rule("fake/sms-enabled/"+c.mode, enabling,
				createAgent.is(200), enableSMS.with(mode).is(200).holds("status", c.status), read))
		}
	}
	return cases
}
