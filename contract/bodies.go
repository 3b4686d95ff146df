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
	cases := []testCase{
		rule("4.4/body/absent", "Body (required; no additional properties)", setBYOK.with("").is(400)),
		rule("4.6/body/absent", "Body (required): the creation parameters of 2.3.", createAgent.with("").is(400)),
		rule("4.8/body/absent", "Body (required): text (required, at most 4000 characters)", sendMessage.with("").is(400)),
		rule("4.9/body/absent", "Body (required; no additional properties)", enableSMS.with("").is(400)),
	}
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
	return slices.Concat(cases, strictCases(strict))
}

// contentTypeCases: a body may come without Content-Type, but not with one other
// than JSON.
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

// sent is a body for an endpoint, and its name in a case id.
type sent struct {
	e          endpoint
	name, body string
}

// refused makes a case of each body, which is answered with 400.
func refused(prefix, sentence string, list ...sent) []testCase {
	var cases []testCase
	for _, b := range list {
		cases = append(cases, rule(prefix+"/"+b.e.name+"/"+b.name, sentence, b.e.with(b.body).is(400)))
	}
	return cases
}

// strictCases: many decoders accept a name in another case, a member that is
// there twice, and bytes that are no UTF-8. This project refuses them.
func strictCases(strict string) []testCase {
	const apiKey = `"api_key":"` + providerKey + `"`
	return slices.Concat(
		refused("fake/other-case", "bodies: exact-case names",
			sent{warmUp, "mode", `{"Mode":"hosted"}`},
			sent{setBYOK, "model", byokBody(`"Model":"m"`)},
			sent{createAgent, "top", `{"System_Prompt":"x"}`},
			sent{createAgent, "sms", `{"sms":{"mode":"none","Mode":"none"}}`},
			sent{createAgent, "llm", llmBody(`"TIER":"fast"`)},
			sent{sendMessage, "text", `{"Text":"Hello"}`},
			sent{sendMessage, "user_ref", `{"text":"Hello","User_Ref":"u"}`},
			sent{enableSMS, "mode", `{"mode":"sandbox","Mode":"sandbox"}`}),
		refused("fake/duplicate", strict,
			sent{warmUp, "mode", `{"mode":"hosted","mode":"hosted"}`},
			sent{setBYOK, "provider", `{"provider":"openai","provider":"openai",` + apiKey + `}`},
			sent{setBYOK, "api_key", `{"provider":"openai",` + apiKey + `,` + apiKey + `}`},
			sent{createAgent, "top", `{"customer_ref":"a","customer_ref":"a"}`},
			sent{createAgent, "sms", `{"sms":{"mode":"none","mode":"none"}}`},
			sent{createAgent, "llm", llmBody(`"tier":"fast","tier":"fast"`)},
			sent{createAgent, "object", `{"llm":{},"llm":{}}`},
			sent{createAgent, "metadata", `{"metadata":{"a":1,"a":1}}`},
			sent{createAgent, "metadata-inside", `{"metadata":{"a":[{"b":1,"b":1}]}}`},
			sent{createAgent, "escaped", `{"customer_ref":"a","customer\u005fref":"a"}`},
			sent{sendMessage, "text", `{"text":"a","text":"a"}`},
			sent{enableSMS, "mode", `{"mode":"sandbox","mode":"sandbox"}`}),
		refused("fake/utf-8", strict,
			sent{createAgent, "value", "{\"system_prompt\":\"\xff\"}"},
			sent{createAgent, "metadata", "{\"metadata\":{\"a\":\"\xc3\x28\"}}"},
			sent{sendMessage, "value", "{\"text\":\"caf\xe9\"}"},
			sent{sendMessage, "surrogate", "{\"text\":\"\xed\xa0\x80\"}"},
			sent{sendMessage, "cut", "{\"text\":\"\xf0\x9f\x98\"}"},
			sent{setBYOK, "value", byokBody("\"label\":\"\xff\"")}),
	)
}
