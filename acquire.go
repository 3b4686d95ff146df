package agentmessaging

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// permits let the attempts of one call be sent: that of the line of its limits, which is
// a Pacer's or the cool-down, and that of a limiter of the user's.
type permits struct {
	client *Client
	waiter quota.Waiter  // in the line of a limit
	own    *quota.Engine // of this call alone, where the client has no cool-down; nil before a 429
	permit Permit        // of the limiter, which waits for the outcome; nil: none

	closed  time.Duration  // for how long the limit is closed that has refused the call
	refusal *quota.Refusal // why a call that was refused does not wait; nil: it does
}

// leastWait is how long a limiter may take to decide. What takes longer is a wait.
const leastWait = time.Millisecond

// limits returns what holds the call back after a 429.
func (p *permits) limits() *quota.Engine {
	if p.own != nil {
		return p.own
	}
	return p.client.limits
}

// acquire waits until the attempt may be sent, and returns how long it waited, and
// for which limit if that is known. It passes the line and then asks the user's
// limiter. Where that made it wait, a limit may have closed meanwhile, and the line is
// passed again.
func (p *permits) acquire(ctx context.Context, number int) (limitKey string, waited time.Duration, err error) {
	limitKey, waited, err = p.passLine(ctx)
	if err != nil || p.client.limiter == nil {
		return limitKey, waited, err
	}
	asked, err := p.askLimiter(ctx, number)
	if asked < leastWait {
		return limitKey, waited, err
	}
	if waited += asked; err != nil {
		return "", waited, err
	}
	p.limits().Done(&p.waiter, quota.Outcome{})
	_, again, err := p.passLine(ctx)
	return "", waited + again, err
}

func (p *permits) passLine(ctx context.Context) (limitKey string, waited time.Duration, err error) {
	err = p.limits().Acquire(ctx, &p.waiter)
	if err == nil {
		return p.waiter.Limit, p.waiter.Waited, nil // before errors.As needs memory
	}
	if refusal := (*quota.Refusal)(nil); errors.As(err, &refusal) {
		err = p.client.refused(refusal)
	}
	return p.waiter.Limit, p.waiter.Waited, err
}

// canWait reports whether a call that was refused can wait until its limit opens.
func (p *permits) canWait(ctx context.Context) bool {
	p.closed, p.refusal = p.limits().Forecast(ctx, &p.waiter)
	return p.refusal == nil
}

func (p *permits) askLimiter(ctx context.Context, number int) (waited time.Duration, err error) {
	clock := p.client.clockOrReal()
	began := clock.Now()
	permit, err := p.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: p.waiter.Endpoint.Method, Path: p.waiter.Endpoint.Path, Number: number, SetsBYOK: p.waiter.SetsBYOK,
		MaxWait: p.client.retry.MaxWait, Clock: p.client.clock,
	})
	switch none := isNil(permit); {
	case err != nil && !none:
		permit.Done(AttemptOutcome{}) // it is not used
	case none && err == nil:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		p.permit = permit
	}
	return max(0, clock.Now().Sub(began)), err // a clock may go back
}

// done reports how the attempt ended, or that it was not sent. It returns the limit
// that the outcome closed, and for how long; 0 if it closed none.
func (p *permits) done(a *attempt) (limitKey string, closed time.Duration) {
	permit := p.permit
	p.permit = nil
	o := AttemptOutcome{Sent: a.Sent, StatusCode: a.Status}
	cooled := quota.Outcome{Sent: a.Sent}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		o.LimitKey, o.RetryAfter = a.failure.LimitKey, a.failure.RetryAfter
		cooled.Refused, cooled.TraceID = true, a.failure.TraceID
		cooled.LimitKey, cooled.RetryAfter = printable.Name(o.LimitKey), o.RetryAfter
		if p.limits() == nil {
			p.own = quota.NewCoolDown(p.client.clock, p.client.random)
		}
	}
	if p.limits().Done(&p.waiter, cooled) && p.own == nil {
		limitKey, closed = o.LimitKey, o.RetryAfter
	}
	if permit != nil {
		permit.Done(o)
	}
	return limitKey, closed
}
