package contract

import (
	"fmt"
	"slices"
	"strings"
)

// llmBody is a creation body with those members of llm.
func llmBody(members string) string { return `{"llm":{` + members + `}}` }

const ownKey = `"provider":"openai","api_key":"` + providerKey + `"`

func llmCases() []testCase {
	return slices.Concat(llmMemberCases(), llmModeCases(), llmKeyCases(), llmStoredCases())
}

func llmMemberCases() []testCase {
	const (
		optional  = "llm members (all optional, no additional properties)"
		mode      = "mode | string | hosted, byok; default hosted"
		tier      = "tier | string | fast, smart; default fast"
		providers = "provider | string | openai_compat, openai, anthropic"
		keyed     = `,"api_key":"` + providerKey + `"`
	)
	return slices.Concat(
		rows("2.3/llm-optional", optional, createAgent, 200,
			row{"empty", llmBody("")},
			row{"provider-alone", llmBody(`"provider":"openai"`)},
			row{"base_url", llmBody(`"base_url":"https://gateway.example/v1"`)},
			row{"label", llmBody(`"label":"work"`)},
			row{"model", llmBody(`"model":"m-1"`)}),
		rows("2.3/llm.mode", mode, createAgent, 200, each(llmBody(`"mode":%q`), "hosted")...),
		rows("2.3/llm.mode-refused", mode, createAgent, 400, each(llmBody(`"mode":%q`), "", "Hosted", "own")...),
		rows("2.3/llm.tier", tier, createAgent, 200, each(llmBody(`"tier":%q`), "fast", "smart")...),
		rows("2.3/llm.tier-refused", tier, createAgent, 400, each(llmBody(`"tier":%q`), "", "Fast", "slow")...),
		rows("2.3/llm.provider", providers, createAgent, 200,
			each(llmBody(`"provider":%q`+keyed), "openai_compat", "openai", "anthropic")...),
		rows("2.3/llm.provider-refused", providers, createAgent, 400,
			each(llmBody(`"provider":%q`+keyed), "", "mistral", "OpenAI")...),
		rows("2.3/llm.provider-refused-without-key", providers, createAgent, 400,
			each(llmBody(`"provider":%q`), "mistral")...),
		rows("2.3/llm.provider-required", "BYOK provider; required when llm.api_key is given", createAgent, 400,
			row{"hosted", llmBody(`"api_key":"` + providerKey + `"`)},
			row{"byok", llmBody(`"mode":"byok","api_key":"` + providerKey + `"`)}),
	)
}

func llmModeCases() []testCase {
	const earlier = "With llm.mode byok, the caller either has set BYOK earlier with PUT /v1/byok, or supplies llm.api_key (with llm.provider) in the request."
	byok := llmBody(`"mode":"byok"`)
	return []testCase{
		{
			ID: "4.6/byok-set-earlier", Rule: earlier, Spends: Spend{Requests: 3, Creations: 1, BYOKSets: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				made := s.call(createAgent, byok).is(200)
				s.call(sendMessage.of(made.text("agent_id")), sendMessage.body).is(200)
			},
		},
		{
			ID: "4.6/byok-with-key", Rule: earlier, Spends: Spend{Requests: 2, Creations: 1, BYOKSets: 1},
			run: func(s *session) {
				made := s.call(createAgent, llmBody(`"mode":"byok",`+ownKey)).is(200)
				s.call(sendMessage.of(made.text("agent_id")), sendMessage.body).is(200)
			},
		},
		{
			ID: "4.6/byok-neither", Rule: earlier, Spends: Spend{Requests: 2},
			run: func(s *session) {
				s.clear()
				s.call(createAgent, byok).is(400)
			},
		},
		{
			ID: "5/agents-of-any-key", Needs: []need{needAbilities}, Spends: Spend{Requests: 4, Creations: 1},
			Rule: "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key.",
			run: func(s *session) {
				other := s.issue("preview", false)
				id := other.newAgent()
				for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
					other.call(e.of(id), e.body).is(200)
				}
			},
		},
	}
}

// llmKeyCases: members of llm that are bounded at creation, together with a
// provider key, are bounded all the same.
func llmKeyCases() []testCase {
	const bounds = "llm.model at most 200; llm.base_url at most 400; llm.label at most 60"
	var list []row
	for name, bound := range map[string]int{"model": 200, "base_url": 400, "label": 60} {
		list = append(list, row{name, llmBody(fmt.Sprintf(`%s,"%s":"%s"`, ownKey, name, strings.Repeat("x", bound+1)))})
	}
	slices.SortFunc(list, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows("8.4/with-key", bounds, createAgent, 400, list...)
}

func llmStoredCases() []testCase {
	const stored = "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike"
	return []testCase{
		{
			ID: "fake/creation-stores-key", Rule: stored, Spends: Spend{Requests: 3, Creations: 1, BYOKSets: 1, WarmUps: 1},
			run: func(s *session) {
				s.call(createAgent, llmBody(`"provider":"anthropic","api_key":"`+providerKey+`","base_url":"https://g.example","model":"m-1"`)).is(200)
				s.call(getBYOK, "").is(200).
					holds("byok.provider", "anthropic").holds("byok.base_url", "https://g.example").holds("byok.model", "m-1")
				s.call(warmUp, `{"mode":"byok"}`).is(200)
			},
		},
		{
			ID: "fake/refused-creation-stores-nothing", Rule: stored, Spends: Spend{Requests: 3},
			run: func(s *session) {
				s.call(clearBYOK, "").is(200)
				s.call(createAgent, llmBody(ownKey+`,"tier":"slow"`)).is(400)
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
		{
			ID: "fake/byok-agent-after-clear", Rule: "byok agent after the config was cleared: message answers 400 byok_not_configured",
			Spends: Spend{Requests: 6, Creations: 1, BYOKSets: 2},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				id := s.call(createAgent, llmBody(`"mode":"byok"`)).is(200).text("agent_id")
				s.call(clearBYOK, "").is(200)
				s.call(sendMessage.of(id), sendMessage.body).is(400).holds("error", "byok_not_configured")
				s.call(setBYOK, setBYOK.body).is(200)
				s.call(sendMessage.of(id), sendMessage.body).is(200)
			},
		},
		{
			ID: "fake/hosted-agent-after-clear", Rule: "a hosted agent does not need BYOK", Spends: Spend{Requests: 3, Creations: 1},
			run: func(s *session) {
				id := s.newAgent()
				s.call(clearBYOK, "").is(200)
				s.call(sendMessage.of(id), sendMessage.body).is(200)
			},
		},
	}
}
