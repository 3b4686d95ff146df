package contract

import "time"

const (
	requestsSpent = "request limits: every call that got past 402, on an endpoint that lists 429, unless itself refused with 429"
	windowFixed   = "window: fixed, from its first counted call"
	waitRounded   = "Retry-After: whole seconds rounded up, at least 1, and after exactly that wait the call goes through"
	lastIsNamed   = "of several exhausted limits the one that opens last is named"
)

// counted: refused calls count as any other.
func (s *suite) counted() {
	refused := createAgent.limited("key_minute")
	s.rule("fake/counted/400-404-409", requestsSpent,
		wrongAgent.is(400).times(20), readNobody.is(404).times(20), byokWarmUp.is(409).times(20), refused)
	s.rule("fake/counted/403", requestsSpent, setBYOK.is(403).times(60).by(undashboard), refused.by(undashboard))
	s.rule("fake/counted/503", requestsSpent, storeOff, setBYOK.is(503).times(60), storeOn, refused)
	s.rule("fake/counted/operation-429", requestsSpent, // what the limit on creations refuses spends no request
		createAgent.is(200).times(10), createAgent.is(429), readNobody.is(404).times(50), wrongAgent.limited("key_minute"))
	s.rule("fake/counted/every-limited-endpoint", requestsSpent,
		createAgent.is(200), warmUp.is(200), setBYOK.is(200),
		readAgent.is(200).times(19), sendMessage.is(200).times(19), enableSMS.is(200).times(19),
		warmUp.limited("key_minute"), setBYOK.limited("key_minute"), refused,
		readAgent.limited("key_minute"), sendMessage.limited("key_minute"), enableSMS.limited("key_minute"))
}

// uncounted makes more calls than a limit has, and then one that it would
// refuse.
func (s *suite) uncounted() {
	const unlimited = "GET /v1/status, GET and DELETE /v1/byok are never limited and spend nothing"
	s.rule("fake/uncounted/401", requestsSpent, createAgent.is(401).times(130).keyless(), createAgent.is(200))
	s.rule("fake/uncounted/402", requestsSpent, createAgent.is(402).times(130).by(unpaid), createAgent.is(200))
	s.rule("fake/uncounted/404-405-of-routes", requestsSpent,
		at("GET", "/v1/nothing").is(404).times(65), at("PATCH", "/v1/agents").is(405).times(65), createAgent.is(200))
	s.rule("fake/uncounted/endpoints-without-429", unlimited,
		getStatus.is(200).times(130), getBYOK.is(200).times(130), clearBYOK.is(200).times(130),
		createAgent.is(200), readNobody.is(404).times(59), createAgent.limited("key_minute"))
	s.rule("fake/uncounted/429", requestsSpent,
		requests(60, 60), createAgent.is(429).times(60),
		requests(60, 60).by(another), // the address has its other half
		readAgent.limited("key_minute").by(another), untilOpen(time.Minute), readNobody.is(404).times(59))
	s.rule("fake/uncounted/429-by-day", requestsSpent,
		requests(60, 60), createAgent.is(429).times(1000),
		repeat(15, wait(time.Minute), readNobody.is(404).times(60)),
		wait(time.Minute), readNobody.is(404).times(40), readAgent.limited("key_day"))
}

func (s *suite) operations() {
	operation := func(id string, steps ...step) {
		s.rule("fake/operation/"+id,
			"operation limits: only an operation that goes through; all its limits are checked before any is taken", steps...)
	}
	created, set := createAgent.is(200).times(10), setBYOK.is(200).times(5)
	noCreation, noSet := createAgent.limited("agent_create_ip_minute"), setBYOK.limited("byok_set_key_hour")
	operation("refused-creation", wrongAgent.is(400).times(10), byokAgent.is(400).times(10), created, noCreation)
	operation("refused-set", setBYOK.with(`{}`).is(400).times(6), storeOff, setBYOK.is(503).times(6), storeOn, set, noSet)
	operation("refused-warmup",
		badWarmUp.is(400).times(4), byokWarmUp.is(409).times(4), warmUp.is(200).times(3), warmUp.limited("warmup_key_hour"))
	operation("clear-is-no-set", setBYOK.is(200).times(4), clearBYOK.is(200), setBYOK.is(200), clearBYOK.is(200), noSet)
	operation("set-refused-takes-no-creation", set, keyedAgent.is(429).times(10), created, noCreation)
	operation("creation-refused-takes-no-set", created, keyedAgent.is(429).times(10), set, noSet)
	operation("creation-refused-takes-no-day", // refused by the address, the key's day is not touched
		repeat(5, createAgent.is(200).times(10), createAgent.is(429).times(2), wait(time.Minute)),
		createAgent.limited("agent_create_key_day"))
}

// windows pins the arithmetic of a window on a clock that stands still
// between waits.
func (s *suite) windows() {
	warmUps, full := warmUp.limited("warmup_key_hour"), readAgent.limited("key_minute")
	s.rule("fake/window-from-first-call", windowFixed,
		wait(15*time.Second), createAgent.is(200), // no window started with the target
		wait(30*time.Second), readAgent.is(200).times(59), full.opensIn(30*time.Second),
		wait(30*time.Second), readAgent.is(200).times(60), full.opensIn(time.Minute)) // all of them are back at once
	s.rule("fake/window-starts-with-a-call", windowFixed,
		requests(60, 60),
		wait(90*time.Second), createAgent.is(200).times(4), // the window ended half a minute ago: this starts one
		wait(35*time.Second), readNobody.is(404).times(56), full.opensIn(25*time.Second))
	s.rule("fake/retry-after-rounded-up", waitRounded,
		warmUp.is(200).times(3),
		wait(time.Hour-1500*time.Millisecond), warmUps.opensIn(2*time.Second),
		wait(1499*time.Millisecond), warmUps.opensIn(time.Second),
		wait(time.Millisecond), warmUp.is(200))

	s.rule("fake/opens-last-is-named/operations", lastIsNamed,
		keyedAgent.is(200).times(5), createAgent.is(200).times(5), keyedAgent.limited("byok_set_key_hour").opensIn(time.Hour))
	s.rule("fake/opens-last-is-named/creation", lastIsNamed,
		repeat(4, createAgent.is(200).times(10), wait(time.Minute)), createAgent.is(200).times(10),
		createAgent.limited("agent_create_key_day").opensIn(day-4*time.Minute))
	s.rule("fake/opens-last-is-named/request-and-operation", lastIsNamed+"; "+waitRounded,
		warmUp.is(200).times(3), requests(57, 57), warmUps.opensIn(time.Hour),
		// A call that would be refused for its body needs the request limit only.
		badWarmUp.limited("key_minute").opensIn(time.Minute),
		createAgent.limited("key_minute").opensIn(time.Minute))
	s.rule("fake/opens-last-is-named/requests", lastIsNamed,
		requests(60, 60).by(another), wait(20*time.Second), requests(60, 60).by(third),
		full.opensIn(time.Minute).by(third)) // the address opens in 40 s, the key in 60 s
}
