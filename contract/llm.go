package contract

import (
	"slices"
)

func llmCases() []testCase { return slices.Concat(llmMemberCases(), llmModeCases(), llmStoredCases()) }

func llmMemberCases() []testCase {
	const (
		optional  = "llm members (all optional, no additional properties)"
		mode      = "mode | string | hosted, byok; default hosted"
		tier      = "tier | string | fast, smart; default fast"
		providers = "provider | string | openai_compat, openai, anthropic"
		apiKey    = `"api_key":"` + providerKey + `"`
		keyed     = `{"llm":{"provider":VALUE,` + apiKey + `}}`
	)
	return slices.Concat(
		rows("2.3/llm-optional", optional, createAgent, 200,
			row{"empty", llmBody("")},
			row{"provider-alone", llmBody(`"provider":"openai"`)},
			row{"base_url", llmBody(`"base_url":"https://gateway.example/v1"`)},
			row{"label", llmBody(`"label":"work"`)},
			row{"model", llmBody(`"model":"m-1"`)}),
		rows("2.3/llm.mode", mode, createAgent, 200, each(llmBody(`"mode":VALUE`), "hosted")...),
		rows("2.3/llm.mode-refused", mode, createAgent, 400, each(llmBody(`"mode":VALUE`), "", "Hosted", "own")...),
		rows("2.3/llm.tier", tier, createAgent, 200, each(llmBody(`"tier":VALUE`), "fast", "smart")...),
		rows("2.3/llm.tier-refused", tier, createAgent, 400, each(llmBody(`"tier":VALUE`), "", "Fast", "slow")...),
		rows("2.3/llm.provider", providers, createAgent, 200, each(keyed, "openai_compat", "openai", "anthropic")...),
		rows("2.3/llm.provider-refused", providers, createAgent, 400, each(keyed, "", "mistral", "OpenAI")...),
		rows("2.3/llm.provider-refused-without-key", providers, createAgent, 400, each(llmBody(`"provider":VALUE`), "mistral")...),
		rows("2.3/llm.provider-required", "BYOK provider; required when llm.api_key is given", createAgent, 400,
			row{"hosted", llmBody(apiKey)},
			row{"byok", llmBody(`"mode":"byok",` + apiKey)}),
	)
}

func llmModeCases() []testCase {
	const earlier = "With llm.mode byok, the caller either has set BYOK earlier with PUT /v1/byok, or supplies llm.api_key (with llm.provider) in the request."
	return []testCase{
		rule("4.6/byok-set-earlier", earlier, setBYOK.is(200), byokAgent.is(200), sendMessage.is(200)),
		rule("4.6/byok-with-key", earlier, createAgent.with(llmBody(`"mode":"byok",`+ownKey)).is(200), sendMessage.is(200)),
		rule("4.6/byok-neither", earlier, noBYOK, byokAgent.is(400)),
	}
}

// llmStoredCases: a key of a creation is stored, by this project's decision.
func llmStoredCases() []testCase {
	const stored = "llm.api_key at creation is stored as PUT /v1/byok would store it, for dashboard-issued and other keys alike"
	members := `"provider":"anthropic","api_key":"` + providerKey + `","base_url":"https://g.example","model":"m-1"`
	return []testCase{
		rule("fake/creation-stores-key", stored,
			createAgent.with(llmBody(members)).is(200),
			getBYOK.is(200).holds("byok.provider", "anthropic").holds("byok.base_url", "https://g.example").holds("byok.model", "m-1"),
			byokWarmUp.is(200)),
		rule("fake/creation-stores-key-of-any-key", stored, keyedAgent.is(200).by(undashboard), byokAgent.is(200).by(undashboard)),
		rule("fake/byok-warmup-forbidden-though-configured", stored, keyedAgent.is(200).by(undashboard), byokWarmUp.is(403).by(undashboard)),
		rule("fake/refused-creation-stores-nothing", stored,
			clearBYOK.is(200), createAgent.with(llmBody(ownKey+`,"tier":"slow"`)).is(400), getBYOK.is(200).holds("byok", nil)),
		rule("fake/byok-agent-after-clear", "byok agent after the config was cleared: message answers 400 byok_not_configured",
			setBYOK.is(200), byokAgent.is(200), clearBYOK.is(200),
			sendMessage.is(400).holds("error", "byok_not_configured"),
			setBYOK.is(200), sendMessage.is(200)),
		rule("fake/hosted-agent-after-clear", "a hosted agent does not need BYOK", createAgent.is(200), clearBYOK.is(200), sendMessage.is(200)),
	}
}
