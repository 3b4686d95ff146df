package contract

import (
	"slices"
	"sync"
)

// What the tests outside the package need of its inside.
type (
	Case      = testCase
	RoundTrip = roundTrip
)

var (
	RunCases  = runCases
	SameJSON  = sameJSON
	Verdict   = verdict
	Answering = answering
)

// AllCases are made once: their bodies are ten mebibytes.
func AllCases() []Case { return slices.Clone(cases()) }

var cases = sync.OnceValue(allCases)

// Over says what was spent beyond most, or "".
func Over(spent, most Spend) string { return spent.over(most) }

func (c testCase) Decision() bool { return c.decision() }

// Successes are the nine endpoints, each called with success.
func Successes() (cases []Case) {
	for _, e := range endpoints {
		cases = append(cases, newCase("4/"+e.name, "Every success body", e.is(200)))
	}
	return cases
}

// FakeAnswers are this project's answers to the open questions, as JSON.
func FakeAnswers() map[string]string {
	all := map[string]string{}
	for _, q := range questions {
		all[q.id] = string(jsonOf(q.fake))
	}
	return all
}
