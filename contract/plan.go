package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// planned is a case, and why it is left out; "" means that it runs.
type planned struct {
	Case
	leftOut string
}

type plan []planned

// newPlan decides which cases run on the target. On a shared target the core
// cases take from the budget first; the order in which cases run stays.
func newPlan(cases []Case, target Target) plan {
	p := make(plan, len(cases))
	purse := newPurse(target)
	for _, core := range []bool{true, false} {
		for i, c := range cases {
			if c.Core == core {
				p[i] = planned{c, target.lacks(c)}
				if p[i].leftOut == "" {
					p[i].leftOut = purse.take(c)
				}
			}
		}
	}
	return p
}

// lacks says what the case needs and the target does not offer.
func (target Target) lacks(c Case) string {
	can := target.Abilities
	offers := map[Need]bool{
		NeedAgent:       true,
		NeedIssueKey:    can.IssueKey != nil,
		NeedRevokeKey:   can.RevokeKey != nil,
		NeedBYOKSwitch:  can.SetBYOKAvailable != nil,
		NeedClientFrom:  can.ClientFrom != nil,
		NeedDecisions:   can.Decisions,
		NeedFrozenClock: target.Bubble && target.Fresh != nil,
	}
	for _, need := range c.Needs {
		if !offers[need] {
			return "the target lacks " + string(need)
		}
	}
	return ""
}

// purse holds what is left of a budget while the plan is made.
type purse struct {
	left      Spend
	bounded   bool
	perCase   bool // each case has the whole budget for itself
	freeWaits bool
	hasAgent  bool
}

func newPurse(target Target) *purse {
	p := &purse{left: target.Budget, bounded: true, perCase: target.Fresh != nil}
	p.freeWaits = target.Abilities.Advance != nil || (target.Bubble && p.perCase)
	if target.Budget == (Spend{}) {
		p.left, p.bounded = DefaultBudget, !p.perCase
	}
	return p
}

// take takes what the case spends, or says that the budget does not reach.
func (p *purse) take(c Case) string {
	price := c.Spends
	if p.freeWaits {
		price.Wait = 0
	}
	agent := slices.Contains(c.Needs, NeedAgent) && !p.hasAgent
	if agent {
		price = price.plus(Spend{Requests: 1, Creations: 1})
	}
	if p.bounded && !price.within(p.left) {
		return fmt.Sprintf("it costs %s, the budget has %s left", price, p.left)
	}
	if p.bounded && !p.perCase {
		p.left = p.left.plus(price.negative())
		p.hasAgent = p.hasAgent || agent
	}
	return ""
}

func (s Spend) negative() Spend {
	return Spend{-s.Requests, -s.Creations, -s.BYOKSets, -s.WarmUps, -s.Wait}
}

// String says how many cases run and what leaves out the others.
func (p plan) String() string {
	because := map[string]int{}
	for _, c := range p {
		because[reasonGroup(c.leftOut)]++
	}
	text := fmt.Sprintf("contract: %d of %d cases run", because[""], len(p))
	delete(because, "")
	for _, reason := range slices.Sorted(maps.Keys(because)) {
		text += fmt.Sprintf("; %d left out: %s", because[reason], reason)
	}
	return text
}

// reasonGroup counts all that the budget does not reach as one.
func reasonGroup(leftOut string) string {
	if strings.HasPrefix(leftOut, "it costs") {
		return "over the budget"
	}
	return leftOut
}
