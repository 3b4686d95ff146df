package agentmessaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file makes the error of an attempt, and of the call that ends with it. What an
// answer says is read in answer.go.

// finishError returns the error of a call that failed. stoppedBy says why there was no
// attempt, or none after the last one.
func (c *call) finishError(stoppedBy error) error {
	switch a := &c.last; {
	case a.next == actionUnknown:
		return c.outcomeUnknown(a.failure, a.answer)
	case a.next == actionError: // the failure is complete
	case c.last429 != nil && c.ctx.Err() != nil: // reported as if the context had ended in line for the limit
		a.failure = c.refusedHere(c.ctx, stoppedBy, false)
	default:
		a.failure = cmp.Or(a.failure, new(Error))
		a.failure.addCause(c.causeOf(c.ctx, cmp.Or(c.whyOver(), stoppedBy)))
	}
	return c.withFacts(c.last.failure)
}

// longestWait returns the longest wait that MaxWait and the deadline allow, and words that
// describe a longer wait.
func (c *call) longestWait() (longest time.Duration, beyond string) {
	longest, beyond = c.client.retry.MaxWait, "later than the RetryPolicy waits"
	if deadline, has := c.ctx.Deadline(); has && time.Until(deadline) < longest {
		longest, beyond = max(0, time.Until(deadline)-1), "after the call's deadline" // 1 ns before it: an attempt at the deadline is too late
	}
	return longest, beyond
}

// whyTurnedAway returns why the engine turns a call away: the service has refused every call for
// the time of WithTimeout (see Waiter.Patience), or the limit opens too late. opens is the time
// until it opens.
func (c *call) whyTurnedAway(by *quota.TurnedAway, opens time.Duration) error {
	if !by.TooLate {
		return fmt.Errorf("nobody in line has got through for %s", roundDuration(c.client.timeout))
	}
	return c.whyTooLong(opens)
}

// whyTooLong returns why a call does not begin a wait; nil if the wait is allowed.
func (c *call) whyTooLong(wait time.Duration) error {
	longest, beyond := c.longestWait()
	if wait <= longest {
		return nil
	}
	return fmt.Errorf("the next attempt is due in %s, %s (%s)", roundDuration(wait), beyond, roundDuration(longest))
}

// causeOf joins how ctx ended, err, and why ctx ended, without secrets: a cause that an error of
// this package may wrap. err comes from a transport, a limiter, a context or a BeforeSend
// function.
//
// errors.Is and errors.As find err in the cause, but no error of this package. Such an
// error is about another call: errgroup, for one, cancels the context of all calls with
// the first one's error.
func (c *call) causeOf(ctx context.Context, err error) error {
	return c.secrets.Error(isOwn, cmp.Or(ctx.Err(), c.whyOver()), err, cmp.Or(context.Cause(ctx), context.Cause(c.ctx)))
}

// refusedHere turns the error of the engine or of the user's limiter into the call's error,
// which says who refused the attempt and why. If a limit is the reason, it is a 429, as
// the service would have answered.
func (c *call) refusedHere(ctx context.Context, err error, byLimiter bool) *Error {
	var turnedAway *quota.TurnedAway
	var own *Error // of the user's limiter
	e := &Error{StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, Local: true, by: c.refusedBy(byLimiter)}
	inLine := fmt.Errorf("in line for a limit: %w", err)
	switch {
	case errors.As(err, &turnedAway):
		e.TraceID, e.LimitKey, e.RetryAfter = turnedAway.TraceID, turnedAway.LimitKey, turnedAway.RetryAfter
		e.cause = c.whyTurnedAway(turnedAway, e.RetryAfter)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.LimitKey, e.TraceID = c.waiter.LimitKey, c.waiter.TraceID
		if last := c.last429; last != nil {
			e.Code, e.TraceID, e.Reason, e.Extra = last.Code, last.TraceID, last.Reason, last.Extra
		}
		e.cause = c.causeOf(ctx, inLine)
	case ctx.Err() != nil: // the caller canceled: not a 429
		return &Error{cause: c.causeOf(ctx, inLine)}
	case errors.As(err, &own) && own != nil && own.StatusCode == http.StatusTooManyRequests:
		e.Code, e.TraceID, e.LimitKey, e.Reason = own.Code, own.TraceID, own.LimitKey, own.Reason
		e.redact(&c.secrets)
		e.RetryAfter = max(0, own.RetryAfter)
		e.cause = c.whyTooLong(e.RetryAfter)
	default:
		return &Error{Local: true, by: e.by, cause: c.causeOf(ctx, err)}
	}
	return e
}

// refusedBy returns who refused an attempt, for Error.by; "" means a limiter or a Pacer.
func (c *call) refusedBy(byLimiter bool) string {
	switch {
	case byLimiter, c.client.pacer != nil:
		return ""
	case c.client.callsWaitAlone():
		return "client"
	}
	return "cool-down"
}

// nameTimeout returns err, why an answer was missed. If the Timeout of the http.Client caused
// it, the error says so. That WithTimeout has ended the call is said by causeOf.
func (c *call) nameTimeout(ctx context.Context, err error) error {
	timeout := c.client.httpClient.Timeout
	if err != context.DeadlineExceeded || cmp.Or(ctx.Err(), c.whyOver()) != nil || timeout <= 0 {
		return err
	}
	return fmt.Errorf("%w: the Timeout of the http.Client allows %s", err, roundDuration(timeout))
}

// withFacts adds the facts of the call to an attempt's failure, which becomes the call's error.
func (c *call) withFacts(e *Error) *Error {
	e.Method, e.Path, e.Attempts, e.Refusals = c.endpoint.Method, c.endpoint.Path, c.attempts, c.refusals
	return e
}

// outcomeUnknown returns the error of a POST that may have been carried out. e is the failure
// of its last attempt.
func (c *call) outcomeUnknown(e *Error, answer exchange.Answer) error {
	unknown := &OutcomeUnknownError{
		Method: c.endpoint.Method, Path: c.endpoint.Path, TraceID: e.TraceID, Missed: missed(answer, c.whyOver()), Err: c.withFacts(e),
	}
	if e.StatusCode == 0 {
		unknown.Err = e.cause // an Error without an answer would add nothing: unknown names the endpoint
	}
	return unknown
}

// missed returns how the answer to a POST was missed. ended says why the call could not
// go on; nil if it could.
func missed(a exchange.Answer, ended error) Missed {
	switch {
	case isServerError(a.Status):
		return MissedServerError
	case a.Missed == exchange.Unreadable:
		return MissedUnreadable
	case a.Missed == exchange.StreamRefused:
		return MissedStream
	case a.Missed == exchange.NoAnswer && errors.Is(ended, context.Canceled):
		return MissedCanceled
	case a.Missed == exchange.NoAnswer:
		return MissedTimeout
	}
	return MissedConnection
}
