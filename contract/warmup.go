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
	return slices.Concat(warmUpModeCases(), warmUpRefusals(), warmUpBYOKCases(), warmUpKeyCases())
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
		byok      = `{"mode":"byok"}`
	)
	return []testCase{
		{
			ID: "4.2/byok-configured", Rule: needsBYOK, Spends: Spend{Requests: 2, BYOKSets: 1, WarmUps: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				s.call(warmUp, byok).is(200).holds("mode", "byok")
			},
		},
		{
			ID: "4.2/byok-not-configured", Rule: conflict, Spends: Spend{Requests: 2}, Core: true,
			run: func(s *session) {
				s.clear()
				s.call(warmUp, byok).is(409)
			},
		},
		{
			ID: "4.2/byok-cleared", Rule: conflict, Spends: Spend{Requests: 3, BYOKSets: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				s.call(clearBYOK, "").is(200)
				s.call(warmUp, byok).is(409)
			},
		},
		{
			ID: "4.2/byok-of-another-key", Rule: conflict, Needs: []need{needAbilities},
			Spends: Spend{Requests: 2, BYOKSets: 1},
			run: func(s *session) {
				s.issue("preview", true).call(setBYOK, setBYOK.body).is(200)
				s.issue("preview", true).call(warmUp, byok).is(409)
			},
		},
		{
			ID: "4.2/byok-unavailable", Rule: "503 (BYOK not available)", Needs: []need{needAbilities},
			Spends: Spend{Requests: 2, BYOKSets: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(warmUp, byok).is(503)
			},
		},
		{
			ID: "4.2/hosted-without-byok", Rule: "503 (BYOK not available)", Needs: []need{needAbilities},
			Spends: Spend{Requests: 1, WarmUps: 1},
			run: func(s *session) {
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(warmUp, `{"mode":"hosted"}`).is(200)
			},
		},
	}
}

// warmUpKeyCases concern the kind of key: 403 is for byok mode only.
func warmUpKeyCases() []testCase {
	const forbidden = "403 (byok mode with a key that is not dashboard-issued)"
	return []testCase{
		{
			ID: "4.2/byok-forbidden", Rule: forbidden, Needs: []need{needAbilities}, Spends: Spend{Requests: 1},
			// No BYOK is configured either: 403 goes before 409.
			run: func(s *session) { s.issue("preview", false).call(warmUp, `{"mode":"byok"}`).is(403) },
		},
		{
			ID: "4.2/hosted-allowed", Rule: forbidden, Needs: []need{needAbilities}, Spends: Spend{Requests: 2, WarmUps: 2},
			run: func(s *session) {
				other := s.issue("preview", false)
				other.call(warmUp, "").is(200)
				other.call(warmUp, `{"mode":"hosted"}`).is(200)
			},
		},
		{
			ID: "fake/byok-warmup-forbidden-though-configured", Needs: []need{needAbilities},
			Rule:   "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike",
			Spends: Spend{Requests: 2, Creations: 1, BYOKSets: 1},
			run: func(s *session) {
				other := s.issue("preview", false)
				other.call(createAgent, llmBody(`"provider":"openai","api_key":"`+providerKey+`"`)).is(200)
				other.call(warmUp, `{"mode":"byok"}`).is(403)
			},
		},
	}
}
