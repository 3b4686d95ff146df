package contract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testCase is one rule of the interface and the calls that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule string
	// Spends says how much of the limits the case takes when it passes.
	Spends Spend
	// Needs lists the abilities that the target must have.
	Needs []need
	// Core marks the cases that a small budget goes to first.
	Core bool
	// base marks the cases that others build on: while a limit does not hold,
	// a case that fills it is skipped, so that one broken rule fails one case.
	base bool

	run func(s *session)
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

// check runs the case on target and holds it to what it said it spends.
func (c testCase) check(tb testing.TB, target Target, shared *shared) {
	tb.Helper()
	s := newSession(tb, target, c, shared)
	if slices.Contains(c.Needs, needAgent) {
		s.ledger.agent = shared.agentOf(s)
	}
	c.run(s)
	spent := s.ledger.spent
	spent.Wait = c.Spends.Wait // an upper bound: how long depends on Retry-After
	s.want(spent == c.Spends, "it says that it spends %s, and spent %s", c.Spends, spent)
}

// allCases lists every case, in the order of the interface's sections and the
// decisions last.
func allCases() []testCase {
	cases := slices.Concat(
		statusCases(), warmUpCases(), byokCases(), byokSecretCases(),
		agentCases(), llmCases(), metadataCases(), messageCases(), smsCases(),
		boundCases(), authCases(), shapeCases(), bodyCases(), routeCases(), orderCases(),
		limitCases(), limitScopeCases(), windowCases(), spendingCases(), planCases(), refusalCases(),
	)
	for i := range cases {
		if cases[i].decision() {
			cases[i].Needs = append(slices.Clone(cases[i].Needs), needDecisions)
		}
	}
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

// basesFirst orders the cases that others build on before the others.
func basesFirst(a, b planned) int {
	switch {
	case a.base == b.base:
		return 0
	case a.base:
		return -1
	default:
		return 1
	}
}
