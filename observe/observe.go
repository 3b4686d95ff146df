// Package observe finds out how a service answers what the interface document
// leaves open: names, forms of times, orders of checks, how limits count.
//
// [Run] makes calls to a service to find that out, within a budget. [Watch] makes no
// calls: it learns from the calls that a program makes anyway. Both return an
// [Observation] with a [Finding] for each open question. fakeserver.Like reads its JSON
// file and makes the fake answer in the same way, [Observation.Markdown] shows it as a
// page, and [Observation.Drift] shows what changed since an earlier one. Decisions of a
// fakeserver.Server lists the ids and words of all questions, and the fake's defaults,
// with which answers are compared. Run leaves out other_limit_names,
// permission_before_body, limit_before_permission and store_down_first: these need keys
// of other kinds, a store that is down, or a key's limits for a whole day.
//
//	o, err := observe.Run(ctx, observe.Target{BaseURL: baseURL, Key: key}, observe.DefaultBudget())
//	if err != nil {
//		log.Print(err) // o has what was found before
//	}
//	err = o.WriteFile("observed.json")
//
// A later run shows what the service has changed since:
//
//	earlier, err := observe.ReadFile("observed.json")
//	for _, change := range o.Drift(earlier) {
//		fmt.Println(change) // clear_nothing: Which status answers DELETE /v1/byok if nothing is stored? It was 200, it is 404.
//	}
//
// "Interface 8.1" in these pages names a section of the service's interface
// document.
//
// An observation holds no key and no message of yours; it quotes the short test messages
// that Run sends. It holds no agent id, unless the service puts one into the name of a
// limit or of an error. From a service's answers it keeps identifiers (single words of at
// most 64 characters), the names of members and headers, and the names of the service and
// of its limits. Only answers with a documented body count: a proxy's HTML page, an empty
// body and an error that the interface does not list answer no question.
package observe

import (
	"context"
	"errors"
	"path"
	"slices"
)

// Run finds out how target answers the questions that the interface leaves open, with the
// calls that budget allows. The zero budget means [DefaultBudget], which stores no
// provider key, because that would overwrite a provider key that the API key already has.
//
// A question that was not asked or got no clear answer has a [Finding] that says
// why in NotAsked, also if the target hangs or gives undocumented answers.
//
// Run always returns an Observation with what it found. It also returns an error if Key is
// empty, if BaseURL is empty or ends in /v1, if ctx ends, if the target refuses the key (401
// or 402: use a valid key on an active plan), or if three calls in a row get no documented
// answer (check BaseURL and whether the service is up). After that, [Observation.Continue]
// asks the remaining questions.
func Run(ctx context.Context, target Target, budget Spend) (*Observation, error) {
	o := &Observation{}
	return o, o.Continue(ctx, target, budget)
}

// Continue asks the questions that have no answer yet, as [Run] does, and adds
// the answers to o. It spends at most what [Observation.Preview] returns. Its
// errors are the errors of Run.
func (o *Observation) Continue(ctx context.Context, target Target, budget Spend) error {
	o.init()
	p := o.newProbe(ctx, target, budget)
	p.budget = o.Preview(target, budget)
	if target.BaseURL == "" || target.Key == "" || path.Base(target.BaseURL) == "v1" {
		p.stopped = errors.New("observe: the target needs a Target.BaseURL without /v1, and a Target.Key")
	}
	defer func() { o.Spent = o.Spent.Plus(p.spent) }()
	for _, q := range questions {
		if !o.has(q) {
			p.ask(q)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return p.stopped
}

// Preview returns what Continue spends at most, without making a call. If a remaining
// question uses up the key's limit on requests in a minute, the result includes all
// requests of the budget. The number of requests depends on the limit, which may be
// larger than a preview key's.
func (o *Observation) Preview(target Target, budget Spend) Spend {
	p := o.newProbe(context.Background(), target, budget)
	left := p.budget // costs are subtracted, since a sum could overflow if the budget is math.MaxInt
	for _, q := range questions {
		if !o.has(q) && p.lacks(q) == "" {
			left = left.Minus(q.costs)
			if q.fillsMinute {
				left.Requests = 0
			}
		}
	}
	for _, kind := range left.parts() {
		*kind.n = max(*kind.n, 0)
	}
	left.Wait = 0 // any call may meet a limit and have to wait
	return p.budget.Minus(left)
}

// has reports whether all questions that q answers have an answer.
func (o *Observation) has(q question) bool {
	return !slices.ContainsFunc(q.ids(), func(id string) bool { return o.Decisions[id].Answer == nil })
}
