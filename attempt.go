package agentmessaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// attempt is one attempt of a call, from top to bottom: run passes the limits, sends
// and reads, and says how it ended. What an answer means is in answer.go.
type attempt struct {
	call    *call
	number  int       // from 1
	began   time.Time // if there are observers
	cookies []string  // of the http.Client's jar
	permit  Permit    // of the user's limiter, which waits for the outcome; nil: none
	exchange.Answer
	reply   *reply   // the body of a 2xx; nil: none came
	traceID string   // that reply's, without secrets, once somebody has asked for it
	result  any      // of a success, made of the reply
	failure *Error   // what the answer says, or who refused the attempt, or the Go error; nil: success
	outcome *outcome // nil: it is not over
}

// run makes the attempt.
func (a *attempt) run() {
	c := a.call
	ctx := emit(c.ctx, c.client.handlers, silent, AttemptStart{c.subject, a.number})
	if c.client.handlers != nil {
		a.began = time.Now()
		defer a.report(ctx)
	}
	defer a.release(ctx) // also when a part of the program panics
	if a.failure = a.acquire(ctx); a.failure != nil {
		a.Err, a.outcome = a.fail(), outcomeRefused
		return
	}
	c.made.Attempts++
	a.send(emit(ctx, c.client.handlers, silent, RequestStart{c.subject, a.number}))
	if a.outcome = classify(a.Answer, a.failure, c.endpoint, c.whyOver()); a.outcome == outcomeLimited {
		c.made.Refusals++
	}
}

// leastWait is how long a limiter may take to decide. What takes longer is a wait.
const leastWait = time.Millisecond

// acquire waits until the attempt may be sent: it passes the limits, and asks the function
// of WithBeforeSend. It returns who has refused it; nil: nobody.
func (a *attempt) acquire(ctx context.Context) *Error {
	c := a.call
	if err := ctx.Err(); err != nil { // no limit has made it late
		return &Error{cause: c.cause(ctx, err)}
	}
	limitKey, waited, err := a.passLimits(ctx)
	if waited >= leastWait {
		c.made.Waited += waited
		emit(ctx, c.client.handlers, slog.LevelDebug, LimiterWait{c.subject, a.number, limitKey, waited})
	}
	if err != nil {
		return a.refusal(ctx, err)
	}
	return a.askBeforeSend(ctx)
}

// passLimits passes the line, and then the user's limiter. It returns how long both took,
// and the limit_key of what the attempt waited for; empty if it was that limiter.
func (a *attempt) passLimits(ctx context.Context) (limitKey string, waited time.Duration, err error) {
	c, w := a.call, &a.call.waiter
	if w.OnWait = nil; c.client.handlers.wanted(ctx, slog.LevelDebug) {
		w.OnWait = func(wait quota.Wait) {
			emit(ctx, c.client.handlers, slog.LevelDebug, LimiterWaitStart{c.subject, a.number, wait.Limit, wait.Place, wait.Ends})
		}
	}
	err = c.line.Acquire(ctx, w)
	limitKey, waited = w.Limit, w.Waited
	if err == nil && c.client.limiter != nil {
		var asked time.Duration
		if asked, err = a.askLimiter(ctx); asked >= leastWait {
			limitKey, waited = "", waited+asked
		}
	}
	return limitKey, waited, err
}

// askLimiter asks the user's limiter, for a call that has passed the line. Where that
// makes it wait, a limit may have closed meanwhile, and it passes the line again.
func (a *attempt) askLimiter(ctx context.Context) (asked time.Duration, err error) {
	c, clock := a.call, a.call.client.clockOrReal()
	began := clock.Now()
	permit, err := c.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: a.number, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait, Clock: c.client.clock,
	})
	if isNil(err) { // a nil *Error in an error
		err = nil
	}
	switch none := isNil(permit); {
	case err != nil && !none:
		permit.Done(AttemptOutcome{}) // it is not used
	case none && err == nil:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		a.permit = permit
	}
	asked = max(0, clock.Now().Sub(began)) // a clock may go back
	if err == nil && asked >= leastWait {
		c.line.Done(&c.waiter, quota.Outcome{})
		err = c.line.Acquire(ctx, &c.waiter)
		asked += c.waiter.Waited
	}
	return asked, err
}

// askBeforeSend asks the function of WithBeforeSend, if there is one.
func (a *attempt) askBeforeSend(ctx context.Context) *Error {
	c := a.call
	if c.beforeSend == nil {
		return nil
	}
	inside := context.WithValue(ctx, beforeSendKey{}, nil) // its own calls do not ask it
	err := c.beforeSend(inside, a.number)
	if isNil(err) { // a nil *Error in an error
		return nil
	}
	return &Error{by: "function of WithBeforeSend", cause: c.cause(ctx, err), Local: true}
}

// refusal says who has refused the attempt, and why. The error is a refusal of the line,
// or whatever the limiter returns.
func (a *attempt) refusal(ctx context.Context, err error) *Error {
	c, inLine, said := a.call, new(*quota.Refusal), new(*Error)
	e := &Error{Local: true}
	if (errors.As(err, inLine) || c.client.limiter == nil) && c.client.pacer == nil {
		e.by = "cool-down"
	}
	switch {
	case *inLine != nil: // as the service would have answered
		r := *inLine
		e.StatusCode, e.Code, e.TraceID, e.LimitKey, e.RetryAfter = http.StatusTooManyRequests, spec.RateLimited, r.TraceID, r.LimitKey, r.RetryAfter
		e.cause = c.tooLong(r.Patience, r.RetryAfter)
	case ctx.Err() != nil:
		e.cause = c.cause(ctx, fmt.Errorf("in line for a limit: %w", err))
		if e.Local = errors.Is(ctx.Err(), context.DeadlineExceeded); e.Local {
			e.StatusCode, e.Code, e.LimitKey = http.StatusTooManyRequests, spec.RateLimited, c.waiter.Limit
		}
	case errors.As(err, said) && (*said).StatusCode == http.StatusTooManyRequests:
		from := *said
		e.StatusCode, e.Code, e.TraceID, e.LimitKey, e.Reason = from.StatusCode, from.Code, from.TraceID, from.LimitKey, from.Reason
		e.redact(&c.secrets)
		e.RetryAfter = max(0, from.RetryAfter)
		e.cause = c.tooLong(0, e.RetryAfter)
	default:
		e.cause = c.cause(ctx, err)
	}
	return e
}

// send makes the request of the attempt and reads what comes back. A failed attempt
// takes its real length off the call's budget. An observer may have shortened its
// deadline.
func (a *attempt) send(ctx context.Context) {
	c, began := a.call, time.Now()
	if a.Err = ctx.Err(); a.Err == nil { // else it ended while the attempt waited, or an observer ended it
		a.Sent = true // unless Send knows better
		a.Answer = c.client.sender.Send(ctx, a.request(began))
		if a.read() {
			return
		}
	}
	c.budget -= time.Since(began)
	if a.Err == nil {
		return
	}
	if timeout := c.client.httpClient.Timeout; a.Err == context.DeadlineExceeded && ctx.Err() == nil { // a deadline of the client
		if over := c.whyOver(); over != nil {
			a.Err = over
		} else if timeout > 0 {
			a.Err = fmt.Errorf("%w: the Timeout of the http.Client allows %s", a.Err, human(timeout))
		}
	}
	a.failure = cmp.Or(a.failure, new(Error))
	a.Err = c.cause(ctx, a.Err)
	a.failure.cause = a.Err
}

// request is what the attempt sends, beginning now.
func (a *attempt) request(now time.Time) exchange.Request {
	c := a.call
	header := c.client.header(c.payload != nil)
	if a.cookies != nil {
		header = maps.Clone(header)
		header["Cookie"] = a.cookies
	}
	limit := c.budget
	if timeout := c.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	return exchange.Request{Method: c.endpoint.Method, URL: &c.url, Header: header, Body: c.payload, Deadline: now.Add(limit)}
}

// read reads the answer, if there is one, and reports whether it is a documented
// success. From any other answer it keeps the error body.
func (a *attempt) read() bool {
	secrets := &a.call.secrets
	switch {
	case a.Status == 0:
		return false
	case !isSuccess(a.Status):
		a.failure = readError(a.Answer, secrets)
	case a.Err != nil:
		a.failure = new(Error)
	default:
		a.reply = newReply(a.Body)
		if a.result = a.call.read(a.reply); a.reply.err == nil {
			return true
		}
		a.Err, a.Missed = notDocumented(a.Answer, a.reply.err, secrets), exchange.Unreadable
		a.failure = &Error{TraceID: a.safeTraceID()}
	}
	a.failure.StatusCode, a.failure.RetryAfter = a.Status, retryafter.Read(a.Header, time.Now())
	return false
}

// release tells the limiters how the attempt ended, or that it was not sent.
func (a *attempt) release(ctx context.Context) {
	c, o := a.call, quota.Outcome{Sent: a.Sent}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		o.Refused, o.TraceID = true, a.failure.TraceID
		o.LimitKey, o.RetryAfter = a.failure.LimitKey, a.failure.RetryAfter
		if c.line == nil { // without a cool-down, a call that was refused waits alone
			c.line = quota.NewCoolDown(c.client.clock, c.client.random)
		}
	}
	closed := c.line.Done(&c.waiter, o)
	if a.permit != nil {
		a.permit.Done(AttemptOutcome{StatusCode: a.Status, Sent: a.Sent, LimitKey: o.LimitKey, RetryAfter: o.RetryAfter})
	}
	if closed && c.client.limits != nil {
		emit(ctx, c.client.handlers, slog.LevelInfo, CoolDown{c.subject, o.LimitKey, o.RetryAfter})
	}
}

// report tells observers of the attempt's end.
func (a *attempt) report(ctx context.Context) {
	c := a.call
	if a.reply != nil && c.agentID == "" {
		c.subject.AgentID = c.secrets.Identifier(a.reply.agentID) // of the agent that was made
	}
	if !c.client.handlers.wanted(ctx, slog.LevelDebug) {
		return
	}
	e := AttemptEnd{
		Subject: c.subject, Attempt: a.number, StatusCode: a.Status, TraceID: a.safeTraceID(),
		Verdict: a.verdict(), Elapsed: time.Since(a.began),
	}
	if a.outcome != nil { // else a part of the program panicked, and the error may show a secret
		e.Err = a.Err
	}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		e.LimitKey = a.failure.LimitKey
	}
	emit(ctx, c.client.handlers, slog.LevelDebug, e)
}

// safeTraceID is the answer's trace_id without secrets; empty without an answer.
func (a *attempt) safeTraceID() string {
	switch {
	case a.reply != nil && a.traceID == "":
		a.traceID = printable.Line(a.call.secrets.Identifier(a.reply.traceID), maxTraceID)
	case a.Status != 0 && a.failure != nil:
		return a.failure.TraceID
	}
	return a.traceID
}

// verdict says whether the service did what the attempt asked for. The POST column of the
// retry table answers this: a POST is repeated only if the service certainly did nothing.
func (a *attempt) verdict() Verdict {
	if a.outcome == nil && a.Sent { // a part of the program panicked
		return VerdictUnknown
	}
	switch a.outcome.follows(http.MethodPost) {
	case actionSuccess:
		return VerdictDone
	case actionUnknown:
		return VerdictUnknown
	}
	return VerdictNotDone
}

// fail completes the attempt's failure, with which the call ends.
func (a *attempt) fail() *Error {
	c, e := a.call, a.failure
	e.Method, e.Path, e.Attempts, e.Refusals = c.endpoint.Method, c.endpoint.Path, c.made.Attempts, c.made.Refusals
	return e
}

// outcomeUnknownError is fail for a POST that may have been carried out.
func (a *attempt) outcomeUnknownError() error {
	e := a.fail()
	unknown := &OutcomeUnknownError{Method: e.Method, Path: e.Path, TraceID: e.TraceID, Missed: missed(a.Answer, a.call.whyOver()), Err: e}
	if e.StatusCode == 0 {
		unknown.Err = e.cause // the endpoint is named already
	}
	return unknown
}
