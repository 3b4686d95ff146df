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
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// RetryPolicy says how often a call tries and how long it waits. The zero
// value is the default. Which outcomes are retried is fixed: the package
// documentation has the table.
type RetryPolicy struct {
	// MaxAttempts is how many requests a call sends at most, the first
	// included. 0 means 3, 1 means no retries. A 429 does not count. With 1, a 429 is
	// not repeated either, so a batch at a limit loses calls. Over HTTP/2 there may be
	// two more, which do not count here: a service replaces its connections now
	// and then, and the client sends again at once, on a new connection, what the
	// old one did not take ([CallInfo].Renewals). Limiters and observers see
	// each attempt.
	MaxAttempts int
	// MinWait is the wait before the second attempt where the service does not ask for
	// a longer one. It doubles with each attempt, up to 8 s or to MaxWait, unless MinWait
	// itself is longer than 8 s. Half of it is added as jitter at most. 0 means 500 ms,
	// or MaxWait if that is shorter. NewClient refuses one that is longer than MaxWait,
	// unless MaxAttempts is 1.
	MinWait time.Duration
	// MaxWait is the longest single wait, for a limit or between attempts. Where the
	// service asks for more, as a daily limit does, the error is returned at once with
	// RetryAfter set. 0 means 90 s, enough for a minute limit. After a 429, [WithTimeout]
	// bounds no single wait: only MaxWait and the deadline do. MaxWait does not bound the
	// time in line with other calls; a deadline does.
	MaxWait time.Duration
}

// The default waits are quota.DefaultMinWait, by which the cool-down jitters, and
// DefaultMaxWait, which the pacer uses too.
const (
	defaultAttempts = 3
	maxBackoff      = 8 * time.Second
	maxRenewals     = 2 // of a connection, on top of the attempts
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
	if p = p.withDefaults(); p.MaxAttempts > 1 && p.MinWait > p.MaxWait {
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

// wait is how long to wait after the given attempt. asked is what Retry-After asks
// for, or 0; no wait may be longer than longest; random is in [0, 1). It reports
// false where not even the shortest allowed wait fits.
func (p RetryPolicy) wait(attempt int, asked, longest time.Duration, random float64) (time.Duration, bool) {
	backoff := p.backoff(attempt)
	shortest := max(asked, backoff)
	if shortest > longest {
		return 0, false
	}
	return shortest + quota.Jitter(asked, backoff, longest-shortest, random), true
}

// backoff doubles from MinWait, up to maxBackoff and MaxWait. No wait is shorter.
func (p RetryPolicy) backoff(attempt int) time.Duration {
	wait := p.MinWait
	for n := 1; n < attempt && wait < maxBackoff; n++ {
		wait = min(2*wait, maxBackoff, p.MaxWait)
	}
	return wait
}

// retryBudget bounds what an outage costs: the retries of failures that the service may
// have seen, of a client and all that With has made of it, are a fifth of the calls that
// succeed, and a floor that comes back with time. Refusals draw nothing from it: their own
// line bounds them. Nor does what was never sent, such as a dial that failed.
type retryBudget struct {
	successes atomic.Int64 // that have not paid for a retry yet

	mu    sync.Mutex // guards what follows
	floor float64    // retries
	at    time.Time  // when floor was counted
}

const (
	perRetry   = 5 // successes that earn a retry
	mostEarned = 100 * perRetry
	mostFloor  = 10.0                   // the retries of five failing calls
	floorEvery = 500 * time.Millisecond // one comes back, so that a single caller retries as without a budget
)

func newRetryBudget() *retryBudget { return &retryBudget{floor: mostFloor} }

func (b *retryBudget) succeed() {
	if b.successes.Load() < mostEarned {
		b.successes.Add(1)
	}
}

// take takes a retry, if there is one.
func (b *retryBudget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if passed := now.Sub(b.at); passed > 0 {
		b.floor = min(mostFloor, b.floor+passed.Seconds()/floorEvery.Seconds())
	}
	b.at = now
	switch {
	case b.successes.Load() >= perRetry:
		b.successes.Add(-perRetry)
	case b.floor >= 1:
		b.floor--
	default:
		return false
	}
	return true
}

// errWithheld says why a failure that may be repeated was not.
var errWithheld = errors.New("not retried, since too many calls fail: retries are a fifth of the calls that succeed, and two a second")

// action is what follows an attempt.
type action string

const (
	actionSuccess action = "success"
	actionRetry   action = "retry"
	actionError   action = "error"
	actionUnknown action = "outcome unknown"
)

// outcome is how an attempt ended, as far as retries are concerned.
type outcome struct {
	name             string
	idempotent, post action // what follows it: after GET, PUT and DELETE, and after POST
}

// The outcomes, in the order of the table of the package documentation; a test holds the
// two together.
var (
	outcomeSuccess     = &outcome{"2xx with a readable documented body", actionSuccess, actionSuccess}
	outcomeUnsent      = &outcome{"never sent", actionRetry, actionRetry}
	outcomeLost        = &outcome{"answer lost, truncated or not JSON", actionRetry, actionUnknown}
	outcomeLimited     = &outcome{"429", actionRetry, actionRetry}
	outcomeDown        = &outcome{"502, 503, 504", actionRetry, actionUnknown}
	outcomeUnavailable = &outcome{"503 that the interface lists", actionRetry, actionError}
	outcomeBroken      = &outcome{"another 5xx", actionError, actionUnknown}
	outcomeOther       = &outcome{"any other answer", actionError, actionError}
	outcomeDenied      = &outcome{"certificate or CONNECT refused", actionError, actionError}
	outcomeEnded       = &outcome{"context ended before the request", actionError, actionError}
	outcomeEndedSent   = &outcome{"context ended after the request", actionError, actionUnknown}
	outcomeRefused     = &outcome{"refused by the limiter", actionError, actionError}
)

// classify sorts the outcome. ctxErr is why the call cannot go on, if it cannot: it
// counts only where there is no answer, since what has arrived is kept.
func classify(a exchange.Answer, failure *Error, endpoint *spec.Endpoint, ctxErr error) *outcome {
	switch {
	case a.Status == 0:
		return classifyUnanswered(a, ctxErr)
	case a.Status/100 == 2 && a.Err == nil:
		return outcomeSuccess
	case a.Status == http.StatusTooManyRequests:
		return outcomeLimited
	case a.Status == http.StatusServiceUnavailable && endpoint.Lists(a.Status) && failure.Code != "":
		return outcomeUnavailable // the one 5xx after which nothing was done
	case a.Status >= http.StatusBadGateway && a.Status <= http.StatusGatewayTimeout:
		return outcomeDown
	case isServerError(a.Status):
		return outcomeBroken
	case a.Status/100 != 2, errors.As(a.Err, new(unconfirmed)):
		return outcomeOther
	case ctxErr != nil:
		return outcomeEndedSent
	}
	return outcomeLost
}

func classifyUnanswered(a exchange.Answer, ctxErr error) *outcome {
	switch {
	case a.Sent && ctxErr != nil:
		return outcomeEndedSent
	case ctxErr != nil:
		return outcomeEnded
	case a.Sent:
		return outcomeLost
	case a.Missed == exchange.Denied:
		return outcomeDenied
	}
	return outcomeUnsent
}
