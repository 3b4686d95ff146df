package agentmessaging

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file follows one attempt of a call, from top to bottom: run waits for the limits,
// sends the request, reads the answer and classifies the outcome.

// attempt is the state of one attempt.
type attempt struct {
	*call
	number  int       // from 1
	began   time.Time // by the client's clock; set if there are observers
	cookies []string  // from the http.Client's jar
	permit  Permit    // from the user's limiter; reportOutcome reports the outcome to it; nil: none
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
	ctx := a.ctx
	if a.client.handlers != nil {
		var stop context.CancelFunc
		ctx, stop = a.observe()
		defer stop()
		defer a.report(ctx)
	}
	defer a.reportOutcome(ctx)
	a.failure = a.acquire(ctx)
	if a.failure != nil {
		a.Err, a.outcome = a.withFacts(a.failure), outcomeRefused
		return
	}
	a.attempts++
	request := ctx
	if a.client.handlers != nil {
		defer a.client.handlers.begin(&request, func() Event { return RequestStart{a.subject, a.number} })()
	}
	a.send(request)
	a.outcome = classify(a.Answer, a.failure, a.endpoint, a.ctxErr())
	a.lastRefusal = nil
	if a.outcome == outcomeLimited {
		a.lastRefusal = a.failure
		a.refusals++
		if a.engine == nil { // WithoutCoolDown: this call waits in an engine that no other call uses
			a.engine = quota.NewCoolDown(a.client.random)
		}
	}
}

// observe reports the attempt's start, and prepares the events about its wait and its end.
func (a *attempt) observe() (context.Context, context.CancelFunc) {
	a.began = a.client.clock.Now() // before the event: if the clock panics, there is no AttemptEnd
	begun := a.ctx
	stop := a.client.handlers.begin(&begun, func() Event { return AttemptStart{a.subject, a.number} })
	ctx := begun // never changed, so OnWait can keep it without an allocation
	a.waiter.OnWait = func(w quota.Wait) {
		a.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
			return LimiterWaitStart{a.subject, a.number, w.Limit, w.Place, w.Expected}
		})
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
	if err := ctx.Err(); err != nil && a.lastRefusal == nil { // ctx ended before any limit delayed the call: not a 429
		return &Error{cause: a.redactCause(ctx, err)}
	}
	err := a.engine.Acquire(ctx, &a.waiter)
	limitKey, waited, byLimiter := a.waiter.Limit, a.waiter.Waited, false
	if err == nil && a.client.limiter != nil {
		var asked time.Duration
		asked, byLimiter, err = a.askLimiter(ctx)
		if asked >= minReportedWait {
			limitKey, waited = "", waited+asked // the user's limiter may have caused the wait, and it names no limit
		}
	}
	if waited >= minReportedWait {
		a.waited += waited
		a.client.handlers.emit(ctx, slog.LevelDebug, func() Event { return LimiterWait{a.subject, a.number, limitKey, waited} })
	}
	switch {
	case err != nil:
		return a.refusal(ctx, err, byLimiter)
	case a.beforeSend != nil:
		return a.askBeforeSend(ctx)
	}
	return nil
}

// askLimiter asks the user's limiter, after the engine has let the attempt pass. If a
// limit closes while the limiter makes the attempt wait, the attempt waits in the engine
// once more, in its old place. asked is the time that both waits took. byLimiter means
// that the error is the limiter's.
func (a *attempt) askLimiter(ctx context.Context) (asked time.Duration, byLimiter bool, err error) {
	began := a.client.clock.Now()
	a.permit, err = a.userPermit(ctx)
	asked = a.client.since(began)
	if err != nil || asked < minReportedWait {
		return asked, err != nil, err
	}
	if closed, _ := a.engine.Forecast(ctx, &a.waiter); closed > 0 {
		a.engine.Done(&a.waiter, quota.Outcome{})
		err = a.engine.Acquire(ctx, &a.waiter)
		asked += a.waiter.Waited
	}
	return asked, false, err
}

// userPermit returns a permit or an error of the user's limiter, never both, nor neither.
func (a *attempt) userPermit(ctx context.Context) (Permit, error) {
	permit, err := a.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: a.endpoint.Method, Path: a.endpoint.Path, Number: a.number, SetsBYOK: a.endpoint.Counts(spec.BYOKSets, a.setsBYOK),
		MaxWait: a.client.retry.MaxWait, Clock: a.client.clock,
	})
	if isnil.Value(err) { // a nil *Error in an error
		err = nil
	}
	switch none := isnil.Value(permit); {
	case err == nil && none:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		return permit, nil
	case !none:
		permit.Done(AttemptOutcome{}) // returned unused
	}
	return nil, err
}

// askBeforeSend calls the function of WithBeforeSend. It returns the refusal, or nil.
func (a *attempt) askBeforeSend(ctx context.Context) *Error {
	nested := context.WithValue(ctx, beforeSendKey{}, nil) // calls that the function makes do not call it again
	err := a.beforeSend(nested, a.number)
	if isnil.Value(err) { // a nil *Error in an error
		return nil
	}
	return &Error{by: "function of WithBeforeSend", cause: a.redactCause(ctx, err), Local: true}
}

// send sends the attempt's request and reads the answer. It subtracts the time that this
// takes, by the machine's clock, from the call's timeLeft. ctx may end before or after
// the call's context: an observer may have added a deadline, or dropped the caller's
// cancellation.
func (a *attempt) send(ctx context.Context) {
	began := time.Now()
	limit := a.timeLeft
	if timeout := a.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	if a.Err = ctx.Err(); a.Err == nil {
		a.Sent = true // if Send panics, the service may have seen the request
		a.Answer = a.client.sender.Send(ctx, exchange.Request{
			Method: a.endpoint.Method, URL: &a.url, Header: a.client.credentials().header, Cookies: a.cookies,
			Body: a.payload, Deadline: began.Add(limit),
		})
		if a.Status != 0 {
			a.read()
		}
	}
	a.timeLeft -= time.Since(began)
	if a.Err != nil {
		a.failure = cmp.Or(a.failure, new(Error))
		a.Err = a.redactCause(ctx, a.nameTimeout(ctx, a.Err))
		a.failure.cause = a.Err
	}
}

// read reads the answer. If it is not a documented success, read sets failure.
func (a *attempt) read() {
	secrets := &a.secrets
	switch {
	case a.Status/100 != 2:
		a.failure = readError(a.Answer, secrets)
	case a.Err != nil:
		a.failure = new(Error)
	default:
		a.parsed = parseBody(a.Body)
		if a.readResult(a.parsed); a.parsed.err == nil {
			return
		}
		a.Err, a.Missed = bodyError(a.Answer, a.parsed.err, secrets), exchange.Unreadable
		a.failure = &Error{TraceID: a.safeTraceID()}
	}
	a.failure.StatusCode, a.failure.RetryAfter = a.Status, retryafter.Read(a.Header, a.client.clock.Now())
}

// reportOutcome reports to the engine and to the user's limiter how the attempt ended, or
// that it was not sent.
func (a *attempt) reportOutcome(ctx context.Context) {
	o := quota.Outcome{Sent: a.Sent}
	if a.outcome == outcomeLimited {
		o.Refused, o.TraceID, o.LimitKey, o.RetryAfter = true, a.failure.TraceID, a.failure.LimitKey, a.failure.RetryAfter
	}
	if a.permit != nil { // deferred, since the clock may panic in the engine
		defer a.permit.Done(AttemptOutcome{StatusCode: a.Status, Sent: a.Sent, LimitKey: o.LimitKey, RetryAfter: o.RetryAfter})
	}
	if a.engine.Done(&a.waiter, o) && a.client.engine != nil {
		a.client.handlers.emit(ctx, slog.LevelInfo, func() Event { return CoolDown{a.subject, o.LimitKey, cmp.Or(o.RetryAfter, quota.MinClosed)} })
	}
}

// report sends observers the attempt's end.
func (a *attempt) report(ctx context.Context) {
	if a.parsed != nil && a.agentID == "" {
		a.subject.AgentID = a.secrets.Hide(a.parsed.agentID, redact.InName) // the agent that the call created
	}
	a.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
		e := AttemptEnd{
			Subject: a.subject, Attempt: a.number, StatusCode: a.Status, TraceID: a.safeTraceID(),
			Verdict: a.verdict(), Elapsed: a.client.since(a.began),
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
		a.traceID = printable.Line(a.secrets.Hide(a.parsed.traceID, redact.InName), maxTraceID)
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
