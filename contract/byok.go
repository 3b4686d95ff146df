package contract

import (
	"slices"
	"strings"
)

// byokBody is a PUT /v1/byok body with further members.
func byokBody(members string) string {
	return `{"provider":"anthropic","api_key":"` + providerKey + `",` + members + `}`
}

func byokCases() []testCase {
	return slices.Concat(byokLifeCases(), byokStoreCases(), byokConfigCases(), byokRefusals(), byokScopeCases())
}

func byokLifeCases() []testCase {
	const null = "byok (a BYOK configuration per 2.4, or null when none is set)"
	return []testCase{
		{
			ID: "4.4/set-read-clear", Core: true, Spends: Spend{Requests: 4, BYOKSets: 1}, Rule: "Sets BYOK for the calling API key.",
			run: func(s *session) {
				set := s.call(setBYOK, byokBody(`"base_url":"https://gateway.example/v1","model":"m-1","label":"work"`)).is(200)
				set.holds("byok.provider", "anthropic").holds("byok.base_url", "https://gateway.example/v1").holds("byok.model", "m-1")
				s.call(getBYOK, "").is(200).holds("byok", set.at("byok"))
				s.call(clearBYOK, "").is(200)
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
		{
			ID: "4.3/null", Rule: null, Spends: Spend{Requests: 2},
			run: func(s *session) {
				s.clear()
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
		{
			ID: "4.4/set-again", Spends: Spend{Requests: 3, BYOKSets: 2}, Rule: "Sets BYOK for the calling API key.",
			run: func(s *session) {
				s.call(setBYOK, `{"provider":"openai","api_key":"`+providerKey+`"}`).is(200)
				s.call(setBYOK, `{"provider":"anthropic","api_key":"`+providerKey+`"}`).is(200)
				s.call(getBYOK, "").is(200).holds("byok.provider", "anthropic")
			},
		},
		{
			ID: "4.5/then-none", Rule: "Clears BYOK.", Spends: Spend{Requests: 3, BYOKSets: 1},
			run: func(s *session) {
				s.call(setBYOK, setBYOK.body).is(200)
				s.call(clearBYOK, "").is(200)
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
		{
			ID: "fake/clear-with-none-set", Rule: "DELETE with none set: 200", Spends: Spend{Requests: 3},
			run: func(s *session) {
				s.call(clearBYOK, "").is(200)
				s.call(clearBYOK, "").is(200)
				s.call(getBYOK, "").is(200).holds("byok", nil)
			},
		},
	}
}

func byokStoreCases() []testCase {
	set := step{1, setBYOK, setBYOK.body, 200}
	return sequences([]sequence{
		{id: "4.4/unavailable", rule: "503 (BYOK not available)", steps: []step{storeOff, {1, setBYOK, setBYOK.body, 503}, storeOn, set}},
		{
			id: "fake/read-and-clear-while-unavailable", rule: "No endpoint ever answers a status that section 4 does not list for it",
			steps: []step{storeOff, {1, getBYOK, "", 200}, {1, clearBYOK, "", 200}},
		},
		{
			id: "fake/creation-while-unavailable", rule: "llm.api_key at creation, BYOK store unavailable: 400",
			steps: []step{storeOff, {1, createAgent, keyedAgent, 400}, {1, createAgent, `{}`, 200}},
		},
		{
			id: "4.6/byok-of-another-key", rule: "BYOK is bound to the API key that set it.", by: issued, steps: []step{set},
			then: []step{{1, createAgent, llmBody(`"mode":"byok"`), 400}},
		},
		{
			id: "fake/creation-stores-key-of-any-key", by: undashboard,
			rule:  "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike",
			steps: []step{{1, createAgent, keyedAgent, 200}, {1, createAgent, llmBody(`"mode":"byok"`), 200}},
		},
	})
}

// byokConfigCases check what of a body shows in the configuration. PUT states
// no bounds for its members: none of those at agent creation apply.
func byokConfigCases() []testCase {
	const noBound = "base_url (string, optional), model (string, optional), label (string, optional)"
	long := strings.Repeat("x", 5000)
	cases := rows("4.4/no-bound", noBound, setBYOK, 200,
		row{"base_url", byokBody(`"base_url":"https://` + long + `"`)},
		row{"model", byokBody(`"model":"` + long + `"`)},
		row{"label", byokBody(`"label":"` + long + `"`)},
		row{"api_key", strings.Replace(setBYOK.body, providerKey, providerKey+long, 1)})
	cases = append(cases, rows("fake/set-empty", "a bound that the interface does not state is not invented", setBYOK, 200,
		row{"base_url", byokBody(`"base_url":""`)}, row{"model", byokBody(`"model":""`)}, row{"label", byokBody(`"label":""`)},
		row{"api_key", `{"provider":"openai","api_key":""}`})...)
	for _, p := range []string{"openai_compat", "openai", "anthropic"} {
		cases = append(cases, testCase{
			ID: "4.4/provider/" + p, Rule: "provider (required; openai_compat, openai or anthropic)",
			Spends: Spend{Requests: 2, BYOKSets: 1},
			run: func(s *session) {
				s.call(setBYOK, `{"provider":"`+p+`","api_key":"`+providerKey+`"}`).is(200).holds("byok.provider", p)
				s.call(getBYOK, "").is(200).holds("byok.provider", p)
			},
		})
	}
	return append(cases, testCase{
		ID: "fake/set-replaces-all", Rule: "PUT /v1/byok replaces the configuration: what the new body leaves out is gone",
		Spends: Spend{Requests: 3, BYOKSets: 2},
		run: func(s *session) {
			s.call(setBYOK, byokBody(`"base_url":"https://gateway.example/v1","model":"m-1"`)).is(200)
			s.call(setBYOK, setBYOK.body).is(200).holds("byok.base_url", nil).holds("byok.model", nil)
			s.call(getBYOK, "").is(200).holds("byok.base_url", nil).holds("byok.model", nil)
		},
	})
}

func byokRefusals() []testCase {
	const (
		members  = "Body (required; no additional properties): provider (required; openai_compat, openai or anthropic), api_key (string, required)"
		provider = "provider (required; openai_compat, openai or anthropic)"
		apiKey   = `"api_key":"` + providerKey + `"`
	)
	return slices.Concat(
		core(rows("4.4/required", members, setBYOK, 400, row{"api_key", `{"provider":"openai"}`})),
		rows("4.4/required", members, setBYOK, 400,
			row{"provider", `{` + apiKey + `}`}, row{"both", `{}`}),
		rows("4.4/provider-refused", provider, setBYOK, 400,
			each(`{"provider":%q,`+apiKey+`}`, "", "mistral", "OpenAI", "openai-compat", "hosted")...),
		rows("4.4/no-other-member", members, setBYOK, 400,
			row{"unknown", byokBody(`"tier":"fast"`)},
			row{"unknown-null", byokBody(`"extra":null`)},
			row{"response-only", byokBody(`"fingerprint":"f"`)}),
	)
}

func byokScopeCases() []testCase {
	const scoped = "BYOK is bound to the API key that set it."
	return []testCase{
		{
			ID: "5/byok-read-of-another-key", Rule: scoped, Needs: []need{needAbilities}, Spends: Spend{Requests: 3, BYOKSets: 1},
			run: func(s *session) {
				mine, other := s.issue("preview", true), s.issue("preview", true)
				mine.call(setBYOK, setBYOK.body).is(200)
				other.call(getBYOK, "").is(200).holds("byok", nil)
				mine.call(getBYOK, "").is(200).holds("byok.provider", "openai")
			},
		},
		{
			ID: "5/byok-cleared-by-another-key", Rule: scoped, Needs: []need{needAbilities}, Spends: Spend{Requests: 3, BYOKSets: 1},
			run: func(s *session) {
				mine, other := s.issue("preview", true), s.issue("preview", true)
				mine.call(setBYOK, setBYOK.body).is(200)
				other.clear()
				mine.call(getBYOK, "").is(200).holds("byok.provider", "openai")
			},
		},
		{
			ID: "5/byok-set-by-another-key", Rule: scoped, Needs: []need{needAbilities}, Spends: Spend{Requests: 3, BYOKSets: 2},
			run: func(s *session) {
				mine, other := s.issue("preview", true), s.issue("preview", true)
				mine.call(setBYOK, setBYOK.body).is(200)
				other.call(setBYOK, `{"provider":"anthropic","api_key":"`+providerKey+`"}`).is(200)
				mine.call(getBYOK, "").is(200).holds("byok.provider", "openai")
			},
		},
	}
}
