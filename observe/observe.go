// Package observe finds out how a service answers what the interface document
// leaves open: names, forms of times, orders of checks, how limits count.
//
// [Run] asks a service with calls of its own, within a budget. [Watch] looks at
// the calls that a program makes anyway, and asks nothing. Both give an
// [Observation], which as JSON is the file that a fake reads to answer likewise
// (fakeserver.Like), and which says what has changed since an earlier one.
//
// An observation holds no key, no id and no text of a person. Only an answer
// with a documented body counts as one: a proxy's HTML page, an empty body and
// an error that the interface does not list answer no question.
package observe

import (
	"context"
	"net/http"
	"time"
)

// Target is a service to ask.
type Target struct {
	// BaseURL is the address before /v1; a slash at its end does not matter.
	BaseURL string
	// Key is a dashboard-issued API key on an active plan.
	Key string
	// SecondKey is another such key, for the questions that need two. "": one
	// is issued where Abilities can.
	SecondKey string
	// HTTPClient sends the calls. nil means one with a timeout of two
	// minutes. No redirect is followed, whatever the client says.
	HTTPClient *http.Client
	// Abilities are what the target lets a question arrange. nil: questions
	// that need them are not asked, and waits are slept.
	Abilities Abilities
}

// Abilities are what a target lets a caller arrange beyond calling it. A
// *fakeserver.Server has them by its methods, also where a proxy stands before
// it.
type Abilities interface {
	// IssueKeyOn makes an API key on one of the plans preview (the defaults
	// of interface 8.1), free, pro and byok (interface 8.2), dashboard-issued
	// or not.
	IssueKeyOn(plan string, dashboard bool) string
	// RevokeKey makes a key that IssueKeyOn made invalid.
	RevokeKey(key string)
	// SetBYOKAvailable switches the store of provider keys off and on
	// (status 503 in interface 4.2 and 4.4).
	SetBYOKAvailable(available bool)
	// Advance moves the target's clock.
	Advance(d time.Duration)
}

// DefaultBudget is the budget of Run where none is given: below half of each
// daily limit of a preview key (interface 8.1), no BYOK set, and enough waiting
// for all questions.
func DefaultBudget() Spend {
	return Spend{Requests: 490, Creations: 24, WarmUps: 8, Wait: 15 * time.Minute}
}

// Run finds out how target answers the questions that the interface leaves
// open, with calls that budget allows. The zero budget means [DefaultBudget]: no
// provider key is set then, since that overwrites what the service key has
// stored.
//
// What was not asked says what it needs. A target that lies, hangs or answers
// with what is no documented answer ends in findings that say so. Run returns
// what it has together with the error of ctx, or of a target that refuses the
// key or gives no documented answer at all; [Observation.Continue] goes on from
// there.
func Run(ctx context.Context, target Target, budget Spend) (*Observation, error) {
	o := &Observation{}
	return o, o.Continue(ctx, target, budget)
}

// Continue asks the questions that have no answer yet, as [Run] does. It spends
// at most what [Observation.Preview] returns.
func (o *Observation) Continue(ctx context.Context, target Target, budget Spend) error {
	o.init()
	p := o.newProbe(ctx, target, budget)
	p.budget = o.Preview(target, budget)
	defer func() { o.Spent = o.Spent.Plus(p.spent) }()
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

// Preview returns what Continue spends at most. Where it fills the minute of the
// key, that is all requests of the budget: larger limits than those of a preview
// key take more of them.
func (o *Observation) Preview(target Target, budget Spend) Spend {
	p := o.newProbe(context.Background(), target, budget)
	most := Spend{Wait: p.budget.Wait} // a limit is waited for wherever it is met
	for _, q := range questions {
		if q.find != nil && !o.has(q) && p.lacks(q) == "" {
			most = most.Plus(q.costs)
			if q.fillsMinute {
				most.Requests = p.budget.Requests
			}
		}
	}
	return most.with(p.budget, func(a, b int) int { return min(a, b) })
}
