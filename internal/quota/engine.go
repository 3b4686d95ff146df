// Package quota holds back the calls that the service would refuse (interface 8).
//
// An [Engine] keeps the waiting calls, in one queue for each class of calls. It knows no
// limits. A [Rule] decides when the next call of a class may go, and learns how each
// attempt ended. [CoolDown] is the default rule of a client: it learns from refusals. The
// rule of package pacer knows the limits, and holds calls back before a refusal.
//
// A call passes through the engine like this. Acquire asks the rule for the call's class.
// enterLocked puts the call into the queue of that class, and serveLocked asks the rule about
// every queue that is due. A call that may not go at once blocks in Acquire, until the
// engine grants it or turns it away. After the attempt, Done passes the outcome to the rule and
// serves again, because the outcome may let other calls go.
//
// While calls wait, one goroutine sleeps until the next queue is due (the alarm), and then
// serves. A rule that asks a store uses a goroutine that Background starts. That goroutine
// hands its result to the engine through Update and DeliverLocked.
package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Class names calls that spend the same limits and wait in one queue.
type Class struct {
	ID    int  // the rule's own number: a place in CoolDown.classes, or the set of limits that the pacer counts
	Batch bool // batch calls wait in their own queue; the rule decides whether interactive calls go first
}

// A Rule decides when calls go. All times are the engine's, which never go back. The engine
// holds its lock when it calls a method other than Classify, so the lock guards the rule's
// state too. Methods return at once. They do not call the client. Of the engine they call
// only Background, and methods whose names end in Locked.
type Rule interface {
	// Classify sets the waiter's Class and Tenant. It reports whether a limit may hold the
	// call back at the moment.
	Classify(ctx context.Context, w *Waiter) bool
	// AskLocked grants some of the waiting calls of a class, or says when to ask again. first
	// is the next call in the queue. If waiting is 0, it grants nothing, and only says how
	// long first would wait, as far as the rule knows without a store.
	//
	// A slow rule returns a Schedule that only names the limit, with AskAgain Never. It works
	// on a goroutine that it starts with Engine.Background, and passes the result to
	// Engine.DeliverLocked. The engine asks it again before that, if there was a reset. It sets
	// no alarm: while the rule works, a sleep would make a fake's clock run ahead.
	AskLocked(now time.Duration, first *Waiter, waiting int) Schedule
	// DoneLocked learns how a granted attempt ended. The engine then asks again about all
	// classes. An attempt that was not sent gives its grant back. closedLonger is true if a
	// refusal closed a limit, or keeps it closed for at least a second longer.
	DoneLocked(now time.Duration, w *Waiter, o Outcome) (closedLonger bool)
	// QueueEmptiedLocked learns that the last waiting call of a class has left, or had left
	// before a Schedule was delivered. The engine does not ask about the class again until
	// another call enters.
	QueueEmptiedLocked(now time.Duration, class Class)
}

// Schedule is a Rule's answer about a class. The zero Schedule means "not known": the
// engine asks the rule at once, and turns no call away until it has the rule's answer.
type Schedule struct {
	Grants       []Grant       // for the first calls in the queue
	AskAgain     time.Duration // when to ask about the calls that are left; a time that has passed: at once
	Opens        time.Duration // when the limit opens: no call of the class goes earlier; 0: it is open
	Turn         time.Duration // when the next call goes, never before Opens; 0: not known
	Gap          time.Duration // between one turn and the next, after Turn
	Estimated    bool          // Turn and Gap are estimates: they are no reason to turn a call away
	RefusedSince time.Duration // since when the service has refused every call, although the limit opened; 0: calls have passed
	RefusedUntil time.Duration // the last time at which the limit was due to open, but let no call through
	LimitKey     string        // the limit_key of the limit that the calls wait for
	TraceID      string        // the trace_id of the refusal that closed the limit; empty if not known
}

// Never is later than every other time.
const Never = 1 << 62

// A refusal comes within answerWait, while a reply may take minutes:
//   - an attempt that took longer, and got no answer, was not refused,
//   - at an open gate of the cool-down, the next call waits at most this long for the answers to
//     the calls before it, unless the gap is longer,
//   - a lone caller never waits longer than this there.
const answerWait = time.Second

// Grant allows one attempt to be sent.
type Grant struct {
	At            time.Duration // when it may be sent
	ReportSuccess bool          // the rule learns from a success too, so the engine passes it to Rule.DoneLocked
	Mark          any           // the rule's own, for DoneLocked: the *ramp of a CoolDown, or the time of the grant by the pacer's clock
}

// The default waits of agentmessaging.RetryPolicy, which documents them.
const (
	DefaultMinWait = 500 * time.Millisecond
	DefaultMaxWait = 90 * time.Second
)

// Waiter is an engine's view of a call. The same Waiter serves all attempts of a call.
type Waiter struct {
	// Set by the caller.
	Endpoint *spec.Endpoint
	SetsBYOK bool          // the call spends the limit on BYOK sets
	MaxWait  time.Duration // if the limit is closed for longer, the call is turned away
	Patience time.Duration // the call is turned away if the limit has let nobody through for this long and is closed again; 0: no bound
	Clock    Clock         // the client's clock: the call waits by it
	OnWait   func(Wait)    // called when the call waits and the length of the wait is known, and again if it turns out longer; may be nil

	// Set by Rule.Classify.
	Class  Class
	Tenant string // tenants take turns: see queue

	// Set by the engine.
	Unserved     bool          // the last attempt was refused or not sent: the call enters the queue before new calls
	limitedSince time.Duration // when the call first entered a queue or asked for a Forecast; Patience counts from then
	acquisition
}

// acquisition is what the last Acquire has set, for one attempt of the call.
type acquisition struct {
	Grant    Grant
	Waited   time.Duration // in the queue, and from the grant to Grant.At
	LimitKey string        // the limit_key of the limit that Acquire waited for
	TraceID  string        // the trace_id of the answer that closed that limit; empty if not known

	entered   time.Duration // when the call entered; 0: Classify found nothing that could hold it back
	deadline  time.Duration // of the context, in the engine's time; Never: it has none
	untilSend time.Duration // from the grant to Grant.At
	round     int           // the call's round; see queue
	queued    bool          // the call is in its queue
	granted   bool          // the call has a Grant, and Done has not been called yet
	waitEnded chan struct{} // closed when the wait ends; nil: the call did not wait
	err       error         // why the wait failed; set before waitEnded is closed
	forecasts chan Wait     // for OnWait, with room for one; nil: there is no OnWait, or the call did not wait
	expected  time.Duration // when the wait ends, by the newest forecast; 0: there was none
}

// Wait is a forecast for a call that waits.
type Wait struct {
	LimitKey string        // empty if not known
	Place    int           // in the queue of its class, from 1
	Expected time.Duration // an estimate of the rest of the wait
}

// Outcome is how a granted attempt ended. The zero Outcome means that it was not sent, so that
// its grant is given back.
type Outcome struct {
	Refused    bool // the service answered 429
	Sent       bool // the service may have seen it
	Unanswered bool // no answer came; Done clears it if the attempt took answerWait, because a refusal would have come by then
	LimitKey   string
	TraceID    string        // the trace_id of the refusal
	RetryAfter time.Duration // 0: the answer did not say
}

// TurnedAway is the error of a call that would wait in vain: its turn comes after its deadline,
// its limit stays closed for longer than MaxWait, or its Patience is over. In this package only
// the service refuses calls; the engine turns them away.
type TurnedAway struct {
	LimitKey   string
	TraceID    string        // the trace_id of the answer that closed the limit
	RetryAfter time.Duration // until the call's turn
	TooLate    bool          // the reason is MaxWait or the deadline; false: it is Patience
}

// Error names the limit and the wait, for callers that do not read the fields.
func (t *TurnedAway) Error() string {
	return fmt.Sprintf("limit %q is closed for %s", t.LimitKey, t.RetryAfter)
}

// An Engine holds the waiting calls of one API key. While no call waits, the engine keeps no
// timer and no goroutine. So several synctest bubbles can share it, as long as all calls
// that wait at the same time are in one bubble.
type Engine struct {
	rule Rule

	mu          sync.Mutex    // guards the fields below, and the rule's state
	clock       Clock         // by which the alarm sleeps; see enterLocked
	last        time.Time     // the clock's last reading
	elapsed     time.Duration // the engine's time: begins at an hour, moves on with the clock, never goes back
	queues      []*queue      // in the order of their last grants; serveLocked begins with the first
	alarm       time.Duration // when the next queue is due; Never: no queue is, until a call enters, leaves or is done
	cancelAlarm func()        // ends the alarm's goroutine
}

// queue holds the waiting calls of a class in the order in which they go, and the rule's last
// Schedule for them. Tenants take turns: in each round, one call of every tenant goes.
type queue struct {
	class    Class
	schedule Schedule
	calls    []*Waiter      // ordered by round
	round    int            // the round of the call that went last
	tenants  map[string]int // how many calls of each tenant wait; without those that have none
	idle     bool           // no call waits, and the rule knows it
}

// NewEngine returns an engine that reads the clocks of its calls.
func NewEngine(rule Rule) *Engine {
	// The engine's time begins at an hour, because a time of 0 means "not set".
	return &Engine{rule: rule, clock: RealClock{}, elapsed: time.Hour, alarm: Never, cancelAlarm: func() {}}
}

// Acquire waits until the attempt may be sent. Its error is a *TurnedAway, the error of ctx, or
// an error that says how the clock or the rule failed. If Acquire fails, the call leaves
// the queue or gives its grant back, even when OnWait or the clock panics.
func (e *Engine) Acquire(ctx context.Context, w *Waiter) (err error) {
	w.acquisition = acquisition{}
	if !e.rule.Classify(ctx, w) {
		return nil
	}
	passed := false
	defer func() {
		if !passed {
			e.Done(w, Outcome{})
		}
	}()
	e.withLock(w.Clock, func(now time.Duration) { e.enterLocked(ctx, w, now) })
	if err = w.await(ctx); err == nil && w.untilSend > 0 {
		err = w.Clock.Sleep(ctx, w.untilSend)
	}
	passed = err == nil
	return err
}

// await returns when the call's wait in its queue ends. Until then it passes the forecasts to
// OnWait.
func (w *Waiter) await(ctx context.Context) error {
	for w.waitEnded != nil { // nil: granted or turned away as it entered
		select {
		case wait := <-w.forecasts:
			w.OnWait(wait)
		case <-w.waitEnded:
			return cmp.Or(ctx.Err(), w.err)
		case <-ctx.Done(): // the call may still be in the queue: Done takes it out
			return ctx.Err()
		}
	}
	return cmp.Or(w.err, ctx.Err())
}

// enterLocked puts a call into the queue of its class, and serves.
func (e *Engine) enterLocked(ctx context.Context, w *Waiter, now time.Duration) {
	q := e.queueLocked(w.Class)
	w.startWait(ctx, now)
	ahead := q.push(w)
	q.idle = false
	if turnedAway := q.schedule.turnAway(w, ahead, now); turnedAway != nil {
		q.leave(w, now, turnedAway)
		return
	}
	if w.Unserved {
		q.schedule.AskAgain = 0 // ask the rule again: it does not know of this call, which may now be the first of the queue
	}
	// The alarm may sleep by the clock of another call, which may stand still. So it starts again
	// by the clock of this call, unless it sleeps by the real clock.
	if e.alarm == Never || e.clock != (RealClock{}) {
		e.cancelAlarm()
		e.clock, e.alarm = w.Clock, Never
	}
	e.serveLocked()
	if !w.queued {
		return
	}
	w.waitEnded = make(chan struct{})
	if w.OnWait != nil {
		w.forecasts = make(chan Wait, 1)
		q.sendForecast(w, ahead, now)
	}
}

// queueLocked returns the queue of a class. A new queue goes before the others.
func (e *Engine) queueLocked(class Class) *queue {
	i := slices.IndexFunc(e.queues, func(q *queue) bool { return q.class == class })
	if i < 0 {
		i, e.queues = 0, slices.Insert(e.queues, 0, &queue{class: class, tenants: map[string]int{}})
	}
	return e.queues[i]
}

// push puts a call into its place, and returns how many calls go before it. A new call joins
// the round after the current one, or after the last call of its tenant if that is later. It
// never joins the current round: a stream of new tenants could then keep all others waiting.
// An Unserved call joins the current round, because it has waited before.
//
// For example, tenant a has the calls a1, a2 and a3 in a queue of round 0, and b enters with b1:
// a1 and b1 are in round 1, a2 in round 2, and a3 in round 3. They go in the order a1, b1, a2, a3.
func (q *queue) push(w *Waiter) (before int) {
	w.round = q.round
	if !w.Unserved {
		w.round = q.lastRound(w.Tenant) + 1
	}
	q.tenants[w.Tenant]++
	before = sort.Search(len(q.calls), func(i int) bool { return q.calls[i].round > w.round })
	q.calls = slices.Insert(q.calls, before, w)
	w.queued = true
	return before
}

// lastRound returns the round of the tenant's last call, or the current round if none waits.
func (q *queue) lastRound(tenant string) int {
	for i := len(q.calls) - 1; i >= 0 && q.tenants[tenant] > 0; i-- {
		if q.calls[i].Tenant == tenant {
			return q.calls[i].round
		}
	}
	return q.round
}

// sendForecast sends a call its forecast, in place of one that it has not read, if the next
// turn is known. Another forecast follows only if the wait turns out longer by at least a second
// and by at least a quarter of the rest. ahead is the number of calls in front of the call.
func (q *queue) sendForecast(w *Waiter, ahead int, now time.Duration) {
	s, before := &q.schedule, w.expected
	end := max(now, s.Turn+time.Duration(ahead)*s.Gap)
	if s.Turn == 0 || before > 0 && end < before+max(time.Second, (before-now)/4) {
		return
	}
	select {
	case <-w.forecasts:
	default:
	}
	w.forecasts <- Wait{LimitKey: s.LimitKey, Place: ahead + 1, Expected: end - now}
	w.expected = end
}

// setAlarmLocked starts a goroutine that serves at the given time. It replaces the last alarm.
func (e *Engine) setAlarmLocked(at time.Duration) {
	if at == e.alarm {
		return
	}
	e.cancelAlarm()
	if e.alarm = at; at == Never {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	clock, sleep := e.clock, at-e.elapsed
	e.cancelAlarm = cancel
	e.Background(func() error {
		if err := clock.Sleep(ctx, sleep); err != nil {
			return err
		}
		e.withLock(clock, func(now time.Duration) {
			if ctx.Err() == nil { // no other alarm has replaced this one
				e.alarm, e.elapsed = Never, max(now, at) // the engine's time moves on even if the clock stands still, else no queue would ever be due
			}
		})
		return nil
	}, func(err error) error {
		defer cancel() // before the synctest bubble ends: a call in another bubble must not cancel the context
		if err == nil || ctx.Err() != nil {
			return nil
		}
		e.alarm = Never
		return fmt.Errorf("the clock does not wait: %w", err)
	})
}

// startWait sets when the call entered and how long it can wait.
func (w *Waiter) startWait(ctx context.Context, now time.Duration) {
	w.entered, w.deadline = now, Never
	w.MaxWait, w.Patience = min(w.MaxWait, Never/2), min(w.Patience, Never/2) // a time plus either must not overflow
	w.limitedSince = cmp.Or(w.limitedSince, now)
	if deadline, has := ctx.Deadline(); has {
		w.deadline = now + min(time.Until(deadline), Never/2)
	}
}

// Forecast returns how long a call would wait, and a TurnedAway if it would wait in vain. It
// returns 0 and nil if the call would not wait, or if the rule does not know. The call must
// not be in a queue: its last attempt is done, or it has a grant.
func (e *Engine) Forecast(ctx context.Context, w *Waiter) (wait time.Duration, turnedAway *TurnedAway) {
	asks := *w
	e.withLock(w.Clock, func(now time.Duration) {
		asks.startWait(ctx, now)
		s := e.rule.AskLocked(now, &asks, 0)
		wait, turnedAway = max(0, s.Turn-now), s.turnAway(&asks, 0, now)
	})
	w.limitedSince = asks.limitedSince
	return wait, turnedAway
}

// Done ends an attempt: it passes the outcome to the rule, or gives the grant back if the attempt
// was not sent. Acquire calls it too if it fails; then Done takes the call out of its queue.
// closedLonger is true if a refusal closed a limit, or keeps it closed for at least a second
// longer.
func (e *Engine) Done(w *Waiter, o Outcome) (closedLonger bool) {
	w.Unserved = o.Refused || !o.Sent
	// Take no lock if nothing could hold the call back, or if its success teaches the rule
	// nothing. Nearly every call ends here.
	if !o.Refused && (w.entered == 0 || o.Sent && !w.Grant.ReportSuccess) {
		w.granted = false // else a second Done could give the grant back
		return false
	}
	e.withLock(w.Clock, func(now time.Duration) {
		if w.queued {
			e.queueLocked(w.Class).leave(w, now, nil)
		}
		w.Waited = min(w.Waited, now-w.entered) // less if ctx has ended before Grant.At
		if w.granted || o.Refused {
			w.granted = false
			o.Unanswered = o.Unanswered && now-w.Grant.At < answerWait
			e.ResetSchedulesLocked()
			closedLonger = e.rule.DoneLocked(now, w, o)
		}
	})
	return closedLonger
}

// Update runs f with the lock, and then serves.
func (e *Engine) Update(f func(now time.Duration)) { e.withLock(nil, f) }

// withLock reads the clock (nil: the engine's), runs f with the lock, at the engine's time, and
// then serves.
//
// The clock is read without the lock, because it may be the user's: its Now may block, or make a
// call. If Now panics, f still runs, at the engine's last time.
func (e *Engine) withLock(clock Clock, f func(now time.Duration)) {
	e.mu.Lock()
	clock, seen := cmp.Or(clock, e.clock), e.last
	e.mu.Unlock()
	reading := seen // stays if the clock panics
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.moveOnLocked(reading, seen)
		f(e.elapsed)
		e.serveLocked()
	}()
	reading = clock.Now()
}

// maxJump is longer than programs wait. A reading that is further ahead of the last one comes
// from another clock: a synctest bubble begins in the year 2000, and real time may follow it.
const maxJump = 10 * 365 * 24 * time.Hour

// moveOnLocked moves the engine's time on to a reading of the clock. seen was the last reading
// before this one began. If the clock was set back, or is not the one that was read before, the
// engine's time does not change now, and moves on with the clock from here.
func (e *Engine) moveOnLocked(reading, seen time.Time) {
	switch d := reading.Sub(e.last); {
	case d > 0 && d <= maxJump:
		e.elapsed += d
		e.last = reading
	case d > maxJump, d < -time.Second && reading.Before(seen): // the clock was set, or is another one
		e.last = reading
	} // otherwise another call has read a later time meanwhile, or its clock is ahead of this one by at most a second
}

// ResetSchedulesLocked resets all schedules, so that the engine asks the rule again. Call it
// only in a method of the Rule, or in a function that Update runs.
func (e *Engine) ResetSchedulesLocked() {
	for _, q := range e.queues {
		q.schedule = Schedule{}
	}
}

// WaitingLocked counts the waiting calls of the classes for which in returns true.
func (e *Engine) WaitingLocked(in func(Class) bool) (n int) {
	for _, q := range e.queues {
		if in(q.class) {
			n += len(q.calls)
		}
	}
	return n
}

// serveLocked asks the rule about all queues that are due, and sets the alarm for the next
// one. If several are due, it begins with the queue whose last grant is the oldest: a single
// call of one endpoint does not wait for a batch on another endpoint.
func (e *Engine) serveLocked() {
	for {
		now, alarm := e.elapsed, time.Duration(Never)
		var due *queue
		for _, q := range e.queues {
			switch {
			case q.idle:
			case len(q.calls) == 0:
				q.schedule, q.idle = Schedule{}, true
				e.rule.QueueEmptiedLocked(now, q.class)
			case q.schedule.AskAgain > now:
				alarm = min(alarm, q.schedule.AskAgain)
			case due == nil:
				due = q
			}
		}
		if due == nil {
			e.setAlarmLocked(alarm)
			return
		}
		calls := due.calls
		e.DeliverLocked(due.class, e.rule.AskLocked(now, calls[0], len(calls)))
	}
}

// minAskAgain is the shortest time until the engine asks a rule again that granted nothing.
// Without it, a rule that always asks to be asked at once would keep a processor busy.
const minAskAgain = time.Millisecond / 10

// DeliverLocked takes a rule's Schedule for a class. It grants calls, turns away calls that can
// no longer go in time, and sends the others a forecast of their wait. A slow rule calls
// DeliverLocked in a function that Update runs.
func (e *Engine) DeliverLocked(class Class, s Schedule) {
	q := e.queueLocked(class)
	now, granted := e.elapsed, len(s.Grants)
	if granted > 0 {
		e.queues = append(slices.DeleteFunc(e.queues, func(other *queue) bool { return other == q }), q)
	} else {
		s.AskAgain = max(s.AskAgain, now+minAskAgain)
	}
	// Look at the calls that are left only if their turns now come later, or were not known.
	movedBack := s.earliest(0) > q.schedule.earliest(granted)
	q.schedule, q.idle = s, false
	for _, g := range s.Grants {
		if len(q.calls) == 0 { // the call has left since the rule was asked: give its grant back
			e.ResetSchedulesLocked()
			e.rule.DoneLocked(now, &Waiter{Class: class, acquisition: acquisition{Grant: g}}, Outcome{})
			continue
		}
		w := q.calls[0]
		w.Grant, w.granted, w.untilSend, q.round = g, true, g.At-now, w.round
		q.leave(w, max(now, g.At), nil) // do not use w after this: its call goes on, on another goroutine
	}
	for ahead := 0; movedBack && ahead < len(q.calls); {
		w := q.calls[ahead]
		if turnedAway := q.schedule.turnAway(w, ahead, now); turnedAway != nil {
			q.leave(w, now, turnedAway)
			continue
		}
		if w.forecasts != nil {
			q.sendForecast(w, ahead, now)
		}
		ahead++
	}
}

// earliest returns when a call with ahead calls in front of it can go at the earliest.
func (s *Schedule) earliest(ahead int) time.Duration {
	if s.Estimated {
		return s.Opens
	}
	return s.Turn + time.Duration(ahead)*s.Gap
}

// turnAway returns why a call cannot go in time. It returns nil if the call can, or may.
func (s *Schedule) turnAway(w *Waiter, ahead int, now time.Duration) *TurnedAway {
	turn, closed := max(now, s.earliest(ahead)), s.Opens-now
	tooLate := closed > w.MaxWait || turn > now && turn >= w.deadline
	// The time counts until RefusedUntil, not until now: while the program was frozen, nobody tried.
	inVain := closed > 0 && w.Patience > 0 && s.RefusedUntil-max(s.RefusedSince, w.limitedSince) >= w.Patience
	if !tooLate && !inVain {
		return nil
	}
	return &TurnedAway{LimitKey: s.LimitKey, TraceID: s.TraceID, RetryAfter: turn - now, TooLate: tooLate}
}

// leave takes a call out of the queue and ends its wait. at is when the call goes or fails, and
// err why it fails. If the call had its tenant's last round, that round is free for the tenant's
// next call.
func (q *queue) leave(w *Waiter, at time.Duration, err error) {
	// A search, because 100,000 calls may leave at once.
	i := sort.Search(len(q.calls), func(i int) bool { return q.calls[i].round >= w.round })
	if i += slices.Index(q.calls[i:], w); i == 0 && len(q.calls) > 1 {
		q.calls[0], q.calls = nil, q.calls[1:] // the usual case in a long queue: no other call moves
	} else {
		q.calls = slices.Delete(q.calls, i, i+1)
	}
	w.queued = false
	if q.tenants[w.Tenant]--; q.tenants[w.Tenant] == 0 {
		delete(q.tenants, w.Tenant)
	}
	w.LimitKey, w.TraceID = q.schedule.LimitKey, q.schedule.TraceID
	w.Waited, w.err = at-w.entered, err
	if w.waitEnded != nil {
		close(w.waitEnded)
	}
}

// Background runs work on a goroutine without the lock, and then finish with the lock. finish
// gets the error of work, as from Go. If finish returns an error, all calls that wait now fail.
func (e *Engine) Background(work func() error, finish func(error) error) {
	Go(work, func(failure error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		err := finish(failure)
		if err == nil {
			return
		}
		e.ResetSchedulesLocked() // DeliverLocked may never be called for a queue: ask again
		for _, q := range e.queues {
			for len(q.calls) > 0 {
				q.leave(q.calls[0], e.elapsed, err)
			}
		}
	})
}

// Go runs work on a goroutine, and then done with the error of work. A panic of work is an
// ErrPanic. Use Go for the user's code (a store, a logger), whose panic would end the program.
func Go(work func() error, done func(error)) {
	go func() {
		err := ErrPanic // stays if work ends its goroutine, by runtime.Goexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v", ErrPanic, r)
			}
			done(err)
		}()
		err = work()
	}()
}

// ErrPanic is the error of a call in which the user's code panicked: a transport, an
// observer, a limiter, a store.
var ErrPanic = errors.New("a part of the program panicked")

// An EngineHolder gives a client the engine of a limiter that embeds it, such as a Pacer. The
// client uses that engine directly, in place of its cool-down.
type EngineHolder struct {
	limiter any
	engine  *Engine
}

// NewEngineHolder returns the EngineHolder to embed in limiter.
func NewEngineHolder(limiter any, e *Engine) EngineHolder { return EngineHolder{limiter, e} }

// holder is unexported, so that only a type that embeds an EngineHolder has the method.
func (h EngineHolder) holder() EngineHolder { return h }

// EngineOf returns the engine of a limiter that embeds an [EngineHolder], or nil. If a user's type
// embeds that limiter, its own Acquire must not be bypassed. So the holder knows for which limiter
// it was made, and EngineOf is nil for the user's type.
func EngineOf(limiter any) *Engine {
	if h, has := limiter.(interface{ holder() EngineHolder }); has && h.holder().limiter == limiter {
		return h.holder().engine
	}
	return nil
}

// A Clock tells the time. Its Sleep lasts for d, or until ctx ends.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// RealClock reads package time: the clock of this machine, or of the synctest bubble.
type RealClock struct{}

// Now is time.Now.
func (RealClock) Now() time.Time { return time.Now() }

// Sleep waits for d, and returns the error of ctx if ctx ends first.
func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
