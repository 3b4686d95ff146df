package contract

import (
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

const dashboardNeeded = "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key. Other keys receive 403."

// credentials are values of Authorization that the service must not accept,
// some made from a key that it does accept.
var credentials = []struct {
	name string
	of   func(key string) string
}{
	{"missing", rawcall.Always("")},
	{"unknown", rawcall.Always("Bearer not-a-key-of-this-service")},
	{"without-scheme", func(key string) string { return key }},
	{"basic", func(key string) string { return "Basic " + key }},
	{"scheme-alone", rawcall.Always("Bearer")},
	{"empty", rawcall.Always("Bearer ")},
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
			s.rule("5/credential-"+c.name+"/"+e.Name, credential, e.is(401).header("Authorization", c.of))
		}
		s.rule("fake/credential-spaced/"+e.Name, "a space inside the token makes it another",
			e.is(401).header("Authorization", func(key string) string { return "Bearer " + key[:4] + " " + key[4:] }))
		s.rule("5/credential-revoked/"+e.Name, credential, getStatus.is(200).by(another), revoke(another), e.is(401).by(another))
		s.rule("5/plan-inactive/"+e.Name, "An inactive plan gives 402 (payment required).", e.is(402).by(unpaid))
	}
	s.rule("5/not-dashboard-allowed/status", dashboardNeeded, getStatus.is(200).by(undashboard))
	for _, e := range []step{getBYOK, setBYOK, clearBYOK} {
		s.rule("5/not-dashboard/"+e.Name, dashboardNeeded, e.is(403).by(undashboard))
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
		createAgent.with(rawcall.LLM(`"provider":"anthropic","api_key":"`+providerKey+`","tier":"slow"`)).is(400),
		still)
	s.rule("7/400-changes-no-sms", invalidBody,
		createAgent.is(200), readAgent.is(200), enableSMS.with(`{"mode":"sandbox","x":1}`).is(400),
		readAgent.is(200).holds("sms.status", same))
	s.rule("7/429-changes-no-byok", limited, setBYOK.is(200).times(5), getBYOK.is(200), full.limited("byok_set_key_hour"), still)
	s.rule("7/429-creation-stores-no-byok", limited,
		noBYOK, createAgent.is(200).times(10), keyedAgent.limited("agent_create_ip_minute"), none)
}

// unlisted: no endpoint refuses with a status that section 4 does not list for
// it.
func (s *suite) unlisted() {
	const listed = "Which endpoints can return which status: see section 4."
	s.rule("7/status-without-429", listed, getStatus.is(200).times(65))
	s.rule("7/endpoints-without-429", listed,
		requests(60, 60), readAgent.limited("key_minute"), getStatus.is(200), getBYOK.is(200), noBYOK)
	s.rule("7/endpoints-without-503", listed,
		createAgent.is(200), setBYOK.is(200), storeOff, sendMessage.listed(),
		storeOn, byokAgent.is(200), storeOff, sendMessage.listed(), enableSMS.listed(), readAgent.listed(),
		getBYOK.listed(), clearBYOK.listed())
	s.rule("7/creation-without-503", listed, storeOff, keyedAgent.listed())
	for _, e := range []step{readAgent, sendMessage, enableSMS} {
		s.rule("7/agent-of-another-key/"+e.Name, listed, createAgent.is(200).by(another), e.listed().by(third))
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
		createAgent.is(200).times(8), createAgent.with(rawcall.LLM(ownKey+`,"tier":"slow"`)).is(400),
		keyedAgent.limited("byok_set_key_hour"))
	order("409-before-operation-429", warmUp.is(200).times(3), byokWarmUp.is(409), warmUp.limited("warmup_key_hour"))
	order("503-before-operation-429", setBYOK.is(200).times(5), storeOff, setBYOK.is(503))
}

const routing = "order of checks: route 404, method 405 -> 401"

func noRoute(method, path string) step {
	return repeat(1, at(method, path).is(404), at(method, path).is(404).keyless())
}

// routes: a path that is none of interface 4 is answered with 404, and with
// the error body that every error has.
func (s *suite) routes() {
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/status", "/status", "/v1/Status", "/V1/status", "/v1/status/", "/v1//status",
		"/v1/agents/", "/v1/agents/a/", "/v1/agents//messages", "/v1/agents/a/messages/", "/v1/agents/a/messages/b",
		"/v1/agents/a/channels", "/v1/agents/a/channels/email", "/v1/agents/a/channels/sms/", "/v1/byok/x", "/v1/warmup/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			s.rule("fake/path-unknown/"+method+path, routing, noRoute(method, path))
		}
	}
	read := func(id string) step { return at("GET", "/v1/agents/"+id).is(404) }
	// A path is not cleaned. A service that removes dots or slashes from it answers a
	// different call.
	s.rule("fake/path-with-dots", routing,
		noRoute("GET", "/v1/agents/.."), noRoute("GET", "/v1/agents/."), read("%2e%2e"), noRoute("GET", "/v1/byok/../status"))
	s.rule("7/agent-id-is-one-segment", "404 | Not found", read("a%2Fmessages"), read("%2e%2e%2fstatus"), read("%20"))
}

// methods: a path has no other methods than those of interface 4. HEAD is left
// out: its answer has no body to look at.
func (s *suite) methods() {
	for _, e := range []struct {
		step
		others string
		has    []string
	}{
		{getStatus, "POST PUT DELETE PATCH OPTIONS", []string{"GET"}},
		{warmUp, "GET PUT DELETE PATCH OPTIONS", []string{"POST"}},
		{getBYOK, "POST PATCH OPTIONS", []string{"DELETE", "GET", "PUT"}},
		{createAgent, "GET PUT DELETE PATCH OPTIONS", []string{"POST"}},
		{readAgent, "POST PUT DELETE PATCH OPTIONS", []string{"GET"}},
		{sendMessage, "GET PUT DELETE PATCH OPTIONS", []string{"POST"}},
		{enableSMS, "GET PUT DELETE PATCH OPTIONS", []string{"POST"}},
	} {
		for method := range strings.FieldsSeq(e.others) {
			unknown := at(method, e.of(noAgent).Path).is(405)
			s.rule("fake/method/"+e.Name+"/"+method, routing+"; an answer 405 names the methods in Allow (RFC 9110, 15.5.6)",
				unknown.check(allows(e.has)), unknown.keyless())
		}
	}
}

func allows(methods []string) func(answer) string {
	return func(a answer) string {
		named := strings.Split(strings.ReplaceAll(a.Header.Get("Allow"), " ", ""), ",")
		return unless(slices.Equal(slices.Sorted(slices.Values(named)), methods), "Allow names %v, not %v", named, methods)
	}
}
