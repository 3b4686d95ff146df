// Package quota holds calls back that the service would refuse (interface 8).
//
// An [Engine] keeps those who wait: a queue for each class of calls. It counts no
// limits. A [Rule] says when the next call of a class may go, and learns how each one
// ended. [CoolDown] is the rule of every client that is given no other; the one of package
// pacer acts before a refusal.
//
// The way of a call: Acquire has the rule sort it into a class. enter puts it into the
// queue, and serveLocked asks the rule for all queues that are due. If the call may not go
// at once, await waits for its grant, or for a refusal. Done has the rule learn how the
// attempt ended, and serves again: the rule may now answer something else.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Class names calls that spend the same limits and wait in one queue.
type Class struct {
	ID    int
	Batch bool // interactive calls are asked for first
}

// A Rule decides when calls go. Times are by the engine's clock, which never goes
// back. The engine calls Ask, Done and Clock.Now under its lock, so they return at once,
// and call neither the engine nor the client. It calls Sort without.
type Rule interface {
	// Sort sets the waiter's Class and Tenant. False: nothing can hold it back.
	Sort(ctx context.Context, w *Waiter) bool
	// Ask grants some of the waiting calls of a class, or says when to ask again. first
	// is the next of them. If waiting is 0, the question is how long first would wait: a
	// grant then says that it need not wait, and is not used.
	Ask(now time.Duration, first *Waiter, waiting int) Answer
	// Done learns how a granted attempt ended. An attempt that was not sent gives its
	// grant back. An outcome without a grant says that nobody waits in the class any
	// more. changed: ask anew for all classes. news: a refusal closed a limit, or kept
	// it closed for a second longer or more. step: work that takes time and remains to
	// be done; nil if none. If several calls of Done return one, the last is taken.
	Done(now time.Duration, w *Waiter, o Outcome) (changed, news bool, step func())
}

// Answer is what a Rule says about a class.
type Answer struct {
	Grants       []Grant       // for the first in the queue
	Again        time.Duration // when to ask for the others
	Opens        time.Duration // no call of the class goes before this time; 0: the limit is open
	Turn         time.Duration // when the next one goes
	Gap          time.Duration // between the turns after that
	Estimated    bool          // Turn and Gap are estimates: nobody is refused because of them
	RefusedSince time.Duration // since when the service has refused all; 0: it has not
	Key          string        // the limit_key of the limit that they wait for
	TraceID      string        // of the refusal that closed it; empty if not known
	// Step, if not nil, finds the answer, and takes time. The engine takes one step at a
	// time, without its lock, those of Done first.
	Step func() Answer
}

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
	Patience time.Duration // a limit that has let nobody through for this long refuses it too; 0: no bound
	Clock    Clock         // nil: the engine's
	OnWait   func(Wait)    // is called when a wait has begun and its length is known; may be nil

	Class   Class
	Tenant  string // tenants take turns
	Grant   Grant
	Waited  time.Duration // of the last Acquire
	Limit   string        // the limit_key of the limit that Acquire waited for
	Refused bool          // by the service: it goes before those who came later

	since    time.Duration // it first met a limit
	entered  time.Duration
	deadline time.Duration
	round    int
	waits    bool
	granted  bool
	place    int           // in the line, when it entered
	forecast chan Wait     // of its wait; nil: nobody wants to know
	answered chan struct{} // closed when it may go, or is refused
	err      error
}

// Wait is what is known when a wait begins.
type Wait struct {
	Limit string        // limit_key; empty if not known
	Place int           // in the line of its class, from 1
	Ends  time.Duration // how long it will probably take
}

// Outcome is how a granted attempt ended.
type Outcome struct {
	Refused    bool // with status 429
	Sent       bool // the service may have seen it
	LimitKey   string
	TraceID    string // of the refusal
	RetryAfter time.Duration
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

	mu       sync.Mutex // guards what follows
	clock    Clock
	last     time.Time // the clock's latest reading
	passed   time.Duration
	rewound  func() // the clock was set back
	queues   map[Class]*queue
	grants   int64
	changes  int64              // how often the rule has changed its mind
	step     func()             // what Done has left to do
	stepping bool               // a step is under way
	alarm    time.Duration      // when the sleep ends; never: nobody sleeps
	wake     context.CancelFunc // ends the sleep
}

// queue holds the waiting calls of a class.
type queue struct {
	Class
	Answer
	line      line
	known     bool      // Answer is not out of date
	newcomers []*Waiter // who came since it was given
	served    int64     // the number of its last grant, of all
}

const never = 1 << 62

// NewEngine returns an engine that waits by clock, or by real time if it is nil.
func NewEngine(rule Rule, clock Clock) *Engine {
	if clock == nil {
		clock = RealClock{}
	}
	// The engine's time begins at an hour: a moment of 0 means "not set".
	return &Engine{rule: rule, clock: clock, passed: time.Hour, queues: map[Class]*queue{}, alarm: never, wake: func() {}}
}

// Acquire waits until the attempt may be sent. The error is a *Refusal, the
// context's, or what broke the clock or the rule.
func (e *Engine) Acquire(ctx context.Context, w *Waiter) error {
	w.Waited, w.Limit, w.Grant, w.granted, w.err = 0, "", Grant{}, false, nil
	if e == nil || !e.rule.Sort(ctx, w) || !e.enter(ctx, w) {
		return w.err
	}
	return e.await(ctx, w)
}

// enter puts a call into its queue, and reports whether it has to wait there.
func (e *Engine) enter(ctx context.Context, w *Waiter) (waits bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.Clock != nil {
		e.clock = w.Clock
	}
	now := e.startWaitLocked(ctx, w)
	q := e.queues[w.Class]
	if q == nil {
		q = &queue{Class: w.Class}
		e.queues[w.Class] = q
	}
	if e.alarm == never && !e.stepping { // nobody waits: it need not enter the line
		q.Answer = e.rule.Ask(now, w, 1)
		if q.known = q.Step == nil; len(q.Grants) > 0 {
			w.Grant, w.granted, q.known = q.Grants[0], true, false
			return w.Grant.At > now
		}
	}
	before := q.line.place(w)
	if refusal := q.refusalLocked(w, before, now); refusal != nil {
		w.err = refusal
	} else {
		q.pushLocked(w, before, now)
	}
	if e.clock != (RealClock{}) {
		e.alarm = 0 // sleep anew: the clock may not return from the sleep that is under way
	}
	if e.serveLocked(); w.waits {
		w.answered = make(chan struct{})
	}
	return w.waits || w.granted && w.Grant.At > now
}

// pushLocked inserts a call behind the first ahead calls.
func (q *queue) pushLocked(w *Waiter, ahead int, now time.Duration) {
	q.line.push(w, ahead)
	w.place, w.answered, w.forecast = ahead+1, nil, nil
	if w.Refused { // when the rule was asked last, this call did not wait yet
		q.Again = 0
	}
	if w.OnWait == nil {
		return
	}
	w.forecast = make(chan Wait, 1)
	if q.newcomers = append(q.newcomers, w); q.known {
		q.sendForecastsLocked(0, now)
	}
}

// startWaitLocked notes when a call enters, and for how long it can wait.
func (e *Engine) startWaitLocked(ctx context.Context, w *Waiter) (now time.Duration) {
	now = e.nowLocked()
	w.entered, w.deadline = now, never
	if w.since == 0 {
		w.since = now
	}
	if deadline, has := ctx.Deadline(); has {
		w.deadline = now + min(time.Until(deadline), never/2)
	}
	return now
}

// await is for the call's turn. A call that leaves for any reason, a panic of
// OnWait included, leaves the line or gives its grant back.
func (e *Engine) await(ctx context.Context, w *Waiter) (err error) {
	passed := false
	defer func() {
		if !passed {
			e.abandon(w)
		}
	}()
	for over := w.answered == nil; !over; {
		select {
		case wait := <-w.forecast:
			w.OnWait(wait)
		case <-w.answered:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
	early, clock, err := e.outcome(ctx, w)
	if err == nil && early > 0 {
		err = clock.Sleep(ctx, early)
	}
	passed = err == nil
	return err
}

// outcome returns how long the call must still wait for its grant, or an error.
func (e *Engine) outcome(ctx context.Context, w *Waiter) (early time.Duration, clock Clock, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.nowLocked()
	w.Waited = max(now, w.Grant.At) - w.entered
	if w.Limit == "" {
		w.Limit = e.queues[w.Class].Key
	}
	if w.err != nil {
		return 0, nil, w.err
	}
	return w.Grant.At - now, e.clock, ctx.Err()
}

// abandon takes a call out of the line, or gives its grant back.
func (e *Engine) abandon(w *Waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.queues[w.Class].line.remove(w) && w.granted {
		e.doneLocked(w, Outcome{})
	}
	e.serveLocked()
}

// Forecast returns for how long the limit of a call is closed, and why it is no use
// for the call to wait; nil if it is. Both as far as they are known.
func (e *Engine) Forecast(ctx context.Context, w *Waiter) (time.Duration, *Refusal) {
	if e == nil || !e.rule.Sort(ctx, w) {
		return 0, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.startWaitLocked(ctx, w)
	q := &queue{Answer: e.rule.Ask(now, w, 0), known: true}
	if len(q.Grants) > 0 {
		return 0, nil
	}
	return max(0, q.Turn-now), q.refusalLocked(w, 0, now)
}

// Done reports how an attempt ended that Acquire let pass, and whether that
// began a cool-down, or prolonged one by a second at least.
func (e *Engine) Done(w *Waiter, o Outcome) (news bool) {
	w.Refused = o.Refused
	if e == nil || !o.Refused && !w.granted {
		return false
	}
	if o.Sent && !o.Refused && !w.Grant.ReportSuccess {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	news = e.doneLocked(w, o)
	e.serveLocked()
	return news
}

func (e *Engine) doneLocked(w *Waiter, o Outcome) (news bool) {
	now := e.nowLocked()
	if o.Refused && w.since == 0 {
		w.since = now
	}
	changed, news, step := e.rule.Done(now, w, o)
	if w.granted = false; changed {
		e.changedLocked()
	}
	if step != nil {
		e.step = step
	}
	return news
}

// Changed makes the engine ask anew for all who wait, since the rule has other limits,
// after a step, if not nil.
func (e *Engine) Changed(step func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changedLocked()
	if step != nil {
		e.step = step
	}
	e.serveLocked()
}

// changedLocked makes all answers out of date.
func (e *Engine) changedLocked() {
	e.changes++
	for _, q := range e.queues {
		q.known = false
	}
}

// Now is the time that rules go by.
func (e *Engine) Now() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.nowLocked()
}

// Waiting counts the waiting calls.
func (e *Engine) Waiting() (interactive, batch int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for class, q := range e.queues {
		if class.Batch {
			batch += q.line.waiting()
		} else {
			interactive += q.line.waiting()
		}
	}
	return interactive, batch
}

func (e *Engine) waitingLocked(c Class) int {
	if q := e.queues[c]; q != nil {
		return q.line.waiting()
	}
	return 0
}

// turn is when a call goes that has ahead calls in front of it.
func (q *queue) turn(ahead int) time.Duration {
	return q.Turn + time.Duration(ahead)*q.Gap
}

// sendForecastsLocked says to those who have come since the last answer how long they will
// probably wait. gone calls of the line have left it meanwhile.
func (q *queue) sendForecastsLocked(gone int, now time.Duration) {
	for _, w := range q.newcomers {
		place := max(1, w.place-gone)
		if !w.waits {
			continue
		}
		select {
		case w.forecast <- Wait{Limit: q.Key, Place: place, Ends: max(0, q.turn(place-1)-now)}:
		default: // nobody wants to know
		}
	}
	q.newcomers = nil
}

// refusalLocked returns why a call cannot go in time; nil if it can, as far as that is known.
func (q *queue) refusalLocked(w *Waiter, before int, now time.Duration) *Refusal {
	if !q.known {
		return nil
	}
	turn := max(now, q.Opens)
	if !q.Estimated {
		turn = max(turn, q.turn(before))
	}
	closed, longest := q.Opens-now, w.MaxWait
	if w.Refused && w.Patience > 0 {
		longest = min(longest, w.Patience)
	}
	r := &Refusal{LimitKey: q.Key, TraceID: q.TraceID, RetryAfter: max(1, turn-now)}
	switch {
	case closed > longest, turn > w.deadline, q.Estimated && closed > 0 && q.Opens >= w.deadline:
		return r
	case q.RefusedSince > 0 && closed > 0 && w.Patience > 0 && now-max(q.RefusedSince, w.since) >= w.Patience:
		r.Patience = w.Patience
		return r
	}
	return nil
}

// serveLocked asks the rule for all classes that are due, and hands on what it grants.
// What takes time it leaves to a goroutine, which serves again afterwards: a step, or to
// sleep until the next class is due.
//
// Of several classes it asks for the one that was served the longest ago: a light user
// of one endpoint does not wait for a batch on another.
func (e *Engine) serveLocked() {
	for !e.stepping {
		now, until := e.nowLocked(), time.Duration(never)
		var due *queue
		for _, q := range e.queues {
			switch first := q.line.first(); {
			case first == nil && q.known: // nobody waits any more
				q.known, q.newcomers = false, nil
				e.doneLocked(&Waiter{Class: q.Class}, Outcome{})
			case first == nil:
			case q.known && q.Again > now:
				until = min(until, q.Again)
			case due == nil || q.goesBefore(due):
				due = q
			}
		}
		if step := e.step; step != nil {
			e.step = nil
			e.startStepLocked(nil, func() Answer { step(); return Answer{} })
			return
		}
		if due == nil {
			e.sleepLocked(now, until)
			return
		}
		answer := e.rule.Ask(now, due.line.first(), due.line.waiting())
		if answer.Step != nil {
			e.startStepLocked(due, answer.Step)
			return
		}
		e.answerLocked(due, answer, e.changes)
	}
}

func (q *queue) goesBefore(o *queue) bool {
	if q.Batch != o.Batch {
		return o.Batch
	}
	return q.served < o.served
}

// startStepLocked takes a step, which may find the answer for a queue. If the rule changes
// its mind meanwhile, the answer is out of date at once.
func (e *Engine) startStepLocked(q *queue, step func() Answer) {
	e.stepping = true
	changes := e.changes
	go func() {
		var answer Answer
		err := Protect(func() error { answer = step(); return nil })
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stepping = false
		e.resumeLocked(err, func() {
			if q != nil {
				e.answerLocked(q, answer, changes)
			}
		})
	}()
}

// sleepLocked waits by the clock. A sleep that nobody cut short has taken its time, even
// if the clock stands still. A clock that cannot sleep ends the calls: there is no other
// way to wait.
func (e *Engine) sleepLocked(now, until time.Duration) {
	if until == e.alarm {
		return
	}
	e.wake()
	if e.alarm = until; until == never {
		return
	}
	ctx, wake := context.WithCancel(context.Background())
	clock := e.clock
	e.wake = wake
	go func() {
		err := Protect(func() error { return clock.Sleep(ctx, until-now) })
		e.mu.Lock()
		defer e.mu.Unlock()
		if ctx.Err() != nil {
			return // another sleep has taken its place, or nobody waits
		}
		wake()
		e.alarm = never
		if err != nil {
			err = fmt.Errorf("the clock does not wait: %w", err)
		}
		e.resumeLocked(err, func() {
			e.nowLocked()
			e.passed = max(e.passed, until)
		})
	}()
}

// resumeLocked serves again on a goroutine of the engine, or ends all calls with an error:
// here a panic of the clock would end the program.
func (e *Engine) resumeLocked(err error, first func()) {
	if err != nil {
		e.refuseAllLocked(err)
		first = func() {}
	}
	err = Protect(func() error {
		first()
		e.serveLocked()
		return nil
	})
	if err != nil {
		e.refuseAllLocked(err)
	}
}

// leastAgain keeps a rule that grants nothing from being asked without a pause.
const leastAgain = time.Millisecond

// answerLocked hands grants on, and refuses those who cannot go in time any more. changes are
// those of the rule up to the question.
func (e *Engine) answerLocked(q *queue, answer Answer, changes int64) {
	now, granted := e.nowLocked(), time.Duration(len(answer.Grants))
	if granted > 0 {
		e.grants++
		q.served = e.grants
	} else if answer.Again <= now {
		answer.Again = now + leastAgain
	}
	later := !q.known || answer.Turn > q.Turn+granted*q.Gap+q.Gap/2
	if answer.Estimated {
		later = answer.Opens > now && (!q.known || answer.Opens != q.Opens)
	}
	for _, g := range answer.Grants {
		if w := q.line.pop(); w != nil {
			w.Grant, w.granted, w.Limit = g, true, answer.Key
			if w.answered != nil {
				close(w.answered)
			}
		} else {
			e.doneLocked(&Waiter{Class: q.Class, Grant: g}, Outcome{}) // nobody waits for it any more
		}
	}
	q.Answer, q.known = answer, changes == e.changes
	if later {
		q.refuseLateLocked(now)
	}
	q.sendForecastsLocked(len(answer.Grants), now)
}

// refuseLateLocked refuses those who cannot go in time any more.
func (q *queue) refuseLateLocked(now time.Duration) {
	before := 0
	for _, w := range q.line.all() {
		if refusal := q.refusalLocked(w, before, now); refusal != nil {
			q.endLocked(w, refusal)
		} else {
			before++
		}
	}
}

// refuseAllLocked ends all waiting calls.
func (e *Engine) refuseAllLocked(err error) {
	for _, q := range e.queues {
		for _, w := range q.line.all() {
			q.endLocked(w, err)
		}
	}
}

// endLocked takes a call that has its answer out of the line.
func (q *queue) endLocked(w *Waiter, err error) {
	if q.line.remove(w) && w.answered != nil {
		close(w.answered)
	}
	w.err = err
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

// nowLocked is what has passed by the clock. It never goes back: a clock that is set
// back goes on from there.
func (e *Engine) nowLocked() time.Duration {
	now := e.clock.Now()
	switch d := now.Sub(e.last); {
	case e.last.IsZero():
	case d > 0:
		e.passed += min(d, never/2)
	case d < -time.Second && e.rewound != nil:
		e.rewound()
	}
	e.last = now
	return e.passed
}
