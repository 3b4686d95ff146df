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
	rawcall.Player
	target       Target
	ctx          context.Context
	o            *Observation
	asked        question
	budget       Spend
	spent        Spend
	mostRequests int               // the value of spent.Requests at which the current question must end
	stopped      error             // no further call is made
	badAnswers   int               // calls in a row without a documented answer
	latest       rawcall.Exchange  // of the question under way
	skipped      time.Duration     // by which Advance has moved the target's clock
	counted      []countedCall     // the calls by the target's key since emptyMinute
	meter        *meter            // how the key's minute counts, once it is known
	reasons      map[string]string // by question: why it has no answer, though its find went on

	warmUpsName any       // the limit_key of the limit on warm-ups; nil before it has refused one, or without a name
	warmUpsOpen time.Time // when that limit opens, once it has refused one
}

func (o *Observation) newProbe(ctx context.Context, target Target, budget Spend) *probe {
	if budget == (Spend{}) {
		budget = DefaultBudget()
	}
	player := rawcall.NewPlayer(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	return &probe{Player: player, target: target, ctx: ctx, o: o, budget: budget, reasons: map[string]string{}}
}

// question is how to ask a question that the interface leaves open.
type question struct {
	id string // of decisions.Asked
	// costs bounds what find spends on a target with the limits of a preview key.
	// If fillsMinute is set, a larger limit takes more requests.
	costs       Spend
	fillsMinute bool
	// find makes the calls of Run and returns the answer, or nil if there is no clear
	// one.
	find func(p *probe) any
	// alsoAnswers are the ids of further questions that find answers. It passes their
	// answers to probe.answer.
	alsoAnswers []string
	secondKey   bool // find needs a second key
	// read returns what one answer says by itself, whatever the call was made for; nil if
	// it says nothing. The members of objects from several calls make one
	// answer. A Watcher reads every call that passes. Without read, what a call
	// means depends on the calls before it.
	read func(x rawcall.Exchange) any
}

// ids returns the ids of all questions that q answers.
func (q question) ids() []string { return append([]string{q.id}, q.alsoAnswers...) }

// ask answers one question, or says why there is no answer.
func (p *probe) ask(q question) {
	why := p.lacks(q)
	if why == "" {
		why = p.find(q)
	}
	for _, id := range q.ids() {
		if f := p.o.Decisions[id]; f.Answer == nil {
			f.NotAsked = cmp.Or(p.reasons[id], why)
			p.o.Decisions[id] = f
		}
	}
}

// find lets the question find its answers, within the requests that it costs. It
// returns why there is no answer, should there be none.
func (p *probe) find(q question) (why string) {
	defer func() {
		if ended := recover(); ended != nil {
			reason, ours := ended.(unclear)
			if !ours {
				panic(ended)
			}
			why = string(reason)
		}
	}()
	p.asked, p.mostRequests, p.latest = q, p.spent.Requests+q.costs.Requests, rawcall.Exchange{}
	answer := q.find(p)
	p.answer(q.id, answer, p.latest)
	missing := "which does not show it"
	if q.read != nil {
		missing = "but its value is no identifier, so it is not kept"
	}
	return fmt.Sprintf("no clear answer: %s %s answered %d, %s", p.latest.Method, p.latest.Path, p.latest.Status, missing)
}

// unclear says why a question has no answer.
type unclear string

// fail leaves the question under way without an answer: find recovers.
func (p *probe) fail(format string, args ...any) { panic(unclear(fmt.Sprintf(format, args...))) }

// answer keeps the answer to a question, with the exchange that shows it as evidence.
// It keeps an earlier answer, and drops one that repeats a key.
func (p *probe) answer(id string, answer any, x rawcall.Exchange) {
	value := string(jsonOf(answer))
	if answer != nil && p.o.Decisions[id].Answer == nil && p.Redact(value) == value {
		p.o.Decisions[id] = Finding{Answer: json.RawMessage(value), Evidence: p.evidence(x), Seen: today(p.now())}
	}
}

// bound keeps between which numbers the answer is; 0 means not bounded.
func (p *probe) bound(id string, least, most int) {
	p.o.Decisions[id] = Finding{AtLeast: least, AtMost: most, Evidence: p.evidence(p.latest), Seen: today(p.now())}
}

// lacks says what the question needs and target or budget do not have; "" if they
// have everything.
func (p *probe) lacks(q question) string {
	arranges := p.target.Abilities != nil
	price := q.costs
	if arranges { // waits are free
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

// take makes one call, and waits for a limit that it meets. Its answer has one
// of the statuses.
func (p *probe) take(c rawcall.Call, statuses ...int) rawcall.Exchange {
	x := p.playPatiently(c, statuses...)
	p.wantStatus(x, statuses...)
	return x
}

// yes makes one call that is answered with one of two statuses, and reports whether
// it was the first.
func (p *probe) yes(c rawcall.Call, yes, no int) bool { return p.take(c, yes, no).Status == yes }

// playPatiently makes a call, with an agent that is created at need. Where a limit
// refuses it and statuses do not have 429, it waits and repeats the call, up to
// three times. Such a repeat is not among the requests that the question costs, so
// each raises mostRequests by one.
func (p *probe) playPatiently(c rawcall.Call, statuses ...int) rawcall.Exchange {
	if c.OfAgent() && c.Key == (rawcall.Key{}) {
		p.agent(c.Key)
	}
	x := p.playOnce(c)
	for range 3 {
		if x.Status != http.StatusTooManyRequests || slices.Contains(statuses, x.Status) {
			break
		}
		p.wait(retryAfter(x))
		p.mostRequests++
		x = p.playOnce(c)
	}
	p.wantShortWait(x)
	return x
}

// wantShortWait fails the question under way if a limit refused a call that the
// question is not about, such as the limit of a day. Their windows are an hour for
// warm-ups and a minute for other calls; a limit that weighs the window before may name
// twice that.
func (p *probe) wantShortWait(x rawcall.Exchange) {
	window := time.Minute
	if x.Name == rawcall.WarmUp.Name {
		window = time.Hour
	}
	if wait, _ := x.RetryAfter(); x.Status == http.StatusTooManyRequests && wait > 2*window {
		p.fail("no clear answer: a limit that opens in %v refused %s %s", wait, x.Method, x.Path)
	}
}

// agent makes sure that a key has an agent.
func (p *probe) agent(by rawcall.Key) {
	if p.Agents[by] == "" {
		p.take(rawcall.CreateAgent.By(by), 200)
	}
}

// fill makes calls until a limit refuses one, at most most. It returns how many went
// through, and the last answer.
func (p *probe) fill(most int, c rawcall.Call) (passed int, last rawcall.Exchange) {
	for passed = range most {
		if last = p.playOnce(c); last.Status == http.StatusTooManyRequests {
			p.wantShortWait(last)
			return passed, last
		}
		p.wantStatus(last, 200)
	}
	return most, last
}

// fillLimit is fill where a limit must refuse a call.
func (p *probe) fillLimit(most int, c rawcall.Call) (passed int, refused rawcall.Exchange) {
	passed, refused = p.fill(most, c)
	if refused.Status != http.StatusTooManyRequests {
		p.fail("no clear answer: no limit within %d calls", most)
	}
	return passed, refused
}

// playOnce makes one call and returns its answer if it is a documented one. Three calls
// in a row without a documented answer end the run, and so does a refused key.
func (p *probe) playOnce(c rawcall.Call) rawcall.Exchange {
	switch most := p.budget; {
	case p.spent.Requests >= min(p.mostRequests, most.Requests):
		p.fail("no clear answer within the requests that it may take")
	case p.spent.Creations > most.Creations || p.spent.BYOKSets > most.BYOKSets || p.spent.WarmUps > most.WarmUps:
		p.fail("needs a larger budget: calls went through that should have been refused")
	}
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	x, err := p.Play(ctx, c)
	if !rawcall.Unsent(err) {
		p.spent = p.spent.Plus(Spend(c.Cost(x.Status)))
	}
	problem := undocumented(x)
	if err != nil {
		problem = "no answer: " + p.Redact(rawcall.Cause(err))
	}
	if p.badAnswers++; p.badAnswers == 3 && problem != "" {
		p.stopped = fmt.Errorf("observe: three calls in a row got no documented answer, the last one %s; check the address and whether the service is up", problem)
	}
	if problem != "" {
		p.fail("no clear answer: %s %s got %s", c.Method, c.Path, problem)
	}
	p.badAnswers, p.latest = 0, x
	if c.Key == (rawcall.Key{}) && c.Header != "Authorization" && c.IsEndpoint() {
		if x.Status == http.StatusUnauthorized || x.Status == http.StatusPaymentRequired {
			p.stopped = fmt.Errorf("observe: the service refuses the key: %d; use a valid key on an active plan", x.Status)
			p.fail("needs a key that the service takes: it answers %d", x.Status)
		}
		p.counted = append(p.counted, countedCall{p.now(), x})
	}
	return x
}

// undocumented says why an answer counts as none, or "": it has neither a
// success body of interface 4 nor the error body of 2.1 with a documented status.
func undocumented(x rawcall.Exchange) string {
	shape, _ := x.Documented()
	switch x.Status {
	case 200: // null for an optional member says what its absence says
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

// wait lets d pass, within the budget.
func (p *probe) wait(d time.Duration) {
	switch {
	case d <= 0:
	case p.target.Abilities != nil:
		p.target.Abilities.Advance(d)
		p.skipped += d
	case p.spent.Wait+d > p.budget.Wait:
		p.fail("needs %v of waiting, of %v that are left", d.Round(time.Second), (p.budget.Wait - p.spent.Wait).Round(time.Second))
	default:
		p.spent.Wait += d
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
			p.fail("needs more time: %v", p.ctx.Err())
		}
	}
}

// emptyMinute waits until no call of the key counts in a limit by the minute. That takes
// two minutes, since weighted windows also count a part of the minute before.
func (p *probe) emptyMinute() {
	if len(p.counted) > 0 {
		p.wait(2*time.Minute - p.now().Sub(p.counted[len(p.counted)-1].at))
	}
	p.counted = nil
}

// wantStatus fails the question under way unless the answer has one of the statuses.
func (p *probe) wantStatus(x rawcall.Exchange, statuses ...int) {
	if !slices.Contains(statuses, x.Status) {
		p.fail("no clear answer: %s %s answered %d", x.Method, x.Path, x.Status)
	}
}

// nothingStored makes sure that the key has no provider key. It clears a stored one
// only if the budget has a BYOK set.
func (p *probe) nothingStored() {
	switch x := p.take(rawcall.GetBYOK, 200); {
	case x.At("byok") == nil:
	case p.budget.BYOKSets > 0:
		p.take(rawcall.ClearBYOK, 200)
	default:
		p.fail("needs a key without a stored provider key, or a BYOK set in the budget")
	}
}

// evidence shows an exchange without keys.
func (p *probe) evidence(x rawcall.Exchange) *Evidence {
	e := evidenceOf(x, rawcall.Clip(x.Call.Body))
	return &Evidence{Request: p.Redact(e.Request), Answer: p.Redact(e.Answer)}
}
