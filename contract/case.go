package contract

import (
	"net/http"
	"slices"
	"strings"
)

// testCase is one rule of the interface and the steps that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule   string
	Spends Spend // at most
	steps  []step

	// It needs an agent that was created with an empty body. Cases that share a target
	// share it; it is one request and one creation of the budget.
	agent bool
	// It needs these fields of Target.
	abilities, secondKey, clientFrom, frozenClock bool

	fillsLimit bool
	metadata   bool // it sends metadata
	creations  int  // calls that create an agent, or are refused for their body
}

// newCase makes a case. What it spends and needs follows from its steps: where several
// statuses are right, the first counts, and a call that gets as far as its body needs an
// agent, if the case itself has not created one.
func newCase(id, sentence string, steps ...step) testCase {
	c := testCase{ID: id, Rule: sentence, steps: steps}
	created := false
	walk(steps, func(st step) {
		c.Spends.Wait += st.wait
		for range st.n {
			c.Spends = c.Spends.Plus(Spend(st.Cost(st.statuses[0])))
		}
		passes := st.n > 0 && st.statuses[0] == http.StatusOK
		reaches := passes || slices.Contains(st.statuses, http.StatusBadRequest)
		c.agent = c.agent || st.OfAgent() && reaches && !created
		c.abilities = c.abilities || st.arrange != nil || st.Key != another && st.Key != own
		c.secondKey = c.secondKey || st.Key == another
		c.clientFrom = c.clientFrom || st.IP != ""
		c.frozenClock = c.frozenClock || st.exact
		c.fillsLimit = c.fillsLimit || slices.Contains(st.statuses, http.StatusTooManyRequests)
		c.metadata = c.metadata || strings.Contains(st.Body, `"metadata":`)
		if creates := st.Name == createAgent.Name; creates && reaches {
			c.creations += st.n
			created = created || passes
		}
	})
	return c
}

// section is the section of the interface that states the rule, or "fake".
func (c testCase) section() string {
	section, _, _ := strings.Cut(c.ID, "/")
	return section
}

// decision reports whether the case checks a decision of this project rather
// than a sentence of the interface.
func (c testCase) decision() bool { return c.section() == "fake" }

// String is the rule with its source, as a failure prints it.
func (c testCase) String() string {
	if c.decision() {
		return "broken rule (our decision, the interface is silent): " + c.Rule
	}
	return "broken rule (interface " + c.section() + "): " + c.Rule
}

type suite []testCase

func (s *suite) rule(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows adds a case of each row: the call with its body is answered with status.
func (s *suite) rows(prefix, sentence string, call step, status int, list ...row) {
	for _, r := range list {
		s.rule(prefix+"/"+r.name, sentence, call.with(r.body).is(status))
	}
}
