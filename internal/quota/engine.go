// Package quota holds calls back that the service would refuse (interface 8).
//
// An [Engine] keeps those who wait: a queue for each class of calls, served by one
// goroutine while somebody waits. It counts no limits. A [Rule] says when the
// next call of a class may go, and learns how each one ended. [Grant], [Demand] and
// [Answer] also carry what only one of the two rules uses. [CoolDown] is the rule of
// every client that is given no other; the one of package pacer acts before a refusal.
package quota

import (
	"cmp"
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
// back. The engine calls Settle, and Ask for calls that wait, from one goroutine at a
// time. It calls Ask with no waiting call, and the other methods, from any goroutine
// meanwhile: a Rule has its own lock.
type Rule interface {
	// Sort sets the waiter's Class and Tenant. False: nothing can hold it back.
	Sort(ctx context.Context, w *Waiter) bool
	// Ask grants some of those who wait, or says when to ask again.
	Ask(now time.Duration, d Demand) Answer
	// Done learns how a granted attempt ended. An attempt that was not sent gives
	// its grant back. changed asks the engine to ask anew for all classes;
	// news reports that a refusal closed a limit, or for longer by a second.
	Done(now time.Duration, w *Waiter, o Outcome) (changed, news bool)
	// Withdraw forgets what Ask keeps for a class in which nobody waits any more.
	Withdraw(c Class)
	// Settle does what Done and Withdraw have left for later, because it takes time.
	Settle(now time.Duration)
	// Quick reports that Ask takes no time by now, so that callers may ask for
	// themselves, and that there is nothing to settle.
	Quick(now time.Duration) bool
}

// Demand is what waits in a class.
type Demand struct {
	Class   Class
	Waiting int // 0: the question is how long a call would wait, and takes no time; nothing is granted
	// Of the first in the queue: its deadline, since when it has had patience and for
	// how long, and the longest single wait that it accepts. Only CoolDown reads them.
	Deadline, Since, Patience, MaxWait time.Duration
}

// Answer is what a Rule says to a Demand.
type Answer struct {
	Grants  []Grant       // for the first in the queue
	Again   time.Duration // when to ask for the others
	Opens   time.Duration // nobody of the class goes before; 0: now
	Turn    time.Duration // when the next one goes
	Gap     time.Duration // between the turns after that
	Rough   bool          // Turn and Gap are guesses of CoolDown, for which nobody is refused
	Refused time.Duration // since when the service has refused all; 0: it has not
	Key     string        // the limit_key of the limit that they wait for
	TraceID string        // of the refusal that closed it, with CoolDown
}

// Grant is the leave to send one attempt.
type Grant struct {
	At      time.Duration // when it may be sent
	Watched bool          // the rule learns something if the service accepts it
	Mark    int64         // by which a Pacer finds it again
	ramp    *ramp         // of the cool-down, in which it counts; nil: in none
	probe   *gate         // of the cool-down: the closed gate that this call tests
}

// Waiter is the part of a call that an engine keeps. The same Waiter serves all
// attempts of a call.
type Waiter struct {
	Endpoint *spec.Endpoint
	SetsBYOK bool
	MaxWait  time.Duration // a limit that is closed for longer refuses the call
	Patience time.Duration // so does one that has let nobody through for so long; 0: endless
	Clock    Clock         // nil: the engine's
	OnWait   func(Wait)    // is called when a wait has begun and its length is known; may be nil

	Class   Class
	Tenant  string // tenants take turns
	Grant   Grant
	Waited  time.Duration // of the last Acquire
	Limit   string        // that it waited for
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
	Patience   time.Duration // for which nobody has got through; 0: that is not why
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

	mu        sync.Mutex // guards what follows
	clock     Clock
	last      time.Time // that the clock has told
	passed    time.Duration
	rewound   func() // the clock was set back
	queues    map[Class]*queue
	grants    int64
	changes   int64 // how often the rule has changed its mind
	serving   bool
	unsettled bool               // the rule has to settle something
	wake      context.CancelFunc // ends the server's sleep
}

// queue holds the waiting calls of a class.
type queue struct {
	Class
	Answer
	line   line
	known  bool      // Answer is not out of date
	fresh  []*Waiter // who came while it was
	served int64     // the number of its last grant, of all
}

// NewEngine returns an engine that waits by clock, or by real time if it is nil.
func NewEngine(rule Rule, clock Clock) *Engine {
	if clock == nil {
		clock = RealClock{}
	}
	return &Engine{rule: rule, clock: clock, passed: time.Hour, queues: map[Class]*queue{}, wake: func() {}}
}

// Acquire waits until the attempt may be sent. The error is a *Refusal, the
// context's, or what broke the clock or the rule.
func (e *Engine) Acquire(ctx context.Context, w *Waiter) error {
	w.Waited, w.Limit, w.Grant, w.granted = 0, "", Grant{}, false
	if e == nil || !e.rule.Sort(ctx, w) {
		return nil
	}
	if granted, err := e.enter(ctx, w); granted || err != nil {
		return err
	}
	return e.await(ctx, w)
}

// enter grants a call at once, gives it a place in line, or refuses it.
func (e *Engine) enter(ctx context.Context, w *Waiter) (granted bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.Clock != nil {
		e.clock = w.Clock
	}
	now := e.now()
	w.startWait(ctx, now)
	q := e.queue(w.Class)
	atOnce := !e.serving && e.rule.Quick(now)
	if atOnce {
		answer := e.rule.Ask(now, q.demand(w))
		if len(answer.Grants) > 0 {
			w.Grant, w.granted = answer.Grants[0], true
			return true, nil
		}
		q.Answer, q.known = answer, true
	}
	before := q.line.before(w)
	if refusal := q.refusalIfLate(w, before, now); refusal != nil {
		if atOnce {
			e.rule.Withdraw(q.Class)
			q.known = false
		}
		return false, refusal
	}
	w.answered, w.err, w.place = make(chan struct{}), nil, before+1
	if w.OnWait != nil {
		w.forecast = make(chan Wait, 1)
	}
	if q.line.push(w); q.known {
		q.sendForecast(w, 0, now)
	} else {
		q.fresh = append(q.fresh, w)
	}
	if !e.serving {
		e.serving = true
		go e.serve()
	} else if !q.known || now >= q.Again || q.line.waiting <= shortLine {
		e.wake()
	}
	return false, nil
}

// Forecast returns for how long the limit of a call is closed, and why it is no use
// for the call to wait; nil if it is. Both as far as they are known.
func (e *Engine) Forecast(ctx context.Context, w *Waiter) (time.Duration, *Refusal) {
	if e == nil || !e.rule.Sort(ctx, w) {
		return 0, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	w.startWait(ctx, now)
	q := &queue{Class: w.Class, known: true}
	d := q.demand(w)
	d.Waiting = 0
	if q.Answer = e.rule.Ask(now, d); len(q.Grants) > 0 {
		return 0, nil
	}
	return max(0, q.Turn-now), q.refusalIfLate(w, 0, now)
}

// startWait notes when a call enters, and for how long it can wait.
func (w *Waiter) startWait(ctx context.Context, now time.Duration) {
	w.entered, w.deadline = now, never
	if w.since == 0 {
		w.since = now
	}
	if deadline, has := ctx.Deadline(); has {
		w.deadline = now + min(time.Until(deadline), never/2)
	}
}

const never = 1 << 62

// await is for the call's turn. A call that leaves for any reason, a panic of
// OnWait included, leaves the line or gives its grant back.
func (e *Engine) await(ctx context.Context, w *Waiter) (err error) {
	passed := false
	defer func() {
		if !passed {
			e.abandon(w)
		}
	}()
	for over := false; !over; {
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

// outcome is what a call has waited for: how long it is early for its grant, or
// an error.
func (e *Engine) outcome(ctx context.Context, w *Waiter) (early time.Duration, clock Clock, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	w.Waited = max(now, w.Grant.At) - w.entered
	if q := e.queues[w.Class]; w.Limit == "" {
		w.Limit = q.Key
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
	q := e.queues[w.Class]
	if q.line.remove(w) {
		if q.line.waiting == 0 {
			e.wake()
		}
	} else if w.granted {
		w.granted = false
		e.done(w, Outcome{})
	}
}

// Done reports how an attempt ended that Acquire let pass, and whether that
// began a cool-down, or prolonged one by a second at least.
func (e *Engine) Done(w *Waiter, o Outcome) (news bool) {
	w.Refused = o.Refused
	if e == nil || !o.Refused && !w.granted {
		return false
	}
	if o.Sent && !o.Refused && !w.Grant.Watched {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done(w, o)
}

func (e *Engine) done(w *Waiter, o Outcome) (news bool) {
	now := e.now()
	if o.Refused && w.since == 0 {
		w.since = now
	}
	changed, news := e.rule.Done(now, w, o)
	w.granted = false
	if changed {
		e.changed()
	}
	return news
}

// Changed makes the engine ask anew for all who wait: the rule has other limits.
func (e *Engine) Changed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now()
	e.changed()
}

// Now is the time that rules go by.
func (e *Engine) Now() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now()
}

// changed makes the engine ask anew for all who wait, and settle.
func (e *Engine) changed() {
	e.changes++
	for _, q := range e.queues {
		q.known = false
	}
	e.unsettled = !e.rule.Quick(e.passed)
	if e.unsettled && !e.serving {
		e.serving = true
		go e.serve()
	}
	e.wake()
}

// Waiting counts the waiting calls of some classes.
func (e *Engine) Waiting(of func(Class) bool) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for class, q := range e.queues {
		if of(class) {
			n += q.line.waiting
		}
	}
	return n
}

func (e *Engine) queue(c Class) *queue {
	if e.queues[c] == nil {
		e.queues[c] = &queue{Class: c}
	}
	return e.queues[c]
}

// demand describes those who wait, or are about to.
func (q *queue) demand(first *Waiter) Demand {
	return Demand{
		Class: q.Class, Waiting: max(1, q.line.waiting), Deadline: first.deadline, Since: first.since,
		Patience: cmp.Or(first.Patience, never/2), MaxWait: first.MaxWait,
	}
}

// turn is when a call goes that has so many before it.
func (q *queue) turn(before int) time.Duration {
	return q.Turn + time.Duration(before)*q.Gap
}

// sendForecast forecasts the wait of a call. gone calls of the line have left since it
// came.
func (q *queue) sendForecast(w *Waiter, gone int, now time.Duration) {
	if w.forecast == nil || !w.waits {
		return
	}
	place := max(1, w.place-gone)
	select {
	case w.forecast <- Wait{Limit: q.Key, Place: place, Ends: max(0, q.turn(place-1)-now)}:
	default: // it knows
	}
}

// refusalIfLate returns why a call cannot go in time; nil if it can.
func (q *queue) refusalIfLate(w *Waiter, before int, now time.Duration) *Refusal {
	if !q.known {
		return nil
	}
	turn := max(now, q.Opens)
	if !q.Rough {
		turn = max(turn, q.turn(before))
	}
	closed, longest := q.Opens-now, w.MaxWait
	if w.Refused && w.Patience > 0 {
		longest = min(longest, w.Patience)
	}
	r := &Refusal{LimitKey: q.Key, TraceID: q.TraceID, RetryAfter: max(1, turn-now)}
	switch {
	case closed > longest, turn > w.deadline, q.Rough && closed > 0 && q.Opens >= w.deadline:
		return r
	case q.Refused > 0 && closed > 0 && w.Patience > 0 && now-max(q.Refused, w.since) >= w.Patience:
		r.Patience = w.Patience
		return r
	}
	return nil
}

// serve asks for those who wait until nobody does.
func (e *Engine) serve() {
	for {
		switch t := e.next(); {
		case t.done:
			return
		case t.settle:
			if err := Protect(func() error { e.rule.Settle(t.now); return nil }); err != nil {
				e.fail(err)
			}
		case t.queue != nil:
			var answer Answer
			if err := Protect(func() error { answer = e.rule.Ask(t.now, t.demand); return nil }); err != nil {
				e.fail(err)
			} else {
				e.answer(t, answer)
			}
		default:
			e.slept(t, t.sleep())
		}
	}
}

// task is what the server does next.
type task struct {
	now    time.Duration
	done   bool
	settle bool
	queue  *queue
	demand Demand
	// changes is how often the rule had changed its mind when it was asked.
	changes int64

	until time.Duration // it sleeps
	ctx   context.Context
	clock Clock
}

// sleep waits by the clock, on another goroutine: a clock that does not return must
// not hold up those who come later.
func (t task) sleep() error {
	slept := make(chan error, 1)
	go func() { slept <- Protect(func() error { return t.clock.Sleep(t.ctx, t.until-t.now) }) }()
	select {
	case err := <-slept:
		return err
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// shortLine is how many callers have the server begin another sleep when they come, in
// case the clock does not return from the one it is in.
const shortLine = 2

// next is to ask for the class that is due, and of several for the one that was
// served the longest ago: a light user of one endpoint does not wait for a batch
// on another.
func (e *Engine) next() task {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := task{now: e.now(), until: never, clock: e.clock, changes: e.changes}
	if t.settle = e.unsettled; t.settle {
		e.unsettled = false
		return t
	}
	var next *Waiter
	t.done = true
	for _, q := range e.queues {
		first := q.line.first()
		if first == nil {
			if e.forget(q) {
				t.done, t.settle = false, true
			}
			continue
		}
		t.done = false
		if q.known && q.Again > t.now {
			t.until = min(t.until, q.Again)
		} else if next == nil || q.before(t.queue) {
			t.queue, next = q, first
		}
	}
	switch {
	case t.done:
		e.serving = false
	case t.settle:
		t.queue = nil
	case t.queue != nil:
		t.demand = t.queue.demand(next)
	default:
		t.ctx, e.wake = context.WithCancel(context.Background())
	}
	return t
}

// forget ends the service of a class in which nobody waits any more, and reports
// whether the rule has to settle that.
func (e *Engine) forget(q *queue) (settle bool) {
	if !q.known {
		return false
	}
	q.Answer, q.known = Answer{}, false
	e.rule.Withdraw(q.Class)
	return !e.rule.Quick(e.passed)
}

func (q *queue) before(o *queue) bool {
	if q.Batch != o.Batch {
		return o.Batch
	}
	return q.served < o.served
}

// leastAgain keeps a rule that grants nothing from being asked without a pause.
const leastAgain = time.Millisecond

// answer hands grants on, and refuses those who cannot go in time any more.
func (e *Engine) answer(t task, answer Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q, now := t.queue, e.now()
	granted := time.Duration(len(answer.Grants))
	if granted > 0 {
		e.grants++
		q.served = e.grants
	}
	isNew := !q.known || answer.Turn > q.Turn+granted*q.Gap+q.Gap/2
	if answer.Rough {
		isNew = answer.Opens > now && (!q.known || answer.Opens != q.Opens)
	}
	if granted == 0 {
		answer.Again = max(answer.Again, now+leastAgain)
	}
	q.Answer, q.known = answer, t.changes == e.changes // else it is out of date already
	for _, g := range answer.Grants {
		if w := q.line.pop(); w != nil {
			w.Grant, w.granted, w.Limit = g, true, answer.Key
			close(w.answered)
		} else {
			e.done(&Waiter{Class: q.Class, Grant: g}, Outcome{}) // nobody waits for it any more
		}
	}
	if isNew && q.line.waiting > 0 {
		q.refuse(func(w *Waiter, before int) error {
			if refusal := q.refusalIfLate(w, before, now); refusal != nil {
				return refusal
			}
			return nil
		})
	}
	for _, w := range q.fresh {
		q.sendForecast(w, len(answer.Grants), now)
	}
	q.fresh = nil
}

// refuse ends the calls for which there is a reason.
func (q *queue) refuse(reason func(w *Waiter, before int) error) {
	before := 0
	for _, w := range q.line.all() {
		err := reason(w, before)
		if err == nil {
			before++
		} else if q.line.remove(w) {
			w.err = err
			close(w.answered)
		}
	}
}

// fail ends all waiting calls.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.queues {
		q.refuse(func(*Waiter, int) error { return err })
	}
}

// slept goes on after a sleep. One that nobody cut short has taken its time, even
// if the clock stands still. A clock that cannot sleep ends the calls: there is no
// other way to wait.
func (e *Engine) slept(t task, err error) {
	if err != nil && t.ctx.Err() == nil {
		e.fail(fmt.Errorf("the clock does not wait: %w", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wake(); err == nil {
		e.now()
		e.passed = max(e.passed, t.until)
	}
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

// now is what has passed by the clock. It never goes back: a clock that is set
// back goes on from there.
func (e *Engine) now() time.Duration {
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
