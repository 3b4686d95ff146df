// Package pacer holds calls back before the service refuses them, over several
// limits at once (interface 8.1, a section of the service's interface document):
// for one process, or for all processes of an API key through a store that they
// share.
//
// A client without a Pacer already waits after a refusal and repeats the call. Use a
// Pacer if refusals themselves are too many, if people wait for some calls while a
// batch runs, or if several programs share an API key.
//
//	p, err := pacer.New(pacer.PreviewLimits())
//	if err != nil {
//		return err
//	}
//	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(p))
//
// docs/limits.md of this module describes the behavior, with measurements.
package pacer

// The parts work together like this. The calls of a process wait in an engine of package quota.
// The engine's rule is the coordinator. It asks the ledger, which decides when the calls of the
// process may go, and which limit explains a refusal. A budget counts the calls of one limit in
// the ledger. With a store, all processes share the ledger's state through it, and each question
// to the ledger is part of a step, which loads, changes and swaps the state.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A Pacer is an agentmessaging.Limiter: calls wait in it, so that the service does
// not refuse them. After a quiet time it lets a few calls go at once. If more calls
// come than the limits allow, it sends them at an even pace, in the order in which
// they came. Interactive calls go before batch calls ([WithPriority]), and tenants take
// turns ([WithTenant]). From refusals the Pacer learns if the service allows less. The calls of
// a limit whose window is an hour or more are only counted: see [Limit].Window.
//
// A call fails with an [*agentmessaging.Error] of status 429 that has Local set, without being
// sent, if it could not go before its deadline, or if its limits let no call go for
// longer than agentmessaging.RetryPolicy.MaxWait. A call can also fail after it has begun to
// wait, because calls of higher priority, other processes and refusals can delay it.
//
// One Pacer is for one API key: give it to all clients of the key in the process. Calls
// wait by the client's clock (agentmessaging.WithClock). A client with WithLimiter(p)
// leaves the waiting after a 429 to the Pacer. If you wrap the Pacer in your own
// Limiter, the client itself also waits after a 429.
type Pacer struct {
	engineHolder
	coordinator *coordinator
}

type engineHolder = quota.EngineHolder

// An Option changes how a [Pacer] works.
type Option func(*Pacer) error

// New returns a pacer that keeps to limits: a set of this package such as
// [PreviewLimits], or your own list of 1 to 30. It makes no call to the service or
// the store. For a wrong argument it returns an *agentmessaging.ValidationError. Its Field
// is "limits", a field such as "limits[0].Max", "opts" for a nil option, or the name of
// the option.
func New(limits []Limit, opts ...Option) (*Pacer, error) {
	bounds, err := boundsOf(limits)
	if err != nil {
		return nil, err
	}
	c := &coordinator{logger: slog.New(slog.DiscardHandler)}
	c.engine = quota.NewEngine(c)
	p := &Pacer{coordinator: c}
	p.engineHolder = quota.NewEngineHolder(p, c.engine)
	for _, opt := range opts {
		if opt == nil {
			return nil, invalid("opts", "an option is nil")
		}
		if err := opt(p); err != nil {
			return nil, err
		}
	}
	c.engine.Update(func(now time.Duration) {
		c.ledger = ledger{state: newState(bounds, now), bounds: bounds, member: rand.Int64(), callWeight: 1}
		if c.store == nil {
			c.retryAt = quota.Never
			c.ledger.Members[c.ledger.member] = c.ledger.Now
		}
	})
	return p, nil
}

// WithLogger writes a record at level Warn when the store stops answering or has lost
// its state (at most once in two minutes), and a record at level Info when it answers again.
// Without WithLogger, the pacer logs nothing. A nil logger, or a logger without a handler, is
// an error.
func WithLogger(logger *slog.Logger) Option {
	return func(p *Pacer) error {
		if logger == nil || isnil.Value(logger.Handler()) { // new(slog.Logger) has no handler
			return invalid("WithLogger", "was given nil; leave the option out for the default")
		}
		p.coordinator.logger = logger
		return nil
	}
}

// SetLimits replaces the limits, for example after a change of plan. Limits with the
// same Key, Window and Counts as before keep the count of calls that were sent.
// Earlier refusals no longer hold calls back; but if no limit differs from before,
// SetLimits does nothing. While the processes that share a store
// have different values of Max, each keeps to its own. For a wrong limit, SetLimits
// returns the same *agentmessaging.ValidationError as New, and changes nothing.
func (p *Pacer) SetLimits(limits []Limit) error {
	bounds, err := boundsOf(limits)
	if err = cmp.Or(p.validate(), err); err != nil {
		return err
	}
	p.coordinator.engine.Update(func(now time.Duration) { p.coordinator.setBoundsLocked(now, bounds) })
	return nil
}

// validate returns an error for the zero Pacer.
func (p *Pacer) validate() error {
	if p.coordinator == nil {
		return invalid("Pacer", "is the zero value; make one with New")
	}
	return nil
}

// Acquire waits until the attempt may be sent; see agentmessaging.Limiter. Call it in your
// own Limiter that wraps the Pacer. Its error is the [*agentmessaging.Error] of status 429
// that Pacer describes (but the client sets its Local), ctx.Err(), or an error that names what
// failed: the attempt's Clock, or a part of the program that panicked. The zero Pacer returns
// an *agentmessaging.ValidationError.
func (p *Pacer) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := cmp.Or(p.validate(), ctx.Err()); err != nil {
		return nil, err
	}
	permit := &permit{p.coordinator.engine, quota.Waiter{
		Endpoint: cmp.Or(spec.Find(attempt.Method, attempt.Path), spec.Unlisted), SetsBYOK: attempt.SetsBYOK,
		MaxWait: cmp.Or(attempt.MaxWait, quota.DefaultMaxWait), Clock: cmp.Or[quota.Clock](attempt.Clock, quota.RealClock{}),
	}}
	err := permit.engine.Acquire(ctx, &permit.waiter)
	if turnedAway := (*quota.TurnedAway)(nil); errors.As(err, &turnedAway) {
		return nil, &agentmessaging.Error{
			StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited,
			TraceID: turnedAway.TraceID, LimitKey: turnedAway.LimitKey, RetryAfter: turnedAway.RetryAfter,
		}
	}
	if err != nil {
		return nil, err
	}
	return permit, nil
}

// permit is the result of Acquire, for a Limiter that wraps the pacer. A client with
// WithLimiter(p) uses the engine directly, without permits.
type permit struct {
	engine *quota.Engine
	waiter quota.Waiter
}

// Done implements agentmessaging.Permit.
func (p *permit) Done(o agentmessaging.AttemptOutcome) {
	p.engine.Done(&p.waiter, quota.Outcome{
		Refused: o.StatusCode == http.StatusTooManyRequests, Sent: o.Sent || o.StatusCode != 0, Unanswered: o.StatusCode == 0,
		LimitKey: printable.Name(o.LimitKey), RetryAfter: o.RetryAfter,
	})
}

// WithStore shares the limits with all processes whose pacers use the same store,
// apiKey and limits. Without WithStore, the process has the limits for itself. The
// pacer stores a value of less than two kilobytes for up to 16 processes, of less than one
// with [PreviewLimits]. The value holds no texts of messages. Its key in the store is a keyed
// hash, which does not reveal the API key. A nil store and an empty apiKey are errors.
//
// While the store does not answer, each process keeps to an equal share of the limits,
// by the number of processes that used the store last. A process that has never seen
// the store begins with a quarter of each limit whose window is shorter than an hour, and
// learns its share from refusals. Each process tries the store again about every two seconds,
// but never while an earlier call of the store has not returned: a method that ignores ctx and
// hangs keeps its process on the share.
//
// The pacer counts calls by the store's time, and calls wait by the client's clock. In a
// test with a fake clock, let Load return the time of that clock.
func WithStore(store Store, apiKey string) Option {
	return func(p *Pacer) error {
		switch {
		case isnil.Value(store):
			return invalid("WithStore", "was given a nil store")
		case apiKey == "":
			return invalid("WithStore", "was given an empty API key")
		}
		p.coordinator.store, p.coordinator.apiKey = &boundedStore{Store: store}, func() string { return apiKey }
		return nil
	}
}
