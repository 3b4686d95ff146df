package contract

import (
	"context"
	"slices"
)

// observeBudget is the budget of Observe where none is given: below half of
// each daily limit of a preview key (interface 8.1), no BYOK set, and waits for
// six minutes.
var observeBudget = Spend{Requests: 490, Creations: 24, WarmUps: 4, Wait: 6 * minute}

// Observe finds out how target answers the questions that the interface leaves
// open, with calls that budget allows. The zero budget means 490 requests, 24
// agent creations, 4 warm-ups and six minutes of waiting, which is below half
// of each daily limit of a preview key; no provider key is set then, since that
// overwrites what the service key has stored.
//
// What was not asked says what it needs. A target that lies, hangs or answers
// with what is no answer ends in findings that say so. Observe returns what it
// has together with the error of ctx, or of a target that cannot be called at
// all; [Observation.Continue] goes on from there.
func Observe(ctx context.Context, target Target, budget Spend) (*Observation, error) {
	o := &Observation{}
	return o, o.Continue(ctx, target, budget)
}

// Continue asks the questions that have no answer yet, as [Observe] does.
func (o *Observation) Continue(ctx context.Context, target Target, budget Spend) error {
	if o.Format = 1; o.Decisions == nil {
		o.Decisions = map[string]Finding{}
	}
	p := o.newProbe(ctx, target, budget)
	defer func() { o.Spent = o.Spent.plus(p.spent) }()
	for _, q := range questions {
		if q.find != nil && !o.has(q) {
			p.ask(q)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return p.gone
}

// Preview returns what Continue may spend at most on target within budget.
func (o *Observation) Preview(target Target, budget Spend) Spend {
	p := o.newProbe(context.Background(), target, budget)
	var all Spend
	for _, q := range questions {
		if q.find != nil && !o.has(q) && p.lacks(q) == "" {
			all = all.plus(q.costs)
		}
	}
	b := p.budget
	return Spend{
		Requests: min(all.Requests, b.Requests), Creations: min(all.Creations, b.Creations),
		BYOKSets: min(all.BYOKSets, b.BYOKSets), WarmUps: min(all.WarmUps, b.WarmUps),
		Wait: b.Wait, // a limit is waited for wherever it is met
	}
}

// has reports whether all questions that q answers have an answer.
func (o *Observation) has(q question) bool {
	return !slices.ContainsFunc(q.ids(), func(id string) bool { return o.Decisions[id].Answer == nil })
}

// question is one that the interface leaves open.
type question struct {
	id   string
	ask  string // in words
	fake any    // this project's answer
	// find makes the calls and returns the answer, nil where there is no clear
	// one. It tells the probe the answers to the questions of also. nil: another
	// question finds the answer.
	find  func(p *probe) any
	also  []string
	costs Spend // at most
	needs []need
}

// finds makes a question that find answers.
func finds(id, words string, fake any, costs Spend, find func(*probe) any, needs ...need) question {
	return question{id: id, ask: words, fake: fake, costs: costs, find: find, needs: needs}
}

// asks makes a question that the status of the last call answers: by itself,
// or, where the answer is yes or no, by being the first that the step lists.
func asks(id, words string, fake any, steps ...step) question {
	q := question{id: id, ask: words, fake: fake, costs: spends(steps), needs: needs(steps)}
	if slices.Contains(q.needs, needAgent) {
		q.costs = q.costs.plus(Spend{Requests: 1, Creations: 1})
	}
	_, yesOrNo := fake.(bool)
	q.find = func(p *probe) (answer any) {
		for _, st := range steps {
			if x := p.take(st); yesOrNo && st.n > 0 {
				answer = x.status == st.statuses[0]
			} else if st.n > 0 {
				answer = x.status
			}
		}
		return answer
	}
	return q
}

func (q question) ids() []string { return append([]string{q.id}, q.also...) }

// ask answers one question, or says why there is no answer.
func (p *probe) ask(q question) {
	why := p.lacks(q)
	if why == "" {
		why = p.find(q)
	}
	for _, id := range q.ids() {
		if p.o.Decisions[id].Answer == nil {
			p.o.Decisions[id] = Finding{NotAsked: why}
		}
	}
}

func (p *probe) find(q question) (why string) {
	defer func() {
		if ended := recover(); ended != nil {
			why = string(ended.(unclear))
		}
	}()
	p.allowed, p.shown = p.spent.Requests+q.costs.Requests, exchange{}
	p.answer(q.id, q.find(p))
	return "no clear answer"
}

// answer keeps the answer to a question, with the last exchange as evidence.
// An answer that is there stays.
func (p *probe) answer(id string, answer any) {
	if answer != nil && p.o.Decisions[id].Answer == nil {
		p.o.Decisions[id] = Finding{Answer: jsonOf(answer), Evidence: p.evidence()}
	}
}

// lacks says what the question needs that target and budget do not have.
func (p *probe) lacks(q question) string {
	words := map[need]string{needAbilities: "Target.Abilities, such as those of a fake", needSecondKey: "a second key"}
	if lack := p.target.lacks(q.needs); lack != "" {
		return "needs " + words[lack]
	}
	price := q.costs
	if p.target.Abilities != nil { // waits are free
		price.Wait = 0
	}
	if over := price.over(p.budget.minus(p.spent)); over != "" {
		return "needs a larger budget: " + over
	}
	if p.gone != nil {
		return "needs a target that answers"
	}
	return ""
}
