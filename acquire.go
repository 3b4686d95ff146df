package agentmessaging

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// permits let the attempts of one call be sent: that of the cool-down, and that of
// the client's limiter.
type permits struct {
	client   *Client
	endpoint *spec.Endpoint
	setsBYOK bool

	seat   cooldown.Seat
	passed bool   // the cool-down waits for the attempt's outcome
	permit Permit // of the limiter, which waits for it too; nil: none
}

// leastWait is how long a limiter may take to decide. What takes longer is a wait.
const leastWait = time.Millisecond

// acquire waits until the attempt may be sent, and returns how long it waited, and
// for which limit if that is known. It passes the cool-down and then asks the
// limiter. Where that made it wait, the cool-down may have begun meanwhile, and is
// passed again. number counts the attempts; tried are those that the policy counts.
func (p *permits) acquire(ctx context.Context, number, tried int) (limitKey string, waited time.Duration, err error) {
	limitKey, waited, err = p.passCoolDown(ctx, tried)
	if err != nil || p.client.limiter == nil {
		return limitKey, waited, err
	}
	key, asked, err := p.askLimiter(ctx, number)
	if asked < leastWait {
		return limitKey, waited, err
	}
	if limitKey, waited = key, waited+asked; err != nil {
		return limitKey, waited, err
	}
	p.giveBack()
	_, again, err := p.passCoolDown(ctx, tried)
	return limitKey, waited + again, err
}

// giveBack leaves the cool-down without having been sent.
func (p *permits) giveBack() {
	p.passed = false
	p.client.coolDown.Done(&p.seat, cooldown.Outcome{})
}

func (p *permits) passCoolDown(ctx context.Context, tried int) (limitKey string, waited time.Duration, err error) {
	retry := p.client.retry
	limitKey, waited, err = p.client.coolDown.Pass(ctx, cooldown.Attempt{
		Endpoint: p.endpoint, SetsBYOK: p.setsBYOK, Left: retry.MaxAttempts - tried, MaxWait: retry.MaxWait,
	}, &p.seat)
	if p.passed = err == nil; p.passed {
		return limitKey, waited, nil // before errors.As needs memory
	}
	if refusal := (*cooldown.Refusal)(nil); errors.As(err, &refusal) {
		err = coolDownError(refusal)
	}
	return limitKey, waited, err
}

func (p *permits) askLimiter(ctx context.Context, number int) (limitKey string, waited time.Duration, err error) {
	clock := p.client.time()
	began := clock.Now()
	permit, err := p.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: p.endpoint.Method, Path: p.endpoint.Path, Number: number, SetsBYOK: p.setsBYOK,
		MaxWait: p.client.retry.MaxWait, Clock: p.client.clock,
	})
	switch none := isNil(permit); {
	case err != nil && !none:
		permit.Done(AttemptOutcome{}) // it is not used
	case none && err == nil:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		p.permit = permit
		if reporter, ok := permit.(permitReporter); ok {
			limitKey, waited = reporter.Waited()
			return limitKey, waited, nil
		}
	}
	return "", max(0, clock.Now().Sub(began)), err // a clock may go back
}

// done reports how the attempt ended, or that it was not sent. It returns the limit
// that the outcome shut, and for how long; 0 if it shut none.
func (p *permits) done(a *attempt) (limitKey string, shut time.Duration) {
	permit, passed := p.permit, p.passed
	p.permit, p.passed = nil, false
	o := AttemptOutcome{Sent: a.Sent, StatusCode: a.Status}
	cooled := cooldown.Outcome{Sent: a.Sent}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		o.LimitKey, o.RetryAfter = a.failure.LimitKey, a.failure.RetryAfter
		cooled.Refused, cooled.TraceID = true, a.failure.TraceID
		cooled.LimitKey, cooled.RetryAfter = printable.Name(o.LimitKey), o.RetryAfter
	}
	if passed && p.client.coolDown.Done(&p.seat, cooled) {
		limitKey, shut = o.LimitKey, o.RetryAfter
	}
	if permit == nil {
		return limitKey, shut
	}
	permit.Done(o)
	if reporter, ok := permit.(permitReporter); ok && shut == 0 {
		return reporter.Closed()
	}
	return limitKey, shut
}

// random is the share of the jitter that the next wait gets. All who wait for the
// same limit to open share one.
func (p *permits) random() float64 {
	if p.seat.Parked {
		return p.seat.Random
	}
	return p.client.random()
}

// plan says that the call waits until its next attempt, because an answer asked for it.
func (p *permits) plan(asked, wait time.Duration) { p.seat.Waits(asked, wait) }
