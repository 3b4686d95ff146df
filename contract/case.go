package contract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Case is one rule of the interface and the calls that check it.
type Case struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule string
	// Spends is what the case takes of the limits when it passes.
	Spends Spend
	// Needs is what the target must offer.
	Needs []Need
	// Core marks the cases that a small budget goes to first.
	Core bool

	run func(s *session)
}

// Need is something that a case asks of its target.
type Need string

// What a case may need. All but NeedAgent are fields of [Target] or
// [Abilities], by the field's name.
const (
	// NeedAgent is an agent created with an empty body. Cases that share a
	// target share it; it is one request and one creation of the budget.
	NeedAgent       Need = "an agent"
	NeedIssueKey    Need = "Abilities.IssueKey"
	NeedRevokeKey   Need = "Abilities.RevokeKey"
	NeedBYOKSwitch  Need = "Abilities.SetBYOKAvailable"
	NeedClientFrom  Need = "Abilities.ClientFrom"
	NeedDecisions   Need = "Abilities.Decisions"
	NeedFrozenClock Need = "Target.Bubble"
)

// Section is the section of the interface that states the rule, or "fake".
func (c Case) Section() string {
	section, _, _ := strings.Cut(c.ID, "/")
	return section
}

// Decision reports whether the case checks a decision of this project rather
// than a sentence of the interface.
func (c Case) Decision() bool { return c.Section() == "fake" }

// String is the rule with its source, as a failure prints it.
func (c Case) String() string {
	if c.Decision() {
		return "decided where the interface is silent: " + c.Rule
	}
	return "interface " + c.Section() + ": " + strconv.Quote(c.Rule)
}

// check runs the case on target and holds it to what it said it spends.
func (c Case) check(tb testing.TB, target Target, shared *sharedAgent) {
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the rule broken is of %s", c)
		}
	})
	s := newSession(tb, target, c.Spends)
	if slices.Contains(c.Needs, NeedAgent) {
		s.ledger.agent = shared.id(tb, target)
	}
	c.run(s)
	spent := s.ledger.spent
	spent.Wait = c.Spends.Wait // an upper bound: how long depends on Retry-After
	assert.Equal(tb, c.Spends, spent, "what the case said it spends, and what it spent")
}

// Cases lists every case, in the order of the interface's sections and the
// decisions last.
func Cases() []Case {
	cases := slices.Concat(
		statusCases(), warmUpCases(), byokCases(), byokSecretCases(),
		agentCases(), llmCases(), metadataCases(), messageCases(), smsCases(),
		boundCases(), authCases(), shapeCases(), bodyCases(), routeCases(), orderCases(),
		limitCases(), limitScopeCases(), windowCases(), spendingCases(), planCases(),
	)
	for i := range cases {
		if cases[i].Decision() {
			cases[i].Needs = append(slices.Clone(cases[i].Needs), NeedDecisions)
		}
	}
	slices.SortStableFunc(cases, bySection)
	return cases
}

// bySection orders 2.4 before 2.10 and any number before a word.
func bySection(a, b Case) int {
	return slices.CompareFunc(strings.Split(a.Section(), "."), strings.Split(b.Section(), "."), func(x, y string) int {
		nx, xErr := strconv.Atoi(x)
		ny, yErr := strconv.Atoi(y)
		if xErr != nil || yErr != nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(nx, ny)
	})
}
