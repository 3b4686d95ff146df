package contract

import (
	"slices"
	"strings"
)

// noBYOK clears the stored provider key. Where none is stored the interface
// allows 404 too: 4.5 lists it.
var noBYOK = clearBYOK.is(200, 404)

func byokCases() []testCase {
	return slices.Concat(byokLifeCases(), byokStoreCases(), byokScopeCases(), byokMemberCases())
}

func byokLifeCases() []testCase {
	const (
		sets     = "Sets BYOK for the calling API key."
		provider = "provider (required; openai_compat, openai or anthropic)"
	)
	full := setBYOK.with(byokBody(`"base_url":"https://gateway.example/v1","model":"m-1","label":"work"`))
	none := getBYOK.is(200).holds("byok", nil)
	of := func(provider string) endpoint {
		return setBYOK.with(`{"provider":"` + provider + `","api_key":"` + providerKey + `"}`)
	}
	cases := []testCase{
		rule("4.4/set-read-clear", sets,
			full.is(200).holds("byok.provider", "anthropic").holds("byok.base_url", "https://gateway.example/v1").holds("byok.model", "m-1"),
			getBYOK.is(200).holds("byok", same), clearBYOK.is(200), none),
		rule("4.3/null", "byok (a BYOK configuration per 2.4, or null when none is set)", noBYOK, none),
		rule("4.4/set-again", sets,
			of("openai").is(200), of("anthropic").is(200), getBYOK.is(200).holds("byok.provider", "anthropic")),
		rule("4.5/then-none", "Clears BYOK.", setBYOK.is(200), clearBYOK.is(200), none),
		rule("fake/clear-with-none-set", "DELETE with none set: 200", clearBYOK.is(200), clearBYOK.is(200), none),
		rule("fake/set-replaces-all", "PUT /v1/byok replaces the configuration: what the new body leaves out is gone",
			full.is(200), setBYOK.is(200).holds("byok.base_url", nil).holds("byok.model", nil),
			getBYOK.is(200).holds("byok.base_url", nil).holds("byok.model", nil)),
	}
	for _, p := range []string{"openai_compat", "openai", "anthropic"} {
		cases = append(cases, rule("4.4/provider/"+p, provider,
			of(p).is(200).holds("byok.provider", p), getBYOK.is(200).holds("byok.provider", p)))
	}
	return cases
}

// byokStoreCases: the store of provider keys may be down.
func byokStoreCases() []testCase {
	return []testCase{
		rule("4.4/unavailable", "503 (BYOK not available)", storeOff, setBYOK.is(503), storeOn, setBYOK.is(200)),
		rule("fake/read-and-clear-while-unavailable", "No endpoint ever answers a status that section 4 does not list for it",
			storeOff, getBYOK.is(200), clearBYOK.is(200)),
		rule("fake/creation-while-unavailable", "llm.api_key at creation, BYOK store unavailable: 400",
			storeOff, keyedAgent.is(400), createAgent.is(200)),
	}
}

// byokScopeCases: one key does not see, change or use what another has stored.
func byokScopeCases() []testCase {
	const bound = "BYOK is bound to the API key that set it."
	mine, still := setBYOK.is(200).by(another), getBYOK.is(200).holds("byok.provider", "openai").by(another)
	return []testCase{
		rule("4.6/byok-of-another-key", bound, mine, byokAgent.is(400)),
		rule("5/byok-read-of-another-key", bound, mine, getBYOK.is(200).holds("byok", nil).by(third), still),
		rule("5/byok-cleared-by-another-key", bound, mine, noBYOK.by(third), still),
		rule("5/byok-set-by-another-key", bound, mine, setBYOK.with(byokBody(`"label":"b"`)).is(200).by(third), still),
	}
}

// byokMemberCases: PUT states no bounds for its members, and those of agent
// creation do not apply.
func byokMemberCases() []testCase {
	const (
		noBound  = "base_url (string, optional), model (string, optional), label (string, optional)"
		members  = "Body (required; no additional properties): provider (required; openai_compat, openai or anthropic), api_key (string, required)"
		provider = "provider (required; openai_compat, openai or anthropic)"
		apiKey   = `"api_key":"` + providerKey + `"`
	)
	long := strings.Repeat("x", 5000)
	return slices.Concat(
		rows("4.4/no-bound", noBound, setBYOK, 200,
			row{"base_url", byokBody(`"base_url":"https://` + long + `"`)},
			row{"model", byokBody(`"model":"` + long + `"`)},
			row{"label", byokBody(`"label":"` + long + `"`)},
			row{"api_key", strings.Replace(setBYOK.body, providerKey, providerKey+long, 1)}),
		rows("fake/set-empty", "a bound that the interface does not state is not invented", setBYOK, 200,
			row{"base_url", byokBody(`"base_url":""`)},
			row{"model", byokBody(`"model":""`)},
			row{"label", byokBody(`"label":""`)},
			row{"api_key", `{"provider":"openai","api_key":""}`}),
		rows("4.4/required", members, setBYOK, 400,
			row{"api_key", `{"provider":"openai"}`},
			row{"provider", `{` + apiKey + `}`},
			row{"both", `{}`}),
		rows("4.4/provider-refused", provider, setBYOK, 400,
			each(`{"provider":VALUE,`+apiKey+`}`, "", "mistral", "OpenAI", "openai-compat", "hosted")...),
		rows("4.4/no-other-member", members, setBYOK, 400,
			row{"unknown", byokBody(`"tier":"fast"`)},
			row{"unknown-null", byokBody(`"extra":null`)},
			row{"response-only", byokBody(`"fingerprint":"f"`)}),
	)
}
