// Package pacer holds calls back before the service refuses them, over several
// limits at once (interface 8.1): for one process, or for all processes of an
// API key through a store that they share.
//
//	p, err := pacer.New(pacer.PreviewLimits())
//	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(p))
//
// docs/rate-limits.md of this module says what it does, and how well.
package pacer

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// A Pacer is an agentmessaging.Limiter that keeps to limits, so that calls wait
// here instead of being refused there. After a quiet time a few calls go at
// once; when there are more than the limits allow they go evenly, in the order
// in which they came, interactive ones before batch ones ([WithPriority]) and
// tenants by turns ([WithTenant]). From refusals it learns what the service
// really allows.
//
// A call that could not go before its deadline is refused at once, with a local
// [*agentmessaging.Error] of status 429, and so is one whose limits let nobody
// go for longer than agentmessaging.RetryPolicy.MaxWait; the time that others
// take who came earlier is no part of that. What comes later can still
// put a call back: calls of higher priority, other processes, refusals. A call
// that has become hopeless by them is refused then.
//
// One Pacer is for one API key: give it to all clients of the key in the
// process. It waits by their clock (agentmessaging.WithClock). Several processes
// share a key through [WithStore].
type Pacer struct {
	store  Store // nil: this process is alone
	apiKey func() string
	logger *slog.Logger
	member int64

	mu     sync.Mutex
	limits []Limit
	rules  []rule
	time   stopwatch
	local  *state // of a process that is alone, or works on its share
	fleet  fleet
	queues map[queueKey]*queue
	heard  machine // the gates that this process has seen shut
	spread spread
	atWork context.Context    // ends when no call waits
	idle   context.CancelFunc // ends it; nil: there is none
}

// An Option changes how a [Pacer] works.
type Option func(*Pacer) error

// New returns a pacer that keeps limits: a set of this package such as
// [PreviewLimits], or your own, at most 30. It calls nobody. What is wrong with
// an argument is told by an *agentmessaging.ValidationError.
func New(limits []Limit, opts ...Option) (*Pacer, error) {
	rules, err := rulesOf(limits)
	if err != nil {
		return nil, err
	}
	p := &Pacer{
		logger: slog.New(slog.DiscardHandler), member: rand.Int64(), limits: slices.Clone(limits), rules: rules,
		time: stopwatch{clock: realClock{}}, queues: map[queueKey]*queue{}, heard: machine{state: &state{}},
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("opts", "an option is nil")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	p.fleet.key = p.key()
	return p, nil
}

// WithLogger writes a record at Warn when the store stops answering, has lost
// its state or is too slow for the limits, and one at Info when it is back. The
// default is to log nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(p *Pacer) error {
		if logger == nil {
			return invalid("WithLogger", "was given nil; leave the option out for the default")
		}
		p.logger = logger
		return nil
	}
}

// CoolsDown tells the client that a refusal holds back here the calls that it
// concerns, so that the client needs no cool-down of its own.
func (p *Pacer) CoolsDown() bool { return true }

// SetLimits replaces the limits, as after a change of plan. What was sent
// counts on for those with the same Key, Window and Counts. Processes that share
// a store may have different Max for a while, each keeping to its own.
func (p *Pacer) SetLimits(limits []Limit) error {
	rules, err := rulesOf(limits)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.local = p.carryOver(p.local, rules)
	p.fleet.seen = p.carryOver(p.fleet.seen, rules)
	p.limits, p.rules = slices.Clone(limits), rules
	if key := p.key(); key != p.fleet.key && p.fleet.seen != nil {
		p.fleet.key, p.fleet.seen.born = key, newSet
	} else {
		p.fleet.key = key
	}
	p.wakeAll()
	return nil
}

// carryOver is a state for other rules. The lock is held.
func (p *Pacer) carryOver(old *state, rules []rule) *state {
	if old == nil {
		return nil
	}
	next := newState(rules, old.now, old.born)
	next.gates, next.members, next.fresh = old.gates, old.members, old.fresh
	for i, r := range rules { // what was learned was about the old ones
		for j, was := range p.rules {
			if r.key == was.key && r.window == was.window && r.counts == was.counts {
				next.limits[i] = old.limits[j]
			}
		}
		l := &next.limits[i]
		l.level, l.top, l.corrected, l.due = 0, 0, 0, 0
	}
	(&machine{state: next, rules: rules, now: next.now, calls: 1}).resume(atOnceAtFirst)
	return next
}

// Acquire waits until the attempt may be sent; see agentmessaging.Limiter.
func (p *Pacer) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := kindsOf(attempt)
	priority, _ := ctx.Value(priorityKey{}).(Priority)
	p.mu.Lock()
	if k = p.limited(k); k == 0 {
		p.mu.Unlock()
		return &permit{}, nil
	}
	if attempt.Clock != nil {
		p.time.clock = attempt.Clock
	}
	now := p.time.now()
	q := p.queue(queueKey{k, priority == PriorityBatch})
	if granted := p.atOnce(q, now); granted != nil {
		p.mu.Unlock()
		return granted, nil
	}
	w, err := p.enter(ctx, q, attempt, now)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return p.wait(ctx, q, w, now)
}

// limited is 0 for what no rule counts.
func (p *Pacer) limited(k kinds) kinds {
	for i := range p.rules {
		if p.rules[i].counts&k != 0 {
			return k
		}
	}
	return 0
}

// atOnce grants a call of a process that is alone, if it need not wait.
func (p *Pacer) atOnce(q *queue, now int64) *permit {
	if p.store != nil || q.line.len() > 0 {
		return nil
	}
	got := p.here(now).ask(ask{member: p.member, kinds: q.kinds, batch: q.batch, spread: p.spread.guard(), waits: 1})
	if got.n == 0 {
		q.told(got, 0)
		return nil
	}
	return &permit{pacer: p, kinds: q.kinds, granted: got.grants[0].at, probe: got.grants[0].probe, sent: now}
}

// enter gives the call a place in the line, or refuses it.
func (p *Pacer) enter(ctx context.Context, q *queue, attempt agentmessaging.LimitedAttempt, now int64) (*waiter, error) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	w := &waiter{
		tenant: tenant, ready: make(chan *verdict, 1),
		maxWait: cmp.Or(attempt.MaxWait, defaultMaxWait).Microseconds(),
	}
	if deadline, has := ctx.Deadline(); has {
		w.deadline = max(1, now+time.Until(deadline).Microseconds())
	}
	if q.known(now) && q.hopeless(w, q.line.before(tenant), now) {
		if q.line.len() == 0 && p.store == nil {
			p.here(now).withdraw(ask{member: p.member, kinds: q.kinds, batch: q.batch})
		}
		return nil, p.refusal(q, q.line.before(tenant), now)
	}
	q.line.push(w)
	p.attend(q)
	return w, nil
}

// defaultMaxWait is agentmessaging.RetryPolicy's.
const defaultMaxWait = 90 * time.Second

func (p *Pacer) wait(ctx context.Context, q *queue, w *waiter, came int64) (agentmessaging.Permit, error) {
	var v *verdict
	select {
	case v = <-w.ready:
	case <-ctx.Done():
		if p.leave(q, w) {
			return nil, ctx.Err()
		}
		if v = <-w.ready; v.permit != nil {
			v.permit.Done(agentmessaging.AttemptOutcome{})
		}
		return nil, ctx.Err()
	}
	if v.err != nil {
		return nil, v.err
	}
	v.permit.waited = time.Duration(v.permit.sent-came) * time.Microsecond
	return v.permit, nil
}

// leave takes a call out of the line; false where it has its verdict.
func (p *Pacer) leave(q *queue, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := q.line.remove(w)
	p.attend(q)
	return waits
}

// here is the state of a process that asks nobody. The lock is held.
func (p *Pacer) here(now int64) *machine {
	if p.local == nil {
		p.local = newState(p.rules, now, 0)
	}
	m := p.local.at(p.rules, now)
	if p.store != nil {
		m.calls, m.lonely = p.fleet.size, p.fleet.lonely
		if m.lonely {
			m.hold = longHold
		}
	}
	return m
}

// refusal is the 429 of a call that has so many before it.
func (p *Pacer) refusal(q *queue, before int, now int64) error {
	wait := max(q.opens, q.turn(before)) - now
	key := p.rules[min(q.limit, len(p.rules)-1)].key
	return &agentmessaging.Error{
		StatusCode: http.StatusTooManyRequests, Code: "rate_limited", LimitKey: key,
		RetryAfter: time.Duration(max(1, wait)) * time.Microsecond,
	}
}

// stopwatch is time that goes forward only: a clock that is set back, or that
// belongs to another era as in a testing/synctest bubble, stands still.
type stopwatch struct {
	clock   agentmessaging.Clock
	elapsed int64
	last    time.Time
}

func (s *stopwatch) now() int64 {
	now := s.clock.Now()
	if s.last.IsZero() {
		s.elapsed = hour // a time of 0 means never
	} else if step := now.Sub(s.last); step > 0 {
		s.elapsed += step.Microseconds()
		now = s.last.Add(step.Truncate(time.Microsecond))
	}
	s.last = now
	return s.elapsed
}
