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
// docs/limits.md of this module says what it does, and how well.
package pacer

// short.go and long.go count limits by the minute and by the hour, blame.go
// decides which limit a refusal is about, line.go who of a process goes next,
// tickets.go which process. state.go holds all that. call.go is a call's way,
// queue.go asks the state for the calls that wait. fleet.go finds it here, store.go
// in a store.

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
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

	mu      sync.Mutex // guards what follows; functions with small letters run with it
	clock   agentmessaging.Clock
	last    time.Time     // that the clock has told
	passed  time.Duration // by it
	machine machine       // works on this process's state, or on what it saw in the store last
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
		logger: slog.New(slog.DiscardHandler), clock: quota.RealClock{}, last: time.Now(),
		queues: map[class]*queue{}, fleet: fleet{down: true, retryAt: math.MaxInt64},
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("opts", "an option is nil")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	p.machine = machine{state: newState(rules, p.now()), rules: rules, member: rand.Int64()}
	if p.store == nil {
		p.machine.Members[p.machine.member] = p.machine.Now
	}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(rules, p.machine.rules) {
		return nil
	}
	old := p.here(p.now())
	m := machine{state: newState(rules, old.Now), rules: rules, calls: 1}
	m.join(old)
	m.Members = old.Members
	p.machine.state, p.machine.rules = m.state, rules
	if err := p.step((*machine).reopen); err != nil {
		return err
	}
	p.wakeAll()
	return nil
}

// Acquire waits until the attempt may be sent; see agentmessaging.Limiter.
func (p *Pacer) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queueOf(class{kindsOf(attempt), ctx.Value(priorityKey{}) == PriorityBatch})
	if q == nil {
		return &call{}, nil
	}
	c := p.newCall(ctx, attempt)
	if p.enter(q, c); c.answered != nil {
		p.wait(ctx, q, c)
	}
	if c.err != nil {
		return nil, c.err
	}
	return c, nil
}

// queueOf returns nil for calls that no limit counts.
func (p *Pacer) queueOf(c class) *queue {
	if !slices.ContainsFunc(p.machine.rules, func(r rule) bool { return r.counts&c.Kinds != 0 }) {
		return nil
	}
	if p.queues[c] == nil {
		p.queues[c] = &queue{class: c, wake: func() {}}
	}
	return p.queues[c]
}

// outside runs what takes time, or is somebody else's, without the lock.
func (p *Pacer) outside(f func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	f()
}

// here is the state as this process knows it, at a time that now has told.
func (p *Pacer) here(now int64) *machine {
	m := &p.machine
	m.at(now + p.fleet.offset)
	m.offset, m.calls, m.lonely = m.Now-now, 1, len(m.Members) == 0
	if p.fleet.down {
		m.calls = max(1, int64(len(m.Members)))
	}
	return m
}

// now is what has passed by the client's clock. It never goes back: a clock that
// is set back, or one that begins in the year 1, goes on from there. A time of 0
// means never, so it begins at an hour.
func (p *Pacer) now() int64 {
	now := p.clock.Now()
	p.passed += max(0, now.Sub(p.last))
	p.last = now
	return hour + p.passed.Microseconds()
}
