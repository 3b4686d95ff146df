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

// coordinator is the quota.Rule of a pacer: it takes steps, each a change of the ledger
// that all processes share or, without a store that answers, of this process's own.
type coordinator struct {
	store  Store // nil: this process is alone
	apiKey func() string
	logger *slog.Logger
	clock  func() time.Duration // the engine's
	took   int64                // microseconds of a call of the store, on average; for steps alone

	mu       sync.Mutex // guards what follows
	ledger   ledger     // this process's, or what it saw in the store last
	peers    peers
	reports  []func(*ledger)      // for the next step
	refusing map[costSet]refusals // of calls of which none has passed since
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

// setRules reports false where the rules are the same, and returns the step that remains.
func (c *coordinator) setRules(now time.Duration, rules []rule) (changed bool, step func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(rules, c.ledger.rules) {
		return false, nil
	}
	old := c.here(now)
	l := ledger{state: newState(rules, old.Now), rules: rules, calls: 1}
	l.join(old)
	l.Members = old.Members
	c.ledger.state, c.ledger.rules = l.state, rules
	clear(c.refusing)
	c.here(now).reopen()
	return true, c.report(now, (*ledger).reopen)
}

// here is the ledger as this process knows it, at a time.
func (c *coordinator) here(now time.Duration) *ledger {
	l := &c.ledger
	l.at(now.Microseconds() + c.peers.offset)
	l.calls, l.lonely = 1, len(l.Members) == 0
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
	return counted || c.ledger.last(costs).Told > 0
}

func keyOf(class quota.Class) queueKey { return queueKey{costSet(class.ID), class.Batch} }

func (c *coordinator) onItsOwn(now time.Duration) bool { return c.peers.down && now < c.peers.retryAt }

// Ask of quota.Rule.
func (c *coordinator) Ask(now time.Duration, first *quota.Waiter, waiting int) quota.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(first.Class)
	if waiting == 0 {
		return c.answer(now, key, c.here(now).outlook(key.Kinds))
	}
	var got turn
	ask := func(l *ledger) { got = l.ask(key, int64(waiting)) }
	if !c.onItsOwn(now) {
		return quota.Answer{Step: func() quota.Answer {
			now := c.step(ask)
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.answer(now, key, got)
		}}
	}
	ask(c.here(now))
	return c.answer(now, key, got)
}

// answer puts a turn into the engine's words and time.
func (c *coordinator) answer(now time.Duration, key queueKey, t turn) quota.Answer {
	here := func(at int64) time.Duration { return time.Duration(at-c.peers.offset) * time.Microsecond }
	a := quota.Answer{
		Opens: here(t.opens), Turn: here(t.due), Gap: time.Duration(t.gap) * time.Microsecond,
		Key: t.key, RefusedSince: c.refusing[key.Kinds].since,
	}
	for _, at := range t.grants {
		a.Grants = append(a.Grants, quota.Grant{At: here(at), Mark: at, Watched: a.RefusedSince > 0})
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
func (c *coordinator) Done(now time.Duration, w *quota.Waiter, o quota.Outcome) (changed, news bool, step func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(w.Class)
	granted, has := w.Grant.Mark.(int64)
	switch {
	case o.Refused:
		news, step = c.refused(now, key.Kinds, granted, o)
		return true, news, step
	case o.Sent:
		delete(c.refusing, key.Kinds)
	case has:
		return true, false, c.report(now, func(l *ledger) { l.giveBack(key.Kinds, granted) })
	case slices.ContainsFunc(c.ledger.Tickets, ticket{queueKey: key, Member: c.ledger.member}.same):
		return false, false, c.report(now, func(l *ledger) { l.withdraw(key) })
	}
	return false, false, nil
}

// refused closes the local gate at once, so that further refusals of the same limit are
// not reported as new.
func (c *coordinator) refused(now time.Duration, costs costSet, granted int64, o quota.Outcome) (news bool, step func()) {
	l, r := c.here(now), c.refusing[costs]
	if r.since == 0 {
		r.since = now
	}
	wait := max(o.RetryAfter.Microseconds(), second)
	shut := max(wait, r.backoff)
	if news = l.Now+wait-max(l.Now, l.last(costs).Told) >= second; news {
		l.shut(costs, l.Now+shut, o.LimitKey)
		r.backoff = min(max(second, 2*r.backoff), quota.MostBackoff.Microseconds())
	}
	c.refusing[costs] = r
	return news, c.report(now, func(l *ledger) {
		l.shut(costs, l.Now+shut, o.LimitKey)
		l.refused(costs, granted, wait)
	})
}

// report applies a change to the ledger of a process on its own. Else it returns the step
// that does, for which the caller does not wait.
func (c *coordinator) report(now time.Duration, change func(*ledger)) (step func()) {
	if c.onItsOwn(now) {
		change(c.here(now))
		return nil
	}
	c.reports = append(c.reports, change)
	return func() { c.step(nil) }
}

// step applies the reports and f, if any, to the shared ledger, and does so again if
// another process has swapped it meanwhile. Without a store that answers, it applies
// them to the ledger of this process. It returns the time at which it began. The engine
// takes one step at a time. The lock is free while the store works and while the user's
// logger writes.
func (c *coordinator) step(f func(*ledger)) (now time.Duration) {
	now = c.clock()
	changes, l := c.startStep(now, f)
	if l != nil {
		err := c.stepShared(now, l, changes)
		if err == nil {
			return now
		}
		c.storeFailed(now, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here(now).apply(changes)
	return now
}

// startStep takes what was reported. If the step needs the store, it also returns a
// ledger for its state.
func (c *coordinator) startStep(now time.Duration, f func(*ledger)) (changes []func(*ledger), shared *loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes, c.reports = c.reports, nil
	if f != nil {
		changes = append(changes, f)
	}
	if len(changes) == 0 || c.onItsOwn(now) {
		return changes, nil
	}
	c.peers.retryAt = now + storeRetry
	return changes, &loaded{ledger: c.ledger, key: c.key()}
}

func (l *ledger) apply(changes []func(*ledger)) {
	for _, change := range changes {
		change(l)
	}
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
