package contract

import (
	"context"
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
	caller
	ctx     context.Context
	target  Target
	budget  Spend
	spent   Spend
	allowed Spend // what spent may become in the question under way
	unclear error
	gone    error // no further call is made
	silent  int   // calls in a row without an answer
	shown   exchange
	agent   string // made once
	second  caller // likewise
	limit   int    // of requests in a minute, once it is known
	found   map[string]Finding
}

func newProbe(ctx context.Context, target Target, budget Spend) *probe {
	if budget == (Spend{}) {
		budget = observeBudget
	}
	return &probe{caller: newCaller(target), ctx: ctx, target: target, budget: budget}
}

// fail leaves the question under way without an answer.
func (p *probe) fail(format string, args ...any) {
	if p.unclear == nil {
		p.unclear = fmt.Errorf(format, args...)
	}
}

// raw makes one call, whatever is answered.
func (p *probe) raw(c caller, e endpoint) exchange {
	if p.unclear != nil {
		return exchange{}
	}
	if p.spent.Requests >= min(p.allowed.Requests, p.budget.Requests) {
		p.fail("no clear answer within the requests that it may take")
		return exchange{}
	}
	if most := p.budget; p.spent.Creations > most.Creations || p.spent.BYOKSets > most.BYOKSets || p.spent.WarmUps > most.WarmUps {
		p.fail("needs a larger budget: calls went through that should have been refused")
		return exchange{}
	}
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	x, err := c.send(ctx, e)
	if err != nil {
		p.spent.Requests++
		p.lost(e)
		return exchange{}
	}
	p.silent, p.shown = 0, x
	p.spent = p.spent.plus(cost(e, x.status))
	return x
}

func (p *probe) lost(e endpoint) {
	p.fail("no clear answer: %s %s got none", e.method, e.path)
	if p.silent++; p.silent == 3 {
		p.gone = errGone
	}
}

// by makes a call. A refusal by a limit that the question is not about is
// waited for, three times, and is none of the requests that it takes.
func (p *probe) by(c caller, e endpoint) exchange {
	x := p.raw(c, e)
	for range 3 {
		if x.status != http.StatusTooManyRequests {
			break
		}
		p.wait(retryAfter(x))
		p.allowed.Requests++
		x = p.raw(c, e)
	}
	return x
}

// call makes a call with the target's key.
func (p *probe) call(e endpoint) exchange { return p.by(p.caller, e) }

// wait lets d pass, within the budget.
func (p *probe) wait(d time.Duration) {
	switch {
	case p.unclear != nil:
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

// status is the answer where it is one of the statuses.
func (p *probe) status(x exchange, statuses ...int) any { return p.want(x, statuses...).status }

// either is true for the one status, false for the other.
func (p *probe) either(x exchange, yes, no int) bool { return p.want(x, yes, no).status == yes }

// want goes on only with one of the statuses. Any other leaves the question
// without an answer.
func (p *probe) want(x exchange, statuses ...int) exchange {
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

// anAgent is an agent of the target's key, created once.
func (p *probe) anAgent() string {
	if p.agent == "" {
		p.agent = p.text(p.want(p.call(createAgent), 200), "agent_id")
	}
	return p.agent
}

// another is a caller with another key.
func (p *probe) another() caller {
	if p.second.key == "" {
		p.second = p.caller
		p.second.key = p.target.SecondKey
		if p.second.key == "" {
			p.second.key = p.target.Abilities.IssueKeyOn("preview", true)
		}
	}
	return p.second
}

// keyless is a caller without a key.
func (p *probe) keyless() caller { return p.caller.with("Authorization", "") }

// nothingStored makes sure that the key has no provider key. It clears one
// only where the budget allows to set another.
func (p *probe) nothingStored() {
	x := p.want(p.call(getBYOK), 200)
	switch {
	case p.unclear != nil || x.at("byok") == nil:
	case p.budget.BYOKSets > 0:
		p.want(p.call(clearBYOK), 200)
	default:
		p.fail("needs a key without a stored provider key, or a BYOK set in the budget")
	}
}

// make makes n calls that are answered with status.
func (p *probe) make(n int, c caller, e endpoint, status int) {
	for range n {
		p.want(p.raw(c, e), status)
	}
}

// until makes calls until one is refused by a limit, at most most, and returns
// how many went through and the refusal.
func (p *probe) until(c caller, most int, e endpoint) (passed int, refused exchange) {
	for passed = range most {
		if refused = p.raw(c, e); refused.status == http.StatusTooManyRequests || p.unclear != nil {
			return passed, refused
		}
		p.want(refused, 200)
	}
	p.fail("no clear answer: no limit within %d calls", most)
	return most, refused
}
