package contract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testCase is one rule of the interface and the steps that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule string
	// Spends says how much of the limits the case takes at most.
	Spends Spend
	// Needs lists what the target must have.
	Needs []need
	// base marks the cases that others build on: while a limit does not hold,
	// a case that fills it is skipped, so that one broken rule fails one case.
	base bool

	steps []step
}

// need is something that a case asks of its target.
type need string

// What a case may need. All but needAgent are fields of [Target], by the
// field's name.
const (
	// needAgent is an agent created with an empty body. Cases that share a
	// target share it; it is one request and one creation of the budget.
	needAgent       need = "an agent"
	needAbilities   need = "Abilities"
	needClientFrom  need = "ClientFrom"
	needDecisions   need = "Decisions"
	needFrozenClock need = "Bubble"
)

// rule makes a case. What it spends and needs follows from its steps.
func rule(id, sentence string, steps ...step) testCase {
	c := testCase{ID: id, Rule: sentence, steps: steps}
	c.Spends, c.Needs = spends(steps), needs(steps)
	if c.decision() {
		c.Needs = append(c.Needs, needDecisions)
	}
	return c
}

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows makes a case of each row: the endpoint answers its body with status.
func rows(prefix, sentence string, e endpoint, status int, list ...row) []testCase {
	var cases []testCase
	for _, r := range list {
		cases = append(cases, rule(prefix+"/"+r.name, sentence, e.with(r.body).is(status)))
	}
	return cases
}

// each makes rows of one body and the quoted values that take the place of
// VALUE in it; a case's name is its value.
func each(body string, values ...string) []row {
	var list []row
	for _, v := range values {
		list = append(list, row{cmp.Or(v, "empty"), strings.ReplaceAll(body, "VALUE", strconv.Quote(v))})
	}
	return list
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

// check runs the case on target.
func (c testCase) check(tb testing.TB, target Target, shared *shared) {
	tb.Helper()
	s := newSession(tb, target, c, shared)
	if slices.Contains(c.Needs, needAgent) {
		s.agents[who{}] = shared.agentOf(s)
	}
	walk(c.steps, s.take)
}

// allCases lists every case, in the order of the interface's sections and the
// decisions last.
func allCases() []testCase {
	cases := slices.Concat(
		agentCases(), smsCases(), messageCases(), llmCases(), byokCases(), secretCases(), warmUpCases(),
		boundCases(), typeCases(), bodyCases(), routeCases(), authCases(), orderCases(),
		limitCases(), planCases(), windowCases(), spendingCases(), refusalCases(),
	)
	slices.SortStableFunc(cases, bySection)
	return cases
}

// bySection orders 2.4 before 2.10 and any number before a word.
func bySection(a, b testCase) int {
	return slices.CompareFunc(strings.Split(a.section(), "."), strings.Split(b.section(), "."), func(x, y string) int {
		nx, xErr := strconv.Atoi(x)
		ny, yErr := strconv.Atoi(y)
		if xErr != nil || yErr != nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(nx, ny)
	})
}
