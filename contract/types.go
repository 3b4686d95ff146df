package contract

import (
	"slices"
	"strings"
)

// member is a string or object member of a request, in a body with one verb
// for its value.
type member struct {
	name     string
	e        endpoint
	format   string
	required bool
}

var stringMembers = []member{
	{"mode", warmUp, `{"mode":%s}`, false},
	{"provider", setBYOK, `{"provider":%s,"api_key":"k"}`, true},
	{"api_key", setBYOK, `{"provider":"openai","api_key":%s}`, true},
	{"base_url", setBYOK, `{"provider":"openai","api_key":"k","base_url":%s}`, false},
	{"model", setBYOK, `{"provider":"openai","api_key":"k","model":%s}`, false},
	{"label", setBYOK, `{"provider":"openai","api_key":"k","label":%s}`, false},
	{"system_prompt", createAgent, `{"system_prompt":%s}`, false},
	{"customer_ref", createAgent, `{"customer_ref":%s}`, false},
	{"sms.mode", createAgent, `{"sms":{"mode":%s}}`, true},
	{"llm.mode", createAgent, `{"llm":{"mode":%s}}`, false},
	{"llm.tier", createAgent, `{"llm":{"tier":%s}}`, false},
	{"llm.model", createAgent, `{"llm":{"model":%s}}`, false},
	{"llm.provider", createAgent, `{"llm":{"provider":%s}}`, false},
	{"llm.base_url", createAgent, `{"llm":{"base_url":%s}}`, false},
	{"llm.api_key", createAgent, `{"llm":{"provider":"openai","api_key":%s}}`, false},
	{"llm.label", createAgent, `{"llm":{"label":%s}}`, false},
	{"text", sendMessage, `{"text":%s}`, true},
	{"user_ref", sendMessage, `{"text":"Hello","user_ref":%s}`, false},
	{"mode", enableSMS, `{"mode":%s}`, true},
}

var objectMembers = []member{
	{"sms", createAgent, `{"sms":%s}`, false},
	{"llm", createAgent, `{"llm":%s}`, false},
	{"metadata", createAgent, `{"metadata":%s}`, false},
}

// typeCases give each member every JSON type but its own. That null is no
// string either is this project's reading, but where the member is required.
func typeCases() []testCase {
	const rule = "Bad request (invalid body)"
	var cases []testCase
	for _, m := range stringMembers {
		cases = append(cases, m.cases("7/type/", rule, "number", "1", "boolean", "true", "array", `["hosted"]`, "object", "{}")...)
	}
	for _, m := range objectMembers {
		cases = append(cases, m.cases("7/type/", rule, "number", "1", "boolean", "false", "array", "[]", "string", `"none"`)...)
	}
	for _, m := range slices.Concat(stringMembers, objectMembers) {
		prefix := "fake/type/"
		if m.required {
			prefix = "7/type/"
		}
		cases = append(cases, m.cases(prefix, rule, "null", "null")...)
	}
	return cases
}

// cases are the refusals of the member, for pairs of a name and a value.
func (m member) cases(prefix, rule string, pairs ...string) []testCase {
	var list []row
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, row{pair[0], strings.Replace(m.format, "%s", pair[1], 1)})
	}
	return rows(prefix+m.e.name+"/"+m.name, rule, m.e, 400, list...)
}
