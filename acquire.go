package agentmessaging

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// acquire passes the cool-down and then the client's limiter, and counts what
// they waited. Where the limiter made it wait, the cool-down may have begun
// meanwhile, and is passed again.
func (c *call) acquire(ctx context.Context) error {
	attempt := LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: c.attempts, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait, Clock: c.client.clock,
	}
	if err := c.coolOff(ctx); err != nil || c.client.limiter == nil {
		return err
	}
	waited, err := c.ask(ctx, attempt)
	if err == nil && waited < leastWait {
		return nil
	}
	c.leaveSeat()
	if err == nil {
		if err = c.coolOff(ctx); err != nil {
			c.permit.Done(AttemptOutcome{})
		}
	}
	return err
}

// leaveSeat tells the cool-down that the attempt which it let pass was not sent.
func (c *call) leaveSeat() {
	if c.client.coolDown != nil {
		c.client.coolDown.Done(&c.seat, cooldown.Outcome{})
	}
}

// coolOff waits for the client's cool-down, if it has one.
func (c *call) coolOff(ctx context.Context) error {
	if c.client.coolDown == nil {
		return nil
	}
	key, waited, err := c.client.coolDown.Pass(ctx, cooldown.Attempt{
		Endpoint: c.endpoint, SetsBYOK: c.setsBYOK,
		Left: c.client.retry.MaxAttempts - c.attempts, MaxWait: c.client.retry.MaxWait,
	}, &c.seat)
	c.countWait(ctx, key, waited)
	if refusal := (*cooldown.Refusal)(nil); err != nil && errors.As(err, &refusal) {
		return &Error{
			StatusCode: http.StatusTooManyRequests, Code: codeRateLimited, TraceID: refusal.TraceID,
			LimitKey: refusal.LimitKey, RetryAfter: refusal.RetryAfter, by: "cool-down",
		}
	}
	return err
}

// codeRateLimited is the error member of every documented 429 (interface 7).
const codeRateLimited = "rate_limited"

// gateKey is a limit_key as it is kept and shown: foreign text, so one line of
// at most 64 bytes.
func gateKey(limitKey string) string { return scrub.Line(limitKey, 64) }

// ask asks the client's limiter.
func (c *call) ask(ctx context.Context, attempt LimitedAttempt) (waited time.Duration, err error) {
	begin := c.client.time().Now()
	permit, err := c.client.limiter.Acquire(ctx, attempt)
	if err == nil && isNil(permit) {
		err = errors.New("the limiter returned neither a permit nor an error")
	}
	c.permit = permit
	var key string
	if reporter, ok := permit.(PermitReporter); ok && err == nil {
		key, waited = reporter.Waited()
	} else {
		waited = c.client.time().Now().Sub(begin)
	}
	c.countWait(ctx, key, waited)
	return waited, err
}

// leastWait is what a limiter may take to decide without having waited.
const leastWait = time.Millisecond

func (c *call) countWait(ctx context.Context, limitKey string, waited time.Duration) {
	if waited >= leastWait {
		c.waited += waited
		c.tellLimiterWait(ctx, gateKey(limitKey), waited)
	}
}

// release tells the cool-down and the limiter how the attempt ended.
func (c *call) release(ctx context.Context) {
	report := c.report()
	if c.client.coolDown != nil {
		outcome := cooldown.Outcome{Sent: report.Sent}
		if report.StatusCode == http.StatusTooManyRequests {
			outcome.Refused, outcome.TraceID = true, c.described().TraceID
			outcome.LimitKey, outcome.RetryAfter = gateKey(report.LimitKey), report.RetryAfter
		}
		if c.client.coolDown.Done(&c.seat, outcome) {
			c.tellCoolDown(ctx, report.LimitKey, report.RetryAfter)
		}
	}
	if c.client.limiter == nil {
		return
	}
	c.permit.Done(report)
	if reporter, ok := c.permit.(PermitReporter); ok {
		if key, wait := reporter.Closed(); wait > 0 {
			c.tellCoolDown(ctx, key, wait)
		}
	}
}

// report is what the limiter learns of the attempt.
func (c *call) report() AttemptOutcome {
	report := AttemptOutcome{StatusCode: c.out.status, Sent: c.out.sent}
	if c.out.status == http.StatusTooManyRequests {
		report.LimitKey = c.described().LimitKey
		report.RetryAfter = c.out.retryAfter()
	}
	return report
}
