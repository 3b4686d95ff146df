package contract

import "slices"

func statusCases() []testCase {
	return []testCase{{
		ID: "4.1/shape", Core: true, Spends: Spend{Requests: 1},
		Rule: "All five are required. No additional properties.",
		run:  func(s *session) { s.call(getStatus, "").is(200) },
	}}
}

func warmUpCases() []testCase {
	return slices.Concat(warmUpModeCases(), warmUpRefusals(), warmUpBYOKCases())
}

func warmUpModeCases() []testCase {
	const modes = "When present: `mode` (string, hosted or byok; default hosted)."
	hosted := func(id, rule, body string) testCase {
		return testCase{
			ID: id, Rule: rule, Spends: Spend{Requests: 1, WarmUps: 1},
			run: func(s *session) { s.call(warmUp, body).is(200).holds("mode", "hosted") },
		}
	}
	return append(
		core([]testCase{hosted("4.2/body-absent", "Body is optional.", "")}),
		hosted("4.2/mode-absent", modes, `{}`),
		hosted("4.2/mode-hosted", modes, `{"mode":"hosted"}`),
	)
}

func warmUpRefusals() []testCase {
	return slices.Concat(
		core(rows("4.2/mode-refused", "`mode` (string, hosted or byok; default hosted)", warmUp, 400,
			each(`{"mode":%q}`, "turbo")...)),
		rows("4.2/mode-refused", "`mode` (string, hosted or byok; default hosted)", warmUp, 400,
			each(`{"mode":%q}`, "", "Hosted", "BYOK", "hosted,byok")...),
		rows("4.2/no-other-member", "No additional properties. The byok mode requires BYOK to be configured", warmUp, 400,
			row{"unknown", `{"mode":"hosted","speed":1}`},
			row{"unknown-alone", `{"speed":1}`},
			row{"unknown-null", `{"speed":null}`}),
	)
}

func warmUpBYOKCases() []testCase {
	const (
		conflict  = "409 (byok mode, BYOK not configured)"
		needsBYOK = "The byok mode requires BYOK to be configured and a dashboard-issued key."
		absent    = "503 (BYOK not available)"
	)
	set, clear := step{1, setBYOK, setBYOK.body, 200}, step{1, clearBYOK, "", 200}
	return append(
		sequences([]sequence{
			{id: "4.2/byok-configured", rule: needsBYOK, steps: []step{set, {1, warmUp, byokWarmUp, 200}}},
			{id: "4.2/byok-cleared", rule: conflict, steps: []step{set, clear, {1, warmUp, byokWarmUp, 409}}},
			{id: "4.2/byok-of-another-key", rule: conflict, by: issued, steps: []step{set}, then: []step{{1, warmUp, byokWarmUp, 409}}},
			{id: "4.2/byok-unavailable", rule: absent, steps: []step{set, storeOff, {1, warmUp, byokWarmUp, 503}}},
			{id: "4.2/hosted-without-byok", rule: absent, steps: []step{storeOff, {1, warmUp, `{"mode":"hosted"}`, 200}}},
			{id: "4.2/byok-forbidden", rule: forbidden, by: undashboard, steps: []step{{1, warmUp, byokWarmUp, 403}}}, // before 409
			{id: "4.2/hosted-allowed", rule: forbidden, by: undashboard, steps: []step{{1, warmUp, "", 200}, {1, warmUp, `{"mode":"hosted"}`, 200}}},
			{
				id: "fake/byok-warmup-forbidden-though-configured", by: undashboard,
				rule:  "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike",
				steps: []step{{1, createAgent, keyedAgent, 200}, {1, warmUp, byokWarmUp, 403}},
			},
		}),
		testCase{
			ID: "4.2/byok-not-configured", Rule: conflict, Spends: Spend{Requests: 2}, Core: true,
			run: func(s *session) {
				s.clear()
				s.call(warmUp, byokWarmUp).is(409)
			},
		},
		testCase{
			ID: "4.2/byok-mode", Rule: needsBYOK, Spends: Spend{Requests: 2, BYOKSets: 1, WarmUps: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				s.call(warmUp, byokWarmUp).is(200).holds("mode", "byok")
			},
		},
	)
}

const forbidden = "403 (byok mode with a key that is not dashboard-issued)"
