package contract

import (
	"slices"
	"strings"
)

func authCases() []testCase {
	var cases []testCase
	for _, e := range endpoints {
		cases = append(cases, credentialCases(e)...)
		cases = append(cases, sequences([]sequence{planCase(e)})...)
	}
	return slices.Concat(cases, dashboardCases())
}

// credentialCases: every endpoint refuses every credential but a key that was
// issued and not revoked.
func credentialCases(e endpoint) []testCase {
	const rule = "A missing or invalid credential gives 401."
	header := func(name string, of func(key string) string) testCase {
		return testCase{
			ID: "5/credential-" + name + "/" + e.name, Rule: rule, Spends: Spend{Requests: 1},
			run: func(s *session) { s.with("Authorization", of(s.key)).call(e, e.body).is(401) },
		}
	}
	fixed := func(value string) func(string) string { return func(string) string { return value } }
	return append(
		core([]testCase{header("missing", fixed(""))}),
		header("unknown", fixed("Bearer not-a-key-of-this-service")),
		header("without-scheme", func(key string) string { return key }),
		header("basic", func(key string) string { return "Basic " + key }),
		header("scheme-alone", fixed("Bearer")),
		header("empty", fixed("Bearer ")),
		header("shortened", func(key string) string { return "Bearer " + key[:len(key)-1] }),
		header("lengthened", func(key string) string { return "Bearer " + key + "x" }),
		header("two-keys", func(key string) string { return "Bearer " + key + " " + key }),
		header("other-case", func(key string) string { return "Bearer " + swapCase(key) }),
		testCase{
			ID: "fake/credential-spaced/" + e.name, Rule: "a space inside the token makes it another", Spends: Spend{Requests: 1},
			run: func(s *session) {
				s.with("Authorization", "Bearer "+s.key[:4]+" "+s.key[4:]).call(e, e.body).is(401)
			},
		},
		testCase{
			ID: "5/credential-revoked/" + e.name, Rule: rule, Spends: Spend{Requests: 2},
			Needs: []need{needAbilities},
			run: func(s *session) {
				other := s.issue("preview", true)
				other.call(getStatus, "").is(200)
				s.target.Abilities.RevokeKey(other.key)
				other.call(e, e.body).is(401)
			},
		},
	)
}

// swapCase changes the case of the last letter: most keys have one.
func swapCase(key string) string {
	i := strings.LastIndexFunc(key, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	if i < 0 {
		return key + "A"
	}
	return key[:i] + string(key[i]^0x20) + key[i+1:]
}

func planCase(e endpoint) sequence {
	return sequence{
		id: "5/plan-inactive/" + e.name, rule: "An inactive plan gives 402 (payment required).",
		by: unpaid, steps: []step{{1, e, e.body, 402}},
	}
}

// dashboardCases: exactly these calls want a dashboard-issued key. That the
// agent endpoints do not is 5/agents-of-any-key, hosted warm-up is 4.2/hosted-allowed.
func dashboardCases() []testCase {
	const rule = "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key. Other keys receive 403."
	var list []sequence
	for _, e := range []endpoint{getBYOK, setBYOK, clearBYOK} {
		list = append(list, sequence{id: "5/not-dashboard/" + e.name, rule: rule, by: undashboard, steps: []step{{1, e, e.body, 403}}})
	}
	return sequences(append(list, sequence{
		id: "5/not-dashboard-allowed/status", rule: rule, by: undashboard, steps: []step{{1, getStatus, "", 200}},
	}))
}
