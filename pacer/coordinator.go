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
	// holds it calls the engine.
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

// refusedLocked closes the local gate at once, so that further refusals of the same limit are
// not reported as new.
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

// reportLocked applies a change to the ledger of a process on its own. Else it leaves it to
// the next step.
func (c *coordinator) reportLocked(now time.Duration, change func(*ledger)) {
	if c.onItsOwnLocked(now) {
		change(c.hereLocked(now))
		return
	}
	c.reports = append(c.reports, change)
	c.startStepLocked()
}

// startStepLocked has the engine take a step, unless one is under way: then another one
// follows it.
func (c *coordinator) startStepLocked() {
	if c.stepping || len(c.reports)+len(c.questions) == 0 {
		return
	}
	c.stepping = true
	c.engine.Go(func() error {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.stepping = false
			c.startStepLocked()
		}()
		c.step()
		return nil
	})
}

// step is some work on the way to the shared ledger.
type step struct {
	ledger       // a copy of this process's; with a state of the store once that is loaded
	reports      []func(*ledger)
	questions    []question
	turns        []turn // their answers
	key, version string // of the store's value; no key: the store is not tried
	offset       int64  // what the store's time is ahead of the pacer's
	lost         bool   // the state begins afresh, though it was there before
}

// step takes the reports and the questions to the ledger. The lock is free while the store
// works and while the user's logger writes.
func (c *coordinator) step() {
	now := c.engine.Now()
	s := c.beginStep(now)
	err := c.share(s, now)
	answers, wasDown, processes := c.endStep(s, now, err)
	switch {
	case err != nil && !wasDown:
		c.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int("processes", processes), slog.String("error", printable.Line(err.Error(), 256)))
	case err == nil && wasDown:
		c.logger.Info("agentmessaging pacer's store answers again")
	}
	if err == nil && s.lost {
		c.logger.Warn("agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its clock was set back")
	}
	for i, answer := range answers {
		c.engine.Answer(s.questions[i].Class, answer)
	}
}

// beginStep takes what there is to do.
func (c *coordinator) beginStep(now time.Duration) *step {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &step{ledger: c.ledger, reports: c.reports, questions: c.questions, turns: make([]turn, len(c.questions))}
	c.reports, c.questions = nil, nil
	if !c.onItsOwnLocked(now) {
		s.key, c.peers.retryAt = c.keyLocked(), now+storeRetry
	}
	return s
}

// apply makes the changes, and answers the questions.
func (s *step) apply(l *ledger) {
	for _, change := range s.reports {
		change(l)
	}
	for i, q := range s.questions {
		s.turns[i] = l.ask(keyOf(q.Class), q.waiting)
	}
}

const (
	storeWait = 250 * time.Millisecond
	mostTries = 20
	setBack   = 5 * second
)

// share loads, changes and swaps the state, and again if another process was quicker.
func (c *coordinator) share(s *step, now time.Duration) error {
	if s.key == "" {
		return errors.New("it failed a moment ago")
	}
	began := time.Now()
	for range mostTries {
		if err := c.load(s, now+time.Since(began)); err != nil {
			return err
		}
		s.apply(&s.ledger)
		var swapped bool
		longest := slices.MaxFunc(s.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).Window
		err := bounded(func(ctx context.Context) (err error) {
			swapped, err = c.store.Swap(ctx, s.key, s.version, s.encode(), 2*longest+time.Hour)
			return err
		})
		if err != nil || swapped {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(c.took/2+1)) * time.Microsecond)
	}
	return errors.New("too many processes change the value at once")
}

// load reads the store's state and adds this process as a member. If this process
// counted calls elsewhere (alone on its share, or under other limits), load adds them.
func (c *coordinator) load(s *step, now time.Duration) error {
	began := time.Now()
	var value []byte
	var at time.Time
	err := bounded(func(ctx context.Context) (err error) {
		if value, s.version, at, err = c.store.Load(ctx, s.key); err == nil && at.IsZero() {
			err = errors.New("the store does not say what time it is")
		}
		s.state = decode(value, len(s.rules))
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
	s.lost = false
	if s.state == nil || at.UnixMicro() < s.Now-setBack {
		s.state, s.lost = newState(s.rules, at.UnixMicro()), len(value) > 0 || p.seen == s.key
	}
	s.at(at.UnixMicro())
	s.offset, s.took, s.calls, s.peersUnknown = s.Now-now.Microseconds()-took/2, max(claimAhead.Microseconds()/6, c.took), 1, false
	s.Members[s.member] = s.Now
	maps.DeleteFunc(s.Members, func(_, seen int64) bool { return seen < s.Now-memberFor })
	if p.down && s.last(nothing).Opens == 0 { // others may still be on their shares
		s.shut(nothing, s.Now+returnHold, "")
	}
	if p.down || s.lost || p.seen != "" && p.seen != s.key {
		s.join(c.hereLocked(now))
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

// endStep goes on from the state that the store has taken or, if it has not, from this
// process's.
func (c *coordinator) endStep(s *step, now time.Duration, err error) (answers []quota.Answer, wasDown bool, processes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.peers
	if wasDown = p.down; err != nil {
		if !wasDown {
			c.shareOutLocked(now)
		}
		s.apply(c.hereLocked(now))
	} else {
		p.offset, p.down, p.since, p.seen = s.offset, false, time.Time{}, s.key
		if s.key == c.keyLocked() { // else SetLimits came in between
			c.ledger.state = s.state
		}
	}
	for i, q := range s.questions {
		answers = append(answers, c.answerLocked(now, keyOf(q.Class), s.turns[i]))
	}
	return answers, wasDown, len(c.ledger.Members)
}

// shareOutLocked makes the state this process's share: each call now counts once per known
// process, and the first goes when this process's ticket was due. A process that knows of
// no other begins with a part, and finds its share by refusals.
func (c *coordinator) shareOutLocked(now time.Duration) {
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
