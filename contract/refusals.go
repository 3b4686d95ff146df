package contract

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

const dashboardNeeded = "The BYOK endpoints (GET, PUT, DELETE /v1/byok) and warm-up in byok mode require a dashboard-issued key. Other keys receive 403."

// credentialRows are values of Authorization that the service must not accept. Some are made
// from a valid key.
var credentialRows = []struct {
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

// credentials checks that every endpoint accepts only a key that was issued, is not
// revoked, and is on an active plan. The BYOK endpoints also refuse a key that is not
// dashboard-issued.
func (s *suite) credentials() {
	const credential = "A missing or invalid credential gives 401."
	for _, e := range endpoints {
		for _, c := range credentialRows {
			s.add("5/credential-"+c.name+"/"+e.Name, credential, e.is(401).header("Authorization", c.of))
		}
		s.add("fake/credential-spaced/"+e.Name, "a space inside the token makes it another",
			e.is(401).header("Authorization", func(key string) string { return "Bearer " + key[:4] + " " + key[4:] }))
		s.add("5/credential-revoked/"+e.Name, credential, getStatus.given(200).by(third), revoke(third), e.is(401).by(third))
		s.add("5/plan-inactive/"+e.Name, "An inactive plan gives 402 (payment required).", e.is(402).by(unpaid))
	}
	s.add("5/not-dashboard-allowed/status", dashboardNeeded, getStatus.is(200).by(notDashboard))
	for _, e := range []step{getBYOK, setBYOK, clearBYOK} {
		s.add("5/not-dashboard/"+e.Name, dashboardNeeded,
			e.is(403).by(notDashboard), byokCreation.is(400).by(notDashboard)) // which needs a stored provider key
	}
}

// swapCase changes the case of the last letter. A key without a letter, which is rare, gets one
// more character.
func swapCase(key string) string {
	i := strings.LastIndexFunc(key, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	if i < 0 {
		return key + "A"
	}
	return key[:i] + string(key[i]^0x20) + key[i+1:]
}

// unchanged checks that a refused call changes nothing.
func (s *suite) unchanged() {
	full, still := setBYOK.with(byokBody(fullMembers)), getBYOK.is(200).holdsBYOK("openai", nil, nil).holds("byok.fingerprint", same)
	s.add("7/400-changes-no-byok", invalidBody,
		setBYOK.given(200),
		setBYOK.with(`{"provider":"anthropic"}`).is(400), setBYOK.with(byokBody(`"tier":"fast"`)).is(400),
		createAgent.with(rawcall.LLM(`"provider":"anthropic","api_key":"`+rawcall.ProviderKey+`","tier":"slow"`)).is(400),
		still)
	s.add("7/400-changes-no-sms", invalidBody,
		createAgent.given(200), readAgent.given(200), enableSMS.with(`{"mode":"sandbox","x":1}`).is(400),
		readAgent.is(200).holds("sms.status", same))
	s.add("7/429-changes-no-byok", condition(429).Sentence, setBYOK.given(200).times(5), getBYOK.given(200), full.limited("byok_set_key_hour"), still,
		clearStored.times(6))
	s.add("fake/429-changes-no-sms", "a call that a limit refuses changes nothing",
		createAgent.given(200), readAgent.given(200).times(minuteMax-1), enableSMS.limited("key_minute"), untilOpen(time.Minute), readAgent.is(200).holds("sms", nil))
	s.add("7/429-creation-stores-no-byok", condition(429).Sentence,
		clearStored, createAgent.given(200).times(10), creationWithKey.limited("agent_create_ip_minute"), byokIsNull)
}

// unlisted checks that an endpoint refuses only with a status that section 4 lists for
// it.
func (s *suite) unlisted() {
	s.add("7/status-without-429", listedRule, getStatus.is(200).times(65), getBYOK.is(200).times(65))
	s.add("7/endpoints-without-429", listedRule,
		fullMinute, readAgent.limited("key_minute"), getStatus.is(200), getBYOK.is(200), clearStored)
	s.add("7/endpoints-without-503", listedRule,
		createAgent.given(200), setBYOK.given(200), storeOff, sendMessage.listed(),
		storeOn, byokCreation.given(200), storeOff, sendMessage.listed(), enableSMS.listed(), readAgent.listed(),
		getBYOK.listed(), clearBYOK.listed())
	s.add("7/creation-without-503", listedRule, storeOff, creationWithKey.listed())
	for _, e := range []step{readAgent, sendMessage, enableSMS} {
		s.add("7/agent-of-another-key/"+e.Name, listedRule, createAgent.given(200).by(another), e.listed().by(third))
	}
}

// order makes calls that break two rules, and checks for which of the two each call is
// refused.
func (s *suite) order() {
	order := func(id string, steps ...step) {
		s.add("fake/order/"+id, "order of checks: route 404, method 405 -> 401 -> 402 -> request limits 429 -> 403 -> body 400 -> "+
			"agent 404 -> state 409/503 -> operation limits 429 -> act", steps...)
	}
	var (
		broken   = setBYOK.with(`{`)
		toNobody = sendMessage.ofUnknownAgent()
	)
	order("401-before-all", toNobody.with(`{`).is(401).keyless(), broken.is(401).keyless(), revoke(unpaid), broken.is(401).by(unpaid))
	order("402-before-403-400-404", broken.is(402).by(rawcall.Key{Name: "neither", Plan: "free"}), toNobody.with(`{`).is(402).by(unpaid))
	order("403-before-400", broken.is(403).by(notDashboard))
	order("403-before-503", storeOff, setBYOK.is(403).by(notDashboard), byokWarmUp.is(403).by(notDashboard))
	order("503-before-409", storeOff, byokWarmUp.is(503))
	order("400-before-503", storeOff, setBYOK.with(`{}`).is(400))
	order("400-before-404", toNobody.with(`{}`).is(400), enableSMS.ofUnknownAgent().with(`{"mode":"none"}`).is(400))
	order("request-429-before-403-400-404", group(
		readUnknownAgent.is(404).times(minuteMax), setBYOK.limited("key_minute"), createAgent.with(`{`).limited("key_minute"),
		readUnknownAgent.limited("key_minute")).by(notDashboard))
	order("400-before-operation-429",
		warmUp.is(200).times(3), badWarmUp.is(400),
		setBYOK.is(200).times(5), setBYOK.with(`{}`).is(400),
		createAgent.is(200).times(8), createAgent.with(rawcall.LLM(rawcall.KeyMembers+`,"tier":"slow"`)).is(400),
		creationWithKey.limited("byok_set_key_hour"))
	order("409-before-operation-429", clearStored, warmUp.is(200).times(3), byokWarmUp.is(409), warmUp.limited("warmup_key_hour"))
	order("503-before-operation-429", setBYOK.is(200).times(5), storeOff, setBYOK.is(503))
}

const routing = "order of checks: route 404, method 405 -> 401"

// noRoute makes a call that no endpoint answers, with a key and without.
func noRoute(method, path string) step {
	return group(at(method, path).is(404), at(method, path).is(404).keyless())
}

// routes checks that a path which interface 4 does not have is answered 404, with the body
// that every error has.
func (s *suite) routes() {
	for _, path := range []string{
		"/v1", "/v1/", "/v2/status", "/status", "/v1/Status", "/V1/status", "/v1/status/", "/v1//status",
		"/v1/agents/", "/v1/agents/a/", "/v1/agents//messages", "/v1/agents/a/messages/", "/v1/agents/a/messages/b",
		"/v1/agents/a/channels", "/v1/agents/a/channels/email", "/v1/agents/a/channels/sms/", "/v1/byok/x", "/v1/warmup/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			s.add("fake/path-unknown/"+method+path, routing, noRoute(method, path))
		}
	}
	read := func(id string) step { return at("GET", "/v1/agents/"+id).is(404) }
	// A service must not clean a path. If it removes dots or slashes, it answers a different
	// call.
	s.add("fake/path-with-dots", routing,
		noRoute("GET", "/v1/agents/.."), noRoute("GET", "/v1/agents/."), read("%2e%2e"), noRoute("GET", "/v1/byok/../status"))
	s.add("7/agent-id-is-one-segment", condition(404).Sentence, read("a%2Fmessages"), read("%2e%2e%2fstatus"), read("%20"))
}

// methods checks that a path accepts only the methods of interface 4. It leaves out HEAD,
// since the answer to HEAD has no body to check.
func (s *suite) methods() {
	has := map[string][]string{} // by path
	for _, e := range endpoints {
		has[e.Path] = append(has[e.Path], e.Method)
	}
	for _, e := range endpoints {
		for method := range strings.FieldsSeq("GET POST PUT DELETE PATCH OPTIONS") {
			if e.Method != has[e.Path][0] || slices.Contains(has[e.Path], method) {
				continue // each path once, and only methods that it does not have
			}
			unknown := at(method, e.ofUnknownAgent().Path).is(405)
			s.add("fake/method/"+e.Name+"/"+method, routing+"; an answer 405 names the methods in Allow (RFC 9110, 15.5.6)",
				unknown.check(allows(has[e.Path])), unknown.keyless())
		}
	}
}

// allows wants the methods in the header Allow.
func allows(methods []string) func(answer) string {
	want := slices.Sorted(slices.Values(methods))
	return func(a answer) string {
		named := strings.Split(strings.ReplaceAll(a.Header.Get("Allow"), " ", ""), ",")
		return problemUnless(slices.Equal(slices.Sorted(slices.Values(named)), want), "Allow names %v, not %v", named, want)
	}
}

// member is a string or object member of a request. A case replaces VALUE in its body by
// a value.
type member struct {
	name     string
	e        step
	body     string
	rule     string
	max      int    // characters (interface 8.4); 0: no bound is stated
	address  bool   // a service may check that the value is an address
	values   string // the accepted values, separated by spaces; "": any text
	required bool
	object   bool
}

// memberRows lists all members. warmUp and llm accept the mode byok too, but only if BYOK is
// configured. byokOfCreations and warmUps (endpoints.go) have the cases for this mode.
var memberRows = []member{
	{name: "mode", e: warmUp, body: `{"mode":VALUE}`, values: "hosted", rule: "`mode` (string, hosted or byok; default hosted)"},

	{name: "provider", e: setBYOK, body: `{"provider":VALUE,"api_key":"k"}`, values: "openai_compat openai anthropic", required: true,
		rule: "provider (required; openai_compat, openai or anthropic)"},
	{name: "api_key", e: setBYOK, body: `{"provider":"openai","api_key":VALUE}`, required: true, rule: "api_key (string, required)"},
	{name: "base_url", e: setBYOK, body: `{"provider":"openai","api_key":"k","base_url":VALUE}`, address: true},
	{name: "model", e: setBYOK, body: `{"provider":"openai","api_key":"k","model":VALUE}`},
	{name: "label", e: setBYOK, body: `{"provider":"openai","api_key":"k","label":VALUE}`},

	{name: "system_prompt", e: createAgent, body: `{"system_prompt":VALUE}`, max: 2000, rule: "system_prompt at most 2000 characters"},
	{name: "customer_ref", e: createAgent, body: `{"customer_ref":VALUE}`, max: 200, rule: "customer_ref at most 200"},
	{name: "metadata", e: createAgent, body: `{"metadata":VALUE}`, object: true},
	{name: "sms", e: createAgent, body: `{"sms":VALUE}`, object: true},
	{name: "sms.mode", e: createAgent, body: `{"sms":{"mode":VALUE}}`, values: "none sandbox managed byo_twilio", required: true,
		rule: "sms | object | required member: mode; sms.mode | string | enum none, sandbox, managed, byo_twilio"},
	{name: "llm", e: createAgent, body: `{"llm":VALUE}`, object: true},
	{name: "llm.mode", e: createAgent, body: rawcall.LLM(`"mode":VALUE`), values: "hosted", rule: "mode | string | hosted, byok; default hosted"},
	{name: "llm.tier", e: createAgent, body: rawcall.LLM(`"tier":VALUE`), values: "fast smart", rule: "tier | string | fast, smart; default fast"},
	{name: "llm.model", e: createAgent, body: rawcall.LLM(`"model":VALUE`), max: 200, rule: "llm.model at most 200"},
	{name: "llm.provider", e: createAgent, body: rawcall.LLM(`"provider":VALUE`), values: "openai_compat openai anthropic",
		rule: "provider | string | openai_compat, openai, anthropic"},
	{name: "llm.base_url", e: createAgent, body: rawcall.LLM(`"base_url":VALUE`), max: 400, address: true, rule: "llm.base_url at most 400"},
	{name: "llm.api_key", e: createAgent, body: rawcall.LLM(`"provider":"openai","api_key":VALUE`)},
	{name: "llm.label", e: createAgent, body: rawcall.LLM(`"label":VALUE`), max: 60, rule: "llm.label at most 60"},

	{name: "text", e: sendMessage, body: `{"text":VALUE}`, max: 4000, rule: "message text at most 4000; text (required)", required: true},
	{name: "user_ref", e: sendMessage, body: `{"text":"Hello","user_ref":VALUE}`},

	{name: "mode", e: enableSMS, body: `{"mode":VALUE}`, values: "sandbox managed byo_twilio", required: true,
		rule: "mode (required; sandbox, managed or byo_twilio)"},
}

// sectionOf maps each call to the section that states the members of its body.
var sectionOf = map[string]string{
	warmUp.Name: "4.2", setBYOK.Name: "4.4", createAgent.Name: "2.3", sendMessage.Name: "2.5", enableSMS.Name: "4.9",
}

// of returns the body with a value in JSON.
func (m member) of(value string) string { return strings.Replace(m.body, "VALUE", value, 1) }

// ofText returns the body with a text n times.
func (m member) ofText(text string, n int) string { return m.of(`"` + strings.Repeat(text, n) + `"`) }

// ofLength returns the body with a value of n characters.
func (m member) ofLength(char string, n int) string {
	if !m.address {
		return m.ofText(char, n)
	}
	return m.of(`"` + host + strings.Repeat(char, n-len(host)) + `"`)
}

// host is the beginning of an address.
const host = "https://host.example/"

// members checks the types, values and bounds of each member of a request.
func (s *suite) members() {
	for _, m := range memberRows {
		s.typesOf(m)
		switch {
		case m.object:
		case m.values != "":
			s.valuesOf(m)
		default:
			s.lengthsOf(m)
		}
		if m.required {
			without := regexp.MustCompile(`,"\w+":VALUE|"\w+":VALUE,?`).ReplaceAllString(m.body, "")
			s.addRows(sectionOf[m.e.Name]+"/required", m.rule, m.e, 400, row{m.name, without})
		}
	}
	s.boundsTogether()
}

// typesOf sends every JSON type but the documented one. null for a required member breaks
// the interface. By this project's decision, an optional member may not be null either.
func (s *suite) typesOf(m member) {
	own, null := row{"object", "{}"}, "fake"
	if m.object {
		own = row{"string", `"none"`}
	}
	if m.required {
		null = "7"
	}
	in := "/type/" + m.e.Name + "/" + m.name
	s.addRows("7"+in, invalidBody, m.e, 400,
		row{"number", m.of("1")}, row{"boolean", m.of("true")}, row{"array", m.of(`["hosted"]`)}, row{own.name, m.of(own.body)})
	s.addRows(null+in, invalidBody, m.e, 400, row{"null", m.of("null")})
}

// valuesOf sends each accepted value, and values that only look like accepted ones.
func (s *suite) valuesOf(m member) {
	values := strings.Fields(m.values)
	at := sectionOf[m.e.Name] + "/" + m.name
	for _, value := range values {
		s.addRows(at, m.rule, m.e, 200, row{value, m.ofText(value, 1)})
	}
	s.addRows(at+"-refused", m.rule, m.e, 400,
		row{"empty", m.ofText("", 1)}, row{"unknown", m.ofText("turbo", 1)},
		row{"upper-case", m.ofText(strings.ToUpper(values[0]), 1)}, row{"shortened", m.ofText(values[0][:3], 1)})
}

// lengthsOf sends texts of exactly the bound, and of one character more. The interface
// counts characters, and not bytes, UTF-16 units or the letters of a JSON escape. It does
// not say how to count a character that combines with the character before. By this
// project's decision code points count. An address is ASCII.
func (s *suite) lengthsOf(m member) {
	const noBound = "a bound that the interface does not state is not invented"
	in := m.e.Name + "/" + m.name
	s.addRows("fake/empty", noBound, m.e, 200, row{in, m.ofText("", 1)})
	if m.max == 0 {
		s.addRows("fake/long", noBound, m.e, 200, row{in, m.ofLength("x", 10_000)})
		return
	}
	for _, c := range []struct{ id, char string }{
		{"8.4/" + m.name, "x"},
		{"8.4/" + m.name + "/escaped", `\u0078`},
		{"8.4/" + m.name + "/outside-bmp", "😀"},     // one character, two UTF-16 units, four bytes
		{"fake/" + m.name + "/combining", "\u0301"}, // a combining accent: a code point of its own, though not a visible character
	} {
		if m.address && c.char > "~" {
			continue
		}
		s.addRows(c.id, m.rule, m.e, 200, row{"max", m.ofLength(c.char, m.max)})
		s.addRows(c.id, m.rule, m.e, 400, row{"over", m.ofLength(c.char, m.max+1)})
	}
}

// boundsTogether checks all bounds of a creation in one call, which costs one request in
// place of five. It also checks each bound of llm together with a provider key.
func (s *suite) boundsTogether() {
	const ofLLM = "llm.model at most 200; llm.base_url at most 400; llm.label at most 60"
	x := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	url := func(n int) string { return `"` + host + strings.Repeat("x", n-len(host)) + `"` }
	s.addRows("8.4/all", "system_prompt at most 2000 characters; customer_ref at most 200; "+ofLLM, createAgent, 200, row{"max",
		`{"system_prompt":` + x(2000) + `,"customer_ref":` + x(200) + `,"llm":{"model":` + x(200) + `,"base_url":` + url(400) + `,"label":` + x(60) + `}}`})
	s.addRows("8.4/with-key", ofLLM, createAgent, 400,
		row{"base_url", rawcall.LLM(rawcall.KeyMembers + `,"base_url":` + url(401))},
		row{"label", rawcall.LLM(rawcall.KeyMembers + `,"label":` + x(61))},
		row{"model", rawcall.LLM(rawcall.KeyMembers + `,"model":` + x(201))})
}

// unknownMembers checks that the objects of a request may not have unknown members. For a
// message this is a decision of this project.
func (s *suite) unknownMembers() {
	const closed = "No additional properties"
	for _, c := range []struct {
		e                         step
		section, name, body, rule string
	}{
		{e: warmUp, section: "4.2", name: "beside", body: `{"mode":"hosted",MORE}`, rule: closed + "."},
		{e: warmUp, section: "4.2", name: "alone", body: `{MORE}`, rule: closed + "."},
		{e: setBYOK, section: "4.4", name: "top", body: byokBody(`MORE`), rule: "Body (required; no additional properties)"},
		{e: createAgent, section: "2.3", name: "top", body: `{MORE}`, rule: closed + " are allowed at any level."},
		{e: createAgent, section: "2.3", name: "sms", body: `{"sms":{"mode":"none",MORE}}`, rule: closed + " are allowed at any level."},
		{e: createAgent, section: "2.3", name: "llm", body: rawcall.LLM(`MORE`), rule: closed + " are allowed at any level."},
		{e: enableSMS, section: "4.9", name: "top", body: `{"mode":"sandbox",MORE}`, rule: "Body (required; no additional properties)"},
		{e: sendMessage, section: "fake", name: "message", body: `{"text":"Hello",MORE}`, rule: "bodies: no unknown members, exact-case names"},
	} {
		for _, more := range []row{{"", `"status":"active"`}, {"-null", `"status":null`}} {
			s.addRows(c.section+"/no-other-member", c.rule, c.e, 400, row{c.name + more.name, strings.Replace(c.body, "MORE", more.body, 1)})
		}
	}
}

// strict is the rule of cases about this project's strict reading of bodies.
const strict = "bodies: JSON object, no duplicate members, valid UTF-8, nothing after the document, at most 1 MiB"

// withBody has a call of each endpoint that takes a body.
var withBody = []step{warmUp, setBYOK, createAgent, sendMessage, enableSMS}

// bodies sends wrong bodies to each endpoint that takes a body: some are not "a JSON
// object" in any reading, others only break this project's strict reading.
func (s *suite) bodies() {
	for _, e := range withBody[1:] { // the body of a warm-up is optional
		s.addRows(sectionOf[e.Name]+"/body", "Body (required)", e, 400, row{"absent", ""})
	}
	for _, e := range withBody {
		opened, spaces := strings.TrimSuffix(e.Body, "}"), func(n int) string { return strings.Repeat(" ", n-len(e.Body)) }
		s.addRows("7/body-invalid/"+e.Name, invalidBody, e, 400,
			row{"array", `[]`},
			row{"array-around", `[` + e.Body + `]`},
			row{"string", `"text"`},
			row{"number", `1`},
			row{"boolean", `true`},
			row{"null", `null`},
			row{"truncated", opened},
			row{"not-json", `mode=hosted&text=Hello`},
			row{"trailing-comma", opened + `,}`},
			row{"single-quotes", `{'text':'Hello'}`})
		s.addRows("fake/body/"+e.Name, strict, e, 400,
			row{"trailing-garbage", e.Body + `x`},
			row{"trailing-document", e.Body + `{}`},
			row{"space-alone", " \n"},
			row{"byte-order-mark", "\ufeff" + e.Body},
			row{"over-1-MiB", e.Body + spaces(1<<20+1)})
		s.addRows("fake/body/"+e.Name, strict, e, 200,
			row{"space-around", " \n" + e.Body + "\t\r\n"},
			row{"at-1-MiB", e.Body + spaces(1<<20)})
	}
	// Most parsers accept these bodies by default.
	s.addRows("fake/body/send-message", strict+", exact-case names", sendMessage, 400,
		row{"duplicate", `{"text":"Hello","t\u0065xt":"Hello"}`}, row{"other-case", `{"Text":"Hello"}`}, row{"utf-8", "{\"text\":\"caf\xe9\"}"})
	for _, e := range []step{getStatus, getBYOK, clearBYOK, readAgent} {
		s.addRows("fake/body/"+e.Name, "where an endpoint takes no body, one is ignored", e, 200, row{"ignored-over-1-MiB", "x" + strings.Repeat(" ", 1<<20)})
	}
}

// contentTypes sends a valid body with other media types.
func (s *suite) contentTypes() {
	for _, e := range withBody {
		for _, c := range []struct {
			name, value string
			status      int
		}{
			{"text", "text/plain", 400},
			{"near", "application/jsonx", 400},
			{"absent", "", 200},
			{"charset", "Application/JSON; charset=utf-8", 200},
		} {
			s.add("fake/content-type/"+e.Name+"/"+c.name, "Content-Type, when sent, is JSON: else 400",
				e.is(c.status).header("Content-Type", rawcall.Always(c.value)))
		}
	}
}
