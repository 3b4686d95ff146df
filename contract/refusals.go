package contract

import "strings"

const dashboardNeeded = "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key. Other keys receive 403."

// credentials are values of Authorization that the service must not accept,
// some made from a key that it does accept.
var credentials = []struct {
	name string
	of   func(key string) string
}{
	{"missing", always("")},
	{"unknown", always("Bearer not-a-key-of-this-service")},
	{"without-scheme", func(key string) string { return key }},
	{"basic", func(key string) string { return "Basic " + key }},
	{"scheme-alone", always("Bearer")},
	{"empty", always("Bearer ")},
	{"shortened", func(key string) string { return "Bearer " + key[:len(key)-1] }},
	{"lengthened", func(key string) string { return "Bearer " + key + "x" }},
	{"two-keys", func(key string) string { return "Bearer " + key + " " + key }},
	{"other-case", func(key string) string { return "Bearer " + swapCase(key) }},
}

// credentials: every endpoint refuses every credential but a key that was
// issued and not revoked, on an active plan. The BYOK endpoints refuse a key
// that is not dashboard-issued too.
func (s *suite) credentials() {
	const credential = "A missing or invalid credential gives 401."
	for _, e := range endpoints {
		for _, c := range credentials {
			s.rule("5/credential-"+c.name+"/"+e.name, credential, e.is(401).header("Authorization", c.of))
		}
		s.rule("fake/credential-spaced/"+e.name, "a space inside the token makes it another",
			e.is(401).header("Authorization", func(key string) string { return "Bearer " + key[:4] + " " + key[4:] }))
		s.rule("5/credential-revoked/"+e.name, credential, getStatus.is(200).by(another), revoke(another), e.is(401).by(another))
		s.rule("5/plan-inactive/"+e.name, "An inactive plan gives 402 (payment required).", e.is(402).by(unpaid))
	}
	s.rule("5/not-dashboard-allowed/status", dashboardNeeded, getStatus.is(200).by(undashboard))
	for _, e := range []endpoint{getBYOK, setBYOK, clearBYOK} {
		s.rule("5/not-dashboard/"+e.name, dashboardNeeded, e.is(403).by(undashboard))
	}
}

// swapCase changes the case of the last letter: most keys have one.
func swapCase(key string) string {
	i := strings.LastIndexFunc(key, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	if i < 0 {
		return key + "A"
	}
	return key[:i] + string(key[i]^0x20) + key[i+1:]
}

// unchanged: a refused call changes nothing.
func (s *suite) unchanged() {
	const limited = "429 | Rate limited"
	full, still := setBYOK.with(byokBody(fullMembers)), getBYOK.is(200).holds("byok", same)
	s.rule("7/400-changes-no-byok", invalidBody,
		setBYOK.is(200),
		setBYOK.with(`{"provider":"anthropic"}`).is(400), setBYOK.with(byokBody(`"tier":"fast"`)).is(400),
		createAgent.with(llmBody(`"provider":"anthropic","api_key":"`+providerKey+`","tier":"slow"`)).is(400),
		still)
	s.rule("7/400-changes-no-sms", invalidBody,
		createAgent.is(200), readAgent.is(200), enableSMS.with(`{"mode":"sandbox","x":1}`).is(400),
		readAgent.is(200).holds("sms", same))
	s.rule("7/429-changes-no-byok", limited, setBYOK.is(200).times(5), getBYOK.is(200), full.limited("byok_set_key_hour"), still)
	s.rule("7/429-creation-stores-no-byok", limited,
		noBYOK, createAgent.is(200).times(10), keyedAgent.limited("agent_create_ip_minute"), none)
}

// unlisted: no endpoint refuses with a status that section 4 does not list for
// it.
func (s *suite) unlisted() {
	const listed = "Which endpoints can return which status: see section 4."
	s.rule("7/endpoints-without-429", listed,
		requests(60, 60), readAgent.limited("key_minute"), getStatus.is(200), getBYOK.is(200), noBYOK)
	s.rule("7/endpoints-without-503", listed,
		createAgent.is(200), setBYOK.is(200), storeOff, sendMessage.listed(),
		storeOn, byokAgent.is(200), storeOff, sendMessage.listed(), enableSMS.listed(), readAgent.listed(),
		getBYOK.listed(), clearBYOK.listed())
	s.rule("7/creation-without-503", listed, storeOff, keyedAgent.listed())
	for _, e := range []endpoint{readAgent, sendMessage, enableSMS} {
		s.rule("7/agent-of-another-key/"+e.name, listed, createAgent.is(200).by(another), e.listed().by(third))
	}
}

// order makes calls that break two rules and sees which one is answered.
func (s *suite) order() {
	order := func(id string, steps ...step) {
		s.rule("fake/order/"+id, "order of checks: route 404, method 405 -> 401 -> 402 -> request limits 429 -> 403 -> body 400 -> "+
			"agent 404 -> state 409/503 -> operation limits 429 -> act", steps...)
	}
	var (
		broken   = setBYOK.with(`{`)
		toNobody = sendMessage.of(noAgent)
	)
	order("401-before-all", toNobody.with(`{`).is(401).keyless(), broken.is(401).keyless(), revoke(unpaid), broken.is(401).by(unpaid))
	order("402-before-403-400-404", broken.is(402).by(unpaid), toNobody.with(`{`).is(402).by(unpaid))
	order("403-before-400", broken.is(403).by(undashboard))
	order("403-before-503", storeOff, setBYOK.is(403).by(undashboard), byokWarmUp.is(403).by(undashboard))
	order("503-before-409", storeOff, byokWarmUp.is(503))
	order("400-before-503", storeOff, setBYOK.with(`{}`).is(400))
	order("400-before-404", toNobody.with(`{}`).is(400), enableSMS.of(noAgent).with(`{"mode":"none"}`).is(400))
	order("request-429-before-403-400-404", repeat(1,
		readNobody.is(404).times(60), setBYOK.limited("key_minute"), createAgent.with(`{`).limited("key_minute"),
		readNobody.limited("key_minute")).by(undashboard))
	order("400-before-operation-429",
		warmUp.is(200).times(3), badWarmUp.is(400),
		setBYOK.is(200).times(5), setBYOK.with(`{}`).is(400),
		createAgent.is(200).times(8), createAgent.with(llmBody(ownKey+`,"tier":"slow"`)).is(400),
		keyedAgent.limited("byok_set_key_hour"))
	order("409-before-operation-429", warmUp.is(200).times(3), byokWarmUp.is(409), warmUp.limited("warmup_key_hour"))
	order("503-before-operation-429", setBYOK.is(200).times(5), storeOff, setBYOK.is(503))
}
