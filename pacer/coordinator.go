package pacer

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// coordinator is the quota.Rule of a pacer. Without a store that answers it asks its own
// ledger, at once. Otherwise reports and questions wait for the next step, which changes
// the ledger that all processes share.
type coordinator struct {
	store  Store // nil: this process is alone
	apiKey func() string
	logger *slog.Logger
	engine *quota.Engine
	took   int64 // microseconds of a call of the store, on average; for steps alone

	// mu guards what follows. Ask and Done take it under the engine's lock, so nobody who
	// holds it calls the engine, but for Go.
	mu        sync.Mutex
	ledger    ledger // this process's, or what it saw in the store last
	peers     peers
	reports   []func(*ledger)
	questions []question
	stepping  bool                 // a step is under way
	refusing  map[costSet]refusals // since a call with these costs last passed
}

// question is what a queue of the engine asks.
type question struct {
	quota.Class
	waiting int64
}

// refusals are those of one kind of call, one after the other.
type refusals struct {
	since time.Duration // the first
	// backoff is the least time in microseconds for which the next one closes the
	// gate. It doubles up to quota.MostBackoff: a service that refuses for ever is not
	// asked for ever.
	backoff int64
}

// begin sets up an unused ledger.
func (c *coordinator) begin(now time.Duration, rules []rule) {
	c.ledger = ledger{state: newState(rules, now.Microseconds()), rules: rules, member: rand.Int64()}
	if c.store == nil {
		c.peers = peers{down: true, retryAt: math.MaxInt64}
		c.ledger.Members[c.ledger.member] = c.ledger.Now
	}
}

// setRules reports false where the rules are the same.
func (c *coordinator) setRules(now time.Duration, rules []rule) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(rules, c.ledger.rules) {
		return false
	}
	old := c.hereLocked(now)
	l := ledger{state: newState(rules, old.Now), rules: rules, calls: 1}
	l.join(old)
	l.Members = old.Members
	c.ledger.state, c.ledger.rules = l.state, rules
	clear(c.refusing)
	c.hereLocked(now).reopen()
	c.reportLocked(now, (*ledger).reopen)
	return true
}

// hereLocked is the ledger as this process knows it, at a time.
func (c *coordinator) hereLocked(now time.Duration) *ledger {
	l := &c.ledger
	l.at(now.Microseconds() + c.peers.offset)
	l.calls, l.peersUnknown = 1, len(l.Members) == 0
	if c.peers.down {
		l.calls = max(1, int64(len(l.Members)))
	}
	return l
}

// Sort of quota.Rule: calls that spend the same limits with the same priority wait in
// one queue. False where no limit counts the call, and nothing like it was refused.
func (c *coordinator) Sort(ctx context.Context, w *quota.Waiter) bool {
	costs := costsOf(w.Endpoint, w.SetsBYOK)
	w.Class = quota.Class{ID: int(costs), Batch: ctx.Value(priorityKey{}) == PriorityBatch}
	w.Tenant, _ = ctx.Value(tenantKey{}).(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := slices.ContainsFunc(c.ledger.rules, func(r rule) bool { return r.counts&costs != 0 })
	return counted || c.ledger.last(costs).Until > 0
}

func keyOf(class quota.Class) queueKey { return queueKey{costSet(class.ID), class.Batch} }

func (c *coordinator) onItsOwnLocked(now time.Duration) bool {
	return c.peers.down && now < c.peers.retryAt
}

// Ask of quota.Rule.
func (c *coordinator) Ask(now time.Duration, first *quota.Waiter, waiting int) quota.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(first.Class)
	if waiting == 0 {
		return c.answerLocked(now, key, c.hereLocked(now).earliest(key.Costs, new([maxLimits]int64)))
	}
	if c.onItsOwnLocked(now) {
		return c.answerLocked(now, key, c.hereLocked(now).ask(key, int64(waiting)))
	}
	if !slices.ContainsFunc(c.questions, func(q question) bool { return q.Class == first.Class }) {
		c.questions = append(c.questions, question{first.Class, int64(waiting)})
	}
	c.startStepLocked()
	return quota.Answer{Again: quota.Later}
}

// answerLocked puts a turn into the engine's words and time.
func (c *coordinator) answerLocked(now time.Duration, key queueKey, t turn) quota.Answer {
	here := func(at int64) time.Duration { return time.Duration(at-c.peers.offset) * time.Microsecond }
	a := quota.Answer{
		Opens: here(t.opens), Turn: here(t.due), Gap: time.Duration(t.gap) * time.Microsecond,
		Key: t.key, RefusedSince: c.refusing[key.Costs].since,
	}
	for _, at := range t.grants {
		a.Grants = append(a.Grants, quota.Grant{At: here(at), Mark: at, ReportSuccess: a.RefusedSince > 0})
	}
	a.Again = min(a.Turn-claimAhead*7/8, now+longestSleep) // the two clocks are compared with an error
	if c.peers.down {
		a.Again = min(a.Turn, c.peers.retryAt, now+longestSleep)
	}
	return a
}

// longestSleep is how long a process waits before it asks anew: others may have opened a
// limit early.
const longestSleep = 10 * time.Minute

// Done of quota.Rule.
func (c *coordinator) Done(now time.Duration, w *quota.Waiter, o quota.Outcome) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(w.Class)
	granted, has := w.Grant.Mark.(int64)
	switch {
	case o.Refused:
		return c.refusedLocked(now, key.Costs, granted, o)
	case o.Sent:
		delete(c.refusing, key.Costs)
	case has:
		c.reportLocked(now, func(l *ledger) { l.giveBack(key.Costs, granted) })
	case slices.ContainsFunc(c.ledger.Tickets, ticket{queueKey: key, Member: c.ledger.member}.same):
		c.reportLocked(now, func(l *ledger) { l.withdraw(key) })
	}
	return false
}

// refusedLocked closes the local gate at once, so that further refusals of the same limit
// are not reported as new.
func (c *coordinator) refusedLocked(now time.Duration, costs costSet, granted int64, o quota.Outcome) (news bool) {
	l, r := c.hereLocked(now), c.refusing[costs]
	if r.since == 0 {
		r.since = now
	}
	wait := max(o.RetryAfter, quota.LeastClosed).Microseconds()
	shut := max(wait, r.backoff)
	if news = l.Now+wait-max(l.Now, l.last(costs).Until) >= second; news {
		l.shut(costs, l.Now+shut, o.LimitKey)
		r.backoff = min(max(second, 2*r.backoff), quota.MostBackoff.Microseconds())
	}
	c.refusing[costs] = r
	c.reportLocked(now, func(l *ledger) {
		l.shut(costs, l.Now+shut, o.LimitKey)
		l.refused(costs, granted, wait)
	})
	return news
}

// reportLocked applies a change to the ledger of a process on its own. Else it leaves it
// to the next step.
func (c *coordinator) reportLocked(now time.Duration, change func(*ledger)) {
	if c.onItsOwnLocked(now) {
		change(c.hereLocked(now))
		return
	}
	c.reports = append(c.reports, change)
	c.startStepLocked()
}

// costsOf returns the operations that an attempt counts as.
func costsOf(endpoint *spec.Endpoint, setsBYOK bool) (costs costSet) {
	for i, c := range counted {
		if endpoint.Counts(spec.Counted(c), setsBYOK) {
			costs |= 1 << i
		}
	}
	if costs == nothing {
		return uncounted
	}
	return costs
}
