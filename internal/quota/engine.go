// Package quota holds calls back that the service would refuse (interface 8).
//
// An [Engine] keeps those who wait: a queue for each class of calls. It counts no
// limits. A [Rule] says when the next call of a class may go, and learns how each one
// ended. [CoolDown] is the rule of every client that is given no other; the one of
// package pacer acts before a refusal.
//
// The way of a call: Acquire has the rule sort it into a class. enter puts it into the
// queue, and serveLocked asks the rule for all queues that are due. If the call may not
// go at once, it rests in wait until its grant, or a refusal, wakes it. Done has the rule
// learn how the attempt ended, and serves again: the rule may now answer something else.
//
// No goroutine serves the queues: one of the calls that rest, the sleeper, sleeps until
// the next queue is due, and then serves. A rule that asks a store does so on a goroutine
// of Go, which uses Do and Deliver.
package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Class names calls that spend the same limits and wait in one queue.
type Class struct {
	ID    int
	Batch bool // else interactive, for Waiting; the rule decides who goes first
}

// A Rule decides when calls go. Times are by the engine's clock, which never goes
// back. The engine's lock guards the rule: all methods but Sort are called under it. They
// return at once, and call neither the engine (but for Go) nor the client.
type Rule interface {
	// Sort sets the waiter's Class and Tenant. False: nothing can hold it back.
	Sort(ctx context.Context, w *Waiter) bool
	// Ask grants some of the waiting calls of a class, or says when to ask again. first
	// is the next of them. If waiting is 0, the question is only how long first would
	// wait, as far as the rule knows at once. A slow rule returns the Again Later. It then
	// works on a goroutine that it starts with Engine.Go, and passes the result to
	// Engine.Deliver. Until then the last Schedule holds.
	Ask(now time.Duration, first *Waiter, waiting int) Schedule
	// Done learns how a granted attempt ended, and the engine asks anew for all classes.
	// An attempt that was not sent gives its grant back. news: a refusal closed a limit,
	// or kept it closed for a second longer or more.
	Done(now time.Duration, w *Waiter, o Outcome) (news bool)
	// Idle learns that nobody waits any more in a class for which it was to be asked
	// again.
	Idle(now time.Duration, class Class)
}

// Schedule is what a Rule says about a class. The zero Schedule is out of date: the engine
// asks at once, and refuses nobody until then.
type Schedule struct {
	Grants       []Grant       // for the first in the queue
	Again        time.Duration // when to ask for the others; or Later
	Opens        time.Duration // no call of the class goes before this time; 0: the limit is open
	Turn         time.Duration // when the next one goes; 0: not known
	Gap          time.Duration // between the turns after that
	Estimated    bool          // Turn and Gap are estimates: nobody is refused because of them
	RefusedSince time.Duration // since when the service has refused all, though the limit has opened; 0: it has not
	RefusedUntil time.Duration // when the last opening in which it did was due
	Key          string        // the limit_key of the limit that they wait for
	TraceID      string        // of the refusal that closed it; empty if not known
}

// Moments beyond all others.
const (
	never = 1 << 62
	Later = never - 1 // the Again of a Schedule that is still to come
)

// Grant is the leave to send one attempt.
type Grant struct {
	At            time.Duration // when it may be sent
	ReportSuccess bool          // the rule learns something if the service accepts it
	Mark          any           // by which the rule knows it again
}

// Waiter is the part of a call that an engine keeps. The same Waiter serves all
// attempts of a call.
type Waiter struct {
	Endpoint *spec.Endpoint
	SetsBYOK bool
	MaxWait  time.Duration // a limit that is closed for longer refuses the call
	Patience time.Duration // a limit that has let nobody through for this long, and closes again, refuses it; 0: no bound
	Clock    Clock         // nil: the engine's
	OnWait   func(Wait)    // is called when a wait has begun and its length is known; may be nil

	Class        Class
	Tenant       string        // tenants take turns
	Refused      bool          // by the service: it goes before those who came later
	limitedSince time.Duration // it first met a limit
	attempt
}

// attempt is what is known of the last Acquire.
type attempt struct {
	Grant  Grant
	Waited time.Duration
	Limit  string // the limit_key of the limit that Acquire waited for

	entered    time.Duration
	deadline   time.Duration
	untilGrant time.Duration // before the Grant's time
	round      int
	place      int                // in the line when it entered, from 1
	waits      bool               // in the line
	granted    bool               // it has a Grant, whose end is not reported yet
	rests      bool               // until wake is called, or until the alarm if it is the sleeper
	wake       context.CancelFunc // ends its rest
	wakesAt    time.Duration      // the alarm, when it fell asleep
	informed   bool               // OnWait was called with the length of this wait
	err        error
}

// Wait is what is known when a wait begins.
type Wait struct {
	Limit    string        // limit_key; empty if not known
	Place    int           // in the line of its class, from 1
	Expected time.Duration // how long it will probably take
}

// Outcome is how a granted attempt ended.
type Outcome struct {
	Refused    bool // with status 429
	Sent       bool // the service may have seen it
	LimitKey   string
	TraceID    string        // of the refusal
	RetryAfter time.Duration // 0: the answer did not say
}

// Refusal is the error of a call for which it is no use to wait.
type Refusal struct {
	LimitKey   string
	TraceID    string        // of the answer that closed the limit
	RetryAfter time.Duration // until its turn
	Patience   time.Duration // if over 0, the reason: nobody got through for this long
}

// Error is for callers that do not look at the fields.
func (r *Refusal) Error() string {
	return fmt.Sprintf("limit %s is closed for %s", r.LimitKey, r.RetryAfter)
}

// An Engine holds the calls of one API key. It keeps no timer and no goroutine
// while nobody waits, so that several synctest bubbles can share it, as long as
// those who wait at the same time are in one bubble. A nil Engine holds back nobody.
type Engine struct {
	rule Rule

	mu      sync.Mutex // guards what follows
	clock   Clock
	last    time.Time     // the clock's latest reading
	elapsed time.Duration // by the clock, an hour when the engine was made; never goes back
	rewound func()        // the clock was set back
	queues  map[Class]*queue
	grants  int64
	sleeper *Waiter       // the one of those who rest that sleeps until the alarm; nil: nobody rests
	alarm   time.Duration // when the next queue is due; never: not before something happens
}

// queue holds the waiting calls of a class.
type queue struct {
	Class
	Schedule
	line
	// uninformed has the resting calls whose OnWait waits for a forecast, and what wakes
	// them. A call that has left meanwhile is not touched: it may wait again.
	uninformed map[*Waiter]context.CancelFunc
	lastGrant  int64 // the number of its last grant, of all
	asking     bool  // the rule will deliver a Schedule
	stale      bool  // something has changed since the rule was asked
}

// NewEngine returns an engine that waits by clock, or by real time if it is nil.
func NewEngine(rule Rule, clock Clock) *Engine {
	if clock == nil {
		clock = RealClock{}
	}
	// The engine's time begins at an hour: a moment of 0 means "not set".
	return &Engine{rule: rule, clock: clock, elapsed: time.Hour, queues: map[Class]*queue{}}
}

// Acquire waits until the attempt may be sent. The error is a *Refusal, the
// context's, or what broke the clock or the rule. A call that leaves for any reason, a
// panic of OnWait or of the clock included, leaves the line or gives its grant back.
func (e *Engine) Acquire(ctx context.Context, w *Waiter) error {
	w.attempt = attempt{}
	if e == nil || !e.rule.Sort(ctx, w) {
		return nil
	}
	passed := false
	defer func() {
		if !passed {
			e.leave(w, Outcome{})
		}
	}()
	var err error
	if e.enter(ctx, w) {
		err = e.wait(ctx, w)
	}
	if err = cmp.Or(err, w.err, ctx.Err()); err == nil && w.untilGrant > 0 {
		err = w.Clock.Sleep(ctx, w.untilGrant)
	}
	passed = err == nil
	return err
}

// enter puts a call into its queue, and serves. It reports whether the call has to wait.
func (e *Engine) enter(ctx context.Context, w *Waiter) (waits bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queues[w.Class]
	if q == nil {
		q = &queue{Class: w.Class, line: line{tenants: map[string]tenant{}}, uninformed: map[*Waiter]context.CancelFunc{}}
		e.queues[w.Class] = q
	}
	if w.Clock == nil {
		w.Clock = e.clock
	}
	e.clock = w.Clock
	now := e.startWaitLocked(ctx, w)
	ahead := q.push(w)
	w.place = ahead + 1
	if refusal := q.refusal(w, ahead, now); refusal != nil {
		e.refuseLocked(q, w, refusal)
		return false
	}
	if w.Refused {
		q.Again = 0 // when the rule was asked last, this call did not wait yet
	}
	e.serveLocked()
	return w.waits
}

// wait lets a call rest until it may go or is refused.
func (e *Engine) wait(ctx context.Context, w *Waiter) error {
	for slept := false; ; {
		rest, sleep, forecast := e.beginRest(ctx, w, slept)
		switch slept = false; {
		case forecast != nil:
			w.OnWait(*forecast)
		case rest == nil:
			return nil
		case sleep == 0:
			<-rest.Done()
		default:
			err := w.Clock.Sleep(rest, sleep)
			if slept = rest.Err() == nil; slept && err != nil {
				return fmt.Errorf("the clock does not wait: %w", err)
			}
		}
	}
}

// beginRest returns a context that ends when the call is woken; nil if it waits no longer,
// or has a forecast to tell first, which may take long.
//
// The call becomes the sleeper if nobody is. So does one that brings a clock, when it
// first rests: the clock of another may stand still. A sleeper that has slept serves. A
// sleep that nobody cut short has taken its time, even if the clock stands still.
func (e *Engine) beginRest(ctx context.Context, w *Waiter, slept bool) (rest context.Context, sleep time.Duration, forecast *Wait) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, q, rested := e.nowLocked(), e.queues[w.Class], w.rests
	if slept {
		e.elapsed = max(now, w.wakesAt)
		e.serveLocked()
		now = e.elapsed
	}
	if err := ctx.Err(); err != nil && w.waits {
		e.refuseLocked(q, w, err)
	}
	if w.wake(); !w.waits {
		return nil, 0, nil
	}
	uninformed := w.OnWait != nil && !w.informed
	if uninformed && q.Turn > 0 {
		w.informed, w.rests = true, false
		e.wakeAtLocked(e.alarm) // another one may have to sleep
		return nil, 0, &Wait{Limit: q.Key, Place: w.place, Expected: max(0, q.Turn+time.Duration(w.place-1)*q.Gap-now)}
	}
	w.rests = true
	if rest, w.wake = context.WithCancel(ctx); uninformed {
		q.uninformed[w] = w.wake
	}
	if other := e.sleeper; other == nil || !rested && w.Clock != (RealClock{}) {
		if e.sleeper = w; other != nil {
			other.wake()
		}
	}
	if e.sleeper == w && e.alarm < never {
		w.wakesAt = e.alarm
		sleep = max(1, w.wakesAt-now)
	}
	return rest, sleep, nil
}

// wakeAtLocked sets the alarm. It wakes the sleeper, to sleep anew, or somebody to become
// the sleeper.
func (e *Engine) wakeAtLocked(at time.Duration) {
	sleeps := e.sleeper != nil && e.sleeper.rests
	if sleeps && at == e.alarm {
		return
	}
	if e.alarm = at; !sleeps {
		e.sleeper = nil
		for _, q := range e.queues {
			if i := slices.IndexFunc(q.calls, func(w *Waiter) bool { return w.rests }); i >= 0 {
				e.sleeper = q.calls[i]
			}
		}
	}
	if e.sleeper != nil {
		e.sleeper.wake()
	}
}

// startWaitLocked notes when a call enters, and for how long it can wait.
func (e *Engine) startWaitLocked(ctx context.Context, w *Waiter) (now time.Duration) {
	now = e.nowLocked()
	w.entered, w.deadline, w.wake = now, never, func() {}
	w.MaxWait, w.Patience = min(w.MaxWait, never/2), min(w.Patience, never/2) // moments are added
	if w.limitedSince == 0 {
		w.limitedSince = now
	}
	if deadline, has := ctx.Deadline(); has {
		w.deadline = now + min(time.Until(deadline), never/2)
	}
	return now
}

// Forecast returns for how long the limit of a call is closed, and why it is no use
// for the call to wait; nil if it is. Both as far as they are known.
func (e *Engine) Forecast(ctx context.Context, w *Waiter) (time.Duration, *Refusal) {
	if !e.rule.Sort(ctx, w) {
		return 0, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.startWaitLocked(ctx, w)
	s := e.rule.Ask(now, w, 0)
	return max(0, s.Turn-now), s.refusal(w, 0, now)
}

// Done reports how an attempt ended that Acquire let pass, and whether that
// began a cool-down, or prolonged one by a second at least.
func (e *Engine) Done(w *Waiter, o Outcome) (news bool) {
	w.Refused = o.Refused
	// The rule learns nothing of a call that it did not hold back, or whose success is no
	// news. Then no lock is taken.
	if !o.Refused && (!w.granted || o.Sent && !w.Grant.ReportSuccess) {
		w.granted = false // a second report would give the grant back
		return false
	}
	return e.leave(w, o)
}

// leave takes a call out of the line, if it waits there, and has the rule learn how its
// attempt ended, if it was granted or refused.
func (e *Engine) leave(w *Waiter, o Outcome) (news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.waits {
		e.refuseLocked(e.queues[w.Class], w, nil)
	}
	if w.granted || o.Refused {
		w.granted = false
		e.Forget()
		news = e.rule.Done(e.nowLocked(), w, o)
	}
	e.serveLocked()
	return news
}

// Do runs f under the lock that guards the rule, and then serves.
func (e *Engine) Do(f func(now time.Duration)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.nowLocked())
	e.serveLocked()
}

// Forget makes all schedules out of date, those that are still to come too. It is for
// functions that Do runs.
func (e *Engine) Forget() {
	for _, q := range e.queues {
		q.Schedule, q.stale = Schedule{}, true
	}
}

// Waiting counts the waiting calls, interactive or batch.
func (e *Engine) Waiting(batch bool) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for class, q := range e.queues {
		if class.Batch == batch {
			n += q.waiting
		}
	}
	return n
}

// serveLocked asks the rule for all classes that are due, and sets the alarm for the next.
//
// Of several classes it asks for the one that was served the longest ago: a light user
// of one endpoint does not wait for a batch on another.
func (e *Engine) serveLocked() {
	for {
		now, until := e.nowLocked(), time.Duration(never)
		var due *queue
		for _, q := range e.queues {
			switch first := q.first(); {
			case q.asking, first == nil && q.Again == 0:
			case first == nil: // nobody waits any more
				q.Schedule = Schedule{}
				clear(q.uninformed)
				e.rule.Idle(now, q.Class)
			case q.Again > now:
				until = min(until, q.Again)
			case due == nil || q.lastGrant < due.lastGrant:
				due = q
			}
		}
		if due == nil {
			e.wakeAtLocked(until)
			return
		}
		due.stale = false
		s := e.rule.Ask(now, due.first(), due.waiting)
		if due.asking = s.Again == Later; !due.asking {
			e.Deliver(due.Class, s)
		}
	}
}

// leastAgain keeps a rule that grants nothing from being asked without a pause.
const leastAgain = time.Millisecond

// Deliver hands grants on, and refuses those who cannot go in time any more. It is for
// functions that Do runs on behalf of a slow rule.
func (e *Engine) Deliver(class Class, s Schedule) {
	q := e.queues[class]
	now, granted := e.nowLocked(), len(s.Grants)
	switch {
	case granted > 0:
		e.grants++
		q.lastGrant = e.grants
	case s.Again <= now:
		s.Again = now + leastAgain
	}
	if q.stale {
		s = Schedule{Grants: s.Grants, Key: s.Key} // it refuses nobody, and the rule is asked again
	}
	// Those who wait are looked at only if their turns come later than was known, by more
	// than half a gap: to look at 500 of them after each grant would be slow.
	later := s.earliest(0) > q.earliest(granted)+q.Gap/2
	for _, g := range s.Grants {
		if w := q.pop(); w == nil { // nobody waits for it any more
			e.Forget()
			e.rule.Done(now, &Waiter{Class: class, attempt: attempt{Grant: g}}, Outcome{})
		} else {
			w.Grant, w.granted, w.Limit, w.untilGrant = g, true, s.Key, g.At-now
			w.end(max(now, g.At), nil)
		}
	}
	if q.Schedule, q.asking = s, false; later {
		e.refuseLateLocked(q, now)
	}
	if q.Turn > 0 {
		for _, wake := range q.uninformed {
			wake()
		}
		clear(q.uninformed)
	}
}

// earliest is when a call can go at the earliest that has ahead calls in front of it.
func (s *Schedule) earliest(ahead int) time.Duration {
	if s.Estimated {
		return s.Opens
	}
	return max(s.Opens, s.Turn+time.Duration(ahead)*s.Gap)
}

// refusal returns why a call cannot go in time; nil if it can, as far as that is known.
func (s *Schedule) refusal(w *Waiter, ahead int, now time.Duration) *Refusal {
	turn, closed := max(now, s.earliest(ahead)), s.Opens-now
	var patience time.Duration
	switch {
	case closed > w.MaxWait, turn > now && turn >= w.deadline:
	// Until now would be too long: a program that was frozen has not asked meanwhile.
	case s.RefusedUntil > 0 && closed > 0 && w.Patience > 0 && s.RefusedUntil-max(s.RefusedSince, w.limitedSince) >= w.Patience:
		patience = w.Patience
	default:
		return nil
	}
	return &Refusal{LimitKey: s.Key, TraceID: s.TraceID, RetryAfter: max(1, turn-now), Patience: patience}
}

// refuseLateLocked refuses those who cannot go in time any more.
func (e *Engine) refuseLateLocked(q *queue, now time.Duration) {
	ahead := 0
	for _, w := range q.all() {
		if refusal := q.refusal(w, ahead, now); refusal != nil {
			e.refuseLocked(q, w, refusal)
		} else {
			ahead++
		}
	}
}

func (e *Engine) refuseLocked(q *queue, w *Waiter, err error) {
	q.remove(w)
	w.Limit = q.Key
	w.end(e.elapsed, err)
}

// end ends the wait of a call: it may go at that time, or has an error.
func (w *Waiter) end(at time.Duration, err error) {
	w.Waited, w.err, w.rests = at-w.entered, err, false
	w.wake()
}

// Go does what takes time without the lock. If it panics, which would end the program
// here, all waiting calls end.
func (e *Engine) Go(work func()) {
	go func() {
		err := Protect(func() error {
			work()
			return nil
		})
		if err == nil {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, q := range e.queues {
			q.Schedule, q.asking = Schedule{}, false // what the rule was to deliver may never come
			for _, w := range q.all() {
				e.refuseLocked(q, w, err)
			}
		}
	}()
}

// Protect turns a panic of a part that somebody else wrote into an error for
// those who wait: here it would end the program.
func Protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, r)
		}
	}()
	return f()
}

// ErrPanic is the error of calls in which a part of the program panicked that
// somebody else wrote.
var ErrPanic = errors.New("a part of the program panicked")

// A Holder is embedded in a limiter that waits by an engine. A client that is given the
// limiter uses the engine in place of its cool-down.
type Holder struct {
	limiter any
	engine  *Engine
}

// NewHolder is for the limiter in which it is embedded.
func NewHolder(limiter any, e *Engine) Holder { return Holder{limiter, e} }

// engineOf is found by EngineOf only: no package but this one can declare it.
func (h Holder) engineOf(limiter any) *Engine {
	if h.limiter != limiter { // a part of the user's that embeds the limiter, and may do something else
		return nil
	}
	return h.engine
}

// EngineOf returns the engine of a limiter with a [Holder]; nil if it has none.
func EngineOf(limiter any) *Engine {
	if h, has := limiter.(interface{ engineOf(limiter any) *Engine }); has {
		return h.engineOf(limiter)
	}
	return nil
}

// A Clock tells the time and waits for it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// RealClock is the time of this machine, or of the synctest bubble.
type RealClock struct{}

// Now is time.Now.
func (RealClock) Now() time.Time { return time.Now() }

// Sleep waits on a timer.
func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// nowLocked is what has passed by the clock. It never goes back: a clock that is set
// back goes on from there.
func (e *Engine) nowLocked() time.Duration {
	now := e.clock.Now()
	switch d := now.Sub(e.last); {
	case e.last.IsZero():
	case d > 0:
		e.elapsed += min(d, never/2)
	case d < -time.Second && e.rewound != nil:
		e.rewound()
	}
	e.last = now
	return e.elapsed
}
