package contract

// planCases: the caps of interface 8.2, and the defaults of 8.1 for a key as
// it is issued. Free is inactive: every call answers 402, which is section 5's
// cases. A plan changes the limits on requests and no other.
func planCases() (cases []testCase) {
	for _, p := range []struct {
		plan, id, rule              string
		keyMinute, ipMinute, keyDay int
	}{
		{"preview", "8.1/issued-key/", "Per API key | 60 requests/minute", 60, 120, 1000},
		{"pro", "8.2/pro/", "Pro | 300 | 500 | 10,000", 300, 500, 10_000},
		{"byok", "8.2/byok/", "BYOK | 600 | 1,000 | 50,000", 600, 1000, 50_000},
	} {
		one, two, three := who{"one", p.plan, true}, who{"two", p.plan, true}, who{"three", p.plan, true}
		half := requests(p.ipMinute/2, p.keyMinute)
		cases = append(cases,
			rule(p.id+"key_minute", p.rule, requests(p.keyMinute, p.keyMinute).by(one), readAgent.limited("key_minute").by(one)),
			rule(p.id+"ip_minute", p.rule, half.by(one), half.by(two), createAgent.limited("ip_minute").by(three)),
			rule(p.id+"key_day", p.rule, requests(p.keyDay, p.keyMinute).by(one), readAgent.limited("key_day").by(one)))
		if p.plan != "preview" {
			cases = append(cases, rule(p.id+"operations-as-in-preview",
				"Plan | Requests/minute per key | Requests/minute per IP | Requests/day per key",
				createAgent.is(200).times(10).by(one), createAgent.limited("agent_create_ip_minute").by(one),
				setBYOK.is(200).times(5).by(one), setBYOK.limited("byok_set_key_hour").by(one),
				warmUp.is(200).times(3).by(one), warmUp.limited("warmup_key_hour").by(one)))
		}
	}
	return cases
}
