// Package quota holds calls back that the service would refuse (interface 8).
//
// An [Engine] keeps the waiting calls, in one queue for each class of calls. It knows no
// limits. A [Rule] decides when the next call of a class may go, and learns how each
// attempt ended. [CoolDown] is the default rule of a client: it learns from refusals. The
// rule of package pacer knows the limits, and acts before a refusal.
//
// What happens to a call: Acquire asks the rule for the call's class. enter puts the call
// into the queue of the class, and serveLocked asks the rule about all queues that are
// due. If the call may not go at once, it blocks in wait, until a grant or a refusal ends
// the wait. When its attempt is over, Done passes the outcome to the rule, and serves
// again, because the rule may decide differently now.
//
// As long as calls wait, one goroutine sleeps until the next queue is due (the alarm), and
// then serves. A rule that asks a store does so on a goroutine that Background starts; the
// goroutine returns to the engine through Do and DeliverLocked.
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
	Batch bool // for Waiting; the rule decides whether interactive calls go first
}

// A Rule decides when calls go. Its times are by the engine's clock, which never goes
// back. The engine calls all methods but Classify under its lock, so the lock guards the
// rule's state too. They return at once, and call neither the client nor any method of
// the engine but Background, and those whose names end in Locked.
type Rule interface {
	// Classify sets the waiter's Class and Tenant. It reports false if nothing can hold the
	// call back at the moment.
	Classify(ctx context.Context, w *Waiter) bool
	// Ask grants some of the waiting calls of a class, or says when to ask again. first
	// is the next call. If waiting is 0, the engine only asks how long first would wait,
	// as far as the rule knows without a store. A slow rule returns a Schedule that is Pending.
	// It then works on a goroutine that it starts with Engine.Background, and passes the
	// result to Engine.DeliverLocked. Until then the last Schedule holds.
	Ask(now time.Duration, first *Waiter, waiting int) Schedule
	// Done learns how a granted attempt ended. After it, the engine asks again about all
	// classes. An attempt that was not sent gives its grant back. news is true if a
	// refusal closed a limit, or kept it closed for at least a second longer.
	Done(now time.Duration, w *Waiter, o Outcome) (news bool)
	// QueueEmptied learns that the last waiting call of a class has left, so that the engine does
	// not ask again about the class.
	QueueEmptied(now time.Duration, class Class)
	// ClockReset learns that the clock was set back by more than a second, or is another one.
	ClockReset()
}

// Schedule is a Rule's answer about a class. The zero Schedule means "not known": the
// engine asks at once, and refuses no call until it has the answer.
type Schedule struct {
	Grants       []Grant       // for the first calls in the queue
	Pending      bool          // the rule will deliver the Schedule; the other fields are empty
	AskAgain     time.Duration // when to ask about the others; now or in the past: at once
	Opens        time.Duration // when the limit opens: no call of the class goes before; 0: it is open
	Turn         time.Duration // when the next call goes, never before Opens; 0: not known
	Gap          time.Duration // between the turns after that
	Estimated    bool          // Turn and Gap are estimates: no call is refused because of them
	RefusedSince time.Duration // since when the service refuses every call though the limit has opened; 0: it does not
	RefusedUntil time.Duration // when the limit was last due to open; it let nobody through then either
	Key          string        // the limit_key of the limit that the calls wait for
	TraceID      string        // of the refusal that closed the limit; empty if not known
}

// never is a time beyond all others.
const never = 1 << 62

// Grant allows one attempt to be sent.
type Grant struct {
	At            time.Duration // when it may be sent
	ReportSuccess bool          // Done is called for a success too, because the rule learns from it
	Mark          any           // for the rule: identifies the grant in Done
}

// Waiter is an engine's view of a call. The same Waiter serves all attempts of a call.
type Waiter struct {
	Endpoint *spec.Endpoint
	SetsBYOK bool
	MaxWait  time.Duration // if the limit is closed for longer, the call is refused
	Patience time.Duration // if the limit closes again after it has let nobody through for this long, the call is refused; 0: no bound
	Clock    Clock         // the client's, by which the call waits
	OnWait   func(Wait)    // is called once a wait has begun and its length is known; may be nil

	Class        Class
	Tenant       string        // see line
	Requeued     bool          // its last grant was refused by the service, or given back: the call goes before new ones
	limitedSince time.Duration // when a limit first held the call back
	attempt
}

// attempt is the state of the last Acquire.
type attempt struct {
	Grant  Grant
	Waited time.Duration
	Limit  string // the limit_key of the limit that Acquire waited for
	Trace  string // of a refused call: the trace_id of the answer that closed the limit

	entered    time.Duration // when Acquire was called; 0: nothing could hold the call back
	deadline   time.Duration // of the context; never: none
	untilGrant time.Duration // from the grant to Grant.At
	round      int           // in the line
	inLine     bool          // the call is in the line
	granted    bool          // the call has a Grant, and Done was not called yet
	waitEnded  chan struct{} // closed at the end of the wait; nil: there was none
	forecast   chan Wait     // for OnWait
	err        error         // the refusal; set before waitEnded is closed
}

// Wait is a forecast of a wait that has begun.
type Wait struct {
	Limit    string        // limit_key; empty if not known
	Place    int           // in the line of its class, from 1
	Expected time.Duration // an estimate of the whole wait
}

// Outcome is how a granted attempt ended.
type Outcome struct {
	Refused    bool // with status 429
	Sent       bool // the service may have seen it
	LimitKey   string
	TraceID    string        // of the refusal
	RetryAfter time.Duration // 0: the answer did not say
}

// Refusal is the error of a call that would wait in vain: its turn comes after its
// deadline, its limit is closed for longer than MaxWait, or its Patience is over.
type Refusal struct {
	LimitKey   string
	TraceID    string        // of the answer that closed the limit
	RetryAfter time.Duration // until the call's turn
	Patience   time.Duration // if over 0, the reason is that nobody got through for this long
}

// Error implements error, for callers that do not look at the fields.
func (r *Refusal) Error() string {
	return fmt.Sprintf("limit %s is closed for %s", r.LimitKey, r.RetryAfter)
}

// An Engine holds the waiting calls of one API key. While no call waits it keeps no timer
// and no goroutine. So several synctest bubbles can share it, as long as all calls that
// wait at the same time are in one bubble. A nil Engine holds no call back.
type Engine struct {
	rule Rule

	mu          sync.Mutex    // guards what follows
	clock       Clock         // of the last call that entered or was done
	last        time.Time     // the clock's last reading
	elapsed     time.Duration // the engine's time: begins at an hour, moves with the clock, never goes back
	queues      map[Class]*queue
	grants      int64         // counts deliveries that granted something, for queue.lastGrant
	alarm       time.Duration // when the next queue is due; never: none is, until a call comes, leaves or is done
	sleeper     Clock         // by which a goroutine sleeps until the alarm
	cancelAlarm func()        // ends that goroutine
}

// queue holds the waiting calls of a class.
type queue struct {
	Class
	Schedule
	line
	forecasts       []func(now time.Duration) // send the forecast of a call whose OnWait waits for it
	lastGrant       int64                     // Engine.grants at its last grant
	asking          bool                      // the rule will deliver a Schedule
	emptyReported   bool                      // no call waits, and the rule knows
	changedSinceAsk bool                      // something has changed since the rule was asked: its answer may grant, but not refuse
}

// NewEngine returns an engine that goes by the clocks of its calls.
func NewEngine(rule Rule) *Engine {
	// The engine's time begins at an hour, because a time of 0 means "not set".
	return &Engine{rule: rule, clock: RealClock{}, elapsed: time.Hour, queues: map[Class]*queue{}, alarm: never, cancelAlarm: func() {}}
}

// Acquire waits until the attempt may be sent. Its error is a *Refusal, the context's, or
// one that names what broke the clock or the rule. Whenever it does not succeed, even if
// OnWait or the clock panics, the call leaves the line or gives its grant back.
func (e *Engine) Acquire(ctx context.Context, w *Waiter) (err error) {
	w.attempt = attempt{}
	if e == nil || !e.rule.Classify(ctx, w) {
		return nil
	}
	passed := false
	defer func() {
		if !passed {
			e.Done(w, Outcome{})
		}
	}()
	if e.enter(ctx, w) {
		err = w.wait(ctx)
	} else {
		err = cmp.Or(w.err, ctx.Err())
	}
	if err == nil && w.untilGrant > 0 {
		err = w.Clock.Sleep(ctx, w.untilGrant)
	}
	passed = err == nil
	return err
}

// enter puts a call into the queue of its class, and serves. It reports whether the call
// has to wait.
func (e *Engine) enter(ctx context.Context, w *Waiter) (waits bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queues[w.Class]
	if q == nil {
		q = &queue{Class: w.Class, line: line{tenants: map[string]tenant{}}}
		e.queues[w.Class] = q
	}
	now := e.startWaitLocked(ctx, w)
	ahead := q.push(w)
	q.emptyReported = false
	if refusal := q.refusal(w, ahead, now); refusal != nil {
		e.refuseLocked(q, w, refusal)
		return false
	}
	if w.Requeued {
		q.AskAgain = 0 // ask anew: the rule does not know of this call yet, and it may be first in line
	}
	if w.Clock != (RealClock{}) || e.sleeper != (RealClock{}) {
		e.alarm = 0 // sleep anew, by the clock of this call: the sleep may never end by a user's clock
	}
	e.serveLocked()
	if !w.inLine {
		return false
	}
	w.waitEnded = make(chan struct{})
	if w.OnWait != nil {
		forecast := make(chan Wait, 1)
		w.forecast = forecast
		q.forecasts = append(q.forecasts, func(now time.Duration) {
			forecast <- Wait{Limit: q.Key, Place: ahead + 1, Expected: max(0, q.Turn+time.Duration(ahead)*q.Gap-now)}
		})
		q.sendForecasts(now)
	}
	return true
}

// sendForecasts sends the forecasts, if the rule knows when the next call goes.
func (q *queue) sendForecasts(now time.Duration) {
	if q.Turn > 0 {
		for _, send := range q.forecasts {
			send(now)
		}
		q.forecasts = nil
	}
}

// wait blocks until the call may go or is refused. If ctx ends first, the call may still
// be in line.
func (w *Waiter) wait(ctx context.Context) error {
	for {
		select {
		case forecast := <-w.forecast:
			w.OnWait(forecast)
		case <-w.waitEnded:
			return cmp.Or(ctx.Err(), w.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setAlarmLocked starts a goroutine that serves at a time, in place of the one before.
func (e *Engine) setAlarmLocked(at time.Duration) {
	if at == e.alarm {
		return
	}
	e.cancelAlarm()
	if e.alarm = at; at == never {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	clock, sleep := e.clock, at-e.elapsed
	e.sleeper, e.cancelAlarm = clock, cancel
	e.Background(func() error {
		err := clock.Sleep(ctx, sleep)
		e.mu.Lock()
		defer e.mu.Unlock()
		if ctx.Err() != nil { // there is another alarm
			return nil
		}
		if e.alarm = never; err != nil {
			return fmt.Errorf("the clock does not wait: %w", err)
		}
		e.elapsed = max(e.nowLocked(e.clock), at) // even if the clock stands still
		e.serveLocked()
		return nil
	}, cancel) // before its synctest bubble ends: a call of another one could not cancel it
}

// startWaitLocked sets when a call entered, and for how long it can wait.
func (e *Engine) startWaitLocked(ctx context.Context, w *Waiter) (now time.Duration) {
	now = e.nowLocked(w.Clock)
	w.entered, w.deadline = now, never
	w.MaxWait, w.Patience = min(w.MaxWait, never/2), min(w.Patience, never/2) // so that a time plus one of them does not overflow
	w.limitedSince = cmp.Or(w.limitedSince, now)
	if deadline, has := ctx.Deadline(); has {
		w.deadline = now + min(time.Until(deadline), never/2)
	}
	return now
}

// Forecast returns how long a call would wait, and the refusal if it would wait in vain;
// 0 and nil if it would not wait, or the rule does not know. It is for a call that is not in
// line: its last attempt is done, or it has a grant.
func (e *Engine) Forecast(ctx context.Context, w *Waiter) (time.Duration, *Refusal) {
	if e == nil {
		return 0, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.startWaitLocked(ctx, w)
	s := e.rule.Ask(now, w, 0)
	return max(0, s.Turn-now), s.refusal(w, 0, now)
}

// Done gets how an attempt ended that Acquire let pass. Acquire itself calls it if it does
// not succeed: then Done takes the call out of the line, if it is there. news is true if a
// refusal began a cool-down, or prolonged one by a second or more.
func (e *Engine) Done(w *Waiter, o Outcome) (news bool) {
	w.Requeued = o.Refused || !o.Sent
	// No lock for a call that the rule did not hold back, or whose success teaches the rule
	// nothing: this is the way of nearly every call.
	if !o.Refused && (w.entered == 0 || o.Sent && !w.Grant.ReportSuccess) {
		w.granted = false // a second report would give the grant back
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.inLine {
		e.refuseLocked(e.queues[w.Class], w, nil)
	}
	if w.granted || o.Refused {
		w.granted = false
		e.ResetSchedulesLocked()
		news = e.rule.Done(e.nowLocked(w.Clock), w, o)
	}
	e.serveLocked()
	return news
}

// Do runs f under the lock that guards the rule, and then serves.
func (e *Engine) Do(f func(now time.Duration)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.nowLocked(e.clock))
	e.serveLocked()
}

// ResetSchedulesLocked resets all schedules, so that the rule is asked again. A Schedule that the rule
// is still to deliver will not refuse anybody. Call it only in a method of the Rule, or a function that Do runs.
func (e *Engine) ResetSchedulesLocked() {
	for _, q := range e.queues {
		q.Schedule, q.changedSinceAsk = Schedule{}, true
	}
}

// Waiting counts the waiting calls, interactive or batch.
func (e *Engine) Waiting(batch bool) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waitingLocked(func(class Class) bool { return class.Batch == batch })
}

// waitingLocked counts the waiting calls of some classes.
func (e *Engine) waitingLocked(in func(Class) bool) (n int) {
	for class, q := range e.queues {
		if in(class) {
			n += len(q.calls)
		}
	}
	return n
}

// serveLocked asks the rule about all classes that are due, and sets the alarm for the
// next one.
//
// If several are due, it begins with the class whose last grant is the oldest: a light
// user of one endpoint does not wait for a batch on another.
func (e *Engine) serveLocked() {
	for {
		now, alarm := e.nowLocked(e.clock), time.Duration(never)
		var due *queue
		for _, q := range e.queues {
			switch empty := len(q.calls) == 0; {
			case q.asking, empty && q.emptyReported:
			case empty:
				q.Schedule, q.forecasts, q.emptyReported = Schedule{}, nil, true
				e.rule.QueueEmptied(now, q.Class)
			case q.AskAgain > now:
				alarm = min(alarm, q.AskAgain)
			case due == nil || q.lastGrant < due.lastGrant:
				due = q
			}
		}
		if due == nil {
			e.setAlarmLocked(alarm)
			return
		}
		due.changedSinceAsk = false
		s := e.rule.Ask(now, due.calls[0], len(due.calls))
		if due.asking = s.Pending; !due.asking {
			e.DeliverLocked(due.Class, s)
		}
	}
}

// minAskAgain is the least time until a rule that grants nothing is asked again: a broken
// rule must not keep a processor busy.
const minAskAgain = time.Millisecond

// DeliverLocked takes a rule's Schedule for a class: it grants calls, and refuses calls that
// can no longer go in time. A slow rule calls it in a function that Do runs.
func (e *Engine) DeliverLocked(class Class, s Schedule) {
	q := e.queues[class]
	now, granted := e.elapsed, len(s.Grants)
	switch {
	case granted > 0:
		e.grants++
		q.lastGrant = e.grants
	case s.AskAgain <= now:
		s.AskAgain = now + minAskAgain
	}
	if q.changedSinceAsk {
		s = Schedule{Grants: s.Grants, Key: s.Key} // with AskAgain 0: the rule is asked again
	}
	// Look for calls to refuse only if the turns come later than known, by more than half a
	// gap: to look at 500 waiting calls after each grant would be slow.
	movedBack := s.earliest(0) > q.earliest(granted)+q.Gap/2
	for _, g := range s.Grants {
		if len(q.calls) == 0 { // the call that it was for has left: give it back
			e.ResetSchedulesLocked()
			e.rule.Done(now, &Waiter{Class: class, attempt: attempt{Grant: g}}, Outcome{})
			continue
		}
		w := q.next()
		w.Grant, w.granted, w.Limit, w.untilGrant = g, true, s.Key, g.At-now
		w.endWait(max(now, g.At), nil)
	}
	if q.Schedule, q.asking = s, false; movedBack {
		e.refuseLateLocked(q, now)
	}
	q.sendForecasts(now)
}

// earliest returns the earliest time at which a call can go that has ahead calls in front
// of it.
func (s *Schedule) earliest(ahead int) time.Duration {
	if s.Estimated {
		return s.Opens
	}
	return s.Turn + time.Duration(ahead)*s.Gap
}

// refusal returns why a call cannot go in time; nil if it can, or that is not known.
func (s *Schedule) refusal(w *Waiter, ahead int, now time.Duration) *Refusal {
	turn, closed := max(now, s.earliest(ahead)), s.Opens-now
	var patience time.Duration
	switch {
	case closed > w.MaxWait, turn > now && turn >= w.deadline:
	// The time until RefusedUntil counts, not until now: if the program was frozen, nobody
	// tried meanwhile.
	case closed > 0 && w.Patience > 0 && s.RefusedUntil-max(s.RefusedSince, w.limitedSince) >= w.Patience:
		patience = w.Patience
	default:
		return nil
	}
	return &Refusal{LimitKey: s.Key, TraceID: s.TraceID, RetryAfter: turn - now, Patience: patience}
}

// refuseLateLocked refuses the calls that can no longer go in time.
func (e *Engine) refuseLateLocked(q *queue, now time.Duration) {
	for ahead := 0; ahead < len(q.calls); {
		w := q.calls[ahead]
		if refusal := q.refusal(w, ahead, now); refusal != nil {
			e.refuseLocked(q, w, refusal)
		} else {
			ahead++
		}
	}
}

func (e *Engine) refuseLocked(q *queue, w *Waiter, err error) {
	q.remove(w)
	w.Limit, w.Trace = q.Key, q.TraceID
	w.endWait(e.elapsed, err)
}

// endWait ends the wait of a call: it goes at that time, or fails with err.
func (w *Waiter) endWait(at time.Duration, err error) {
	w.Waited, w.err = at-w.entered, err
	if w.waitEnded != nil {
		close(w.waitEnded)
	}
}

// Background runs work on a goroutine, without the lock, and after it after, with the lock. An
// error of work, or a panic, which would end the program, ends all waiting calls.
func (e *Engine) Background(work func() error, after func()) {
	go func() {
		failure := ErrPanic // if work ends its goroutine
		defer func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if failure != nil {
				e.failAllLocked(failure)
			}
			after()
		}()
		failure = Protect(work)
	}()
}

// failAllLocked ends all waiting calls.
func (e *Engine) failAllLocked(err error) {
	for _, q := range e.queues {
		q.Schedule, q.asking = Schedule{}, false // do not wait for a DeliverLocked that may never come
		for len(q.calls) > 0 {
			e.refuseLocked(q, q.calls[0], err)
		}
	}
}

// Protect turns a panic of f into an error. It is for code of others (a store, a logger)
// on goroutines of this module, where a panic would end the program.
func Protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, r)
		}
	}()
	return f()
}

// ErrPanic is the error of a call in which code of others panicked: a transport, an
// observer, a limiter, a store.
var ErrPanic = errors.New("a part of the program panicked")

// An EngineHolder is embedded in a limiter that is built on an engine, such as a Pacer. A client
// that is given the limiter uses the engine directly, in place of its cool-down.
type EngineHolder struct {
	limiter any
	engine  *Engine
}

// NewEngineHolder returns the EngineHolder to embed in limiter.
func NewEngineHolder(limiter any, e *Engine) EngineHolder { return EngineHolder{limiter, e} }

// engineOf is unexported, so that only a type with an EngineHolder in it can have the method.
func (h EngineHolder) engineOf(limiter any) *Engine {
	if h.limiter != limiter { // a type of the user's embeds the limiter: its own Acquire must be called
		return nil
	}
	return h.engine
}

// EngineOf returns the engine of a limiter with an [EngineHolder]; nil if it has none.
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

// RealClock is package time: the clock of this machine, or of the synctest bubble.
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

// maxJump is longer than any wait. A clock that is further ahead of its last reading is
// another clock: a synctest bubble begins in the year 2000, and is followed by real time.
const maxJump = 10 * 365 * 24 * time.Hour

// nowLocked reads a clock, which is the engine's from then on, and returns the engine's
// time. If the clock was set back, or is another one, the engine's time stays where it is,
// and moves on with the clock from there.
func (e *Engine) nowLocked(clock Clock) time.Duration {
	now := clock.Now()
	e.clock = clock
	switch d := now.Sub(e.last); {
	case d < -time.Second || d > maxJump:
		e.rule.ClockReset()
	case d > 0:
		e.elapsed += d
	}
	e.last = now
	return e.elapsed
}

// line holds waiting calls in the order in which they go. Tenants take turns: in each
// round, one call of every tenant goes.
type line struct {
	calls   []*Waiter         // ordered by round
	round   int               // of the call that went last
	tenants map[string]tenant // the tenants with waiting calls
}

type tenant struct {
	waiting int
	last    int // the round of its last call
}

// push puts a call into its place, and returns how many calls go before it. A new call
// joins the round after the current one at the earliest: otherwise ever new tenants could
// keep all others waiting. A call that the service has refused joins the current round,
// because it has waited before.
func (l *line) push(w *Waiter) (before int) {
	t := l.tenants[w.Tenant]
	w.round = l.round
	if !w.Requeued {
		w.round = max(l.round, t.last) + 1
		t.last = w.round
	}
	t.waiting++
	l.tenants[w.Tenant] = t
	before, _ = slices.BinarySearchFunc(l.calls, w.round+1, byRound)
	l.calls = slices.Insert(l.calls, before, w)
	w.inLine = true
	return before
}

func byRound(w *Waiter, round int) int { return w.round - round }

// next takes out the call that goes next.
func (l *line) next() *Waiter {
	w := l.calls[0]
	l.remove(w)
	l.round = w.round
	return w
}

// remove takes out a call that waits. If it was the last of its tenant, the tenant's next
// call takes its round.
func (l *line) remove(w *Waiter) {
	i, _ := slices.BinarySearchFunc(l.calls, w.round, byRound) // 100,000 calls may leave at once
	if i += slices.Index(l.calls[i:], w); i == 0 {
		l.calls[0], l.calls = nil, l.calls[1:] // the usual case, without moving the others
	} else {
		l.calls = slices.Delete(l.calls, i, i+1)
	}
	w.inLine = false
	t := l.tenants[w.Tenant]
	if t.waiting--; t.last == w.round {
		t.last--
	}
	if l.tenants[w.Tenant] = t; t.waiting == 0 {
		delete(l.tenants, w.Tenant)
	}
}
