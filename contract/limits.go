package contract

import "time"

// limit is one row of interface 8.1 as the cases drive it.
type limit struct {
	key    string        // its limit_key, which is this project's
	rule   string        // the row
	window time.Duration // how long it lasts from its first call
	took   time.Duration // how long fill waits, so that no other limit is hit
	spends Spend         // what fill and then one more call spend
	needs  []need
	// fill spends the limit to the last call and returns the next call.
	fill func(s *session) (next func() answer)
}

const day = 24 * time.Hour

var limits = []limit{
	{
		key: "key_minute", rule: "Per API key | 60 requests/minute", window: time.Minute,
		spends: Spend{Requests: 61, Creations: 1},
		fill:   func(s *session) func() answer { return s.fillRequests(60, 60) },
	},
	{
		key: "ip_minute", rule: "Per IP (backstop) | 120 requests/minute", window: time.Minute, needs: []need{needAbilities},
		spends: Spend{Requests: 121, Creations: 3},
		fill: func(s *session) func() answer {
			s.issue("preview", true).fillRequests(60, 60)
			s.issue("preview", true).fillRequests(60, 60)
			third := s.issue("preview", true)
			return func() answer { return third.call(createAgent, `{}`) }
		},
	},
	{
		key: "key_day", rule: "Per API key | 1,000 requests/day", window: day, took: 16 * time.Minute,
		spends: Spend{Requests: 1001, Creations: 1},
		fill:   func(s *session) func() answer { return s.bulk().fillRequests(1000, 60) },
	},
	{
		key: "agent_create_key_day", rule: "Agent creation, per API key | 50/day", window: day, took: 5 * time.Minute,
		spends: Spend{Requests: 51, Creations: 51},
		fill: func(s *session) func() answer {
			for range 5 { // the address may create ten a minute
				s.repeat(10, createAgent, `{}`, 200)
				s.wait(time.Minute)
			}
			return func() answer { return s.call(createAgent, `{}`) }
		},
	},
	{
		key: "agent_create_ip_minute", rule: "Agent creation, per IP | 10/minute", window: time.Minute,
		spends: Spend{Requests: 11, Creations: 11},
		fill:   func(s *session) func() answer { return s.fill(10, createAgent, `{}`) },
	},
	{
		key: "byok_set_key_hour", window: time.Hour,
		rule:   "BYOK set or update, per API key | 5/hour; applies to PUT /v1/byok and to llm.api_key on agent creation",
		spends: Spend{Requests: 6, BYOKSets: 6},
		fill:   func(s *session) func() answer { return s.fill(5, setBYOK, setBYOK.body) },
	},
	{
		key: "warmup_key_hour", rule: "Warm-up, per API key | 3/hour; applies to POST /v1/warmup", window: time.Hour,
		spends: Spend{Requests: 4, WarmUps: 4},
		fill:   func(s *session) func() answer { return s.fill(3, warmUp, "") },
	},
}

// fill makes n calls that go through.
func (s *session) fill(n int, e endpoint, body string) (next func() answer) {
	s.Helper()
	s.repeat(n, e, body, 200)
	return func() answer { return s.call(e, body) }
}

// fillRequests spends n requests, the first on creating the agent that the
// others read, and waits a minute after each perMinute of them.
func (s *session) fillRequests(n, perMinute int) (next func() answer) {
	s.Helper()
	read := readAgent.of(s.newAgent())
	for done := 1; done < n; {
		if done%perMinute == 0 {
			s.wait(time.Minute)
		}
		batch := min(perMinute-done%perMinute, n-done)
		s.repeat(batch, read, "", 200)
		done += batch
	}
	return func() answer { return s.call(read, "") }
}

func limitCases() []testCase {
	cases := make([]testCase, 0, 2*len(limits))
	for _, l := range limits {
		cases = append(cases, l.opens("8.1/"+l.key), l.exact())
	}
	return append(cases, sequences(sharedLimits())...)
}

// opens fills the limit: the next call is refused, and goes through once the
// seconds in Retry-After have passed.
func (l limit) opens(id string) testCase {
	return testCase{
		ID: id, Rule: l.rule, Needs: l.needs, base: true,
		Spends: l.spends.plus(Spend{Requests: 1, Wait: l.window}),
		run: func(s *session) {
			next := l.fill(s)
			s.wait(next().limited(l.key).retryAfter())
			next().is(200)
		},
	}
}

// exact is the same to the nanosecond: a limit opens neither late nor early.
func (l limit) exact() testCase {
	return testCase{
		ID: "fake/window-exact/" + l.key, Needs: append([]need{needFrozenClock}, l.needs...),
		Rule:   windowFixed + ". " + waitRounded,
		Spends: l.spends.plus(Spend{Requests: 2, Wait: l.window}),
		run: func(s *session) {
			next := l.fill(s)
			next().limited(l.key).opensIn(l.window - l.took)
			s.wait(l.window - l.took - 1)
			next().limited(l.key).opensIn(time.Second)
			s.wait(1)
			next().is(200)
		},
	}
}

// sharedLimits: PUT and creation with a provider key share one limit, and so do
// warm-ups in both modes.
func sharedLimits() []sequence {
	const (
		sets    = "applies to PUT /v1/byok and to llm.api_key on agent creation"
		warmUps = "Warm-up, per API key | 3/hour; applies to POST /v1/warmup"
	)
	set, keyed := step{2, setBYOK, setBYOK.body, 200}, step{3, createAgent, keyedAgent, 200}
	return []sequence{
		{id: "8.1/byok-set-shared/set-refused", rule: sets, steps: []step{set, keyed}, next: setNext, meets: "byok_set_key_hour"},
		{
			id: "8.1/byok-set-shared/creation-refused", rule: sets, steps: []step{keyed, set},
			next: step{1, createAgent, keyedAgent, 429}, meets: "byok_set_key_hour",
		},
		{
			id: "8.1/byok-set-shared/creation-without-key", rule: sets,
			steps: []step{set, keyed, {1, createAgent, `{}`, 200}, {1, createAgent, llmBody(`"mode":"byok"`), 200}},
		},
		{
			id: "8.1/warmup_key_hour-of-both-modes", rule: warmUps, next: step{1, warmUp, byokWarmUp, 429}, meets: "warmup_key_hour",
			steps: []step{set, {2, warmUp, byokWarmUp, 200}, {1, warmUp, warmUp.body, 200}, {1, warmUp, warmUp.body, 429}},
		},
	}
}
