package agentmessaging

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file is one call, from top to bottom: newCall checks and encodes, run has a
// repeater make the attempts, nextAttempt decides what follows an attempt, and sleep
// waits. One attempt is in attempt.go, what its answer means in answer.go, and which
// outcomes are repeated, and how often, in retry.go.

// do is the one path that every call takes. read makes its result of a success body; what
// it cannot read, it notes in reply.err.
func do[T any](ctx context.Context, c *Client, r request, read func(*reply) T) (result T, err error) {
	call, err := c.newCall(ctx, r, func(body *reply) any { return read(body) })
	if err == nil {
		err = call.run()
	}
	if err != nil {
		return result, err
	}
	return call.last.result.(T), nil
}

// request is what a method hands to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string
	invalid  error // why the arguments are refused, if they are
	body     any   // encoded as JSON; nil sends no body
	setsBYOK bool  // spends the BYOK set limit (interface 8.1)
	// providerKey and words, which a person wrote, are what no error of this call
	// may show.
	providerKey, words string
}

// url returns where the request goes. An agent id is opaque but always exactly one
// path segment.
func (r *request) url(base *url.URL) (url.URL, error) {
	u := *base
	before, after, hasID := strings.Cut(r.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(r.agentID); err != nil {
			return u, err
		}
	}
	// A prefix's escapes must stay as they are, and net/url leaves ; and , as they are,
	// after which some proxies drop the rest of a segment.
	if escaped := url.PathEscape(r.agentID); u.RawPath != "" || escaped != r.agentID {
		u.RawPath = u.EscapedPath() + before + escaped + after
	}
	u.Path += before + r.agentID + after
	return u, nil
}

// call is the state of one call of a method. What belongs to a single attempt is in
// last.
type call struct {
	request
	client     *Client
	readResult func(*reply) any // makes the result of a success body
	ctx        context.Context  // the caller's, or what observers have made of it
	url        url.URL
	payload    []byte          // request.body, encoded
	secrets    redact.Redactor // hides what no error may show

	beforeSend func(context.Context, int) error // see WithBeforeSend; nil: none
	info       *CallInfo                        // to be filled at the end; nil: none
	subject    Subject                          // for observers
	began      time.Time                        // by the client's clock; if there are observers

	line   *quota.Engine // of the limits: a Pacer's, the cool-down, or of this call alone; nil: none
	waiter quota.Waiter  // in the line

	first    attempt       // allocated together with the call
	last     *attempt      // that has begun
	previous *attempt      // the one before last; nil: there was none
	timeLeft time.Duration // left of the client's timeout, for attempts and pauses
	pause    time.Duration // before the next attempt

	attempts, renewals, refusals int           // that passed the limiter, see CallInfo
	waited                       time.Duration // by them
}

// newCall checks what every call shares and encodes the body.
func (c *Client) newCall(ctx context.Context, r request, read func(*reply) any) (_ *call, err error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	if ctx == nil {
		return nil, &ValidationError{Field: "ctx", Reason: "is nil; use context.Background() when there is none"}
	}
	call := &call{request: r, readResult: read, client: c, ctx: ctx, line: c.limits, timeLeft: c.timeout}
	call.secrets = c.redactor().With(r.providerKey, r.words)
	call.first.call, call.last = call, &call.first
	call.beforeSend, _ = ctx.Value(beforeSendKey{}).(func(context.Context, int) error)
	if call.info, _ = ctx.Value(callInfoKey{}).(*CallInfo); call.info != nil {
		*call.info = CallInfo{} // for a call that is refused below
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	if call.secrets.HasKey(r.agentID) { // URLs, events and logs show ids
		return nil, &ValidationError{Field: "agent_id", Reason: "holds the API key; give Agent.ID"}
	}
	if call.url, err = r.url(c.base); err != nil {
		return nil, err
	}
	if r.body != nil {
		call.payload, _ = encode(r.body) // strings, and metadata that are JSON
	}
	if _, has := ctx.Deadline(); has {
		call.timeLeft = math.MaxInt64 // the deadline bounds the call, and nothing else
	}
	call.waiter = quota.Waiter{Endpoint: r.endpoint, SetsBYOK: r.setsBYOK, MaxWait: c.retry.MaxWait, Patience: c.timeout, Clock: c.clock}
	if c.handlers != nil {
		call.began = c.clockOrReal().Now()
		call.subject = Subject{c.calls.Add(1), Endpoint{r.endpoint.Name, r.endpoint.Method, r.endpoint.Path}, r.agentID}
	}
	return call, nil
}

// run makes the attempts and reports the call. Observers get quota.ErrPanic as its error
// if a part of the program panicked: a transport, an observer, a limiter.
func (c *call) run() (err error) {
	err = quota.ErrPanic
	if c.client.handlers != nil {
		defer func() { c.report(err) }()
		c.ctx = c.client.handlers.emit(c.ctx, silent, func() Event {
			shown := c.url
			return CallStart{c.subject, &shown}
		})
	}
	if c.info != nil {
		defer c.fillInfo()
	}
	over := c.whyOver()
	if over == nil {
		r := c.client.repeaters.Get().(*repeater)
		over = r.run(c)
		c.client.repeaters.Put(r) // but not after a panic
	}
	switch c.last.next {
	case actionSuccess:
		return nil
	case actionUnknown:
		return c.last.outcomeUnknownError()
	case actionError:
		return c.last.finishFailure()
	default: // it ended before its first attempt, or while it waited for the next
		c.last.failure = cmp.Or(c.last.failure, new(Error))
		c.last.failure.cause = c.cause(c.ctx, cmp.Or(c.whyOver(), over))
		return c.last.finishFailure()
	}
}

// A repeater has go-retryablehttp repeat the attempts of one call, as the call says.
// The http.Client in between adds the cookies. Header and body join in attempt.send:
// the library and http.Client would copy them for each attempt, at eight more
// allocations a POST. A repeater takes 700 bytes, a seventh of the memory of a POST, so
// a client keeps those that no call uses.
type repeater struct {
	call     *call // nil: none uses it
	client   retryablehttp.Client
	http     http.Client
	request  http.Request
	response http.Response
}

func newRepeater(jar http.CookieJar) *repeater {
	r := new(repeater)
	r.http = http.Client{Transport: r, Jar: jar, CheckRedirect: noRedirect}
	r.client = retryablehttp.Client{
		HTTPClient:   &r.http,
		RetryMax:     math.MaxInt, // nextAttempt counts
		CheckRetry:   func(context.Context, *http.Response, error) (bool, error) { return r.call.nextAttempt(), nil },
		PrepareRetry: func(*http.Request) error { return r.call.sleep() },
		// sleep has waited by the client's clock, which the library does not know.
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return r
}

// run makes the attempts. What came of them is in call.last. The library's error counts
// only where no attempt has ended the call: where sleep refused to go on.
func (r *repeater) run(c *call) error {
	r.call = c
	r.request = *(&http.Request{Method: c.endpoint.Method, URL: &c.url, Header: http.Header{}}).WithContext(c.ctx)
	_, err := r.client.Do(&retryablehttp.Request{Request: &r.request}) //nolint:bodyclose // RoundTrip has read it
	r.call, r.request, r.response = nil, http.Request{}, http.Response{}
	return err
}

// noRedirect hands a redirect to the caller as any other answer: to follow it
// would send the credential and the body to an address that nobody chose.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// RoundTrip makes one attempt. The body is read and decoded here, within the attempt. The
// library never gets the user's transport, whose idle connections it would close.
func (r *repeater) RoundTrip(req *http.Request) (*http.Response, error) {
	c := r.call
	if c.last.number != 0 {
		c.previous, c.last = c.last, new(attempt)
	}
	a := c.last
	a.call, a.number, a.cookies = c, c.attempts+1, req.Header["Cookie"]
	delete(req.Header, "Cookie") // http.Client adds them anew to each attempt
	if a.run(); a.Status == 0 {
		return nil, a.Err
	}
	r.response = http.Response{StatusCode: a.Status, Header: a.Header, Body: http.NoBody}
	return &r.response, nil
}

// nextAttempt decides whether there is another attempt.
func (c *call) nextAttempt() bool {
	a := c.last
	if a.outcome == outcomeRefused && c.previous != nil && c.previous.outcome == outcomeLimited && c.whyOver() != nil {
		// The call was over before it could be sent again after a 429. It ends with
		// that 429, not with the refusal here: run then finds actionRetry, and says
		// why.
		c.last = c.previous
		return false
	}
	if a.next = a.outcome.idempotent; c.endpoint.Method == http.MethodPost {
		a.next = a.outcome.post
	}
	switch a.next {
	case actionSuccess:
		c.client.retries.succeed()
	case actionRetry:
		if wait, again := c.takeRetry(); again {
			c.client.handlers.emit(c.ctx, slog.LevelDebug, func() Event { return Retry{c.subject, a.number, a.outcome.name, wait} })
			return true
		}
		a.next = actionError
	}
	return false
}

// takeRetry takes another attempt from what the policy and the time left allow after a
// failure. It says how long until then: for so long the call sleeps, or its limit is
// closed and it waits in the line. If there is no other attempt, it adds to the failure
// why not.
func (c *call) takeRetry() (wait time.Duration, again bool) {
	a, policy := c.last, c.client.retry
	switch c.pause = 0; {
	case a.Renewed && c.renewals < maxRenewals: // on another connection, at once
		c.renewals++
		return 0, true
	case a.outcome == outcomeLimited && policy.MaxAttempts > 1:
		closed, refusal := c.line.Forecast(c.ctx, &c.waiter)
		if refusal != nil {
			a.failure.RetryAfter = max(a.failure.RetryAfter, refusal.RetryAfter)
			a.failure.add(c.tooLong(refusal.Patience, a.failure.RetryAfter))
		}
		return closed, refusal == nil
	case a.outcome == outcomeLimited, c.failures() >= policy.MaxAttempts:
		return 0, false
	}
	longest, _ := c.longestWait()
	wait, again = policy.wait(c.failures(), a.failure.RetryAfter, min(longest, c.timeLeft-1), c.client.random())
	if again && a.Sent && !c.client.retries.take(c.client.clockOrReal().Now()) { // what was never sent spends no quota
		a.failure.add(errWithheld)
		return 0, false
	}
	c.pause = wait
	return wait, again
}

// failures counts the attempts that the policy counts: a renewed connection and a
// 429 are no failures.
func (c *call) failures() int { return c.attempts - c.renewals - c.refusals }

// longestWait is how long one wait may be, by the policy or the deadline, and what a
// longer one would be.
func (c *call) longestWait() (longest time.Duration, beyond string) {
	longest, beyond = c.client.retry.MaxWait, "later than the RetryPolicy waits"
	if deadline, has := c.ctx.Deadline(); has && time.Until(deadline) < longest {
		longest, beyond = max(0, time.Until(deadline)-1), "after the call's deadline" // until the deadline would be too long
	}
	return longest, beyond
}

// tooLong says why a call does not wait until its limit opens: either the service has
// refused every call for the call's Patience, or the limit opens after the longest wait
// that is allowed. WithTimeout does not count here: it is the Patience. It is nil if the
// policy and the deadline allow the wait.
func (c *call) tooLong(patience, opens time.Duration) error {
	longest, beyond := c.longestWait()
	switch {
	case patience > 0:
		return fmt.Errorf("the service has refused every call for %s", human(patience))
	case opens > longest:
		return fmt.Errorf("the next attempt is due in %s, %s (%s)", human(opens), beyond, human(longest))
	}
	return nil
}

// sleep waits out the pause. It takes the whole of it off the time left, however long the
// clock took for it.
func (c *call) sleep() error {
	if c.pause > 0 {
		clock := c.client.clockOrReal()
		began := clock.Now()
		err := clock.Sleep(c.ctx, c.pause)
		c.waited += c.client.since(began)
		c.timeLeft -= c.pause
		if err != nil {
			return err
		}
	}
	return c.whyOver()
}

// whyOver is why the call cannot go on: its context has ended, or the client's timeout
// has passed.
func (c *call) whyOver() error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.timeLeft <= 0:
		return fmt.Errorf("%w: WithTimeout allows %s", context.DeadlineExceeded, human(c.client.timeout))
	}
	return nil
}

// cause is what an error of the call wraps where others have made it fail: a transport,
// a limiter, the function of WithBeforeSend, a context. It finds what they return, but
// no errors of this package, which are about other calls: errgroup ends the context of
// all with the first one's error. Its text says how ctx ended, and why, whether or not
// err does.
func (c *call) cause(ctx context.Context, err error) error {
	return c.secrets.Error(isOwn, cmp.Or(ctx.Err(), c.whyOver()), err, context.Cause(ctx))
}

// fillInfo fills the CallInfo.
func (c *call) fillInfo() {
	a, info := c.last, c.info
	*info = CallInfo{
		Attempts: c.attempts, Renewals: c.renewals, Refusals: c.refusals, Waited: c.waited,
		StatusCode: a.Status, Header: c.secrets.Header(a.Header), TraceID: a.safeTraceID(), Body: a.Body,
	}
	if a.failure != nil && a.Body != nil {
		info.Body = []byte(c.secrets.Text(string(a.Body)))
	}
}

// report tells observers of the call's end.
func (c *call) report(err error) {
	a := c.last
	c.client.handlers.emit(c.ctx, callLevel(a.Status, err), func() Event {
		e := CallEnd{
			Subject: c.subject, StatusCode: a.Status, TraceID: a.safeTraceID(), Attempts: c.attempts,
			Refusals: c.refusals, Waited: c.waited, Elapsed: c.client.since(c.began), Err: err,
		}
		if a.failure != nil {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}
