package contract

import "slices"

const checkOrder = "order of checks: route 404, method 405 -> 401 -> 402 -> request limits 429 -> 403 -> body 400 -> " +
	"agent 404 -> state 409/503 -> operation limits 429 -> act"

// orderCases make calls that break two rules and see which one is answered.
func orderCases() []testCase { return slices.Concat(orderRequestCases(), orderOperationCases()) }

func orderRequestCases() []testCase {
	return []testCase{
		{
			ID: "fake/order/401-before-all", Rule: checkOrder, Spends: Spend{Requests: 2},
			run: func(s *session) {
				nobody := s.with("Authorization", "Bearer not-a-key-of-this-service")
				nobody.call(sendMessage.of("agent-of-nobody"), `{`).is(401)
				nobody.call(setBYOK, `[]`).is(401)
			},
		},
		{
			ID: "fake/order/402-before-403-400-404", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 2},
			run: func(s *session) {
				unpaid := s.issue("free", false)
				unpaid.call(setBYOK, `{`).is(402)
				unpaid.call(sendMessage.of("agent-of-nobody"), `{`).is(402)
			},
		},
		{
			ID: "fake/order/402-before-429", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 131},
			run: func(s *session) {
				unpaid := s.issue("free", true)
				unpaid.repeat(130, createAgent, `{}`, 402)
				unpaid.call(createAgent, `{}`).is(402)
			},
		},
		{
			ID: "fake/order/403-before-400", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 1},
			run: func(s *session) { s.issue("preview", false).call(setBYOK, `{`).is(403) },
		},
		{
			ID: "fake/order/403-before-503", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 2},
			run: func(s *session) {
				s.target.Abilities.SetBYOKAvailable(false)
				s.issue("preview", false).call(setBYOK, setBYOK.body).is(403)
				s.issue("preview", false).call(warmUp, `{"mode":"byok"}`).is(403)
			},
		},
		{
			ID: "fake/order/400-before-503", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 1},
			run: func(s *session) {
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(setBYOK, `{}`).is(400)
			},
		},
		{
			ID: "fake/order/400-before-404", Rule: checkOrder, Spends: Spend{Requests: 2},
			run: func(s *session) {
				s.call(sendMessage.of("agent-of-nobody"), `{}`).is(400)
				s.call(enableSMS.of("agent-of-nobody"), `{"mode":"none"}`).is(400)
			},
		},
		{
			ID: "fake/order/request-429-before-403-400-404", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 63},
			run: func(s *session) {
				other := s.issue("preview", false)
				other.repeat(60, readAgent.of("agent-of-nobody"), "", 404)
				other.call(setBYOK, setBYOK.body).limited("key_minute")
				other.call(createAgent, `{`).limited("key_minute")
				other.call(readAgent.of("agent-of-nobody"), "").limited("key_minute")
			},
		},
	}
}

// orderOperationCases exhaust a limit on an operation; a call that is wrong
// is told so all the same.
func orderOperationCases() []testCase {
	return []testCase{
		{
			ID: "fake/order/400-before-operation-429", Rule: checkOrder, Spends: Spend{Requests: 20, Creations: 8, BYOKSets: 5, WarmUps: 3},
			run: func(s *session) {
				s.repeat(3, warmUp, "", 200)
				s.call(warmUp, `{"mode":"turbo"}`).is(400)
				s.repeat(5, setBYOK, setBYOK.body, 200)
				s.call(setBYOK, `{}`).is(400)
				s.repeat(8, createAgent, `{}`, 200)
				s.call(createAgent, llmBody(ownKey+`,"tier":"slow"`)).is(400)
				s.call(createAgent, llmBody(ownKey)).limited("byok_set_key_hour")
			},
		},
		{
			ID: "fake/order/409-before-operation-429", Rule: checkOrder, Spends: Spend{Requests: 5, WarmUps: 3},
			run: func(s *session) {
				s.repeat(3, warmUp, "", 200)
				s.call(warmUp, `{"mode":"byok"}`).is(409)
				s.call(warmUp, "").limited("warmup_key_hour")
			},
		},
		{
			ID: "fake/order/503-before-operation-429", Rule: checkOrder, Needs: []need{needAbilities}, Spends: Spend{Requests: 6, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(5, setBYOK, setBYOK.body, 200)
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(setBYOK, setBYOK.body).is(503)
			},
		},
	}
}
