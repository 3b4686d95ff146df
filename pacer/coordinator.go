package pacer

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// coordinator is the quota.Rule of a pacer. Without a store, or while the store does not
// answer, the coordinator asks its own ledger at once. Otherwise it collects questions and
// changes. The next step takes them to the ledger that all processes share.
type coordinator struct {
	store  *boundedStore // nil: this process is alone
	apiKey func() string
	logger *slog.Logger
	engine *quota.Engine

	// The engine's lock guards the fields below. The methods of quota.Rule run with it, and
	// those whose names end in Locked. A step copies what it needs.
	ledger    ledger          // of this process; with a store it holds the state that the last step left there
	changes   []func(*ledger) // for the next step, such as refusals and calls that were not sent
	asking    []quota.Class   // the classes whose waiting calls the next step asks about
	stepping  bool            // a step is under way
	downSince time.Time       // since when the store does not answer, by the machine's clock; zero: it answers, or there is none
	retryAt   time.Duration   // when a step tries the store again
	lastKey   string          // the key that the last successful step used; empty: no step has succeeded
	offset    time.Duration   // how far the state's clock is ahead of the engine's time
	lostUntil time.Duration   // until then a lost state is not logged again: if clocks are too far apart, each step may lose it
}

// question asks the ledger about the waiting calls of a class.
type question struct {
	class   quota.Class
	waiting int64
	answer  quota.Schedule // of the step that asked; in the state's time
}

// setBoundsLocked replaces the limits of this process, and opens all gates, here and in the
// store.
func (c *coordinator) setBoundsLocked(now time.Duration, bounds []bound) {
	if slices.Equal(bounds, c.ledger.bounds) {
		return
	}
	c.engine.ResetSchedulesLocked()
	old := *c.ledgerAtLocked(now)
	c.ledger.state, c.ledger.bounds = newState(bounds, old.Now), bounds
	c.ledger.Members = old.Members
	c.ledger.merge(&old, false)
	c.ledger.reopen()
	c.changeLocked(now, (*ledger).reopen)
}

// ledgerAtLocked returns the ledger of this process, advanced to the given engine time.
func (c *coordinator) ledgerAtLocked(now time.Duration) *ledger {
	c.ledger.advance(now + c.offset)
	return &c.ledger
}

// Classify implements quota.Rule. Calls that spend the same limits with the same priority wait
// in one queue.
func (c *coordinator) Classify(ctx context.Context, w *quota.Waiter) bool {
	w.Class = quota.Class{ID: int(costsOf(w.Endpoint, w.SetsBYOK)), Batch: ctx.Value(priorityKey{}) == PriorityBatch}
	w.Tenant, _ = ctx.Value(tenantKey{}).(string)
	return true
}

// onShareLocked reports whether the process keeps to its share, because the store does not
// answer.
func (c *coordinator) onShareLocked() bool { return !c.downSince.IsZero() }

// usesOwnLedgerLocked reports whether the process decides by its own ledger: it has no store, or
// is on its share and not yet due to try the store again.
func (c *coordinator) usesOwnLedgerLocked(now time.Duration) bool {
	return (c.store == nil || c.onShareLocked()) && now < c.retryAt
}

// AskLocked implements quota.Rule. It does not ask the store about calls that no limit counts.
func (c *coordinator) AskLocked(now time.Duration, first *quota.Waiter, waiting int) quota.Schedule {
	class, k, l := first.Class, costSet(first.Class.ID), c.ledgerAtLocked(now)
	if waiting > 0 && (c.usesOwnLedgerLocked(now) || l.unlimited(k)) {
		return c.scheduleLocked(now, class, l.grant(class, int64(waiting)))
	}
	s, _ := l.earliest(k, nil)
	switch {
	case waiting == 0:
		return c.scheduleLocked(now, class, s)
	case !slices.Contains(c.asking, class):
		c.asking = append(c.asking, class)
		c.startStepLocked()
	}
	return quota.Schedule{AskAgain: quota.Never, LimitKey: s.LimitKey, TraceID: s.TraceID}
}

// scheduleLocked translates the ledger's Schedule into the engine's time, and says since when
// the service refuses every call, and when to ask again.
func (c *coordinator) scheduleLocked(now time.Duration, class quota.Class, s quota.Schedule) quota.Schedule {
	s.Opens -= c.offset
	s.Turn -= c.offset
	for i := range s.Grants { // made for this answer; Mark stays in the state's time, in which refused and giveBack read it
		s.Grants[i].At -= c.offset
	}
	if g := c.ledger.Gates[costSet(class.ID)]; g.RefusedSince > 0 {
		s.RefusedSince, s.RefusedUntil = max(1, g.RefusedSince-c.offset), g.LastOpened-c.offset
	}
	// Ask a little later than claimAhead before the turn. offset is not exact, and the ledger
	// grants no call that asks earlier: the engine would have to ask again.
	s.AskAgain = min(s.Turn-claimAhead*7/8, now+longestSleep)
	if c.usesOwnLedgerLocked(now) {
		s.AskAgain = min(s.Turn, c.retryAt, now+longestSleep)
	}
	return s
}

// longestSleep bounds the time until a process asks again, because a SetLimits in another
// process may have opened a limit early.
const longestSleep = 10 * time.Minute

// DoneLocked implements quota.Rule.
func (c *coordinator) DoneLocked(now time.Duration, w *quota.Waiter, o quota.Outcome) (closedLonger bool) {
	costs := costSet(w.Class.ID)
	granted, _ := w.Grant.Mark.(time.Duration)
	switch {
	case o.Refused:
		o.RetryAfter = min(max(o.RetryAfter, quota.MinClosed), retryafter.Longest)
		// Close this process's gate now, so that of several refusals that come together only the
		// first reports closedLonger. If the change reaches the same ledger, it changes nothing
		// more there.
		closedLonger = c.ledgerAtLocked(now).closeGate(costs, o)
		c.changeLocked(now, func(l *ledger) { l.refused(costs, granted, o) })
	case o.Sent && !o.Unanswered:
		answered := c.ledgerAtLocked(now).Now
		c.changeLocked(now, func(l *ledger) { l.accepted(costs, granted, answered) })
	case !o.Sent:
		c.changeLocked(now, func(l *ledger) { l.giveBack(costs, granted) })
	}
	return closedLonger
}

// QueueEmptiedLocked implements quota.Rule.
func (c *coordinator) QueueEmptiedLocked(now time.Duration, class quota.Class) {
	if slices.ContainsFunc(c.ledger.Tickets, ticket{Class: class, Member: c.ledger.member}.same) {
		c.changeLocked(now, func(l *ledger) { l.withdraw(class) })
	}
}

// changeLocked changes the ledger at once if the process decides by its own ledger. Otherwise
// the next step makes the change.
func (c *coordinator) changeLocked(now time.Duration, change func(*ledger)) {
	if c.usesOwnLedgerLocked(now) {
		change(c.ledgerAtLocked(now))
		return
	}
	c.changes = append(c.changes, change)
	c.startStepLocked()
}

// costsOf returns the operations that an attempt at the endpoint counts as.
func costsOf(endpoint *spec.Endpoint, setsBYOK bool) (costs costSet) {
	for i, c := range operations {
		if endpoint.Counts(spec.Counted(c), setsBYOK) {
			costs |= 1 << i
		}
	}
	return cmp.Or(costs, uncounted)
}
