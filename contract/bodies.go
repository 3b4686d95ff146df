package contract

import "strings"

const (
	invalidBody = "400 | Bad request (invalid body)"
	strict      = "bodies: JSON object, no duplicate members, valid UTF-8, nothing after the document, at most 1 MiB"
)

var withBody = []endpoint{warmUp, setBYOK, createAgent, sendMessage, enableSMS}

// bodies: what no reading of "a JSON object" admits, and what this project's reading
// does not, for each endpoint that takes a body.
func (s *suite) bodies() {
	for _, e := range withBody[1:] { // warm-up's is optional
		s.rows(stated[e.name]+"/body", "Body (required)", e, 400, row{"absent", ""})
	}
	for _, e := range withBody {
		opened, spaces := strings.TrimSuffix(e.body, "}"), func(n int) string { return strings.Repeat(" ", n-len(e.body)) }
		s.rows("7/body-invalid/"+e.name, invalidBody, e, 400,
			row{"array", `[]`},
			row{"array-around", `[` + e.body + `]`},
			row{"string", `"text"`},
			row{"number", `1`},
			row{"boolean", `true`},
			row{"null", `null`},
			row{"truncated", opened},
			row{"not-json", `mode=hosted&text=Hello`},
			row{"trailing-comma", opened + `,}`},
			row{"single-quotes", `{'text':'Hello'}`})
		s.rows("fake/body/"+e.name, strict, e, 400,
			row{"trailing-garbage", e.body + `x`},
			row{"trailing-document", e.body + `{}`},
			row{"space-alone", " \n"},
			row{"byte-order-mark", "\ufeff" + e.body},
			row{"over-1-MiB", e.body + spaces(1<<20+1)})
		s.rows("fake/body/"+e.name, strict, e, 200,
			row{"space-around", " \n" + e.body + "\t\r\n"},
			row{"at-1-MiB", e.body + spaces(1<<20)})
	}
	for _, e := range []endpoint{getStatus, getBYOK, clearBYOK, readAgent} {
		s.rows("fake/body/"+e.name, "where an endpoint takes no body, one is ignored", e, 200, row{"ignored-over-1-MiB", strings.Repeat("x", 1<<20+1)})
	}
}

// strictJSON has bodies that the defaults of most parsers accept.
func (s *suite) strictJSON() {
	s.rows("fake/duplicate/create-agent", strict, createAgent, 400,
		row{"in-metadata", `{"metadata":{"a":1,"a":1}}`},
		row{"deep-in-metadata", `{"metadata":{"a":[{"b":1,"b":1}]}}`},
		row{"escaped", `{"customer_ref":"a","customer\u005fref":"a"}`})
	s.rows("fake/utf-8/create-agent", strict, createAgent, 400,
		row{"value", "{\"system_prompt\":\"\xff\"}"},
		row{"metadata", "{\"metadata\":{\"a\":\"\xc3\x28\"}}"})
	s.rows("fake/utf-8/send-message", strict, sendMessage, 400,
		row{"value", "{\"text\":\"caf\xe9\"}"},
		row{"surrogate", "{\"text\":\"\xed\xa0\x80\"}"},
		row{"cut", "{\"text\":\"\xf0\x9f\x98\"}"})
}

func (s *suite) contentTypes() {
	for _, e := range withBody {
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
			s.rule("fake/content-type/"+e.name+"/"+c.name, "Content-Type, when sent, is JSON: else 400",
				e.is(c.status).header("Content-Type", always(c.value)))
		}
	}
}
