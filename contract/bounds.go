package contract

import (
	"fmt"
	"slices"
	"strings"
)

// bound is one row of interface 8.4.
type bound struct {
	name   string
	max    int
	e      endpoint
	format string // the body, with one verb for the value
	rule   string
}

var bounds = []bound{
	{"system_prompt", 2000, createAgent, `{"system_prompt":"%s"}`, "system_prompt at most 2000 characters"},
	{"customer_ref", 200, createAgent, `{"customer_ref":"%s"}`, "customer_ref at most 200"},
	{"llm.model", 200, createAgent, `{"llm":{"model":"%s"}}`, "llm.model at most 200"},
	{"llm.base_url", 400, createAgent, `{"llm":{"base_url":"%s"}}`, "llm.base_url at most 400"},
	{"llm.label", 60, createAgent, `{"llm":{"label":"%s"}}`, "llm.label at most 60"},
	{"text", 4000, sendMessage, `{"text":"%s"}`, "message text at most 4000"},
}

// boundCases hold each bound at its last value and one past it. The interface
// counts characters: neither bytes nor what JSON escapes take. Where a
// character is more than one UTF-16 unit, or combines with its neighbour, it
// does not say what counts; that code points do is this project's reading.
func boundCases() []testCase {
	var cases []testCase
	for _, b := range bounds {
		cases = append(cases, b.cases("8.4/"+b.name, b.rule, b.of("x", b.max), b.of("x", b.max+1))...)
		for _, c := range []struct{ prefix, one string }{
			{"8.4/" + b.name + "/two-bytes", "é"},
			{"8.4/" + b.name + "/escaped", `\u00e9`},
			{"fake/" + b.name + "/outside-bmp", "😀"},    // one code point, two UTF-16 units, four bytes
			{"fake/" + b.name + "/combining", "\u0301"}, // a code point of its own, though no character to the eye
		} {
			cases = append(cases, b.cases(c.prefix, b.rule, b.of(c.one, b.max), b.of(c.one, b.max+1))...)
		}
	}
	slices.SortStableFunc(cases, func(a, b testCase) int { return strings.Compare(a.ID, b.ID) })
	return append(cases, core(rows("8.4/all", "system_prompt at most 2000 characters", createAgent, 200, row{"max", allAtMax()}))...)
}

// allAtMax is one creation with each of its members as long as it may be,
// which spares a small budget five.
func allAtMax() string {
	x := func(n int) string { return strings.Repeat("x", n) }
	return `{"system_prompt":"` + x(2000) + `","customer_ref":"` + x(200) + `",` +
		`"llm":{"model":"` + x(200) + `","base_url":"` + x(400) + `","label":"` + x(60) + `"}}`
}

// of is the body with a value of n times one character.
func (b bound) of(one string, n int) string { return fmt.Sprintf(b.format, strings.Repeat(one, n)) }

func (b bound) cases(prefix, rule, at, over string) []testCase {
	cases := slices.Concat(
		rows(prefix, rule, b.e, 200, row{"max", at}),
		rows(prefix, rule, b.e, 400, row{"over", over}),
	)
	for i := range cases {
		// A creation is dear; that all five pass at their last value is allAtMax.
		cases[i].Core = prefix == "8.4/"+b.name && cases[i].Spends.Creations == 0
	}
	return cases
}
