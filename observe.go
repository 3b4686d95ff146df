package agentmessaging

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// An Observer is told what happens inside calls. It is called on the calling
// goroutine, in order, and must not block. Nothing that it is told holds a
// key, a text or a body.
type Observer interface {
	// Observe takes one event. The context that it returns replaces the
	// call's after a [CallStart], the attempt's after an [AttemptStart] and
	// that of the transport after a [RequestStart], so that spans nest; after
	// other events, or where it is nil, it is ignored.
	Observe(ctx context.Context, event Event) context.Context
}

// ObserverFunc is a function as an [Observer].
type ObserverFunc func(ctx context.Context, event Event) context.Context

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, event Event) context.Context { return f(ctx, event) }

// Event is one of [CallStart], [CallEnd], [AttemptStart], [RequestStart],
// [AttemptEnd], [Retry], [LimiterWait] and [CoolDown]. More may be added, and
// fields to each: ignore those that you do not know.
type Event interface{ event() }

// CallStart is the begin of a method's call. A call whose arguments are
// refused ([ErrInvalid]) has none, and no other event.
type CallStart struct {
	Endpoint Endpoint
	AgentID  string   // that the call names; empty if it names none
	URL      *url.URL // of every attempt; a copy. It holds the agent's ID
}

// CallEnd is its end.
type CallEnd struct {
	Endpoint   Endpoint
	AgentID    string        // that the call names, or has created
	StatusCode int           // of the last answer; 0: none
	TraceID    string        // of the last answer
	Attempts   int           // made, those that could not reach the service included
	Waited     time.Duration // between attempts and for the limiter
	Elapsed    time.Duration
	Err        error // what the method returns
}

// AttemptStart is the begin of one attempt, before the limiter is asked.
type AttemptStart struct {
	Endpoint Endpoint
	Attempt  int // from 1
}

// RequestStart is the begin of an attempt's request, when the limiter has let
// it pass. Where the limiter refuses the attempt there is none: nothing was
// sent, and the next event is its [AttemptEnd].
type RequestStart struct {
	Endpoint Endpoint
	Attempt  int // from 1
}

// AttemptEnd is the end of an attempt, and of its request.
type AttemptEnd struct {
	Endpoint   Endpoint
	Attempt    int
	StatusCode int           // 0: no answer
	Elapsed    time.Duration // since the [AttemptStart]; the limiter's wait is part of it
	Err        error         // no answer, or a success that cannot be read
}

// Retry is the decision to wait and try again.
type Retry struct {
	Endpoint Endpoint
	Attempt  int           // the one that failed
	Outcome  string        // how it ended, as in the table of the package documentation
	Wait     time.Duration // before the next attempt
}

// LimiterWait is a wait of a millisecond at least for the cool-down or the
// [Limiter], within an attempt and before anything of it is sent. It is told
// when the wait is over.
type LimiterWait struct {
	Endpoint Endpoint
	Attempt  int    // that the limiter held up
	LimitKey string // that it waited for; one line of at most 64 bytes, empty if not known
	Wait     time.Duration
}

// CoolDown is a 429 that began the cool-down of a limit, or prolonged it by a
// second at least. It is told by the call that was refused; the callers that
// are parked have a [LimiterWait] each. With [WithoutCoolDown] there is none; a
// [Limiter] that has a cool-down of its own tells of it by a [PermitReporter].
type CoolDown struct {
	Endpoint Endpoint
	LimitKey string        // one line of at most 64 bytes; empty if the answer named none
	Wait     time.Duration // until the limit opens, as Retry-After told
}

func (CallStart) event()    {}
func (CallEnd) event()      {}
func (AttemptStart) event() {}
func (RequestStart) event() {}
func (AttemptEnd) event()   {}
func (Retry) event()        {}
func (LimiterWait) event()  {}
func (CoolDown) event()     {}

// Endpoint names what a call calls.
type Endpoint struct {
	Name         string // the client's method, such as SendMessage
	Method, Path string // Path is the template, such as /v1/agents/{agent_id}
}

// observers tells several observers in order.
type observers []Observer

func (o observers) observer() Observer {
	if len(o) == 0 {
		return nil
	}
	return o
}

func (o observers) Observe(ctx context.Context, event Event) context.Context {
	for _, observer := range o {
		if next := observer.Observe(ctx, event); next != nil {
			ctx = next
		}
	}
	return ctx
}

// timeline is when a call and its current attempt began, for observers.
type timeline struct{ call, attempt time.Time }

func (c *call) name() Endpoint {
	return Endpoint{Name: c.endpoint.Name, Method: c.endpoint.Method, Path: c.endpoint.Path}
}

// observe tells the observer, if there is one, and returns its context.
func (c *call) observe(ctx context.Context, event Event) context.Context {
	if next := c.client.observer.Observe(ctx, event); next != nil {
		return next
	}
	return ctx
}

func (c *call) start(ctx context.Context) context.Context {
	if c.client.observer == nil {
		return ctx
	}
	c.began.call = time.Now()
	target := c.url
	return c.observe(ctx, CallStart{Endpoint: c.name(), AgentID: c.agentID, URL: &target})
}

// end reports the finished call and passes its error on.
func (c *call) end(ctx context.Context, err error) error {
	traceID := c.lastTraceID(err)
	c.fillInfo(traceID)
	if c.client.observer != nil {
		c.observe(ctx, CallEnd{
			Endpoint: c.name(), AgentID: c.knownAgentID(), StatusCode: c.out.status, TraceID: c.redacted(traceID),
			Attempts: c.made(), Waited: c.waited, Elapsed: time.Since(c.began.call), Err: err,
		})
	}
	return err
}

// knownAgentID is that of the agent that the call names, or has created.
func (c *call) knownAgentID() string {
	if created, ok := c.result.(*Agent); ok && c.agentID == "" {
		return c.redacted(created.ID)
	}
	return c.agentID
}

// lastTraceID is that of the last answer; err is what the call returns.
func (c *call) lastTraceID(err error) string {
	if err == nil {
		return c.out.traceID
	}
	var failure *Error
	if errors.As(err, &failure) {
		return failure.TraceID
	}
	return c.out.traceID
}

// redacted is what the service said, for observers.
func (c *call) redacted(text string) string {
	if text == "" {
		return ""
	}
	return c.scrub().text(text)
}

func (c *call) startAttempt(ctx context.Context) context.Context {
	if c.client.observer == nil {
		return ctx
	}
	c.began.attempt = time.Now()
	return c.observe(ctx, AttemptStart{Endpoint: c.name(), Attempt: c.attempts})
}

func (c *call) startRequest(ctx context.Context) context.Context {
	if c.client.observer == nil {
		return ctx
	}
	return c.observe(ctx, RequestStart{Endpoint: c.name(), Attempt: c.attempts})
}

func (c *call) endAttempt(ctx context.Context) {
	if c.client.observer == nil {
		return
	}
	c.observe(ctx, AttemptEnd{
		Endpoint: c.name(), Attempt: c.attempts, StatusCode: c.out.status, Elapsed: time.Since(c.began.attempt),
		Err: c.scrubbed(c.out.err, c.ended(ctx)), // net/http returns the context's cause alone
	})
}

func (c *call) observeRetry(ctx context.Context, outcome string) {
	if c.client.observer != nil {
		c.observe(ctx, Retry{Endpoint: c.name(), Attempt: c.attempts, Outcome: outcome, Wait: c.pause})
	}
}

func (c *call) observeLimiterWait(ctx context.Context, limitKey string, wait time.Duration) {
	if c.client.observer != nil {
		c.observe(ctx, LimiterWait{Endpoint: c.name(), Attempt: c.attempts, LimitKey: limitKey, Wait: wait})
	}
}

func (c *call) observeCoolDown(ctx context.Context, limitKey string, wait time.Duration) {
	if c.client.observer != nil {
		c.observe(ctx, CoolDown{Endpoint: c.name(), LimitKey: gateKey(limitKey), Wait: wait})
	}
}
