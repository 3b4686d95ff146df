package contract

import "time"

const day = 24 * time.Hour

// limit is one row of interface 8.1.
type limit struct {
	key    string        // its limit_key, which is this project's
	rule   string        // the row
	window time.Duration // how long it lasts from its first call
	fill   step          // spends it to the last call
	next   step          // the call behind those
}

// limits are filled so that no other limit is met.
func limits() []limit {
	return []limit{
		{"key_minute", "Per API key | 60 requests/minute", time.Minute, requests(60, 60), readAgent.limited("key_minute")},
		{
			"ip_minute", "Per IP (backstop) | 120 requests/minute", time.Minute,
			repeat(1, requests(60, 60).by(another), requests(60, 60).by(third)), createAgent.limited("ip_minute").by(fourth),
		},
		{"key_day", "Per API key | 1,000 requests/day", day, requests(1000, 60), readAgent.limited("key_day")},
		{
			"agent_create_key_day", "Agent creation, per API key | 50/day", day,
			repeat(5, createAgent.is(200).times(10), wait(time.Minute)), createAgent.limited("agent_create_key_day"),
		},
		{
			"agent_create_ip_minute", "Agent creation, per IP | 10/minute", time.Minute,
			createAgent.is(200).times(10), createAgent.limited("agent_create_ip_minute"),
		},
		{
			"byok_set_key_hour", "BYOK set or update, per API key | 5/hour; applies to PUT /v1/byok and to llm.api_key on agent creation",
			time.Hour, setBYOK.is(200).times(5), setBYOK.limited("byok_set_key_hour"),
		},
		{
			"warmup_key_hour", "Warm-up, per API key | 3/hour; applies to POST /v1/warmup",
			time.Hour, warmUp.is(200).times(3), warmUp.limited("warmup_key_hour"),
		},
	}
}

// requests spends n requests, the first on creating the agent that the others
// read, and waits a minute after each perMinute of them.
func requests(n, perMinute int) step {
	steps := []step{createAgent.is(200)}
	for done := 1; done < n; {
		if done%perMinute == 0 {
			steps = append(steps, wait(time.Minute))
		}
		batch := min(perMinute-done%perMinute, n-done)
		steps = append(steps, readAgent.is(200).times(batch))
		done += batch
	}
	return repeat(1, steps...)
}

func limitCases() []testCase {
	var cases []testCase
	for _, l := range limits() {
		took := spends([]step{l.fill}).Wait
		opens := rule("8.1/"+l.key, l.rule, l.fill, l.next, untilOpen(l.window-took), l.passes())
		opens.base = true
		cases = append(cases, opens,
			// The same to the nanosecond: a limit opens neither late nor early.
			rule("fake/window-exact/"+l.key, windowFixed+". "+waitRounded,
				l.fill, l.next.opensIn(l.window-took), wait(l.window-took-1), l.next.opensIn(time.Second), wait(1), l.passes()))
		if l.key != "ip_minute" && l.key != "agent_create_ip_minute" {
			cases = append(cases, l.ofOneKey())
		}
	}
	return append(append(cases, addressCases()...), sharedLimitCases()...)
}

// passes is the next call once the limit is open.
func (l limit) passes() step { return l.next.e.is(200).by(l.next.key) }

// thereIP is from the block that RFC 5737 keeps for documentation.
const thereIP = "203.0.113.8"

// ofOneKey: a limit per key holds for no other key, and at every address.
func (l limit) ofOneKey() testCase {
	one := l.next.e
	if one.name == readAgent.name {
		one = createAgent
	}
	return rule("8.1/"+l.key+"-of-one-key", l.rule, l.fill, one.is(200).by(another), one.limited(l.key).from(thereIP))
}

// addressCases: a limit per address holds for every key, and at no other
// address.
func addressCases() []testCase {
	const ten = "Agent creation, per IP | 10/minute"
	refused := createAgent.limited("agent_create_ip_minute")
	return []testCase{
		rule("8.1/ip_minute-of-one-address", "Per IP (backstop) | 120 requests/minute",
			requests(60, 60).by(another), requests(60, 60).by(third),
			createAgent.limited("ip_minute").by(fourth), createAgent.is(200).by(fourth).from(thereIP)),
		rule("8.1/agent_create_ip_minute-of-one-address", ten,
			createAgent.is(200).times(10), refused, refused.by(another), createAgent.is(200).from(thereIP)),
		rule("8.1/agent_create_ip_minute-of-all-keys", ten,
			createAgent.is(200).times(4).by(another), createAgent.is(200).times(6).by(third), refused.by(fourth)),
	}
}

// sharedLimitCases: PUT and creation with a provider key share one limit, and
// so do warm-ups in both modes.
func sharedLimitCases() []testCase {
	const (
		sets    = "applies to PUT /v1/byok and to llm.api_key on agent creation"
		warmUps = "Warm-up, per API key | 3/hour; applies to POST /v1/warmup"
	)
	set, keyed := setBYOK.is(200).times(2), keyedAgent.is(200).times(3)
	return []testCase{
		rule("8.1/byok-set-shared/set-refused", sets, set, keyed, setBYOK.limited("byok_set_key_hour")),
		rule("8.1/byok-set-shared/creation-refused", sets, keyed, set, keyedAgent.limited("byok_set_key_hour")),
		rule("8.1/byok-set-shared/creation-without-key", sets, set, keyed, createAgent.is(200), byokAgent.is(200)),
		rule("8.1/warmup_key_hour-of-both-modes", warmUps,
			set, byokWarmUp.is(200).times(2), warmUp.is(200), warmUp.is(429), byokWarmUp.limited("warmup_key_hour")),
	}
}
