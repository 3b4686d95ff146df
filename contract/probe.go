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

// probe makes the calls of Observe.
type probe struct {
	player
	ctx     context.Context
	o       *Observation
	budget  Spend
	spent   Spend
	allowed int   // what spent.Requests may reach before the current question ends
	gone    error // no further call is made
	silent  int   // calls in a row without an answer
	shown   exchange
	limit   int // of requests in a minute, once it is known
}

func (o *Observation) newProbe(ctx context.Context, target Target, budget Spend) *probe {
	if budget == (Spend{}) {
		budget = observeBudget
	}
	p := &probe{player: newPlayer(target), ctx: ctx, o: o, budget: budget}
	p.keys[another] = target.SecondKey
	return p
}

// unclear says why a question has no answer.
type unclear string

// fail leaves the question under way without an answer: find recovers.
func (p *probe) fail(format string, args ...any) { panic(unclear(fmt.Sprintf(format, args...))) }

// take takes a step, each call of which is answered as the step says. One call
// alone waits for a limit that it meets.
func (p *probe) take(st step) (last exchange) {
	if st.arrange != nil {
		st.arrange(&p.player)
	}
	p.wait(st.wait)
	for range st.n {
		if st.n == 1 {
			last = p.call(st)
		} else {
			last = p.raw(st)
		}
		p.want(last, st)
	}
	return last
}

// yes takes the step, and reports whether it is answered with the first status
// that it lists.
func (p *probe) yes(st step) bool { return p.take(st).status == st.statuses[0] }

// until makes calls until one is refused by a limit, at most most, and returns
// how many went through and the refusal.
func (p *probe) until(most int, st step) (passed int, refused exchange) {
	for passed = range most {
		if refused = p.raw(st); refused.status == http.StatusTooManyRequests {
			return passed, refused
		}
		p.want(refused, st)
	}
	p.fail("no clear answer: no limit within %d calls", most)
	return 0, exchange{}
}

// call makes one call of the step, with an agent that is created at need. Where a
// limit refuses it and the step lists no 429, call waits and repeats it, up to three
// times. These repeats do not count as requests of the question.
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
		p.allowed++
		x = p.raw(st)
	}
	return x
}

func (p *probe) agent(by who) {
	if p.agents[by] == "" {
		p.text(p.take(createAgent.is(200).by(by)), "agent_id")
	}
}

// raw makes one call, whatever is answered. The third in a row without an
// answer ends the run.
func (p *probe) raw(st step) exchange {
	switch most := p.budget; {
	case p.spent.Requests >= min(p.allowed, most.Requests):
		p.fail("no clear answer within the requests that it may take")
	case p.spent.Creations > most.Creations || p.spent.BYOKSets > most.BYOKSets || p.spent.WarmUps > most.WarmUps:
		p.fail("needs a larger budget: calls went through that should have been refused")
	}
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	x, err := p.play(ctx, st)
	if err != nil {
		p.spent.Requests++
		if p.silent++; p.silent == 3 {
			p.gone = errors.New("contract: the target does not answer")
		}
		p.fail("no clear answer: %s %s got none", st.e.method, st.e.path)
	}
	p.silent, p.shown = 0, x
	p.spent = p.spent.plus(cost(st.e, x.status))
	return x
}

// wait lets d pass, within the budget.
func (p *probe) wait(d time.Duration) {
	switch {
	case d == 0:
	case p.target.Abilities != nil:
		p.target.Abilities.Advance(d)
	case p.spent.Wait+d > p.budget.Wait:
		p.fail("needs %v of waiting, of %v that are left", d, p.budget.Wait-p.spent.Wait)
	default:
		p.spent.Wait += d
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
			p.fail("needs more time: %v", p.ctx.Err())
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

func (p *probe) want(x exchange, st step) {
	if !slices.Contains(st.statuses, x.status) {
		p.fail("no clear answer: %s %s answered %d", st.e.method, st.e.path, x.status)
	}
}

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
	if !plain.MatchString(text) || p.redact(text) != text {
		p.fail("no clear answer: %s of %s %s is no identifier", path, x.endpoint.method, x.endpoint.path)
	}
	return text
}

// nothingStored makes sure that the key has no provider key. It clears one
// only where the budget allows to set another.
func (p *probe) nothingStored() {
	switch x := p.take(getBYOK.is(200)); {
	case x.at("byok") == nil:
	case p.budget.BYOKSets > 0:
		p.take(clearBYOK.is(200))
	default:
		p.fail("needs a key without a stored provider key, or a BYOK set in the budget")
	}
}
