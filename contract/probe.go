package contract

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const minute = time.Minute

// callTime bounds one call of Observe, and with it a target that hangs.
const callTime = 10 * time.Second

// probe makes the calls of Observe. Once unclear is set, the question under
// way has no answer: further calls do nothing and return an empty exchange.
type probe struct {
	player
	ctx     context.Context
	budget  Spend
	spent   Spend
	allowed Spend // what spent may become in the question under way
	unclear error
	gone    error // no further call is made
	silent  int   // calls in a row without an answer
	shown   exchange
	limit   int // of requests in a minute, once it is known
	found   map[string]Finding
}

func newProbe(ctx context.Context, target Target, budget Spend) *probe {
	if budget == (Spend{}) {
		budget = observeBudget
	}
	p := &probe{player: newPlayer(target), ctx: ctx, budget: budget}
	p.keys[another] = target.SecondKey
	return p
}

// fail leaves the question under way without an answer.
func (p *probe) fail(format string, args ...any) {
	if p.unclear == nil {
		p.unclear = fmt.Errorf(format, args...)
	}
}

// take takes a step. What is answered otherwise than the step says leaves the
// question without an answer.
func (p *probe) take(st step) (last exchange) {
	if st.arrange != nil {
		st.arrange(&p.player)
	}
	p.wait(st.wait)
	for range st.n {
		last = p.want(p.call(st), st.statuses)
	}
	return last
}

// call makes one call of the step, by the target's key of an agent that is
// created at need. A refusal by a limit that the step does not list is waited
// for, three times, and is none of the requests that the question takes.
func (p *probe) call(st step) exchange {
	if st.e.ofAgent() && st.key == (who{}) {
		p.agent(st.key)
	}
	x := p.raw(st)
	for range 3 {
		if x.status != http.StatusTooManyRequests || slices.Contains(st.statuses, x.status) {
			break
		}
		p.wait(retryAfter(x))
		p.allowed.Requests++
		x = p.raw(st)
	}
	return x
}

// agent is an agent of the key, created once.
func (p *probe) agent(by who) string {
	if p.agents[by] == "" {
		p.text(p.take(createAgent.is(200).by(by)), "agent_id")
	}
	return p.agents[by]
}

// strict makes the calls of a step, and waits for no limit.
func (p *probe) strict(st step) {
	for range st.n {
		p.want(p.raw(st), st.statuses)
	}
}

// until makes calls until one is refused by a limit, at most most, and returns
// how many went through and the refusal.
func (p *probe) until(most int, st step) (passed int, refused exchange) {
	for passed = range most {
		if refused = p.raw(st); refused.status == http.StatusTooManyRequests || p.unclear != nil {
			return passed, refused
		}
		p.want(refused, st.statuses)
	}
	p.fail("no clear answer: no limit within %d calls", most)
	return most, refused
}

// raw makes one call, whatever is answered.
func (p *probe) raw(st step) exchange {
	switch most := p.budget; {
	case p.unclear != nil:
	case p.spent.Requests >= min(p.allowed.Requests, most.Requests):
		p.fail("no clear answer within the requests that it may take")
	case p.spent.Creations > most.Creations || p.spent.BYOKSets > most.BYOKSets || p.spent.WarmUps > most.WarmUps:
		p.fail("needs a larger budget: calls went through that should have been refused")
	}
	if p.unclear != nil {
		return exchange{}
	}
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	x, err := p.play(ctx, st)
	if err != nil {
		return p.lost(st.e)
	}
	p.silent, p.shown = 0, x
	p.spent = p.spent.plus(cost(st.e, x.status))
	return x
}

// lost is a call that got no answer. The third in a row ends the run.
func (p *probe) lost(e endpoint) exchange {
	p.spent.Requests++
	p.fail("no clear answer: %s %s got none", e.method, e.path)
	if p.silent++; p.silent == 3 {
		p.gone = errors.New("contract: the target does not answer")
	}
	return exchange{}
}

// wait lets d pass, within the budget.
func (p *probe) wait(d time.Duration) {
	switch {
	case p.unclear != nil || d == 0:
	case p.freeWaits():
		p.target.Abilities.Advance(d)
	case p.spent.Wait+d > p.budget.Wait:
		p.fail("needs %v of waiting, of %v that are left", d, p.budget.Wait-p.spent.Wait)
	default:
		p.spent.Wait += d
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
			p.fail("needs more time: %w", p.ctx.Err())
		}
	}
}

// retryAfter is the header in time, at least a second; a minute where there is
// none to read.
func retryAfter(x exchange) time.Duration {
	seconds, err := strconv.Atoi(x.header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > int(day/time.Second) {
		return minute
	}
	return time.Duration(max(1, seconds)) * time.Second
}

// want goes on only with one of the statuses. Any other leaves the question
// without an answer.
func (p *probe) want(x exchange, statuses []int) exchange {
	if !slices.Contains(statuses, x.status) {
		p.fail("no clear answer: %s %s answered %d", x.endpoint.method, x.endpoint.path, x.status)
	}
	return x
}

// text is a member that must be text.
func (p *probe) text(x exchange, path string) string {
	text, _ := x.at(path).(string)
	if text == "" {
		p.fail("no clear answer: %s %s answered no %s", x.endpoint.method, x.endpoint.path, path)
	}
	return text
}

// plain matches identifiers and times. Anything else may be the text of a
// person.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:+-]{1,64}$`)

// name is a member that must be an identifier or a time, and no key.
func (p *probe) name(x exchange, path string) string {
	text := p.text(x, path)
	if p.unclear == nil && (!plain.MatchString(text) || p.redact(text) != text) {
		p.fail("no clear answer: %s of %s %s is no identifier", path, x.endpoint.method, x.endpoint.path)
	}
	return text
}

// nothingStored makes sure that the key has no provider key. It clears one
// only where the budget allows to set another.
func (p *probe) nothingStored() {
	switch x := p.take(getBYOK.is(200)); {
	case p.unclear != nil || x.at("byok") == nil:
	case p.budget.BYOKSets > 0:
		p.take(clearBYOK.is(200))
	default:
		p.fail("needs a key without a stored provider key, or a BYOK set in the budget")
	}
}
