package agentmessaging

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// call is one call of a method: the retries of go-retryablehttp above, the
// transport below, and in between what the library does not know. It is the
// context of the request that the library sees, whose hooks find it there.
type call struct {
	context.Context // the caller's, or what observers have made of it
	client          *Client
	info            *CallInfo // nil: nobody asks
	request
	url    url.URL
	json   []byte       // request.body, encoded
	result any          // of the success, decoded
	outer  http.Request // that the library sees

	attempts     int
	waited       time.Duration
	budget       time.Duration // left for attempts and pauses: of the client's timeout, or unbounded
	seat         cooldown.Seat
	permit       Permit // of the limiter
	out          outcome
	failure      *Error        // what the call returns, in an OutcomeUnknownError or not; nil: success
	next         step          // what follows out, as checkRetry decided
	pause        time.Duration // before the next attempt, as checkRetry decided
	broken       error         // why the clock did not wait for it
	renewals     int           // attempts that were repeated at once on a new connection
	number       uint64        // for observers and loggers, as the times below
	began        time.Time
	attemptBegan time.Time
	shown        struct{ text, redacted string } // see redacted
}

// unbounded is the budget of a call whose context has a deadline of its own.
const unbounded = time.Duration(math.MaxInt64)

// run makes the attempts and turns the last outcome into the call's error.
func (c *call) run() error {
	c.budget = c.client.timeout
	if _, has := c.Deadline(); has {
		c.budget = unbounded
	}
	c.Context = c.start(c.Context)
	// What http.Client sees is empty, for it would copy a header: each attempt
	// builds the request that is sent.
	c.outer = *(&http.Request{URL: &c.url, Header: http.Header{}}).WithContext(c)
	// Answer and error are in c.out, where the attempt has put them whole: the
	// library's own error would hide what it replaces.
	_, _ = c.library().Do(&retryablehttp.Request{Request: &c.outer}) //nolint:bodyclose // the attempt has read and closed it
	return c.end(c.Context, c.finish(c.Context))
}

// library returns what repeats the calls of a client. The first call makes it: a
// program that makes clients and calls nothing is then 200 KiB smaller.
func (c *call) library() *retryablehttp.Client {
	if made := c.client.library.Load(); made != nil {
		return made
	}
	made := &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: attempter{}, Jar: c.client.httpClient.Jar, CheckRedirect: noRedirect},
		RetryMax:   c.client.retry.MaxAttempts + maxRenewals,
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return callOf(ctx).checkRetry(), nil
		},
		Backoff:      noBackoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	c.client.library.Store(made)
	return made
}

// callOf finds the call in its own context.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// made is how many attempts were made; one that the limiter refused was not.
func (c *call) made() int {
	if c.out.refused {
		return c.attempts - 1
	}
	return c.attempts
}

// noRedirect hands a redirect to the caller as any other answer: to follow it
// would send the credential and the body to an address that nobody chose.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// bounded is the context of one attempt's request, and how long it may take.
func (c *call) bounded(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	limit := c.budget
	if timeout := c.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	if limit == unbounded { // but by the caller's deadline
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, limit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, limit
}

// spend takes time off the budget.
func (c *call) spend(d time.Duration) {
	if c.budget != unbounded {
		c.budget -= d
	}
}

// ended is why the call cannot go on: its context has ended, the client's
// timeout has passed, or the clock refused to wait.
func (c *call) ended(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.broken != nil:
		return c.broken
	case c.budget <= 0:
		return context.DeadlineExceeded
	}
	return nil
}

// scrub returns the scrubber of the call's secrets.
func (c *call) scrub() scrub.Scrubber {
	return scrub.New(c.client.apiKey(), c.secrets[0], c.secrets[1])
}

// request is what a method hands to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string
	body     any                                                       // encoded as JSON; nil sends no body
	metadata json.RawMessage                                           // a further member of the body; nil: none
	invalid  error                                                     // why the arguments are refused, if they are
	decode   func(body []byte) (result any, traceID string, err error) // of a success
	secrets  [2]string                                                 // what an error of this call must not show, beside the API key
	setsBYOK bool                                                      // spends the BYOK set limit (interface 8.1)
}
