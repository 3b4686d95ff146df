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
	decoder
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

// request is what a method hands to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string
	invalid  error           // why the arguments are refused, if they are
	body     any             // encoded as JSON; nil sends no body
	metadata json.RawMessage // a further member of the body; nil: none
	secrets  [2]string       // what an error of this call must not show, beside the API key
	setsBYOK bool            // spends the BYOK set limit (interface 8.1)
}

// unbounded is the budget of a call whose context has a deadline of its own.
const unbounded = time.Duration(math.MaxInt64)

// run makes the attempts and turns the last outcome into the call's error.
func (c *call) run() error {
	c.budget = c.client.timeout
	if _, has := c.Deadline(); has {
		c.budget = unbounded
	}
	c.start()
	// What http.Client sees is empty, for it would copy a header: each attempt
	// builds the request that is sent.
	c.outer = *(&http.Request{URL: &c.url, Header: http.Header{}}).WithContext(c)
	// Answer and error are in c.out, where the attempt has put them whole: the
	// library's own error would hide what it replaces.
	_, _ = c.client.library.Do(&retryablehttp.Request{Request: &c.outer}) //nolint:bodyclose // the attempt has read and closed it
	return c.end(c.finish())
}

// newLibrary makes what repeats the attempts of all calls of a client.
func newLibrary(s *settings) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: attempter{}, Jar: s.httpClient.Jar, CheckRedirect: noRedirect},
		RetryMax:   math.MaxInt, // CheckRetry counts
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return callOf(ctx).checkRetry(), nil
		},
		Backoff:      noBackoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
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

// attemptTimeout is how long one attempt may take; 0: only its context ends it.
func (c *call) attemptTimeout() time.Duration {
	limit := c.budget
	if timeout := c.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	if limit == unbounded { // but by the caller's deadline
		return 0
	}
	return limit
}

// spend takes time off the budget.
func (c *call) spend(d time.Duration) {
	if c.budget != unbounded {
		c.budget -= d
	}
}

// checkRetry decides what follows an attempt, and waits for the next one itself,
// because the library's Backoff gets neither the context nor the deadline. It
// returns no error to the library: that would replace the attempt's.
func (c *call) checkRetry() (again bool) {
	if c.next == stepEnded {
		return false
	}
	ending := c.out.ending(c.endpoint, c.ended())
	c.next = ending.follow(c.endpoint.Method)
	if c.next == stepRetry && !c.hasNext() {
		c.next = stepError
	}
	if c.next != stepRetry {
		return false
	}
	c.tellRetry(retryTable[ending].outcome)
	c.rest()
	return true
}

// hasNext reports whether there is an attempt left, and time for it, and sets
// the pause before it.
func (c *call) hasNext() bool {
	c.pause = 0
	if c.out.renewed && c.renewals < maxRenewals {
		c.renewals++
		return true
	}
	if c.attempts >= c.client.retry.MaxAttempts {
		return false
	}
	asked, random := c.out.askedWait(), c.client.random()
	if c.seat.Parked {
		random = c.seat.Random // until the gate opens for all
	}
	longest := min(cooldown.Longest(c, c.client.retry.MaxWait), c.budget-1)
	wait, ok := c.client.retry.wait(c.attempts, asked, longest, random)
	if ok {
		c.seat.Waits(asked, wait)
		c.pause = wait
	}
	return ok
}

// rest waits out the pause, by the client's clock. It takes the whole of it off
// the budget, however long the clock took for it.
func (c *call) rest() {
	if c.pause == 0 {
		return
	}
	begin := c.client.time().Now()
	c.broken = c.client.time().Sleep(c.Context, c.pause)
	c.waited += c.client.time().Now().Sub(begin)
	c.spend(c.pause)
}

// noBackoff leaves no wait to the library, which does not know the client's
// clock: rest has waited.
func noBackoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }
