package contract

import "slices"

// addresses from the block that RFC 5737 keeps for documentation.
const (
	hereIP  = "203.0.113.7"
	thereIP = "203.0.113.8"
)

// limitScopeCases: a limit per key holds for no other key and at every
// address; a limit per address holds for every key and at no other address.
func limitScopeCases() []testCase { return slices.Concat(perKeyCases(), perIPCases()) }

func perKeyCases() []testCase {
	var cases []testCase
	for _, l := range limits {
		if l.key == "ip_minute" || l.key == "agent_create_ip_minute" {
			continue
		}
		cases = append(cases, testCase{
			ID: "8.1/" + l.key + "-of-one-key", Rule: l.rule, Needs: []need{needAbilities, needClientFrom},
			Spends: l.otherKey(),
			run: func(s *session) {
				here := s.from(hereIP)
				l.fill(here)
				other := here.issue("preview", true)
				l.one(other).is(200)
				l.one(s.from(thereIP)).limited(l.key)
			},
		})
	}
	return cases
}

// one is a call that the limit counts.
func (l limit) one(s *session) answer {
	switch l.key {
	case "byok_set_key_hour":
		return s.call(setBYOK, setBYOK.body)
	case "warmup_key_hour":
		return s.call(warmUp, "")
	default:
		return s.call(createAgent, `{}`)
	}
}

// otherKey adds up a filled limit, one call of another key and one refused
// call. Where the limit is on requests, the other key's call creates an agent.
func (l limit) otherKey() Spend {
	spends := l.spends.plus(Spend{Requests: 1, Wait: l.took})
	if l.key == "key_minute" || l.key == "key_day" {
		spends.Creations++
	}
	return spends
}

func perIPCases() []testCase {
	return []testCase{
		{
			ID: "8.1/ip_minute-of-one-address", Rule: "Per IP (backstop) | 120 requests/minute",
			Needs: []need{needAbilities, needClientFrom}, Spends: Spend{Requests: 122, Creations: 3},
			run: func(s *session) {
				here := s.from(hereIP)
				here.issue("preview", true).fillRequests(60, 60)
				here.issue("preview", true).fillRequests(60, 60)
				third := here.issue("preview", true)
				third.call(createAgent, `{}`).limited("ip_minute")
				third.from(thereIP).call(createAgent, `{}`).is(200)
			},
		},
		{
			ID: "8.1/agent_create_ip_minute-of-one-address", Rule: "Agent creation, per IP | 10/minute",
			Needs: []need{needAbilities, needClientFrom}, Spends: Spend{Requests: 13, Creations: 11},
			run: func(s *session) {
				here := s.from(hereIP)
				here.repeat(10, createAgent, `{}`, 200)
				here.call(createAgent, `{}`).limited("agent_create_ip_minute")
				here.issue("preview", true).call(createAgent, `{}`).limited("agent_create_ip_minute")
				s.from(thereIP).call(createAgent, `{}`).is(200)
			},
		},
		{
			ID: "8.1/agent_create_ip_minute-of-all-keys", Rule: "Agent creation, per IP | 10/minute",
			Needs: []need{needAbilities}, Spends: Spend{Requests: 11, Creations: 10},
			run: func(s *session) {
				s.issue("preview", true).repeat(4, createAgent, `{}`, 200)
				s.issue("preview", true).repeat(6, createAgent, `{}`, 200)
				s.issue("preview", true).call(createAgent, `{}`).limited("agent_create_ip_minute")
			},
		},
	}
}
