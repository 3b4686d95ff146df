package agentmessaging

import (
	"context"
	"errors"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// acquire passes the cool-down and then the client's limiter, and counts what
// they waited. Where the limiter made it wait, the cool-down may have begun
// meanwhile, and is passed again.
func (c *call) acquire(ctx context.Context) error {
	if err := c.coolOff(ctx); err != nil || c.client.limiter == nil {
		return err
	}
	waited, err := c.ask(ctx)
	if err == nil && waited < leastWait {
		return nil
	}
	c.client.coolDown.Done(&c.seat, cooldown.Outcome{}) // it was not sent
	if err == nil {
		if err = c.coolOff(ctx); err != nil {
			c.permit.Done(AttemptOutcome{})
		}
	}
	return err
}

// coolOff waits for the client's cool-down.
func (c *call) coolOff(ctx context.Context) error {
	key, waited, err := c.client.coolDown.Pass(ctx, cooldown.Attempt{
		Endpoint: c.endpoint, SetsBYOK: c.setsBYOK,
		Left: c.client.retry.MaxAttempts - c.attempts, MaxWait: c.client.retry.MaxWait,
	}, &c.seat)
	c.countWait(ctx, key, waited)
	if err == nil {
		return nil // before errors.As needs memory
	}
	if refusal := (*cooldown.Refusal)(nil); errors.As(err, &refusal) {
		return coolDownError(refusal)
	}
	return err
}

// ask asks the client's limiter.
func (c *call) ask(ctx context.Context) (waited time.Duration, err error) {
	begin := c.client.time().Now()
	permit, err := c.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: c.attempts, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait, Clock: c.client.clock,
	})
	if err == nil && isNil(permit) {
		err = errors.New("the limiter returned neither a permit nor an error")
	}
	c.permit = permit
	var key string
	if reporter, ok := permit.(permitReporter); ok && err == nil {
		key, waited = reporter.Waited()
	} else {
		waited = c.client.time().Now().Sub(begin)
	}
	c.countWait(ctx, key, waited)
	return waited, err
}

// leastWait is how long a limiter may take to decide. What takes longer is a wait.
const leastWait = time.Millisecond

func (c *call) countWait(ctx context.Context, limitKey string, waited time.Duration) {
	if waited >= leastWait {
		c.waited += waited
		c.tellLimiterWait(ctx, limitKey, waited)
	}
}

// release reports to the cool-down and the limiter how the attempt ended.
func (c *call) release(ctx context.Context) {
	cooled := cooldown.Outcome{Sent: c.out.sent}
	report := AttemptOutcome{Sent: c.out.sent, StatusCode: c.out.status}
	if answer := c.out.answer; c.out.limited() {
		cooled.Refused, cooled.TraceID = true, answer.TraceID
		cooled.LimitKey, cooled.RetryAfter = printable.Name(answer.LimitKey), answer.RetryAfter
		report.LimitKey, report.RetryAfter = answer.LimitKey, answer.RetryAfter
	}
	if c.client.coolDown.Done(&c.seat, cooled) {
		c.tellCoolDown(ctx, cooled.LimitKey, cooled.RetryAfter)
	}
	if c.client.limiter == nil {
		return
	}
	c.permit.Done(report)
	if reporter, ok := c.permit.(permitReporter); ok {
		if key, wait := reporter.Closed(); wait > 0 {
			c.tellCoolDown(ctx, key, wait)
		}
	}
}
