package contract

import (
	"slices"
	"strings"
)

// member is a string or object member of a request, in a body where VALUE
// stands for its value.
type member struct {
	name     string
	e        endpoint
	body     string
	max      int // characters (interface 8.4); 0: no bound is stated
	rule     string
	required bool
	object   bool
}

var members = []member{
	{name: "mode", e: warmUp, body: `{"mode":VALUE}`},
	{name: "provider", e: setBYOK, body: `{"provider":VALUE,"api_key":"k"}`, required: true},
	{name: "api_key", e: setBYOK, body: `{"provider":"openai","api_key":VALUE}`, required: true},
	{name: "base_url", e: setBYOK, body: `{"provider":"openai","api_key":"k","base_url":VALUE}`},
	{name: "model", e: setBYOK, body: `{"provider":"openai","api_key":"k","model":VALUE}`},
	{name: "label", e: setBYOK, body: `{"provider":"openai","api_key":"k","label":VALUE}`},
	{name: "system_prompt", e: createAgent, body: `{"system_prompt":VALUE}`, max: 2000, rule: "system_prompt at most 2000 characters"},
	{name: "customer_ref", e: createAgent, body: `{"customer_ref":VALUE}`, max: 200, rule: "customer_ref at most 200"},
	{name: "sms.mode", e: createAgent, body: `{"sms":{"mode":VALUE}}`, required: true},
	{name: "llm.mode", e: createAgent, body: llmBody(`"mode":VALUE`)},
	{name: "llm.tier", e: createAgent, body: llmBody(`"tier":VALUE`)},
	{name: "llm.model", e: createAgent, body: llmBody(`"model":VALUE`), max: 200, rule: "llm.model at most 200"},
	{name: "llm.provider", e: createAgent, body: llmBody(`"provider":VALUE`)},
	{name: "llm.base_url", e: createAgent, body: llmBody(`"base_url":VALUE`), max: 400, rule: "llm.base_url at most 400"},
	{name: "llm.api_key", e: createAgent, body: llmBody(`"provider":"openai","api_key":VALUE`)},
	{name: "llm.label", e: createAgent, body: llmBody(`"label":VALUE`), max: 60, rule: "llm.label at most 60"},
	{name: "text", e: sendMessage, body: `{"text":VALUE}`, max: 4000, rule: "message text at most 4000", required: true},
	{name: "user_ref", e: sendMessage, body: `{"text":"Hello","user_ref":VALUE}`},
	{name: "mode", e: enableSMS, body: `{"mode":VALUE}`, required: true},

	{name: "sms", e: createAgent, body: `{"sms":VALUE}`, object: true},
	{name: "llm", e: createAgent, body: `{"llm":VALUE}`, object: true},
	{name: "metadata", e: createAgent, body: `{"metadata":VALUE}`, object: true},
}

// of is the body with that value.
func (m member) of(value string) string { return strings.Replace(m.body, "VALUE", value, 1) }

// boundCases hold each bound at its last value and one past it. The interface
// counts characters: neither bytes nor what JSON escapes take. Where a
// character is more than one UTF-16 unit, or combines with its neighbour, it
// does not say what counts; that code points do is this project's reading.
func boundCases() []testCase {
	var cases []testCase
	for _, m := range members {
		if m.max == 0 {
			continue
		}
		for _, c := range []row{
			{"8.4/" + m.name, "x"},
			{"8.4/" + m.name + "/two-bytes", "é"},
			{"8.4/" + m.name + "/escaped", `\u00e9`},
			{"fake/" + m.name + "/outside-bmp", "😀"},    // one code point, two UTF-16 units, four bytes
			{"fake/" + m.name + "/combining", "\u0301"}, // a code point of its own, though no character to the eye
		} {
			of := func(n int) string { return m.of(`"` + strings.Repeat(c.body, n) + `"`) }
			cases = append(cases, rows(c.name, m.rule, m.e, 200, row{"max", of(m.max)})...)
			cases = append(cases, rows(c.name, m.rule, m.e, 400, row{"over", of(m.max + 1)})...)
		}
	}
	return slices.Concat(cases, boundsTogether())
}

// boundsTogether has one creation with each of its members as long as it may
// be, which spares a small budget five, and each bound of llm beside a key.
func boundsTogether() []testCase {
	x := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	all := `{"system_prompt":` + x(2000) + `,"customer_ref":` + x(200) + `,` +
		`"llm":{"model":` + x(200) + `,"base_url":` + x(400) + `,"label":` + x(60) + `}}`
	return slices.Concat(
		rows("8.4/all", "system_prompt at most 2000 characters", createAgent, 200, row{"max", all}),
		rows("8.4/with-key", "llm.model at most 200; llm.base_url at most 400; llm.label at most 60", createAgent, 400,
			row{"base_url", llmBody(ownKey + `,"base_url":` + x(401))},
			row{"label", llmBody(ownKey + `,"label":` + x(61))},
			row{"model", llmBody(ownKey + `,"model":` + x(201))}),
	)
}

// typeCases give each member every JSON type but its own. That null is no
// string either is this project's reading, but where the member is required.
func typeCases() []testCase {
	const sentence = "Bad request (invalid body)"
	var cases []testCase
	for _, m := range members {
		wrong := []row{{"number", "1"}, {"boolean", "true"}, {"array", `["hosted"]`}, {"object", "{}"}}
		if m.object {
			wrong = []row{{"number", "1"}, {"boolean", "false"}, {"array", "[]"}, {"string", `"none"`}}
		}
		for _, v := range append(wrong, row{"null", "null"}) {
			section := "7/type"
			if v.name == "null" && !m.required {
				section = "fake/type"
			}
			cases = append(cases, refused(section, sentence, sent{m.e, m.name + "/" + v.name, m.of(v.body)})...)
		}
	}
	return cases
}
