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

// The calls of a process wait in an engine of package quota, whose rule is the
// coordinator (coordinator.go, and store.go for the way to a store). What it knows is a
// ledger: budget.go counts limits, ledger.go also decides which limit a refusal is
// about, and tickets.go which process goes next.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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
// It waits by their clock (agentmessaging.WithClock). A client that is given a Pacer
// needs no cool-down; one that is given a limiter of yours around a Pacer has.
type Pacer struct {
	holder
	engine      *quota.Engine
	coordinator *coordinator
}

type holder = quota.Holder

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
	c := &coordinator{logger: slog.New(slog.DiscardHandler), refusing: map[costSet]refusals{}}
	p := &Pacer{engine: quota.NewEngine(c, nil), coordinator: c}
	p.holder = quota.NewHolder(p, p.engine)
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("opts", "an option is nil")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	c.begin(p.engine.Now(), rules)
	return p, nil
}

// WithLogger writes a record at Warn when the store stops answering or has lost
// its state, and one at Info when it is back. The default is to log nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(p *Pacer) error {
		if logger == nil {
			return invalid("WithLogger", "was given nil; leave the option out for the default")
		}
		p.coordinator.logger = logger
		return nil
	}
}

// SetLimits replaces the limits, as after a change of plan. What was sent
// counts on for those with the same Key, Window and Counts, but no refusal that
// came before holds anybody back. Processes that share a store may have different
// Max for a while, each keeping to its own.
func (p *Pacer) SetLimits(limits []Limit) error {
	rules, err := rulesOf(limits)
	if err != nil {
		return err
	}
	if p.coordinator.setRules(p.engine.Now(), rules) {
		p.engine.Changed()
	}
	return nil
}

// Acquire waits until the attempt may be sent; see agentmessaging.Limiter.
func (p *Pacer) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	permit := &permit{p.engine, quota.Waiter{
		Endpoint: spec.Find(attempt.Method, attempt.Path), SetsBYOK: attempt.SetsBYOK,
		MaxWait: cmp.Or(attempt.MaxWait, quota.DefaultMaxWait), Clock: attempt.Clock,
	}}
	err := p.engine.Acquire(ctx, &permit.waiter)
	if refusal := (*quota.Refusal)(nil); errors.As(err, &refusal) {
		return nil, &agentmessaging.Error{
			StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, LimitKey: refusal.LimitKey, RetryAfter: refusal.RetryAfter,
		}
	}
	if err != nil {
		return nil, err
	}
	return permit, nil
}

// permit is for those who ask the pacer themselves. A client uses its engine.
type permit struct {
	engine *quota.Engine
	waiter quota.Waiter
}

// Done is of agentmessaging.Permit.
func (p *permit) Done(o agentmessaging.AttemptOutcome) {
	p.engine.Done(&p.waiter, quota.Outcome{
		Refused: o.StatusCode == http.StatusTooManyRequests, Sent: o.Sent || o.StatusCode != 0,
		LimitKey: printable.Name(o.LimitKey), RetryAfter: o.RetryAfter,
	})
}

// Priority orders calls that wait in a [Pacer].
type Priority int

const (
	// PriorityInteractive is for calls that a person waits for; the default.
	PriorityInteractive Priority = iota
	// PriorityBatch is for calls that can wait: interactive ones go first. So
	// that batch calls do not starve, every eighth permit goes to one.
	PriorityBatch
)

type (
	priorityKey struct{}
	tenantKey   struct{}
)

// WithPriority returns a context under which calls have the given priority.
func WithPriority(ctx context.Context, priority Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, priority)
}

// WithTenant returns a context under which calls belong to a tenant, such as
// one of your customers. The tenants of a process that wait with the same
// priority take turns, so one with a thousand waiting calls does not delay one
// that has a single call. Calls without a tenant are one tenant together.
func WithTenant(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, tenantKey{}, id)
}
