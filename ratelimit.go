package agentmessaging

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// A Limiter decides when an attempt may be sent, so that calls wait here
// instead of being refused there (interface 8). Every attempt, retries
// included, acquires a [Permit] first, also after the wait that Retry-After
// asked for. Implementations are safe for concurrent use.
//
// It is asked in addition to the client's cool-down, and after it: a 429 parks
// the callers of the limit that it names until its Retry-After has passed.
// [WithoutCoolDown] turns that off, and so does a Limiter with a method
// CoolsDown() bool that returns true, because it does the same itself.
type Limiter interface {
	// Acquire waits until the attempt may be sent, callers of the same kind
	// in about the order in which they came. It waits by the attempt's Clock
	// and returns ctx's error as soon as ctx ends. ctx has the deadline of the
	// caller, if any, and never that of [WithTimeout]. Where the wait would pass
	// it, or nobody could go for longer than the attempt's MaxWait, Acquire
	// returns at once, with an [*Error] of status 429 that has RetryAfter set,
	// which the caller of the method gets with Local set. Any other error is
	// the call's cause.
	Acquire(ctx context.Context, attempt LimitedAttempt) (Permit, error)
}

// LimitedAttempt is what a [Limiter] is told of an attempt.
type LimitedAttempt struct {
	// Method and Path name the endpoint; Path is the template, such as
	// /v1/agents/{agent_id}.
	Method, Path string
	// Number counts the attempts of the call from 1.
	Number int
	// SetsBYOK is true where the call also spends the BYOK set limit:
	// SetBYOK, and CreateAgent with LLM.APIKey (interface 8.1).
	SetsBYOK bool
	// MaxWait is the client's [RetryPolicy].MaxWait; 0 means 90 s. A limit that
	// is shut for longer than that refuses the attempt at once. The time that
	// others take who came earlier is no part of it.
	MaxWait time.Duration
	// Clock is the client's; nil means real time.
	Clock Clock
}

// A Permit is the leave to send one attempt. Done is called exactly once, even
// where the transport panics.
type Permit interface {
	// Done reports how the attempt ended. An attempt with Sent false has
	// spent nothing: it gives its permit back. It must not block.
	Done(AttemptOutcome)
}

// A PermitReporter is a [Permit] that says what it knows, for [LimiterWait],
// [CoolDown] and [CallInfo]. Of other permits the client measures the wait
// itself, and learns of no cool-down.
type PermitReporter interface {
	// Waited is how long Acquire waited, and for which limit; "" and 0 if it
	// did not wait.
	Waited() (limitKey string, wait time.Duration)
	// Closed is asked after Done: the limit that this outcome closed or
	// prolonged by a second at least, and for how long; "" and 0 if none.
	Closed() (limitKey string, wait time.Duration)
}

// AttemptOutcome is how a permitted attempt ended.
type AttemptOutcome struct {
	// StatusCode is the answer's status; 0 means that there was none.
	StatusCode int
	// Sent is false where it is certain that the service saw no request.
	Sent bool
	// LimitKey and RetryAfter are those of a 429: the limiter that refused,
	// in the service's words (interface 7), and the wait that it asks for.
	// Either is zero where the answer did not tell.
	LimitKey   string
	RetryAfter time.Duration
}

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
