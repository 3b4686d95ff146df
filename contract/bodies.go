package contract

import (
	"slices"
	"strings"
)

// bodyCases: what no reading of "a JSON object" admits, for each endpoint that
// takes a body; then this project's reading of JSON, which is stricter than any
// parser's default.
func bodyCases() []testCase {
	const (
		invalid = "400 | Bad request (invalid body)"
		strict  = "bodies: JSON object, no duplicate members, valid UTF-8, nothing after the document, at most 1 MiB"
	)
	cases := requiredCases()
	for _, e := range []endpoint{warmUp, setBYOK, createAgent, sendMessage, enableSMS} {
		opened, spaces := strings.TrimSuffix(e.body, "}"), func(n int) string { return strings.Repeat(" ", n-len(e.body)) }
		cases = slices.Concat(cases, rows("7/body-invalid/"+e.name, invalid, e, 400,
			row{"array", `[]`},
			row{"array-around", `[` + e.body + `]`},
			row{"string", `"text"`},
			row{"number", `1`},
			row{"boolean", `true`},
			row{"null", `null`},
			row{"truncated", opened},
			row{"not-json", `mode=hosted&text=Hello`},
			row{"trailing-comma", opened + `,}`},
			row{"single-quotes", `{'text':'Hello'}`},
		), rows("fake/body/"+e.name, strict, e, 400,
			row{"trailing-garbage", e.body + `x`},
			row{"trailing-document", e.body + `{}`},
			row{"space-alone", " \n"},
			row{"byte-order-mark", "\ufeff" + e.body},
			row{"over-1-MiB", e.body + spaces(1<<20+1)},
		), rows("fake/body/"+e.name, strict, e, 200,
			row{"space-around", " \n" + e.body + "\t\r\n"},
			row{"at-1-MiB", e.body + spaces(1<<20)},
		), contentTypeCases(e))
	}
	return slices.Concat(cases, otherCaseCases(), duplicateCases(strict), encodingCases(strict))
}

func requiredCases() []testCase {
	return []testCase{
		rule("4.4/body/absent", "Body (required; no additional properties)", setBYOK.with("").is(400)),
		rule("4.6/body/absent", "Body (required): the creation parameters of 2.3.", createAgent.with("").is(400)),
		rule("4.8/body/absent", "Body (required): text (required, at most 4000 characters)", sendMessage.with("").is(400)),
		rule("4.9/body/absent", "Body (required; no additional properties)", enableSMS.with("").is(400)),
	}
}

// contentTypeCases: a Content-Type other than JSON is refused, none is not.
func contentTypeCases(e endpoint) (cases []testCase) {
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"text", "text/plain", 400},
		{"form", "application/x-www-form-urlencoded", 400},
		{"near", "application/jsonx", 400},
		{"absent", "", 200},
		{"charset", "application/json; charset=utf-8", 200},
		{"upper-case", "Application/JSON", 200},
	} {
		cases = append(cases, rule("fake/content-type/"+e.name+"/"+c.name, "Content-Type, when sent, is JSON: else 400",
			e.is(c.status).header("Content-Type", always(c.value))))
	}
	return cases
}

// otherCaseCases: a name in another case is another name, which many decoders
// do not see.
func otherCaseCases() []testCase {
	const exact = "bodies: exact-case names"
	return slices.Concat(
		rows("fake/other-case/warmup", exact, warmUp, 400, row{"mode", `{"Mode":"hosted"}`}),
		rows("fake/other-case/set-byok", exact, setBYOK, 400, row{"model", byokBody(`"Model":"m"`)}),
		rows("fake/other-case/create-agent", exact, createAgent, 400,
			row{"top", `{"System_Prompt":"x"}`},
			row{"sms", `{"sms":{"mode":"none","Mode":"none"}}`},
			row{"llm", llmBody(`"TIER":"fast"`)}),
		rows("fake/other-case/send-message", exact, sendMessage, 400,
			row{"text", `{"Text":"Hello"}`},
			row{"user_ref", `{"text":"Hello","User_Ref":"u"}`}),
		rows("fake/other-case/enable-sms", exact, enableSMS, 400, row{"mode", `{"mode":"sandbox","Mode":"sandbox"}`}),
	)
}

func duplicateCases(strict string) []testCase {
	const apiKey = `"api_key":"` + providerKey + `"`
	return slices.Concat(
		rows("fake/duplicate/warmup", strict, warmUp, 400, row{"mode", `{"mode":"hosted","mode":"hosted"}`}),
		rows("fake/duplicate/set-byok", strict, setBYOK, 400,
			row{"provider", `{"provider":"openai","provider":"openai",` + apiKey + `}`},
			row{"api_key", `{"provider":"openai",` + apiKey + `,` + apiKey + `}`}),
		rows("fake/duplicate/create-agent", strict, createAgent, 400,
			row{"top", `{"customer_ref":"a","customer_ref":"a"}`},
			row{"sms", `{"sms":{"mode":"none","mode":"none"}}`},
			row{"llm", llmBody(`"tier":"fast","tier":"fast"`)},
			row{"object", `{"llm":{},"llm":{}}`},
			row{"metadata", `{"metadata":{"a":1,"a":1}}`},
			row{"metadata-inside", `{"metadata":{"a":[{"b":1,"b":1}]}}`},
			row{"escaped", `{"customer_ref":"a","customer\u005fref":"a"}`}),
		rows("fake/duplicate/send-message", strict, sendMessage, 400, row{"text", `{"text":"a","text":"a"}`}),
		rows("fake/duplicate/enable-sms", strict, enableSMS, 400, row{"mode", `{"mode":"sandbox","mode":"sandbox"}`}),
	)
}

func encodingCases(strict string) []testCase {
	return slices.Concat(
		rows("fake/utf-8/create-agent", strict, createAgent, 400,
			row{"value", "{\"system_prompt\":\"\xff\"}"},
			row{"metadata", "{\"metadata\":{\"a\":\"\xc3\x28\"}}"}),
		rows("fake/utf-8/send-message", strict, sendMessage, 400,
			row{"value", "{\"text\":\"caf\xe9\"}"},
			row{"surrogate", "{\"text\":\"\xed\xa0\x80\"}"},
			row{"cut", "{\"text\":\"\xf0\x9f\x98\"}"}),
		rows("fake/utf-8/set-byok", strict, setBYOK, 400, row{"value", byokBody("\"label\":\"\xff\"")}),
	)
}
