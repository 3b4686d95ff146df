package contract

import "time"

const day = 24 * time.Hour

// thereIP is from the block that RFC 5737 keeps for documentation.
const thereIP = "203.0.113.8"

// limit is one row of interface 8.1.
type limit struct {
	key    string        // its limit_key, which is this project's
	rule   string        // the row
	window time.Duration // how long it lasts from its first call
	fill   step          // spends it to the last call, and meets no other limit
	next   endpoint      // the call behind those
	by     who           // who makes it
	perIP  bool
}

var limits = []limit{
	{key: "key_minute", rule: "Per API key | 60 requests/minute", window: time.Minute, fill: requests(60, 60), next: createAgent},
	{key: "ip_minute", rule: "Per IP (backstop) | 120 requests/minute", window: time.Minute, perIP: true,
		fill: repeat(1, requests(60, 60).by(another), requests(60, 60).by(third)), next: createAgent, by: fourth},
	{key: "key_day", rule: "Per API key | 1,000 requests/day", window: day, fill: requests(1000, 60), next: createAgent},
	{key: "agent_create_key_day", rule: "Agent creation, per API key | 50/day", window: day,
		fill: repeat(5, createAgent.is(200).times(10), wait(time.Minute)), next: createAgent},
	{key: "agent_create_ip_minute", rule: "Agent creation, per IP | 10/minute", window: time.Minute, perIP: true,
		fill: createAgent.is(200).times(10), next: createAgent},
	{key: "byok_set_key_hour", window: time.Hour, fill: setBYOK.is(200).times(5), next: setBYOK,
		rule: "BYOK set or update, per API key | 5/hour; applies to PUT /v1/byok and to llm.api_key on agent creation"},
	{key: "warmup_key_hour", window: time.Hour, fill: warmUp.is(200).times(3), next: warmUp,
		rule: "Warm-up, per API key | 3/hour; applies to POST /v1/warmup"},
}

// requests spends n requests, the first on creating the agent that the others
// read, and waits a minute after each perMinute of them.
func requests(n, perMinute int) step {
	steps := []step{createAgent.is(200), readAgent.is(200).times(min(n, perMinute) - 1)}
	for left := n - perMinute; left > 0; left -= perMinute {
		steps = append(steps, wait(time.Minute), readAgent.is(200).times(min(left, perMinute)))
	}
	return repeat(1, steps...)
}

func (s *suite) limits() {
	for _, l := range limits {
		took, passes, refused := spends([]step{l.fill}).Wait, l.next.is(200).by(l.by), l.next.limited(l.key).by(l.by)
		opens := newCase("8.1/"+l.key, l.rule, l.fill, refused, untilOpen(l.window-took), passes)
		opens.base = true
		*s = append(*s, opens)
		// The same to the nanosecond: a limit opens neither late nor early.
		s.rule("fake/window-exact/"+l.key, windowFixed+". "+waitRounded,
			l.fill, refused.opensIn(l.window-took), wait(l.window-took-1), refused.opensIn(time.Second), wait(1), passes)
		if l.perIP {
			s.rule("8.1/"+l.key+"-of-one-address", l.rule, l.fill, refused, refused.by(fifth), passes.from(thereIP))
		} else {
			s.rule("8.1/"+l.key+"-of-one-key", l.rule, l.fill, passes.by(another), refused.from(thereIP))
		}
	}
	s.rule("8.1/agent_create_ip_minute-of-all-keys", "Agent creation, per IP | 10/minute", createAgent.is(200).times(4).by(another),
		createAgent.is(200).times(6).by(third), createAgent.limited("agent_create_ip_minute").by(fourth))
}

// sharedLimits: PUT and creation with a provider key share one limit, and so
// do warm-ups in both modes.
func (s *suite) sharedLimits() {
	const sets = "applies to PUT /v1/byok and to llm.api_key on agent creation"
	set, keyed := setBYOK.is(200).times(2), keyedAgent.is(200).times(3)
	s.rule("8.1/byok-set-shared/set-refused", sets, set, keyed, setBYOK.limited("byok_set_key_hour"))
	s.rule("8.1/byok-set-shared/creation-refused", sets, keyed, set, keyedAgent.limited("byok_set_key_hour"))
	s.rule("8.1/byok-set-shared/creation-without-key", sets, set, keyed, createAgent.is(200), byokAgent.is(200))
	s.rule("8.1/warmup_key_hour-of-both-modes", "Warm-up, per API key | 3/hour; applies to POST /v1/warmup",
		set, byokWarmUp.is(200).times(2), warmUp.is(200), warmUp.is(429), byokWarmUp.limited("warmup_key_hour"))
}

// plans: the caps of interface 8.2, and the defaults of 8.1 for a key as it is
// issued. Free is inactive: every call answers 402, which is section 5's
// cases. A plan changes the limits on requests and no other.
func (s *suite) plans() {
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
		s.rule(p.id+"key_minute", p.rule, requests(p.keyMinute, p.keyMinute).by(one), readAgent.limited("key_minute").by(one))
		s.rule(p.id+"ip_minute", p.rule, half.by(one), half.by(two), createAgent.limited("ip_minute").by(three))
		s.rule(p.id+"key_day", p.rule, requests(p.keyDay, p.keyMinute).by(one), readAgent.limited("key_day").by(one))
		s.rule(p.id+"operations", "Plan | Requests/minute per key | Requests/minute per IP | Requests/day per key", repeat(1,
			createAgent.is(200).times(10), createAgent.limited("agent_create_ip_minute"),
			setBYOK.is(200).times(5), setBYOK.limited("byok_set_key_hour"),
			warmUp.is(200).times(3), warmUp.limited("warmup_key_hour")).by(one))
	}
}
