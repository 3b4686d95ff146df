package contract

import (
	"cmp"
	"fmt"
)

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows makes a case of each row: the endpoint answers its body with status.
func rows(prefix, rule string, e endpoint, status int, list ...row) []testCase {
	var cases []testCase
	for _, r := range list {
		cases = append(cases, testCase{
			ID: prefix + "/" + r.name, Rule: rule, Spends: cost(e, r.body, status), Needs: e.needs(),
			run: func(s *session) { s.call(e, r.body).is(status) },
		})
	}
	return cases
}

// each makes rows of one body, a format with one verb, and the values that
// stand in it; a case's name is its value.
func each(format string, values ...string) []row {
	var list []row
	for _, v := range values {
		list = append(list, row{cmp.Or(v, "empty"), fmt.Sprintf(format, v)})
	}
	return list
}

// core marks the cases for a small budget.
func core(cases []testCase) []testCase {
	for i := range cases {
		cases[i].Core = true
	}
	return cases
}
