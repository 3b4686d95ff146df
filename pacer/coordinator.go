package pacer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
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

	// mu guards what follows. Ask and Done take it under the engine's lock, so nobody who
	// holds it calls the engine.
	mu       sync.Mutex
	ledger   ledger // this process's, or what it saw in the store last
	peers    peers
	reports  []func(*ledger)      // for the next step
	refusing map[costSet]refusals // since a call with these costs last passed
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
	old := c.hereLocked(now)
	l := ledger{state: newState(rules, old.Now), rules: rules, calls: 1}
	l.join(old)
	l.Members = old.Members
	c.ledger.state, c.ledger.rules = l.state, rules
	clear(c.refusing)
	c.hereLocked(now).reopen()
	return true, c.reportLocked(now, (*ledger).reopen)
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
	var got turn
	ask := func(l *ledger) { got = l.ask(key, int64(waiting)) }
	if !c.onItsOwnLocked(now) {
		return quota.Answer{Step: func() quota.Answer {
			now := c.step(ask)
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.answerLocked(now, key, got)
		}}
	}
	ask(c.hereLocked(now))
	return c.answerLocked(now, key, got)
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
func (c *coordinator) Done(now time.Duration, w *quota.Waiter, o quota.Outcome) (changed, news bool, step func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(w.Class)
	granted, has := w.Grant.Mark.(int64)
	switch {
	case o.Refused:
		news, step = c.refusedLocked(now, key.Costs, granted, o)
		return true, news, step
	case o.Sent:
		delete(c.refusing, key.Costs)
	case has:
		return true, false, c.reportLocked(now, func(l *ledger) { l.giveBack(key.Costs, granted) })
	case slices.ContainsFunc(c.ledger.Tickets, ticket{queueKey: key, Member: c.ledger.member}.same):
		return false, false, c.reportLocked(now, func(l *ledger) { l.withdraw(key) })
	}
	return false, false, nil
}

// refusedLocked closes the local gate at once, so that further refusals of the same limit are
// not reported as new.
func (c *coordinator) refusedLocked(now time.Duration, costs costSet, granted int64, o quota.Outcome) (news bool, step func()) {
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
	return news, c.reportLocked(now, func(l *ledger) {
		l.shut(costs, l.Now+shut, o.LimitKey)
		l.refused(costs, granted, wait)
	})
}

// reportLocked applies a change to the ledger of a process on its own. Else it returns the step
// that does, for which the caller does not wait.
func (c *coordinator) reportLocked(now time.Duration, change func(*ledger)) (step func()) {
	if c.onItsOwnLocked(now) {
		change(c.hereLocked(now))
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
	c.hereLocked(now).apply(changes)
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
	if len(changes) == 0 || c.onItsOwnLocked(now) {
		return changes, nil
	}
	c.peers.retryAt = now + storeRetry
	return changes, &loaded{ledger: c.ledger, key: c.keyLocked()}
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

const (
	storeWait = 250 * time.Millisecond
	mostTries = 20
	setBack   = 5 * second
)

// loaded is a state of the store, which a step changes and swaps.
type loaded struct {
	ledger
	key, version string
	offset       int64 // what its time is ahead of the pacer's
	lost         bool  // it begins afresh, though it was there before
}

// stepShared loads, changes and swaps the state, and again if another process was quicker.
func (c *coordinator) stepShared(now time.Duration, l *loaded, changes []func(*ledger)) error {
	began := time.Now()
	for range mostTries {
		if err := c.load(l, now+time.Since(began)); err != nil {
			return err
		}
		l.apply(changes)
		var swapped bool
		longest := slices.MaxFunc(l.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).Window
		err := bounded(func(ctx context.Context) (err error) {
			swapped, err = c.store.Swap(ctx, l.key, l.version, l.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil {
			return err
		}
		if swapped {
			c.storeAnswered(l)
			return nil
		}
		time.Sleep(time.Duration(rand.Int64N(c.took/2+1)) * time.Microsecond)
	}
	return errors.New("too many processes change the value at once")
}

// load reads the store's state and adds this process as a member. If this process
// counted calls elsewhere (alone on its share, or under other limits), load adds them.
func (c *coordinator) load(l *loaded, now time.Duration) error {
	began := time.Now()
	var value []byte
	var at time.Time
	err := bounded(func(ctx context.Context) (err error) {
		if value, l.version, at, err = c.store.Load(ctx, l.key); err == nil && at.IsZero() {
			err = errors.New("the store does not say what time it is")
		}
		l.state = decode(value, len(l.rules))
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began).Microseconds()
	c.took += (2*took - c.took) / 4
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.peers
	l.lost = false
	if l.state == nil || at.UnixMicro() < l.Now-setBack {
		l.state, l.lost = newState(l.rules, at.UnixMicro()), len(value) > 0 || p.seen == l.key
	}
	l.at(at.UnixMicro())
	l.offset, l.took, l.calls, l.peersUnknown = l.Now-now.Microseconds()-took/2, max(claimAhead.Microseconds()/6, c.took), 1, false
	l.Members[l.member] = l.Now
	maps.DeleteFunc(l.Members, func(_, seen int64) bool { return seen < l.Now-memberFor })
	if p.down && l.last(nothing).Opens == 0 { // others may still be on their shares
		l.shut(nothing, l.Now+returnHold, "")
	}
	if p.down || l.lost || p.seen != "" && p.seen != l.key {
		l.join(c.hereLocked(now))
	}
	return nil
}

// bounded waits for a call of the store for at most storeWait, even if the store
// ignores its context. A panic of the store is an error.
func bounded(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	first := make(chan error, 2)
	go func() { first <- quota.Protect(func() error { return call(ctx) }) }()
	context.AfterFunc(ctx, func() { first <- ctx.Err() })
	return <-first
}

// peers is the pacer's knowledge of the store and the other processes.
type peers struct {
	offset int64 // what the state's clock is ahead of the pacer's

	down    bool          // there is no store, or it does not answer: the state is this process's share
	since   time.Time     // when it went down; zero: it answers, or there is none
	retryAt time.Duration // when a step tries it again
	seen    string        // the key of the value that was seen last
}

const (
	claimAhead = 250 * time.Millisecond // before its turn a process asks for it, which hides the way to the store
	storeRetry = 1700 * time.Millisecond
	returnHold = 2 * second // the last process has found the store by then
	lonelyPart = 0.25       // of Max, for a process that knows of no other
)

// storeAnswered goes on from the state that the store has taken, and logs.
func (c *coordinator) storeAnswered(l *loaded) {
	if c.adopt(l) {
		c.logger.Info("agentmessaging pacer's store answers again")
	}
	if l.lost {
		c.logger.Warn("agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its clock was set back")
	}
}

// adopt makes the state that the store has taken this process's. It reports whether the
// store was down before.
func (c *coordinator) adopt(l *loaded) (wasDown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.peers
	wasDown = p.down
	p.offset, p.down, p.since, p.seen = l.offset, false, time.Time{}, l.key
	if l.key == c.keyLocked() { // else SetLimits came in between
		c.ledger.state = l.state
	}
	return wasDown
}

// storeFailed goes on with a share of the limits.
func (c *coordinator) storeFailed(now time.Duration, err error) {
	if processes, first := c.shareOut(now); first {
		c.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int("processes", processes), slog.String("error", printable.Line(err.Error(), 256)))
	}
}

// shareOut makes the state this process's share: each call now counts once
// per known process, and the first goes when this process's ticket was due. A
// process that knows of no other begins with a part, and finds its share by
// refusals. first is false if the store was down already.
func (c *coordinator) shareOut(now time.Duration) (processes int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers.down {
		return 0, false
	}
	l := c.hereLocked(now)
	for b := range l.budgets(everything) {
		switch {
		case !b.paced():
		case l.peersUnknown:
			b.Level, b.Quiet = lonelyPart, l.Now
		default:
			b.Due = max(b.Due, l.turnOf(b.counts, int64(len(l.Members))*b.pace))
		}
	}
	l.Tickets, l.Fresh = nil, l.Now
	c.peers.down, c.peers.since = true, time.Now()
	return len(l.Members), true
}
