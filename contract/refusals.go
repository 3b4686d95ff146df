package contract

import "reflect"

// refusalCases: a refused call changes nothing, and no endpoint refuses with a
// status that section 4 does not list for it.
func refusalCases() []testCase {
	return append(unchangedCases(), unlistedCases()...)
}

func unchangedCases() []testCase {
	const set = `{"provider":"anthropic","api_key":"` + providerKey + `"}`
	return []testCase{
		{
			ID: "7/400-changes-no-byok", Rule: "400 | Bad request (invalid body)", Spends: Spend{Requests: 5, BYOKSets: 1},
			run: func(s *session) {
				stored := s.call(setBYOK, setBYOK.body).is(200).at("byok")
				s.call(setBYOK, `{"provider":"anthropic"}`).is(400)
				s.call(setBYOK, byokBody(`"tier":"fast"`)).is(400)
				s.call(createAgent, llmBody(`"provider":"anthropic","api_key":"`+providerKey+`","tier":"slow"`)).is(400)
				s.call(getBYOK, "").is(200).holds("byok", stored)
			},
		},
		{
			ID: "7/400-changes-no-sms", Rule: "400 | Bad request (invalid body)", Spends: Spend{Requests: 4, Creations: 1},
			run: func(s *session) {
				id := s.newAgent()
				before := s.call(readAgent.of(id), "").is(200)
				s.call(enableSMS.of(id), `{"mode":"sandbox","x":1}`).is(400)
				after := s.call(readAgent.of(id), "").is(200)
				after.want(reflect.DeepEqual(before.at("sms"), after.at("sms")), "the refused call changed sms")
			},
		},
		{
			ID: "7/429-changes-no-byok", Rule: "429 | Rate limited", Spends: Spend{Requests: 8, BYOKSets: 5},
			run: func(s *session) {
				s.repeat(5, setBYOK, setBYOK.body, 200)
				stored := s.call(getBYOK, "").is(200).at("byok")
				s.call(setBYOK, set).limited("byok_set_key_hour")
				s.call(getBYOK, "").is(200).holds("byok", stored)
			},
		},
		{
			ID: "7/429-creation-stores-no-byok", Rule: "429 | Rate limited", Spends: Spend{Requests: 13, Creations: 10},
			run: func(s *session) {
				s.clear()
				s.repeat(10, createAgent, `{}`, 200)
				s.call(createAgent, keyedAgent).limited("agent_create_ip_minute")
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
	}
}

func unlistedCases() []testCase {
	const rule = "Which endpoints can return which status: see section 4."
	cases := []testCase{
		{
			ID: "7/endpoints-without-429", Rule: rule, Spends: Spend{Requests: 64, Creations: 1},
			run: func(s *session) {
				s.fillRequests(60, 60)().limited("key_minute")
				s.call(getStatus, "").is(200)
				s.call(getBYOK, "").is(200)
				s.clear()
			},
		},
		{
			ID: "7/endpoints-without-503", Rule: rule, Needs: []need{needAbilities},
			Spends: Spend{Requests: 9, Creations: 2, BYOKSets: 1},
			run: func(s *session) {
				hosted := s.newAgent()
				s.call(setBYOK, setBYOK.body).is(200)
				own := s.call(createAgent, llmBody(`"mode":"byok"`)).is(200).text("agent_id")
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(sendMessage.of(hosted), sendMessage.body).listed()
				s.call(sendMessage.of(own), sendMessage.body).listed()
				s.call(enableSMS.of(own), enableSMS.body).listed()
				s.call(readAgent.of(own), "").listed()
				s.call(getBYOK, "").listed()
				s.call(clearBYOK, "").listed()
			},
		},
		{
			ID: "7/creation-without-503", Rule: rule, Needs: []need{needAbilities}, Spends: Spend{Requests: 1},
			run: func(s *session) {
				s.target.Abilities.SetBYOKAvailable(false)
				s.call(createAgent, keyedAgent).listed()
				s.ledger.spent = s.of.Spends // should it go through, it spends more
			},
		},
	}
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		cases = append(cases, testCase{
			ID: "7/agent-of-another-key/" + e.name, Rule: rule, Needs: []need{needAbilities}, Spends: Spend{Requests: 2, Creations: 1},
			run: func(s *session) {
				id := s.issue("preview", true).newAgent()
				s.issue("preview", true).call(e.of(id), e.body).listed()
			},
		})
	}
	return cases
}
