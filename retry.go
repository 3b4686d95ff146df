package agentmessaging

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// RetryPolicy says how often a call tries and how long it waits. The zero
// value is the default. Which outcomes are retried is fixed: the package
// documentation has the table.
type RetryPolicy struct {
	// MaxAttempts is the number of failed attempts after which a call gives up. 0 means 3, 1
	// means no retries.
	//
	// A 429 does not count: the call waits in line and is sent again, until it fails for one
	// of the reasons that the package documentation lists under Limits. If MaxAttempts is 1,
	// a 429 is not retried either, so a batch at a limit loses calls.
	//
	// Over HTTP/2 a call may make two more requests that do not count: when an old
	// connection is closing and does not take the request, the client sends it at once on a
	// new one ([CallInfo].Renewals). Limiters and observers see every attempt.
	MaxAttempts int
	// MinWait is the wait after the first failure, unless the service asks for a longer one.
	// It doubles with each failure, up to 8 s or MaxWait, whichever is shorter; a MinWait
	// above 8 s stays as it is. Jitter adds up to half of it, and a tenth of the Retry-After.
	// After a 429 the Retry-After decides, not MinWait. 0 means 500 ms, or MaxWait if that is
	// shorter. NewClient refuses a MinWait longer than MaxWait, unless MaxAttempts is 1.
	MinWait time.Duration
	// MaxWait is the longest single wait, for a limit or between attempts. If the service
	// asks for more, as for a daily limit, the error is returned at once with RetryAfter
	// set. The same goes for the client's own longer and longer waits while a limit lets
	// nobody through. 0 means 90 s, enough for a minute limit. A wait after a 429 is bounded
	// by MaxWait and the context's deadline, not by [WithTimeout]. The time in line after
	// other calls is bounded by the deadline only.
	MaxWait time.Duration
}

// The other defaults are quota.DefaultMinWait and quota.DefaultMaxWait, because the
// cool-down and package pacer use them too.
const (
	defaultAttempts = 3
	longestBackoff  = 8 * time.Second
	maxRenewals     = 2 // repeats on a new connection, on top of MaxAttempts
)

func (p RetryPolicy) validate() error {
	switch {
	case p.MaxAttempts < 0:
		return &ValidationError{Field: "RetryPolicy.MaxAttempts", Reason: "must not be negative; 1 means no retries"}
	case p.MinWait < 0:
		return &ValidationError{Field: "RetryPolicy.MinWait", Reason: "must not be negative"}
	case p.MaxWait < 0:
		return &ValidationError{Field: "RetryPolicy.MaxWait", Reason: "must not be negative"}
	}
	p = p.withDefaults()
	if p.MaxAttempts > 1 && p.MinWait > p.MaxWait {
		return &ValidationError{Field: "RetryPolicy.MinWait", Reason: fmt.Sprintf(
			"is %s, longer than MaxWait (%s): no wait would be allowed; raise MaxWait, or set MaxAttempts to 1", p.MinWait, p.MaxWait)}
	}
	return nil
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = defaultAttempts
	}
	if p.MaxWait == 0 {
		p.MaxWait = quota.DefaultMaxWait
	}
	if p.MinWait == 0 {
		p.MinWait = min(quota.DefaultMinWait, p.MaxWait)
	}
	return p
}

// wait returns how long to wait after a failed attempt, numbered from 1. asked is the
// answer's Retry-After, or 0. longest bounds the wait. random, in [0, 1), decides the
// jitter. If the shortest allowed wait is longer than longest, wait returns it and false.
func (p RetryPolicy) wait(attempt int, asked, longest time.Duration, random float64) (time.Duration, bool) {
	backoff := p.backoff(attempt)
	shortest := max(asked, backoff)
	if shortest > longest {
		return shortest, false
	}
	return shortest + quota.Jitter(asked, backoff, longest-shortest, random), true
}

// backoff returns the shortest wait after an attempt. It doubles from MinWait up to
// longestBackoff and MaxWait.
func (p RetryPolicy) backoff(attempt int) time.Duration {
	wait := p.MinWait
	for n := 1; n < attempt && wait < longestBackoff; n++ {
		wait = min(2*wait, longestBackoff, p.MaxWait)
	}
	return wait
}

// retryBudget bounds the retries during an outage. A client and the clients that With makes
// of it share one budget. Five successful calls pay for one retry. In addition,
// maxFreeRetries retries need no successful call; one of them is restored every
// freeRetryEvery.
//
// Only a retry after a failure that the service may have seen draws from the budget. A
// retry after a 429 does not, because the cool-down bounds it. Nor does a retry of an
// attempt that was never sent, such as a dial that failed. The zero value has all free
// retries.
type retryBudget struct {
	successes atomic.Int64 // calls that succeeded and have not paid for a retry yet

	mu        sync.Mutex // guards what follows
	freeTaken float64    // free retries that were used and are not restored yet
	updated   time.Time  // when freeTaken was last updated
}

const (
	successesPerRetry = 5 // successes that pay for a retry
	maxSuccesses      = 100 * successesPerRetry
	maxFreeRetries    = 10.0                   // two retries each for five failing calls
	freeRetryEvery    = 500 * time.Millisecond // one caller with the default waits retries less often
)

func (b *retryBudget) succeed() {
	if b.successes.Load() < maxSuccesses {
		b.successes.Add(1)
	}
}

// take spends a retry of the budget. It reports false if the budget is empty.
func (b *retryBudget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.updated); passed > 0 {
		b.freeTaken = max(0, b.freeTaken-passed.Seconds()/freeRetryEvery.Seconds())
	}
	b.updated = now
	switch {
	case b.successes.Load() >= successesPerRetry:
		b.successes.Add(-successesPerRetry)
	case b.freeTaken <= maxFreeRetries-1:
		b.freeTaken++
	default:
		return false
	}
	return true
}

// Why a call was not retried although the retry table allows it.
var (
	errNoTime      = errors.New("not retried, since WithTimeout leaves no time for it")
	errBudgetEmpty = fmt.Errorf("not retried, since the retry budget is empty: %d successful calls pay for one retry, and one is free every %s", successesPerRetry, freeRetryEvery)
)

// action says what the call does after an attempt.
type action string

const (
	actionSuccess action = "success"
	actionRetry   action = "retry"
	actionError   action = "error"
	actionUnknown action = "outcome unknown"
)

// outcome says how an attempt ended. It is a row of the retry table.
type outcome struct {
	name             string
	idempotent, post action // the step after GET, PUT and DELETE, and after POST
}

// actionAfter returns the step after an attempt with the method.
func (o *outcome) actionAfter(method string) action {
	if method == http.MethodPost {
		return o.post
	}
	return o.idempotent
}

// The outcomes, in the order of the table in the package documentation. A test compares
// the two.
var (
	outcomeSuccess      = &outcome{"2xx with a readable documented body", actionSuccess, actionSuccess}
	outcomeUnsent       = &outcome{"never sent", actionRetry, actionRetry}
	outcomeLost         = &outcome{"answer lost, truncated or not JSON", actionRetry, actionUnknown}
	outcomeLimited      = &outcome{"429", actionRetry, actionRetry} // from the service
	outcomeGatewayError = &outcome{"502, 503, 504", actionRetry, actionUnknown}
	outcomeUnavailable  = &outcome{"503 that the interface lists", actionRetry, actionError}
	outcomeServerError  = &outcome{"another 5xx", actionError, actionUnknown}
	outcomeOther        = &outcome{"any other answer", actionError, actionError}
	outcomeDenied       = &outcome{"certificate or CONNECT refused", actionError, actionError}
	outcomeEnded        = &outcome{"context ended before the request", actionError, actionError}
	outcomeEndedSent    = &outcome{"context ended after the request", actionError, actionUnknown}
	outcomeRefusedHere  = &outcome{"refused by the limiter", actionError, actionError} // or by the function of WithBeforeSend
)

// classify returns the outcome of an attempt that was not refused here. Once a complete
// answer has come, it does not matter whether the call can go on.
func (a *attempt) classify() *outcome {
	switch status, over := a.answer.Status, a.call.whyOver(); {
	case status == 0:
		return classifyUnanswered(a.answer, over)
	case a.failure == nil:
		return outcomeSuccess
	case status == http.StatusTooManyRequests:
		return outcomeLimited
	case status == http.StatusServiceUnavailable && a.call.endpoint.Lists(status) && a.failure.Code != "":
		return outcomeUnavailable // the only 5xx after which nothing was done (interface 4.2, 4.4)
	case status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout:
		return outcomeGatewayError
	case isServerError(status):
		return outcomeServerError
	case status/100 != 2, a.parsed != nil && errors.As(a.parsed.err, new(unconfirmed)): // the failure may hide words of this error
		return outcomeOther
	case over != nil:
		return outcomeEndedSent
	}
	return outcomeLost
}

// classifyUnanswered is classify for an attempt without an answer. over says why the call
// cannot go on; nil if it can.
func classifyUnanswered(a exchange.Answer, over error) *outcome {
	switch {
	case a.Sent && over != nil:
		return outcomeEndedSent
	case over != nil:
		return outcomeEnded
	case a.Sent:
		return outcomeLost
	case a.Missed == exchange.Denied:
		return outcomeDenied
	}
	return outcomeUnsent
}
