package agentmessaging

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Limiter decides when an attempt may be sent, so that calls wait here
// instead of being refused there (interface 8). Every attempt, retries
// included, acquires a [Permit] first, also after the wait that Retry-After
// asked for. A client that is given none has a cool-down: a 429 parks the
// callers of the limit that it names until its Retry-After has passed. A
// Limiter that is given to [WithLimiter] takes the place of the cool-down and
// is in charge of all of this. Implementations are safe for concurrent use.
type Limiter interface {
	// Acquire waits until the attempt may be sent, callers of the same kind
	// in about the order in which they came. It returns ctx's error as soon
	// as ctx ends. Where the wait would pass ctx's deadline, or nobody could go
	// for longer than the attempt's MaxWait, it returns at once, with an
	// [*Error] of status 429 that has RetryAfter set, which the caller of the
	// method gets with Local set. Any other error is the call's cause.
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
	// MaxWait is the longest wait that the service may ask for:
	// [RetryPolicy].MaxWait. 0 means 90 s.
	MaxWait time.Duration
}

// A Permit is the leave to send one attempt. Done is called exactly once, even
// where the transport panics.
type Permit interface {
	// Done reports how the attempt ended. An attempt with Sent false has
	// spent nothing: it gives its permit back. It must not block.
	Done(AttemptOutcome)
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

// Unlimited returns a [Limiter] that lets every attempt pass at once:
// WithLimiter(Unlimited()) turns the cool-down off. Calls that are refused
// still wait for Retry-After before they try again, each for itself.
func Unlimited() Limiter { return unlimited{} }

type unlimited struct{}

// Acquire implements Limiter.
func (unlimited) Acquire(context.Context, LimitedAttempt) (Permit, error) { return unlimited{}, nil }

func (unlimited) acquire(context.Context, LimitedAttempt) (Permit, time.Duration, error) {
	return unlimited{}, 0, nil
}

// Done implements Permit.
func (unlimited) Done(AttemptOutcome) {}

// acquire asks the client's limiter, and counts what it waited.
func (c *call) acquire(ctx context.Context) (Permit, error) {
	permit, waited, err := ask(ctx, c.client.limiter, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: c.attempts, SetsBYOK: c.setsBYOK,
		MaxWait: c.client.retry.MaxWait,
	})
	if waited >= leastWait {
		c.waited += waited
		c.observeLimiterWait(ctx, waited)
	}
	if err == nil && isNil(permit) {
		err = errors.New("the limiter returned neither a permit nor an error")
	}
	return permit, err
}

// leastWait is what a limiter may take to decide without having waited.
const leastWait = time.Millisecond

// ask also tells how long the limiter took. Those of this package know, and
// spare every call the reading of a clock.
func ask(ctx context.Context, limiter Limiter, attempt LimitedAttempt) (Permit, time.Duration, error) {
	if own, ok := limiter.(interface {
		acquire(context.Context, LimitedAttempt) (Permit, time.Duration, error)
	}); ok {
		return own.acquire(ctx, attempt)
	}
	begin := time.Now()
	permit, err := limiter.Acquire(ctx, attempt)
	return permit, time.Since(begin), err
}

// release tells the permit how the attempt ended.
func (c *call) release(ctx context.Context, permit Permit) {
	report := c.report()
	cooling, ok := permit.(*coolPermit)
	if !ok {
		permit.Done(report)
		return
	}
	if cooling.done(report) {
		c.observeCoolDown(ctx, report)
	}
}

// report is what the limiter learns of the attempt.
func (c *call) report() AttemptOutcome {
	report := AttemptOutcome{StatusCode: c.out.status, Sent: c.out.sent}
	if c.out.status == http.StatusTooManyRequests {
		report.LimitKey = c.scrub().text(limitKey(c.out.body))
		report.RetryAfter = c.out.retryAfter()
	}
	return report
}

// retryAfter is what the answer's Retry-After asks for; 0 if nothing.
func (o *outcome) retryAfter() time.Duration {
	var longest time.Duration
	for name, values := range o.header {
		if !strings.EqualFold(name, "Retry-After") {
			continue
		}
		for _, value := range values {
			longest = max(longest, parseRetryAfter(value, o.header.Get("Date")))
		}
	}
	return longest
}

// parseRetryAfter reads a Retry-After value: seconds, whole or fractional, or
// one of the three HTTP date forms, measured against the answer's own Date so
// that the two clocks need not agree. It is never less than told and does not
// overflow; what cannot be read, is negative or has passed is 0.
func parseRetryAfter(value, date string) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseFloat(value, 64); err == nil || math.IsInf(seconds, 1) {
		return secondsToDuration(seconds)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(date)
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now)) // Sub saturates
}

// secondsToDuration rounds up and saturates at a length that can still be
// added to: 100 years.
func secondsToDuration(seconds float64) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	switch {
	case !(seconds > 0): // also not a number
		return 0
	case seconds >= longest.Seconds():
		return longest
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// limitKey is the limiter that a 429's body names (interface 7).
func limitKey(body []byte) string {
	var named struct {
		LimitKey string `json:"limit_key"`
	}
	if json.Unmarshal(body, &named) != nil {
		return ""
	}
	return named.LimitKey
}
