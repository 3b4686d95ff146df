package contract

import (
	"cmp"
	"slices"
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
	Rule   string
	Spends Spend // at most
	Needs  []need
	// base marks the cases that others build on: while a limit does not hold,
	// a case that fills it is skipped, so that one broken rule fails one case.
	base  bool
	steps []step
}

// need is what a case asks of its target. All but needAgent are fields of
// [Target], by the field's name.
type need string

const (
	// needAgent is an agent created with an empty body. Cases that share a
	// target share it; it is one request and one creation of the budget.
	needAgent       need = "an agent"
	needAbilities   need = "Abilities"
	needSecondKey   need = "SecondKey"
	needClientFrom  need = "ClientFrom"
	needDecisions   need = "Decisions"
	needFrozenClock need = "Bubble"
)

// newCase makes a case. What it spends and needs follows from its steps.
func newCase(id, sentence string, steps ...step) testCase {
	c := testCase{ID: id, Rule: sentence, steps: steps}
	c.Spends, c.Needs = spends(steps), needs(steps)
	if c.decision() {
		c.Needs = append(c.Needs, needDecisions)
	}
	return c
}

type suite []testCase

func (s *suite) rule(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows adds a case of each row: the endpoint answers its body with status.
func (s *suite) rows(prefix, sentence string, e endpoint, status int, list ...row) {
	for _, r := range list {
		s.rule(prefix+"/"+r.name, sentence, e.with(r.body).is(status))
	}
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
	var s suite
	for _, add := range []func(){
		s.agents, s.sms, s.metadata, s.messages, s.byok, s.byokOfCreations, s.byokOfAnotherKey, s.secrets, s.warmUps,
		s.members, s.unknownMembers, s.bodies, s.strictJSON, s.contentTypes, s.routes, s.methods, s.credentials, s.order,
		s.limits, s.sharedLimits, s.plans, s.counted, s.uncounted, s.operations, s.windows, s.unchanged, s.unlisted,
	} {
		add()
	}
	slices.SortStableFunc(s, func(a, b testCase) int { return cmp.Compare(a.section(), b.section()) })
	return s
}
