package agentmessaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file follows one attempt of a call, from top to bottom: run waits for the limits,
// sends the request, reads the answer and classifies the outcome.

// attempt is the state of one attempt.
type attempt struct {
	call    *call
	number  int       // from 1
	began   time.Time // by the client's clock; set if there are observers
	cookies []string  // from the http.Client's jar
	permit  Permit    // from the user's limiter; release reports the outcome to it; nil: none
	exchange.Answer
	parsed  *answerBody // the body of a 2xx; nil: no 2xx came
	traceID string      // parsed.traceID without secrets; set by safeTraceID
	failure *Error      // nil: success, or the attempt is not over
	outcome *outcome    // nil: the attempt is not over
	next    action      // the step after the attempt; empty: not decided yet
}

// run makes the attempt. The deferred functions also run if a transport, an observer or
// a limiter panics.
func (a *attempt) run() {
	c, ctx := a.call, a.call.ctx
	if c.client.handlers != nil {
		var stop func()
		ctx, stop = a.observe()
		defer stop()
		defer a.report(ctx)
	}
	defer a.release(ctx)
	a.failure = a.acquire(ctx)
	if a.failure != nil {
		a.Err, a.outcome = a.finishFailure(), outcomeRefused
		return
	}
	c.attempts++
	a.send(c.client.handlers.emit(ctx, silent, func() Event { return RequestStart{c.subject, a.number} }))
	a.outcome = classify(a.Answer, a.failure, c.endpoint, c.ctxErr())
	if c.limited = nil; a.outcome == outcomeLimited {
		c.limited = a.failure
		c.refusals++
		if c.engine == nil { // WithoutCoolDown: this call waits in an engine that no other call uses
			c.engine = quota.NewCoolDown(c.client.random)
		}
	}
}

// observe reports the attempt's start, and prepares the events about its wait and its end.
func (a *attempt) observe() (ctx context.Context, stop func()) {
	c := a.call
	ctx, stop = withDeadline(c.client.handlers.emit(c.ctx, silent, func() Event { return AttemptStart{c.subject, a.number} }), c.ctx)
	a.began = c.client.clock.Now()
	if c.client.handlers.wanted(ctx, slog.LevelDebug) {
		c.waiter.OnWait = func(w quota.Wait) {
			c.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
				return LimiterWaitStart{c.subject, a.number, w.Limit, w.Place, w.Expected}
			})
		}
	}
	return ctx, stop
}

// minReportedWait is the shortest wait for a limit that is reported. A limiter takes a
// moment to decide even if it delays nothing; that moment is not a wait.
const minReportedWait = time.Millisecond

// acquire waits until the attempt may be sent: it asks the engine, then the user's
// limiter, then the function of WithBeforeSend. It returns the refusal; nil if the
// attempt may be sent.
func (a *attempt) acquire(ctx context.Context) *Error {
	c, w := a.call, &a.call.waiter
	if err := ctx.Err(); err != nil && c.limited == nil { // ctx ended before any limit delayed the call: not a 429
		return &Error{cause: c.redactCause(ctx, err)}
	}
	err := c.engine.Acquire(ctx, w)
	limitKey, waited, byLimiter := w.Limit, w.Waited, false
	if err == nil && c.client.limiter != nil {
		var asked time.Duration
		asked, byLimiter, err = a.askLimiter(ctx)
		if asked >= minReportedWait {
			limitKey, waited = "", waited+asked // the user's limiter may have caused the wait, and it names no limit
		}
	}
	if waited >= minReportedWait {
		c.waited += waited
		c.client.handlers.emit(ctx, slog.LevelDebug, func() Event { return LimiterWait{c.subject, a.number, limitKey, waited} })
	}
	switch {
	case err != nil:
		return c.refusal(ctx, err, byLimiter)
	case c.beforeSend != nil:
		return a.askBeforeSend(ctx)
	}
	return nil
}

// askLimiter asks the user's limiter, after the engine has let the attempt pass. If a
// limit closes while the limiter makes the attempt wait, the attempt waits in the engine
// once more, in its old place. asked is the time that both waits took. byLimiter means
// that the error is the limiter's.
func (a *attempt) askLimiter(ctx context.Context) (asked time.Duration, byLimiter bool, err error) {
	c := a.call
	began := c.client.clock.Now()
	permit, err := c.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: a.number, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait, Clock: c.client.clock,
	})
	if isNil(err) { // a nil *Error in an error
		err = nil
	}
	switch none := isNil(permit); {
	case err != nil && !none:
		permit.Done(AttemptOutcome{}) // given back unused
	case none && err == nil:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		a.permit = permit
	}
	asked = c.client.since(began)
	if err != nil || asked < minReportedWait {
		return asked, err != nil, err
	}
	if closed, _ := c.engine.Forecast(ctx, &c.waiter); closed > 0 {
		c.engine.Done(&c.waiter, quota.Outcome{})
		err = c.engine.Acquire(ctx, &c.waiter)
		asked += c.waiter.Waited
	}
	return asked, false, err
}

// askBeforeSend calls the function of WithBeforeSend. It returns the refusal, or nil.
func (a *attempt) askBeforeSend(ctx context.Context) *Error {
	inside := context.WithValue(ctx, beforeSendKey{}, nil) // calls that the function makes do not call it again
	err := a.call.beforeSend(inside, a.number)
	if isNil(err) { // a nil *Error in an error
		return nil
	}
	return &Error{by: "function of WithBeforeSend", cause: a.call.redactCause(ctx, err), Local: true}
}

// refusal turns the error of the engine or of the user's limiter into the call's error,
// which says who refused the attempt and why. If a limit is the reason, it is a 429, as
// the service would have answered.
func (c *call) refusal(ctx context.Context, err error, byLimiter bool) *Error {
	var refused *quota.Refusal
	var own *Error // of the user's limiter
	e := &Error{StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, Local: true, by: c.refusedBy(byLimiter)}
	inLine := fmt.Errorf("in line for a limit: %w", err)
	switch {
	case errors.As(err, &refused):
		e.TraceID, e.LimitKey, e.RetryAfter = refused.TraceID, refused.LimitKey, refused.RetryAfter
		e.cause = c.whyRefused(refused, e.RetryAfter)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.LimitKey, e.TraceID = c.waiter.Limit, c.waiter.Trace
		if said := c.limited; said != nil {
			e.Code, e.TraceID, e.Reason, e.Extra = said.Code, said.TraceID, said.Reason, said.Extra
		}
		e.cause = c.redactCause(ctx, inLine)
	case ctx.Err() != nil: // the caller left: not a 429
		return &Error{cause: c.redactCause(ctx, inLine)}
	case errors.As(err, &own) && own.StatusCode == http.StatusTooManyRequests:
		e.Code, e.TraceID, e.LimitKey, e.Reason = own.Code, own.TraceID, own.LimitKey, own.Reason
		e.redact(&c.secrets)
		e.RetryAfter = max(0, own.RetryAfter)
		e.cause = c.whyTooLong(e.RetryAfter)
	default:
		return &Error{Local: true, by: e.by, cause: c.redactCause(ctx, err)}
	}
	return e
}

// refusedBy returns who refuses an attempt; "" stands for a limiter or a Pacer.
func (c *call) refusedBy(byLimiter bool) string {
	switch {
	case byLimiter, c.client.pacer != nil:
		return ""
	case c.client.noCoolDown:
		return "client"
	}
	return "cool-down"
}

// send sends the attempt's request and reads the answer. It subtracts the time that this
// takes, by the machine's clock, from the call's timeLeft. ctx may end before or after
// the call's context: an observer may have added a deadline, or dropped the caller's
// cancellation.
func (a *attempt) send(ctx context.Context) {
	c, began := a.call, time.Now()
	limit := c.timeLeft
	if timeout := c.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	if deadline, has := c.ctx.Deadline(); has {
		limit = min(limit, deadline.Sub(began))
	}
	if a.Err = ctx.Err(); a.Err == nil {
		a.Sent = true // if Send panics, the service may have seen the request
		a.Answer = c.client.sender.Send(ctx, exchange.Request{
			Method: c.endpoint.Method, URL: &c.url, Header: c.client.header(c.payload != nil), Cookies: a.cookies,
			Body: c.payload, Deadline: began.Add(limit),
		})
		if a.Status != 0 {
			a.read()
		}
	}
	c.timeLeft -= time.Since(began)
	if a.Err != nil {
		a.failure = cmp.Or(a.failure, new(Error))
		a.Err = c.redactCause(ctx, a.nameTimeout(ctx))
		a.failure.cause = a.Err
	}
}

// nameTimeout returns a.Err. If the Timeout of the http.Client caused it, the error says
// so. redactCause does the same for WithTimeout.
func (a *attempt) nameTimeout(ctx context.Context) error {
	timeout := a.call.client.httpClient.Timeout
	if a.Err != context.DeadlineExceeded || cmp.Or(ctx.Err(), a.call.ctxErr()) != nil || timeout <= 0 {
		return a.Err
	}
	return fmt.Errorf("%w: the Timeout of the http.Client allows %s", a.Err, roundDuration(timeout))
}

// read reads the answer. If it is not a documented success, read sets failure.
func (a *attempt) read() {
	secrets := &a.call.secrets
	switch {
	case a.Status/100 != 2:
		a.failure = readError(a.Answer, secrets)
	case a.Err != nil:
		a.failure = new(Error)
	default:
		a.parsed = parseBody(a.Body)
		if a.call.readResult(a.parsed); a.parsed.err == nil {
			return
		}
		a.Err, a.Missed = notDocumented(a.Answer, a.parsed.err, secrets), exchange.Unreadable
		a.failure = &Error{TraceID: a.safeTraceID()}
	}
	a.failure.StatusCode, a.failure.RetryAfter = a.Status, retryafter.Read(a.Header, a.call.client.clock.Now())
}

// release reports to the engine and to the user's limiter how the attempt ended, or that
// it was not sent.
func (a *attempt) release(ctx context.Context) {
	c, o := a.call, quota.Outcome{Sent: a.Sent}
	if a.outcome == outcomeLimited {
		o.Refused, o.TraceID, o.LimitKey, o.RetryAfter = true, a.failure.TraceID, a.failure.LimitKey, a.failure.RetryAfter
	}
	if a.permit != nil { // deferred, since the clock may panic in the engine
		defer a.permit.Done(AttemptOutcome{StatusCode: a.Status, Sent: a.Sent, LimitKey: o.LimitKey, RetryAfter: o.RetryAfter})
	}
	if c.engine.Done(&c.waiter, o) && c.client.engine != nil {
		c.client.handlers.emit(ctx, slog.LevelInfo, func() Event { return CoolDown{c.subject, o.LimitKey, cmp.Or(o.RetryAfter, quota.MinClosed)} })
	}
}

// report sends observers the attempt's end.
func (a *attempt) report(ctx context.Context) {
	c := a.call
	if a.parsed != nil && c.agentID == "" {
		c.subject.AgentID = c.secrets.Hide(a.parsed.agentID, redact.InName) // the agent that the call created
	}
	c.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
		e := AttemptEnd{
			Subject: c.subject, Attempt: a.number, StatusCode: a.Status, TraceID: a.safeTraceID(),
			Verdict: a.verdict(), Elapsed: c.client.since(a.began),
		}
		if a.outcome != nil { // after a panic the error is not redacted yet
			e.Err = a.Err
		}
		if a.outcome == outcomeLimited {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}

// safeTraceID returns the answer's trace_id without secrets; empty if there is none.
func (a *attempt) safeTraceID() string {
	switch {
	case a.Status != 0 && a.failure != nil:
		return a.failure.TraceID
	case a.parsed != nil && a.traceID == "":
		a.traceID = safeName(a.parsed.traceID, maxTraceID, &a.call.secrets)
	}
	return a.traceID
}

// verdict returns whether the service did what the attempt asked for. The POST column of
// the retry table answers this for every method: a POST is retried only if the service
// certainly did nothing.
func (a *attempt) verdict() Verdict {
	o := cmp.Or(a.outcome, outcomeUnsent) // nil after a panic
	switch {
	case o.post == actionSuccess:
		return VerdictDone
	case o.post == actionUnknown, a.outcome == nil && a.Sent:
		return VerdictUnknown
	}
	return VerdictNotDone
}

// finishFailure adds the facts of the call to the attempt's failure, and returns it as the
// call's error.
func (a *attempt) finishFailure() *Error {
	c, e := a.call, a.failure
	e.Method, e.Path, e.Attempts, e.Refusals = c.endpoint.Method, c.endpoint.Path, c.attempts, c.refusals
	return e
}

// outcomeUnknownError returns the error of a POST that may have been carried out.
func (a *attempt) outcomeUnknownError() error {
	e := a.finishFailure()
	unknown := &OutcomeUnknownError{Method: e.Method, Path: e.Path, TraceID: e.TraceID, Missed: missed(a.Answer, a.call.ctxErr()), Err: e}
	if e.StatusCode == 0 {
		unknown.Err = e.cause // an Error without an answer would add nothing: unknown names the endpoint
	}
	return unknown
}
