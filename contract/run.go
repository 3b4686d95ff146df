package contract

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"testing"
	"testing/synctest"
)

// Run runs every case that the target's abilities and budget allow, each as a
// subtest named by its id, and skips the others with the reason. Where it left
// some out it says on standard error how many ran, and what would let the
// others run; go test shows that with -v, and without it in the folder of the
// package.
func Run(t *testing.T, target Target) {
	t.Helper()
	p := newPlan(allCases(), target.renew(t))
	if slices.ContainsFunc(p, func(c planned) bool { return c.leftOut != "" }) {
		fmt.Fprintln(os.Stderr, p)
	}
	if target.Fresh != nil {
		p = p.basesFirst()
	}
	shared := new(shared)
	for _, c := range p {
		t.Run(c.ID, func(t *testing.T) {
			if c.leftOut != "" {
				t.Skip("left out: " + c.leftOut)
			}
			c.start(t, target, shared)
		})
	}
}

// renew makes the target of one case, where each has its own.
func (target Target) renew(tb testing.TB) Target {
	if target.Fresh == nil {
		return target
	}
	made := target.Fresh(tb)
	made.Budget, made.Bubble, made.Fresh = target.Budget, target.Bubble, target.Fresh
	return made
}

// start runs the case as t: on the target that all share, or on one of its
// own. Others may build on a base, so it runs before them and not beside them.
func (c testCase) start(t *testing.T, target Target, all *shared) {
	if c.base {
		t.Cleanup(func() {
			if t.Failed() {
				all.broken = append(all.broken, c.ID)
			}
		})
	}
	own := all
	if target.Fresh != nil {
		own = &shared{broken: all.broken}
		if !c.base {
			t.Parallel()
		}
	}
	check := func(t *testing.T) { c.check(t, target.renew(t), own) }
	if target.Bubble && target.Fresh != nil {
		synctest.Test(t, check)
	} else {
		check(t)
	}
}

// defaultBudget is the budget of a shared target that states none.
var defaultBudget = Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// planned is a case and, where it is left out, why and what would let it run.
type planned struct {
	testCase
	leftOut, wants string
}

type plan []planned

// core are the cases that a small budget goes to first: one for each endpoint,
// and the refusals that cost a request and nothing else.
var core = []string{
	"2.3/every-member", "2.3/no-other-member/top", "2.5/required/text", "4.1/shape", "4.2/body-absent", "4.2/mode-refused/unknown",
	"4.2/byok-not-configured", "4.4/set-read-clear", "4.4/required/api_key", "4.6/empty-object", "4.7/read", "4.8/reply",
	"4.9/mode/sandbox", "4.9/mode/none-refused", "5/credential-missing/*", "7/agent-unknown/*", "8.4/*/over", "8.4/text/max", "8.4/all/max",
}

func (c testCase) core() bool {
	return slices.ContainsFunc(core, func(pattern string) bool {
		matched, _ := path.Match(pattern, c.ID)
		return matched
	})
}

// basesFirst moves the cases that others build on before the others.
func (p plan) basesFirst() plan {
	bases := slices.DeleteFunc(slices.Clone(p), func(c planned) bool { return !c.base })
	return append(bases, slices.DeleteFunc(slices.Clone(p), func(c planned) bool { return c.base })...)
}

// newPlan decides which cases run on the target. On a shared target the core
// cases take from the budget first; the order in which cases run stays.
func newPlan(cases []testCase, target Target) plan {
	p := make(plan, len(cases))
	purse := &purse{target: target, left: target.Budget, bounded: true}
	if target.Budget == (Spend{}) {
		purse.left, purse.bounded = defaultBudget, target.Fresh == nil
	}
	for _, first := range []bool{true, false} {
		for i, c := range cases {
			if c.core() == first {
				p[i] = purse.plan(c)
			}
		}
	}
	return p
}

// purse holds what is left of a budget while the plan is made. With Fresh each
// case has the whole budget for itself.
type purse struct {
	target   Target
	left     Spend
	bounded  bool
	hasAgent bool
}

// plan leaves the case out where the target lacks what it needs, or the budget
// does not reach.
func (p *purse) plan(c testCase) planned {
	if lack := string(p.target.lacks(c.Needs)); lack != "" {
		return planned{c, "the target has no " + lack, "Target." + lack}
	}
	price := c.Spends
	if p.target.Abilities != nil || p.target.Bubble && p.target.Fresh != nil { // waits are free
		price.Wait = 0
	}
	agent := slices.Contains(c.Needs, needAgent) && !p.hasAgent
	if agent {
		price = price.Plus(Spend{Requests: 1, Creations: 1})
	}
	if over := price.Over(p.left); p.bounded && over != "" {
		return planned{c, "it takes more than the budget has: " + over, "a larger Target.Budget, or Target.Fresh"}
	}
	if p.target.Fresh == nil {
		p.left, p.hasAgent = p.left.Minus(price), p.hasAgent || agent
	}
	return planned{testCase: c}
}

// lacks is the first of these needs that the target does not offer.
func (target Target) lacks(needs []need) need {
	offers := map[need]bool{
		needAgent:       true,
		needAbilities:   target.Abilities != nil,
		needSecondKey:   target.Abilities != nil || target.SecondKey != "",
		needClientFrom:  target.ClientFrom != nil,
		needDecisions:   target.Decisions,
		needFrozenClock: target.Bubble && target.Fresh != nil,
	}
	for _, need := range needs {
		if !offers[need] {
			return need
		}
	}
	return ""
}

// String says how many cases run, and what would let the others run.
func (p plan) String() string {
	wants := map[string]int{}
	for _, c := range p {
		wants[c.wants]++
	}
	text := fmt.Sprintf("contract: %d of %d cases run.", wants[""], len(p))
	delete(wants, "")
	for _, want := range slices.Sorted(maps.Keys(wants)) {
		text += fmt.Sprintf(" %d more would with %s.", wants[want], want)
	}
	return text
}
