package agentmessaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// permits let the attempts of one call be sent.
type permits struct {
	line   *quota.Engine // of the limits: a Pacer's, the cool-down, or of this call alone; nil: none
	waiter quota.Waiter  // in the line
	permit Permit        // of the user's limiter, which waits for the outcome; nil: none
	closed time.Duration // for how long the limit is closed that has refused the call
}

// leastWait is how long a limiter may take to decide. What takes longer is a wait.
const leastWait = time.Millisecond

// acquire waits until the attempt may be sent: it passes the line, and asks the user's
// limiter and the function of WithBeforeSend. An error refuses the attempt.
func (c *call) acquire(ctx context.Context) error {
	w := &c.permits.waiter
	if w.OnWait = nil; c.number != 0 && c.client.handlers.wanted(ctx, slog.LevelDebug) {
		w.OnWait = func(wait quota.Wait) { c.reportWait(ctx, wait) }
	}
	err := c.permits.line.Acquire(ctx, w)
	limitKey, waited := w.Limit, w.Waited
	if err == nil && c.client.limiter != nil {
		limitKey, waited, err = c.askLimiter(ctx)
	}
	if waited >= leastWait {
		c.waited += waited
		emit(ctx, c.client.handlers, slog.LevelDebug, LimiterWait{
			Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: c.last.number, LimitKey: limitKey, Wait: waited,
		})
	}
	if err != nil {
		return c.refuse(err)
	}
	if c.beforeSend == nil {
		return nil
	}
	if err = c.beforeSend(ctx, c.last.number); err != nil {
		c.last.failure = &Error{by: "function of WithBeforeSend", cause: c.secrets.Error(err, c.whyOver()), Local: true}
	}
	return err
}

// askLimiter asks the user's limiter, for a call that has passed the line. Where that
// makes it wait, a limit may have closed meanwhile, and it passes the line again.
func (c *call) askLimiter(ctx context.Context) (limitKey string, waited time.Duration, err error) {
	clock, p := c.client.clockOrReal(), &c.permits
	began, inLine := clock.Now(), p.waiter.Waited
	permit, err := c.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: c.last.number, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait, Clock: c.client.clock,
	})
	switch none := isNil(permit); {
	case err != nil && !none:
		permit.Done(AttemptOutcome{}) // it is not used
	case none && err == nil:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		p.permit = permit
	}
	asked := max(0, clock.Now().Sub(began)) // a clock may go back
	if asked < leastWait {
		return p.waiter.Limit, inLine, err
	}
	if err == nil {
		p.line.Done(&p.waiter, quota.Outcome{})
		err = p.line.Acquire(ctx, &p.waiter)
		asked += p.waiter.Waited
	}
	return "", inLine + asked, err
}

// refuse says who has refused the attempt, and why. The error is a refusal of the line,
// or whatever the limiter returns.
func (c *call) refuse(err error) error {
	var (
		inLine *quota.Refusal
		said   *Error
		e      Error
	)
	switch {
	case errors.As(err, &inLine): // as the service would have answered
		e = Error{
			Method: c.endpoint.Method, Path: c.endpoint.Path,
			StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, TraceID: inLine.TraceID,
			LimitKey: inLine.LimitKey, RetryAfter: inLine.RetryAfter, cause: c.tooLong(inLine.Patience, inLine.RetryAfter),
		}
		if c.client.pacer == nil {
			e.by = "cool-down"
		}
		err = &e
	case errors.As(err, &said):
		e = *said
		e.LimitKey = printable.Name(e.LimitKey)
		if e.StatusCode == http.StatusTooManyRequests && e.cause == nil {
			e.cause = c.tooLong(0, e.RetryAfter)
		}
	case c.ctx.Err() != nil:
		e.cause = c.redactCause(fmt.Errorf("in line for a limit: %w", err))
	default:
		e.cause = c.redactCause(err)
	}
	e.Local = inLine != nil || said != nil
	c.last.failure = &e
	return err
}

// release says how the attempt ended, or that it was not sent.
func (c *call) release(ctx context.Context) {
	a, p := &c.last, &c.permits
	o := quota.Outcome{Sent: a.Sent}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		o.Refused, o.TraceID = true, a.failure.TraceID
		o.LimitKey, o.RetryAfter = a.failure.LimitKey, a.failure.RetryAfter
		if p.line == nil { // without a cool-down, a call that was refused waits alone
			p.line = quota.NewCoolDown(c.client.clock, c.client.random)
		}
	}
	closed := p.line.Done(&p.waiter, o)
	if permit := p.permit; permit != nil {
		p.permit = nil
		permit.Done(AttemptOutcome{StatusCode: a.Status, Sent: a.Sent, LimitKey: o.LimitKey, RetryAfter: o.RetryAfter})
	}
	if closed && c.client.limits != nil {
		emit(ctx, c.client.handlers, slog.LevelInfo, CoolDown{Call: c.number, Endpoint: c.subject, AgentID: c.agentID, LimitKey: o.LimitKey, Wait: o.RetryAfter})
	}
}
