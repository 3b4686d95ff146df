// Package pacer holds calls back before the service refuses them, over several
// limits at once (interface 8.1): for one process, or for all processes of an
// API key through a store that they share.
//
//	p, err := pacer.New(pacer.PreviewLimits())
//	if err != nil {
//		return err
//	}
//	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(p))
//
// docs/rate-limits.md of this module says what it does, and how well.
//
// Within the package: short.go and long.go count limits by the minute and by the
// hour, blame.go decides which limit a refusal is about, line.go who of a
// process goes next, tickets.go which process. state.go holds all that,
// queue.go asks it for calls that wait. fleet.go finds it here, store.go in a store.
package pacer

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
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
// go for longer than agentmessaging.RetryPolicy.MaxWait. Calls of higher
// priority, other processes and refusals can put a waiting call back. It is
// refused as soon as it can no longer go before its deadline.
//
// One Pacer is for one API key: give it to all clients of the key in the process.
// It waits by their clock (agentmessaging.WithClock).
type Pacer struct {
	store  Store // nil: this process is alone
	apiKey func() string
	logger *slog.Logger
	member int64

	mu      sync.Mutex // guards what follows
	rules   []rule
	clock   agentmessaging.Clock
	last    time.Time     // that the clock has told
	passed  time.Duration // by it
	state   *state        // that this process works on, or what it saw in the store last
	machine machine       // of that state, reused
	fleet   fleet
	queues  map[class]*queue
}

// An Option changes how a [Pacer] works.
type Option func(*Pacer) error

// New returns a pacer that keeps limits: a set of this package such as
// [PreviewLimits], or your own, at most 30. It calls nobody. An argument
// that is wrong is refused with an *agentmessaging.ValidationError.
func New(limits []Limit, opts ...Option) (*Pacer, error) {
	rules, err := rulesOf(limits)
	if err != nil {
		return nil, err
	}
	p := &Pacer{
		logger: slog.New(slog.DiscardHandler), member: rand.Int64(), rules: rules,
		clock: cooldown.RealClock{}, last: time.Now(),
		queues: map[class]*queue{}, fleet: fleet{down: true, retryAt: math.MaxInt64, size: 1},
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("opts", "an option is nil")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	p.state = newState(rules, p.now())
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
// counts on for those with the same Key, Window and Counts, but no refusal that
// came before holds anybody back. Processes that share a store may have different
// Max for a while, each keeping to its own.
func (p *Pacer) SetLimits(limits []Limit) error {
	rules, err := rulesOf(limits)
	if err != nil {
		return err
	}
	var changed bool
	p.locked(func() {
		if changed = !slices.Equal(rules, p.rules); changed {
			old := p.here(p.now())
			m := newState(rules, old.now).at(rules, old.now)
			m.join(old)
			p.state, p.rules = m.state, rules
		}
	})
	if changed {
		p.step((*machine).reopen, p.wakeAll)
	}
	return nil
}

// Acquire waits until the attempt may be sent; see agentmessaging.Limiter.
func (p *Pacer) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := class{kindsOf(attempt), ctx.Value(priorityKey{}) == PriorityBatch}
	var q *queue
	var w *waiter
	p.locked(func() {
		if slices.ContainsFunc(p.rules, func(r rule) bool { return r.counts&key.Kinds != 0 }) {
			if q = p.queues[key]; q == nil {
				q = &queue{class: key, wake: func() {}}
				p.queues[key] = q
			}
			w = p.newWaiter(ctx, attempt)
			p.enter(q, w)
		}
	})
	switch {
	case w == nil:
		return &permit{}, nil
	case w.answered != nil:
		p.wait(ctx, q, w)
	}
	if w.err != nil {
		return nil, w.err
	}
	return &w.permit, nil
}

// newWaiter takes the attempt's clock for the pacer's. The lock is held.
func (p *Pacer) newWaiter(ctx context.Context, attempt agentmessaging.LimitedAttempt) *waiter {
	p.clock = cmp.Or(attempt.Clock, p.clock)
	w := &waiter{
		clock: p.clock, came: p.now(),
		maxWait: cmp.Or(attempt.MaxWait, cooldown.DefaultMaxWait).Microseconds(),
	}
	w.tenant, _ = ctx.Value(tenantKey{}).(string)
	if deadline, has := ctx.Deadline(); has {
		w.deadline = max(1, w.came+time.Until(deadline).Microseconds())
	}
	return w
}

func (p *Pacer) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// here is the state as this process knows it, at its time. The lock is held.
func (p *Pacer) here(now int64) *machine {
	p.machine = p.state.at(p.rules, now+p.fleet.offset)
	m := &p.machine
	m.member, m.offset, m.calls, m.lonely = p.member, m.now-now, max(1, p.fleet.size), p.fleet.size == 0
	return m
}

// now is what has passed by the client's clock. It never goes back: a clock that
// is set back, or one that begins in the year 1, goes on from there. A time of 0
// means never, so it begins at an hour. The lock is held.
func (p *Pacer) now() int64 {
	now := p.clock.Now()
	p.passed += max(0, now.Sub(p.last))
	p.last = now
	return hour + p.passed.Microseconds()
}
