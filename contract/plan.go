package contract

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Spend is what cases take of the limits in interface 8.1.
type Spend struct {
	Requests  int           `json:"requests"`  // calls sent, refused ones included
	Creations int           `json:"creations"` // agents created
	BYOKSets  int           `json:"byok_sets"` // provider keys stored, by PUT /v1/byok or at agent creation
	WarmUps   int           `json:"warm_ups"`  // warm-ups that went through
	Wait      time.Duration `json:"wait_ns"`   // time that must pass; free where the target's clock can be moved
}

// defaultBudget is the budget of a shared target that states none.
var defaultBudget = Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// String names the parts that are not zero: "3 requests, 1 creation".
func (s Spend) String() string { return cmp.Or(s.beyond(Spend{}, false), "0 requests") }

// over says which parts of s are more than what is left; "" where none is.
func (s Spend) over(left Spend) string { return s.beyond(left, true) }

func (s Spend) beyond(left Spend, telling bool) string {
	var parts []string
	add := func(more bool, part string, left any) {
		if more && telling {
			part += fmt.Sprintf(" of %v left", left)
		}
		if more {
			parts = append(parts, part)
		}
	}
	add(s.Requests > left.Requests, counted(s.Requests, "request"), max(0, left.Requests))
	add(s.Creations > left.Creations, counted(s.Creations, "creation"), max(0, left.Creations))
	add(s.BYOKSets > left.BYOKSets, counted(s.BYOKSets, "BYOK set"), max(0, left.BYOKSets))
	add(s.WarmUps > left.WarmUps, counted(s.WarmUps, "warm-up"), max(0, left.WarmUps))
	add(s.Wait > left.Wait, fmt.Sprint(s.Wait, " of waiting"), max(0, left.Wait))
	return strings.Join(parts, ", ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func (s Spend) plus(t Spend) Spend {
	return Spend{
		Requests:  s.Requests + t.Requests,
		Creations: s.Creations + t.Creations,
		BYOKSets:  s.BYOKSets + t.BYOKSets,
		WarmUps:   s.WarmUps + t.WarmUps,
		Wait:      s.Wait + t.Wait,
	}
}

func (s Spend) minus(t Spend) Spend {
	return s.plus(Spend{-t.Requests, -t.Creations, -t.BYOKSets, -t.WarmUps, -t.Wait})
}

// cost is what one call spends that was answered with status. Only an
// operation that went through takes of its own limits, as far as the
// interface shows.
func cost(e endpoint, status int) Spend {
	spent := Spend{Requests: 1}
	switch {
	case status != http.StatusOK:
	case e.name == warmUp.name:
		spent.WarmUps = 1
	case e.name == setBYOK.name:
		spent.BYOKSets = 1
	case e.name == createAgent.name:
		spent.Creations = 1
		spent.BYOKSets = strings.Count(e.body, `"api_key"`)
	}
	return spent
}

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
		price = price.plus(Spend{Requests: 1, Creations: 1})
	}
	if over := price.over(p.left); p.bounded && over != "" {
		return planned{c, "it takes more than the budget has: " + over, "a larger Target.Budget, or Target.Fresh"}
	}
	if p.target.Fresh == nil {
		p.left, p.hasAgent = p.left.minus(price), p.hasAgent || agent
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
