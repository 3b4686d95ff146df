package contract

import (
	"slices"
	"strings"
)

// member is a string or object member of a request, in a body with one verb
// for its value.
type member struct {
	name   string
	e      endpoint
	format string
}

var stringMembers = []member{
	{"mode", warmUp, `{"mode":%s}`},
	{"provider", setBYOK, `{"provider":%s,"api_key":"k"}`},
	{"api_key", setBYOK, `{"provider":"openai","api_key":%s}`},
	{"base_url", setBYOK, `{"provider":"openai","api_key":"k","base_url":%s}`},
	{"model", setBYOK, `{"provider":"openai","api_key":"k","model":%s}`},
	{"label", setBYOK, `{"provider":"openai","api_key":"k","label":%s}`},
	{"system_prompt", createAgent, `{"system_prompt":%s}`},
	{"customer_ref", createAgent, `{"customer_ref":%s}`},
	{"sms.mode", createAgent, `{"sms":{"mode":%s}}`},
	{"llm.mode", createAgent, `{"llm":{"mode":%s}}`},
	{"llm.tier", createAgent, `{"llm":{"tier":%s}}`},
	{"llm.model", createAgent, `{"llm":{"model":%s}}`},
	{"llm.provider", createAgent, `{"llm":{"provider":%s}}`},
	{"llm.base_url", createAgent, `{"llm":{"base_url":%s}}`},
	{"llm.api_key", createAgent, `{"llm":{"provider":"openai","api_key":%s}}`},
	{"llm.label", createAgent, `{"llm":{"label":%s}}`},
	{"text", sendMessage, `{"text":%s}`},
	{"user_ref", sendMessage, `{"text":"Hello","user_ref":%s}`},
	{"mode", enableSMS, `{"mode":%s}`},
}

var objectMembers = []member{
	{"sms", createAgent, `{"sms":%s}`},
	{"llm", createAgent, `{"llm":%s}`},
}

// typeCases give each member every JSON type but its own. null is a type of
// its own: where the interface allows it, as in 2.4, it says so.
func typeCases() []testCase {
	const rule = "Bad request (invalid body)"
	var cases []testCase
	for _, m := range stringMembers {
		cases = append(cases, m.cases(rule, "number", "1", "boolean", "true", "array", `["hosted"]`, "object", "{}", "null", "null")...)
	}
	for _, m := range objectMembers {
		cases = append(cases, m.cases(rule, "number", "1", "boolean", "false", "array", "[]", "string", `"none"`, "null", "null")...)
	}
	return slices.Clip(cases)
}

// cases are the refusals of the member, for pairs of a name and a value.
func (m member) cases(rule string, pairs ...string) []testCase {
	var list []row
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, row{pair[0], strings.Replace(m.format, "%s", pair[1], 1)})
	}
	return rows("7/type/"+m.e.name+"/"+m.name, rule, m.e, 400, list...)
}
