package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// probe makes the calls of Run, and keeps to the budget.
type probe struct {
	rawcall.Caller
	target      Target
	ctx         context.Context
	o           *Observation
	budget      Spend
	spent       Spend
	maxRequests int               // the value of spent.Requests at which the current question must end
	stopped     error             // why no further call is made; nil: calls go on
	badAnswers  int               // calls in a row without a documented answer
	latest      rawcall.Exchange  // the last exchange of the current question
	skipped     time.Duration     // how far Advance has moved the target's clock
	counted     []countedCall     // the calls by the target's key since emptyMinute
	meter       *meter            // how the key's limit per minute counts; nil: not known yet
	reasons     map[string]string // why a question has no answer, by its id; for questions that did not end find

	warmUpsName any       // the limit_key of the limit on warm-ups; nil if the limit has refused no warm-up, or has no name
	warmUpsOpen time.Time // when the limit on warm-ups opens, after it has refused one
	conflicts   bool      // a warm-up in byok mode is answered 409 while the limit on warm-ups is used up
}

func (o *Observation) newProbe(ctx context.Context, target Target, budget Spend) *probe {
	if budget == (Spend{}) {
		budget = DefaultBudget()
	}
	caller := rawcall.NewCaller(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	return &probe{Caller: caller, target: target, ctx: ctx, o: o, budget: budget, reasons: map[string]string{}}
}

// question says how to ask a question that the interface leaves open.
type question struct {
	id string // of decisions.Asked
	// costs bounds what find spends on a target with the limits of a preview key.
	// If fillsMinute is set, a larger limit takes more requests.
	costs       Spend
	fillsMinute bool
	// find makes the calls of Run, and passes each answer to probe.answer. It may call
	// probe.giveUp, which ends the question.
	find        func(p *probe)
	alsoAnswers []string // the ids of further questions that find answers
	secondKey   bool     // find needs a second key
	// read returns the answer that a single exchange shows, whatever its call was made for; nil
	// if it shows none. If several calls show members of an object, these are merged into one
	// answer. A Watcher reads every call that passes. A question whose answer depends on
	// several calls has no read.
	read func(x rawcall.Exchange) any
}

// ids returns the ids of all questions that q answers.
func (q question) ids() []string { return append([]string{q.id}, q.alsoAnswers...) }

// ask answers one question, or says why there is no answer.
func (p *probe) ask(q question) {
	why := p.lacks(q)
	if why == "" {
		why = p.askWithin(q)
	}
	for _, id := range q.ids() {
		if f := p.o.Decisions[id]; f.Answer == nil {
			f.NotAsked = cmp.Or(p.reasons[id], why)
			p.o.Decisions[id] = f
		}
	}
}

// askWithin runs the question's find within the requests that the question costs. If there
// is no answer, it returns the reason.
func (p *probe) askWithin(q question) (why string) {
	defer func() {
		if ended := recover(); ended != nil {
			reason, ours := ended.(unclear)
			if !ours {
				panic(ended)
			}
			why = string(reason)
		}
	}()
	p.maxRequests, p.latest = p.spent.Requests+q.costs.Requests, rawcall.Exchange{}
	q.find(p)
	missing := "which does not show it"
	if q.read != nil {
		missing = "but its value is not an identifier, so it is not kept"
	}
	return fmt.Sprintf("no clear answer: %s %s answered %d, %s", p.latest.Method, p.latest.Path, p.latest.Status, missing)
}

// unclear says why a question has no answer.
type unclear string

// giveUp ends the current question without an answer. It panics, and askWithin recovers.
func (p *probe) giveUp(format string, args ...any) { panic(unclear(fmt.Sprintf(format, args...))) }

// answer keeps the answer to a question, with the exchange that shows it as evidence. It
// does not replace an earlier answer, and drops an answer that repeats a key. A nil answer is
// none.
func (p *probe) answer(id string, answer any, x rawcall.Exchange) {
	value := string(rawcall.JSONOf(answer))
	if answer != nil && p.o.Decisions[id].Answer == nil && p.Redact(value) == value {
		p.o.Decisions[id] = Finding{Answer: json.RawMessage(value), Evidence: p.evidence(x), Seen: today(p.now())}
	}
}

// giveUpWithBounds ends the current question with bounds of its numeric answer; 0 means no
// bound.
func (p *probe) giveUpWithBounds(id string, least, most int, why string) {
	p.o.Decisions[id] = Finding{AtLeast: least, AtMost: most, Evidence: p.evidence(p.latest), Seen: today(p.now())}
	p.giveUp("%s", why)
}

// lacks says what the question needs and the target or the budget does not have; "" if nothing
// is missing.
func (p *probe) lacks(q question) string {
	price := q.costs
	if p.target.Abilities != nil { // with Abilities, waits cost nothing
		price.Wait = 0
	}
	over := price.Over(p.budget.Minus(p.spent))
	switch {
	case p.stopped != nil:
		return notReached
	case q.secondKey && !p.hasTwoKeys():
		return "needs a second key"
	case over != "":
		return "needs a larger budget: " + over
	}
	return ""
}

// hasTwoKeys reports whether a call with a second key can be made.
func (p *probe) hasTwoKeys() bool { return p.target.SecondKey != "" || p.target.Abilities != nil }

// mustCall makes one call, which must be answered with one of the statuses. If a limit
// refuses the call, mustCall waits and repeats it.
func (p *probe) mustCall(c rawcall.Call, statuses ...int) rawcall.Exchange {
	x := p.callWithRetry(c, statuses...)
	p.wantStatus(x, statuses...)
	return x
}

// answerStatus answers a question with the status of one call.
func (p *probe) answerStatus(id string, c rawcall.Call, statuses ...int) {
	x := p.mustCall(c, statuses...)
	p.answer(id, x.Status, x)
}

// callWithRetry makes a call. If the call needs an agent, it creates one first. If a limit
// refuses the call and statuses do not include 429, it waits and repeats the call, up to
// three times. The cost of the question does not include such repeats, so each repeat
// raises maxRequests by one.
func (p *probe) callWithRetry(c rawcall.Call, statuses ...int) rawcall.Exchange {
	if c.OfAgent() && c.Key == (rawcall.Key{}) {
		p.agent()
	}
	x := p.callOnce(c)
	for repeats := 0; repeats < 3 && x.Status == http.StatusTooManyRequests && !slices.Contains(statuses, x.Status); repeats++ {
		p.wait(namedWait(x))
		p.maxRequests++
		x = p.callOnce(c)
	}
	p.giveUpIfLongWait(x)
	return x
}

// giveUpIfLongWait ends the current question if x was refused by a limit that the question
// is not about, such as a limit per day. The expected window is an hour for warm-ups and
// a minute for other calls. A limit that weighs the previous window may name a wait of
// two windows.
func (p *probe) giveUpIfLongWait(x rawcall.Exchange) {
	window := time.Minute
	if x.Name == rawcall.WarmUp.Name {
		window = time.Hour
	}
	if wait, _ := x.RetryAfter(); x.Status == http.StatusTooManyRequests && wait > 2*window {
		p.giveUp("no clear answer: a limit that opens in %v refused %s %s", wait, x.Method, x.Path)
	}
}

// agent makes sure that the target's key has an agent.
func (p *probe) agent() {
	if p.Agents[rawcall.Key{}] == "" {
		p.mustCall(rawcall.CreateAgent, 200)
	}
}

// forgetAgent makes the next call about an agent create a new one.
func (p *probe) forgetAgent() { delete(p.Agents, rawcall.Key{}) }

// fill makes calls until a limit refuses one, but not more than maxCalls. It returns how
// many passed, and the last answer.
func (p *probe) fill(maxCalls int, c rawcall.Call) (passed int, last rawcall.Exchange) {
	for passed = range maxCalls {
		if last = p.callOnce(c); last.Status == http.StatusTooManyRequests {
			p.giveUpIfLongWait(last)
			return passed, last
		}
		p.wantStatus(last, 200)
	}
	return maxCalls, last
}

// fillLimit is fill, except that a limit must refuse a call.
func (p *probe) fillLimit(maxCalls int, c rawcall.Call) (passed int, refused rawcall.Exchange) {
	passed, refused = p.fill(maxCalls, c)
	if refused.Status != http.StatusTooManyRequests {
		p.giveUp("no clear answer: no limit within %d calls", maxCalls)
	}
	return passed, refused
}

// callOnce makes one call and returns its answer if the answer is documented. Three calls
// in a row without a documented answer end the run. A refused key ends it too.
func (p *probe) callOnce(c rawcall.Call) rawcall.Exchange {
	switch limit := p.budget; {
	case p.spent.Requests >= min(p.maxRequests, limit.Requests):
		p.giveUp("no clear answer within the requests that the question may take")
	case p.spent.Creations > limit.Creations || p.spent.BYOKSets > limit.BYOKSets || p.spent.WarmUps > limit.WarmUps:
		p.giveUp("needs a larger budget: calls went through that should have been refused")
	}
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second) // a target may hang or drip
	defer cancel()
	x, err := p.Do(ctx, c)
	p.spent = p.spent.Plus(Spend(c.Cost(x.Status)))
	problem := undocumented(x)
	if err != nil {
		problem = "no answer: " + p.Redact(rawcall.Cause(err))
	}
	if p.badAnswers++; p.badAnswers == 3 && problem != "" {
		p.stopped = fmt.Errorf("observe: three calls in a row got no documented answer, the last one %s; check the address and whether the service is up", problem)
	}
	if problem != "" {
		p.giveUp("no clear answer: %s %s got %s", c.Method, c.Path, problem)
	}
	p.badAnswers, p.latest = 0, x
	if c.Key == (rawcall.Key{}) && c.Header != "Authorization" && c.IsEndpoint() {
		if x.Status == http.StatusUnauthorized || x.Status == http.StatusPaymentRequired {
			p.stopped = fmt.Errorf("observe: the service refuses the key: %d; use a valid key on an active plan", x.Status)
			p.giveUp("needs a key that the service takes: it answers %d", x.Status)
		}
		p.counted = append(p.counted, countedCall{p.now(), x})
	}
	return x
}

// undocumented says why an answer does not count; "" if it counts. It must have a success
// body of interface 4, or the error body of 2.1 with a documented status.
func undocumented(x rawcall.Exchange) string {
	shape, _ := x.Documented()
	switch x.Status {
	case 200: // null for an optional member counts as a missing member
		shape = rawcall.Shape(strings.ReplaceAll(string(shape), " optional", " optional null"))
	case 400, 401, 402, 403, 404, 405, 409, 429, 503:
		shape = "error text"
	default:
		return fmt.Sprint(x.Status, ", a status that is not documented")
	}
	if x.Value == nil || shape != "" && shape.Problem(x.Value, false) != "" {
		return fmt.Sprint(x.Status, " with a body that is not documented")
	}
	return ""
}

// now returns the time of the target, as far as Run knows it.
func (p *probe) now() time.Time { return time.Now().Add(p.skipped) }

// wait waits for d, within the budget.
func (p *probe) wait(d time.Duration) {
	switch {
	case d <= 0:
	case p.target.Abilities != nil:
		p.target.Abilities.Advance(d)
		p.skipped += d
	case p.spent.Wait+d > p.budget.Wait:
		p.giveUp("needs %v of waiting; the budget has %v left", d.Round(time.Second), (p.budget.Wait - p.spent.Wait).Round(time.Second))
	default:
		p.spent.Wait += d
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
			p.giveUp("needs more time: %v", p.ctx.Err())
		}
	}
}

// emptyMinute waits until no call of the key counts against a limit per minute. That
// takes two minutes, since weighted windows also count a part of the previous minute.
func (p *probe) emptyMinute() {
	if len(p.counted) > 0 {
		p.wait(2*time.Minute - p.now().Sub(p.counted[len(p.counted)-1].at))
	}
	p.counted = nil
}

// wantStatus fails the current question unless the answer has one of the statuses.
func (p *probe) wantStatus(x rawcall.Exchange, statuses ...int) {
	if !slices.Contains(statuses, x.Status) {
		p.giveUp("no clear answer: %s %s answered %d", x.Method, x.Path, x.Status)
	}
}

// nothingStored makes sure that the key has no provider key. It clears a stored one
// only if the budget has a BYOK set.
func (p *probe) nothingStored() {
	switch x := p.mustCall(rawcall.GetBYOK, 200); {
	case x.At("byok") == nil:
	case p.budget.BYOKSets > 0:
		p.mustCall(rawcall.ClearBYOK, 200)
	default:
		p.giveUp("needs a key without a stored provider key, or a BYOK set in the budget")
	}
}

// evidence returns an exchange as evidence, without keys.
func (p *probe) evidence(x rawcall.Exchange) *Evidence {
	e := evidenceOf(x, rawcall.Clip(x.Call.Body))
	return &Evidence{Request: p.Redact(e.Request), Answer: p.Redact(e.Answer)}
}
