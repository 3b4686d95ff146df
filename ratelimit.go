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
// instead of being refused there. Every attempt, retries included, acquires a
// [Permit] first. Implementations are safe for concurrent use.
type Limiter interface {
	// Acquire waits until the attempt may be sent. It returns as soon as ctx
	// ends, and at once where the wait would pass ctx's deadline: then with
	// an [*Error] of status 429 that has RetryAfter set, which the caller of
	// the method gets with Local set.
	Acquire(ctx context.Context, attempt LimitedAttempt) (Permit, error)
}

// LimitedAttempt is what a [Limiter] is told of an attempt.
type LimitedAttempt struct {
	// Method and Path name the endpoint; Path is the template.
	Method, Path string
	// Number counts the attempts of the call from 1.
	Number int
	// SetsBYOK is true where the call also spends the BYOK set limit:
	// SetBYOK, and CreateAgent with LLM.APIKey (interface 8.1).
	SetsBYOK bool
}

// A Permit is the leave to send one attempt. Done is called exactly once.
type Permit interface {
	// Done reports how the attempt ended. An attempt that was never sent has
	// spent nothing and gives its permit back.
	Done(AttemptOutcome)
}

// AttemptOutcome is how a permitted attempt ended.
type AttemptOutcome struct {
	// StatusCode is the answer's status; 0 means that there was none.
	StatusCode int
	// Sent is false where it is certain that the service saw no request.
	Sent bool
	// LimitKey and RetryAfter are those of a 429.
	LimitKey   string
	RetryAfter time.Duration
}

// acquire asks the client's limiter, if it has one.
func (c *call) acquire(ctx context.Context) (Permit, error) {
	if c.client.limiter == nil {
		return freePermit{}, nil
	}
	permit, err := c.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: c.endpoint.Method, Path: c.endpoint.Path, Number: c.attempts, SetsBYOK: c.setsBYOK,
	})
	if err == nil && isNil(permit) {
		err = errors.New("the limiter returned neither a permit nor an error")
	}
	return permit, err
}

type freePermit struct{}

func (freePermit) Done(AttemptOutcome) {}

// report is what the limiter learns of an outcome.
func (o *outcome) report() AttemptOutcome {
	report := AttemptOutcome{StatusCode: o.status, Sent: o.sent}
	if o.status == http.StatusTooManyRequests {
		report.LimitKey, report.RetryAfter = limitKey(o.body), o.retryAfter()
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
