package contract

import (
	"cmp"
	"time"
)

// otherIP is an address that RFC 5737 reserves for documentation.
const otherIP = "203.0.113.8"

// limit is one row of interface 8.1.
type limit struct {
	key   string // the limit_key, by this project's decision
	rule  string // the row
	fill  step   // uses the limit up to the last call, and meets no other limit
	next  step   // the call that the limit then refuses
	perIP bool
}

// fullMinute uses up a key's minute.
var fullMinute = requests(minuteMax, minuteMax)

// limitRows are the rows of interface 8.1, in their order.
var limitRows = []limit{
	{key: "key_minute", rule: "Per API key | 60 requests/minute", fill: fullMinute, next: createAgent},
	{key: "ip_minute", rule: "Per IP (backstop) | 120 requests/minute", perIP: true,
		fill: group(fullMinute.by(another), fullMinute.by(third)), next: createAgent.by(key("fourth", "preview"))},
	{key: "key_day", rule: "Per API key | 1,000 requests/day", fill: group(requests(1000, minuteMax), wait(betweenMinutes)), next: sendMessage},
	{key: "agent_create_key_day", rule: "Agent creation, per API key | 50/day",
		fill: repeat(5, createAgent.is(200).times(10), wait(betweenMinutes)), next: createAgent},
	{key: "agent_create_ip_minute", rule: "Agent creation, per IP | 10/minute", perIP: true,
		fill: createAgent.is(200).times(10), next: createAgent.with(`{"sms":{"mode":"none"}}`)},
	{key: "byok_set_key_hour", fill: setBYOK.is(200).times(5), next: setBYOK,
		rule: "BYOK set or update, per API key | 5/hour; applies to PUT /v1/byok and to llm.api_key on agent creation"},
	{key: "warmup_key_hour", fill: warmUp.is(200).times(3), next: warmUp,
		rule: "Warm-up, per API key | 3/hour; applies to POST /v1/warmup"},
}

// betweenMinutes is the wait after which a whole minute's calls pass, however the service
// counts: some services weigh the minute before. A refusal after this wait comes from the
// limit per day.
const betweenMinutes = 2 * time.Minute

// requests spends n requests. The first creates an agent, and the others read it. After
// every perMinute requests it waits betweenMinutes.
func requests(n, perMinute int) step {
	steps := []step{createAgent.is(200), readAgent.is(200).times(min(n, perMinute) - 1)}
	for left := n - perMinute; left > 0; left -= perMinute {
		steps = append(steps, wait(betweenMinutes), readAgent.is(200).times(min(left, perMinute)))
	}
	return group(steps...)
}

// limits fills each limit. It checks which calls and which keys the limit then refuses,
// and until when.
func (s *suite) limits() {
	for _, l := range limitRows {
		spends, passes, refused := newCase("", "", l.fill).Spends, l.next.is(200), l.next.limited(l.key)
		// If a service weighs the previous window, the limit opens later by the share of one
		// call.
		window, took := windowOf(l.key), spends.Wait
		share := window / time.Duration(spends.Requests)
		s.add("8.1/"+l.key, l.rule, l.fill, refused, untilOpen(window-took+share), passes)
		// The same to the nanosecond: a limit opens neither late nor early.
		s.add("fake/window-exact/"+l.key, "from its first counted call. "+waitRounded,
			l.fill, refused.opensIn(window-took), wait(window-took-1), refused.opensIn(time.Second), wait(1), passes)
		// The limit may open twice within a window: windows can begin at any time, and a token
		// bucket gains calls. If it opens a third time, the window is shorter.
		again := append([]step{wait(window/2 - took)}, flatten([]step{l.fill})...)
		for i := range again {
			again[i].statuses = []int{200, 429}
		}
		s.add("8.1/"+l.key+"-in-a-window", l.rule, l.fill, repeat(2, again...), l.next.is(200, 429).check(func(a answer) string {
			return problemUnless(a.passed < 3*spends.Requests-spends.Requests/2, "%d calls passed within %v", a.passed, window)
		}))
		if l.perIP {
			s.add("8.1/"+l.key+"-of-one-address", l.rule, l.fill, refused, refused.by(key("fifth", "preview")), passes.from(otherIP))
		} else {
			if l.next.OfAgent() { // the other key has no agent
				passes = createAgent.is(200)
			}
			s.add("8.1/"+l.key+"-of-one-key", l.rule, l.fill, passes.by(another), refused.from(otherIP))
		}
	}
	for _, c := range []struct{ spends, other step }{{sendMessage, warmUp}, {enableSMS, setBYOK}} {
		s.add("8.1/key_minute-counts/"+c.spends.Name, "Per API key | 60 requests/minute", createAgent.given(200), c.spends.is(200).times(minuteMax-1),
			readAgent.limited("key_minute"), c.spends.limited("key_minute"), c.other.limited("key_minute"))
	}
}

// sharedLimits checks the limits that two kinds of calls share: PUT and creation with a
// provider key, and warm-ups in both modes.
func (s *suite) sharedLimits() {
	const sets = "applies to PUT /v1/byok and to llm.api_key on agent creation"
	set, keyed := setBYOK.is(200).times(2), creationWithKey.is(200).times(3)
	s.add("8.1/byok-set-shared/set-refused", sets, set, keyed, setBYOK.limited("byok_set_key_hour"))
	s.add("8.1/byok-set-shared/creation-refused", sets, keyed, set, creationWithKey.limited("byok_set_key_hour"))
	s.add("8.1/byok-set-shared/creation-without-key", sets, set, keyed, createAgent.is(200), byokCreation.is(200))
	s.add("8.1/warmup_key_hour-of-both-modes", "Warm-up, per API key | 3/hour; applies to POST /v1/warmup",
		set, byokWarmUp.is(200).times(2), warmUp.is(200), warmUp.is(429), byokWarmUp.limited("warmup_key_hour"))
}

// plans checks the caps of interface 8.2, and the defaults of 8.1 for a new key. The plan
// Free is inactive; the cases of section 5 check that every call on it is answered 402. A
// plan changes only the limits on requests.
func (s *suite) plans() {
	const caps = "Plan caps (default overrides, if enabled) | "
	for _, p := range []struct {
		plan, id                    string
		rule                        string // "": the rows of 8.1
		keyMinute, ipMinute, keyDay int
	}{
		{"preview", "8.1/issued-key/", "", minuteMax, 120, 1000},
		{"pro", "8.2/pro/", caps + "Pro | 300 | 500 | 10,000", 300, 500, 10_000},
		{"byok", "8.2/byok/", caps + "BYOK | 600 | 1,000 | 50,000", 600, 1000, 50_000},
	} {
		one, two, three := key("one", p.plan), key("two", p.plan), key("three", p.plan)
		half := requests(p.ipMinute/2, p.keyMinute)
		ofRequests := map[string][]step{
			"key_minute": {requests(p.keyMinute, p.keyMinute).by(one), readAgent.limited("key_minute").by(one)},
			"ip_minute":  {half.by(one), half.by(two), createAgent.limited("ip_minute").by(three)},
			"key_day":    {requests(p.keyDay, p.keyMinute).by(one), wait(betweenMinutes), readAgent.limited("key_day").by(one)},
		}
		for _, l := range limitRows {
			if steps := ofRequests[l.key]; steps != nil {
				s.add(p.id+l.key, cmp.Or(p.rule, l.rule), steps...)
				(*s)[len(*s)-1].planCap = p.rule != ""
			} else if newCase("", "", l.fill).Spends.Wait == 0 { // one case fills it within a minute
				s.add("8.1/"+p.plan+"-key/"+l.key, l.rule, l.fill.by(one), l.next.limited(l.key).by(one))
			}
		}
	}
}

const (
	requestsSpent = "request limits: every call that got past 402, on an endpoint that lists 429, unless itself refused with 429"
	waitRounded   = "Retry-After: whole seconds rounded up, at least 1, and after exactly that wait the call goes through"
	lastIsNamed   = "of several exhausted limits the one that opens last is named"
)

// counted has cases in which refused calls spend a limit on requests, as accepted calls
// do.
func (s *suite) counted() {
	refused := createAgent.limited("key_minute")
	s.add("fake/counted/400-404-409", requestsSpent,
		clearStored, badCreation.given(400).times(20), readUnknownAgent.given(404).times(20), byokWarmUp.given(409).times(20), refused)
	s.add("fake/counted/403", requestsSpent, setBYOK.given(403).times(minuteMax).by(notDashboard), refused.by(notDashboard))
	s.add("fake/counted/503", requestsSpent, storeOff, setBYOK.given(503).times(minuteMax), storeOn, refused)
	s.add("fake/counted/operation-429", requestsSpent, // a creation that its limit refuses spends no request
		createAgent.is(200).times(10), createAgent.is(429), readUnknownAgent.is(404).times(50), badCreation.limited("key_minute"))
	s.add("fake/counted/every-limited-endpoint", requestsSpent,
		createAgent.is(200), warmUp.is(200), setBYOK.is(200),
		readAgent.is(200).times(19), sendMessage.is(200).times(19), enableSMS.is(200).times(19), refused)
}

// uncounted makes more calls than a limit allows, and then a call that is refused only if
// those calls counted.
func (s *suite) uncounted() {
	const unlimited = "GET /v1/status, GET and DELETE /v1/byok are never limited and spend nothing"
	s.add("fake/uncounted/401", requestsSpent, createAgent.given(401).times(beyond).keyless(), createAgent.is(200))
	s.add("fake/uncounted/402", requestsSpent, createAgent.given(402).times(beyond).by(unpaid), createAgent.is(200))
	s.add("fake/uncounted/404-405-of-routes", requestsSpent,
		at("GET", "/v1/nothing").is(404).times(65), at("PATCH", "/v1/agents").is(405).times(65), createAgent.is(200))
	s.add("fake/uncounted/endpoints-without-429", unlimited,
		getStatus.is(200).times(beyond), getBYOK.is(200).times(beyond), clearBYOK.is(200).times(beyond),
		createAgent.is(200), readUnknownAgent.is(404).times(minuteMax-1), createAgent.limited("key_minute"))
	s.add("fake/uncounted/429", requestsSpent,
		fullMinute, createAgent.is(429).times(minuteMax),
		fullMinute.by(another), // uses the other half of the limit per address
		readAgent.limited("key_minute").by(another), untilOpen(time.Minute), readUnknownAgent.is(404).times(minuteMax-1))
}

// operations checks which creations, BYOK sets and warm-ups spend the limits on
// operations.
func (s *suite) operations() {
	operation := func(id string, steps ...step) {
		s.add("fake/operation/"+id,
			"operation limits: only an operation that goes through; all its limits are checked before any is taken", steps...)
	}
	created, set := createAgent.is(200).times(10), setBYOK.is(200).times(5)
	noCreation, noSet := createAgent.limited("agent_create_ip_minute"), setBYOK.limited("byok_set_key_hour")
	operation("refused-creation", clearStored, badCreation.given(400).times(10), byokCreation.given(400).times(10), created, noCreation)
	operation("refused-set", setBYOK.with(`{}`).given(400).times(6), storeOff, setBYOK.given(503).times(6), storeOn, set, noSet)
	operation("refused-warmup",
		clearStored, badWarmUp.given(400).times(4), byokWarmUp.given(409).times(4), warmUp.is(200).times(3), warmUp.limited("warmup_key_hour"))
	operation("clear-is-no-set", setBYOK.is(200).times(4), clearBYOK.given(200), setBYOK.is(200), clearBYOK.given(200), noSet)
	operation("set-refused-takes-no-creation", set, creationWithKey.is(429).times(10), created, noCreation)
	operation("creation-refused-takes-no-set", created, creationWithKey.is(429).times(10), set, noSet)
	operation("creation-refused-takes-no-day", // the limit per address refuses, so the limit per day of the key spends nothing
		repeat(5, createAgent.is(200).times(10), createAgent.is(429).times(2), wait(time.Minute)),
		createAgent.limited("agent_create_key_day"))
}

// exhausted uses up two limits at a time. The refusal must name the limit that opens
// last.
func (s *suite) exhausted() {
	s.add("fake/opens-last-is-named/operations", lastIsNamed,
		creationWithKey.is(200).times(5), createAgent.is(200).times(5), creationWithKey.limited("byok_set_key_hour").opensIn(time.Hour))
	s.add("fake/opens-last-is-named/creation", lastIsNamed,
		repeat(4, createAgent.is(200).times(10), wait(time.Minute)), createAgent.is(200).times(10),
		createAgent.limited("agent_create_key_day").opensIn(day-4*time.Minute))
	s.add("fake/opens-last-is-named/request-and-operation", lastIsNamed+"; "+waitRounded,
		warmUp.is(200).times(3), requests(57, 57), warmUp.limited("warmup_key_hour").opensIn(time.Hour),
		// A call that would be refused for its body needs the request limit only.
		badWarmUp.limited("key_minute").opensIn(time.Minute),
		createAgent.limited("key_minute").opensIn(time.Minute))
	s.add("fake/opens-last-is-named/requests", lastIsNamed,
		fullMinute.by(another), wait(20*time.Second), fullMinute.by(third),
		readAgent.limited("key_minute").opensIn(time.Minute).by(third)) // the limit per address opens in 40 s, the limit per key in 60 s
}
