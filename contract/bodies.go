package contract

import (
	"slices"
	"strings"
)

// withBody are the endpoints that take one.
var withBody = []endpoint{warmUp, setBYOK, createAgent, sendMessage, enableSMS}

// shapeCases: what no reading of "a JSON object" admits, for each endpoint
// that takes a body.
func shapeCases() []testCase {
	const invalid = "400 | Bad request (invalid body)"
	var cases []testCase
	for _, e := range withBody {
		cases = append(cases, rows("7/body-invalid/"+e.name, invalid, e, 400,
			row{"array", `[]`},
			row{"array-around", `[` + e.body + `]`},
			row{"string", `"text"`},
			row{"number", `1`},
			row{"boolean", `true`},
			row{"null", `null`},
			row{"truncated", strings.TrimSuffix(e.body, "}")},
			row{"not-json", `mode=hosted&text=Hello`},
			row{"trailing-comma", strings.TrimSuffix(e.body, "}") + `,}`},
			row{"single-quotes", `{'text':'Hello'}`})...)
	}
	return slices.Concat(cases, typeCases(),
		rows("4.4/body", "Body (required; no additional properties)", setBYOK, 400, row{"absent", ""}),
		rows("4.6/body", "Body (required): the creation parameters of 2.3.", createAgent, 400, row{"absent", ""}),
		rows("4.8/body", "Body (required): text (required, at most 4000 characters)", sendMessage, 400, row{"absent", ""}),
		rows("4.9/body", "Body (required; no additional properties)", enableSMS, 400, row{"absent", ""}),
	)
}

// bodyCases are this project's reading of JSON, stricter than any parser's
// default, and of the header that announces it.
func bodyCases() []testCase {
	const rule = "bodies: JSON object, no duplicate members, valid UTF-8, nothing after the document, at most 1 MiB"
	var cases []testCase
	for _, e := range withBody {
		cases = append(cases, rows("fake/body/"+e.name, rule, e, 400,
			row{"trailing-garbage", e.body + `x`},
			row{"trailing-document", e.body + `{}`},
			row{"space-alone", " \n"},
			row{"byte-order-mark", "\ufeff" + e.body},
			row{"over-1-MiB", e.body + strings.Repeat(" ", 1<<20+1-len(e.body))})...)
		cases = append(cases, rows("fake/body/"+e.name, rule, e, 200,
			row{"space-around", " \n" + e.body + "\t\r\n"},
			row{"at-1-MiB", e.body + strings.Repeat(" ", 1<<20-len(e.body))})...)
		cases = append(cases, contentTypeCases(e)...)
	}
	return slices.Concat(cases, otherCaseCases(), duplicateCases(rule), encodingCases(rule))
}

// otherCaseCases: a name in another case is another name, which many decoders
// do not see.
func otherCaseCases() []testCase {
	const rule = "bodies: exact-case names"
	return slices.Concat(
		rows("fake/other-case/warmup", rule, warmUp, 400, row{"mode", `{"Mode":"hosted"}`}),
		rows("fake/other-case/set-byok", rule, setBYOK, 400, row{"model", byokBody(`"Model":"m"`)}),
		rows("fake/other-case/create-agent", rule, createAgent, 400,
			row{"top", `{"System_Prompt":"x"}`},
			row{"sms", `{"sms":{"mode":"none","Mode":"none"}}`},
			row{"llm", `{"llm":{"TIER":"fast"}}`}),
		rows("fake/other-case/send-message", rule, sendMessage, 400,
			row{"text", `{"Text":"Hello"}`}, row{"user_ref", `{"text":"Hello","User_Ref":"u"}`}),
		rows("fake/other-case/enable-sms", rule, enableSMS, 400, row{"mode", `{"mode":"sandbox","Mode":"sandbox"}`}),
	)
}

func duplicateCases(rule string) []testCase {
	apiKey := `"api_key":"` + providerKey + `"`
	return slices.Concat(
		rows("fake/duplicate/warmup", rule, warmUp, 400, row{"mode", `{"mode":"hosted","mode":"hosted"}`}),
		rows("fake/duplicate/set-byok", rule, setBYOK, 400,
			row{"provider", `{"provider":"openai","provider":"openai",` + apiKey + `}`},
			row{"api_key", `{"provider":"openai",` + apiKey + `,` + apiKey + `}`}),
		rows("fake/duplicate/create-agent", rule, createAgent, 400,
			row{"top", `{"customer_ref":"a","customer_ref":"a"}`},
			row{"sms", `{"sms":{"mode":"none","mode":"none"}}`},
			row{"llm", `{"llm":{"tier":"fast","tier":"fast"}}`},
			row{"object", `{"llm":{},"llm":{}}`},
			row{"metadata", `{"metadata":{"a":1,"a":1}}`},
			row{"metadata-inside", `{"metadata":{"a":[{"b":1,"b":1}]}}`},
			row{"escaped", `{"customer_ref":"a","customer\u005fref":"a"}`}),
		rows("fake/duplicate/send-message", rule, sendMessage, 400, row{"text", `{"text":"a","text":"a"}`}),
		rows("fake/duplicate/enable-sms", rule, enableSMS, 400, row{"mode", `{"mode":"sandbox","mode":"sandbox"}`}),
	)
}

func encodingCases(rule string) []testCase {
	return slices.Concat(
		rows("fake/utf-8/create-agent", rule, createAgent, 400,
			row{"value", "{\"system_prompt\":\"\xff\"}"},
			row{"metadata", "{\"metadata\":{\"a\":\"\xc3\x28\"}}"}),
		rows("fake/utf-8/send-message", rule, sendMessage, 400,
			row{"value", "{\"text\":\"caf\xe9\"}"},
			row{"surrogate", "{\"text\":\"\xed\xa0\x80\"}"},
			row{"cut", "{\"text\":\"\xf0\x9f\x98\"}"}),
		rows("fake/utf-8/set-byok", rule, setBYOK, 400, row{"value", byokBody("\"label\":\"\xff\"")}),
	)
}

// contentTypeCases: a Content-Type other than JSON is refused, none is not.
func contentTypeCases(e endpoint) []testCase {
	const rule = "Content-Type, when sent, is JSON: else 400"
	sent := func(name, value string, status int) testCase {
		return testCase{
			ID: "fake/content-type/" + e.name + "/" + name, Rule: rule, Needs: e.needs(), Spends: cost(e, e.body, status),
			run: func(s *session) { s.with("Content-Type", value).call(e, e.body).is(status) },
		}
	}
	return []testCase{
		sent("text", "text/plain", 400),
		sent("form", "application/x-www-form-urlencoded", 400),
		sent("near", "application/jsonx", 400),
		sent("absent", "", 200),
		sent("charset", "application/json; charset=utf-8", 200),
		sent("upper-case", "Application/JSON", 200),
	}
}
