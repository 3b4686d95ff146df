package contract

import (
	"fmt"
	"time"
)

// plan caps of interface 8.2. Free is inactive: every call answers 402, which
// is section 5's cases.
var planCaps = []struct {
	name                        string
	rule                        string
	keyMinute, ipMinute, keyDay int
}{
	{"preview", "Per API key | 60 requests/minute", 60, 120, 1000}, // the defaults of 8.1, for a key as issued
	{"pro", "Pro | 300 | 500 | 10,000", 300, 500, 10_000},
	{"byok", "BYOK | 600 | 1,000 | 50,000", 600, 1000, 50_000},
}

func planCases() []testCase {
	var cases []testCase
	for _, p := range planCaps {
		minutes := time.Duration((p.keyDay-1)/p.keyMinute) * time.Minute
		id := "8.2/" + p.name + "/"
		if p.name == "preview" {
			id = "8.1/issued-key/"
		}
		cases = append(cases,
			testCase{
				ID: id + "key_minute", Rule: p.rule, Needs: []need{needAbilities}, Spends: Spend{Requests: p.keyMinute + 1, Creations: 1},
				run: func(s *session) { s.issue(p.name, true).fillRequests(p.keyMinute, p.keyMinute)().limited("key_minute") },
			},
			testCase{
				ID: id + "ip_minute", Rule: p.rule, Needs: []need{needAbilities}, Spends: Spend{Requests: p.ipMinute + 1, Creations: 2},
				run: func(s *session) {
					s.issue(p.name, true).fillRequests(p.ipMinute/2, p.keyMinute)
					s.issue(p.name, true).fillRequests(p.ipMinute/2, p.keyMinute)
					s.issue(p.name, true).call(createAgent, `{}`).limited("ip_minute")
				},
			},
			testCase{
				ID: id + "key_day", Rule: p.rule, Needs: []need{needAbilities}, Spends: Spend{Requests: p.keyDay + 1, Creations: 1, Wait: minutes},
				run: func(s *session) {
					s.bulk().issue(p.name, true).fillRequests(p.keyDay, p.keyMinute)().limited("key_day")
				},
			},
		)
	}
	return append(cases, operationLimitsOf("pro"), operationLimitsOf("byok"))
}

// operationLimitsOf: 8.2 overrides the request limits and no other.
func operationLimitsOf(plan string) testCase {
	return testCase{
		ID:   fmt.Sprintf("8.2/%s/operations-as-in-preview", plan),
		Rule: "Plan | Requests/minute per key | Requests/minute per IP | Requests/day per key", Needs: []need{needAbilities},
		Spends: Spend{Requests: 21, Creations: 10, BYOKSets: 5, WarmUps: 3},
		run: func(s *session) {
			mine := s.issue(plan, true)
			mine.fill(10, createAgent, `{}`)().limited("agent_create_ip_minute")
			mine.fill(5, setBYOK, setBYOK.body)().limited("byok_set_key_hour")
			mine.fill(3, warmUp, "")().limited("warmup_key_hour")
		},
	}
}
