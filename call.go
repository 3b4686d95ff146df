package agentmessaging

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file is the way of a call, from top to bottom: newCall checks and encodes,
// run has go-retryablehttp repeat RoundTrip, which is one attempt, nextAttempt
// decides what follows it, sleep waits, and fail says why the call failed. The permits
// of an attempt are in acquire.go, what observers get of it in report.go.

// do is the one path that every call takes. read makes its result of a success body.
func do[T any](ctx context.Context, c *Client, r request, read reader[T]) (result T, err error) {
	call, err := c.newCall(ctx, r, read)
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
	// createdID returns the id of the agent that a success has created; nil: it
	// creates none.
	createdID func(result any) string
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
	if u.RawPath != "" { // a prefix whose escapes must stay as they are
		u.RawPath += before + url.PathEscape(r.agentID) + after
	}
	u.Path += before + r.agentID + after
	return u, nil
}

// call is the state of one call of a method. What belongs to a single attempt is in
// last.
type call struct {
	request
	decoder
	client  *Client
	secrets redact.Redactor // hides what no error may show
	// ctx is the caller's context, or what observers have made of it.
	ctx        context.Context
	url        url.URL
	payload    []byte                           // request.body, encoded
	info       *CallInfo                        // to be filled; nil: none
	subject    Endpoint                         // for observers
	number     uint64                           // of the call, for observers; 0: nobody observes
	began      time.Time                        // if somebody observes
	beforeSend func(context.Context, int) error // see WithBeforeSend; nil: none
	library    struct {                         // what repeats the attempts, in one piece of memory with the call
		client   retryablehttp.Client
		http     http.Client
		request  http.Request
		response http.Response
	}
	permits permits

	attempts     int // attempts that passed the limiter
	renewals     int // of them, those that were repeated at once on a new connection
	refusals     int // of them, those that a limit of the service refused
	last         attempt
	refused      *attempt // the one before, if the service refused it with 429
	waited       time.Duration
	budget       time.Duration // left for attempts and pauses, of the client's timeout; or unbounded
	action       action        // that follows the last attempt; empty before the first
	pause        time.Duration // before the next attempt
	retryRefused error         // why a failure that may be repeated is not; nil: the policy says it
	clockError   error         // why the clock did not wait
	failure      *Error        // what the call returns, in an OutcomeUnknownError or not; nil: success
}

// unbounded is the budget of a call whose context has a deadline.
const unbounded = time.Duration(math.MaxInt64)

// newCall checks what every call shares and encodes the body.
func (c *Client) newCall(ctx context.Context, r request, d decoder) (*call, error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	if ctx == nil {
		return nil, &ValidationError{Field: "ctx", Reason: "is nil; use context.Background() when there is none"}
	}
	call := &call{request: r, decoder: d, client: c, ctx: ctx, secrets: c.redactor().With(r.providerKey, r.words)}
	call.beforeSend, _ = ctx.Value(beforeSendKey{}).(func(context.Context, int) error)
	if call.info, _ = ctx.Value(callInfoKey{}).(*CallInfo); call.info != nil {
		*call.info = CallInfo{} // for a call that is refused below
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	var err error
	if call.url, err = r.url(c.base); err != nil {
		return nil, err
	}
	if r.body != nil {
		call.payload, _ = encode(r.body) // strings, and metadata that are JSON
	}
	call.budget = c.timeout
	if _, has := ctx.Deadline(); has {
		call.budget = unbounded
	}
	call.permits.line = c.limits
	call.permits.waiter = quota.Waiter{Endpoint: r.endpoint, SetsBYOK: r.setsBYOK, MaxWait: c.retry.MaxWait, Patience: c.timeout, Clock: c.clock}
	if c.handlers != nil {
		call.number, call.began = c.calls.Add(1), time.Now()
		call.subject = Endpoint{Name: r.endpoint.Name, Method: r.endpoint.Method, Path: r.endpoint.Path}
	}
	return call, nil
}

// run makes the attempts and reports the call. Observers get quota.ErrPanic as its error
// if a part of the program panicked: a transport, an observer, a limiter.
func (c *call) run() (err error) {
	if c.number != 0 {
		c.reportStart()
	}
	err = quota.ErrPanic
	if c.number != 0 || c.info != nil {
		defer func() { c.finish(err) }()
	}
	if c.whyOver() == nil {
		c.repeat()
	}
	switch c.action {
	case actionSuccess:
		return nil
	case actionUnknown:
		return c.asUnknown(c.fail(nil))
	case actionError:
		return c.fail(nil)
	default: // it ended before an attempt, or while waiting for one
		return c.fail(c.whyOver())
	}
}

// repeat hands the request to the library, which repeats it as its hooks say. What
// came of it is in c.last: the library's own error would hide what it replaces. The
// http.Client in between adds the cookies. Header and body join in send: the library
// and http.Client would copy them for each attempt, at 44 allocations a POST in memory
// in place of 36.
func (c *call) repeat() {
	l := &c.library
	l.http = http.Client{Transport: c, Jar: c.client.httpClient.Jar, CheckRedirect: noRedirect}
	l.client = retryablehttp.Client{
		HTTPClient:   &l.http,
		RetryMax:     math.MaxInt, // nextAttempt counts
		CheckRetry:   c.nextAttempt,
		PrepareRetry: c.sleep,
		// sleep has waited by the client's clock, which the library does not know.
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	l.request = *(&http.Request{Method: c.endpoint.Method, URL: &c.url, Header: http.Header{}}).WithContext(c.ctx)
	_, _ = l.client.Do(&retryablehttp.Request{Request: &l.request}) //nolint:bodyclose // RoundTrip has read it
}

// noRedirect hands a redirect to the caller as any other answer: to follow it
// would send the credential and the body to an address that nobody chose.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// RoundTrip makes one attempt: it is the transport of the library's http.Client. The
// body is read and decoded here, within the attempt. The library never sees the
// client's transport: it would close idle connections, which may be the caller's.
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.refused = nil; c.last.class == classLimited {
		before := c.last
		c.refused = &before
	}
	c.last = attempt{number: c.attempts + 1}
	a := &c.last
	ctx := emit(c.ctx, c.client.handlers, silent, AttemptStart{Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: a.number})
	if c.number != 0 {
		a.began = time.Now()
		defer c.reportAttempt(ctx)
	}
	defer c.release(ctx) // also when a part of the program panics
	if a.Err = c.acquire(ctx); a.Err != nil {
		a.class = classRefused
		return nil, a.Err
	}
	c.attempts++
	c.send(emit(ctx, c.client.handlers, silent, RequestStart{Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: a.number}), r)
	if a.class = a.classify(c.endpoint, c.whyOver()); a.class == classLimited {
		c.refusals++
	}
	if a.Status == 0 {
		return nil, a.Err
	}
	c.library.response = http.Response{StatusCode: a.Status, Header: a.Header, Body: http.NoBody}
	return &c.library.response, nil
}

// send makes the request of an attempt and reads what comes back. Only a failed one
// costs the call's budget, and what it really took: an observer may have given it a
// shorter deadline.
func (c *call) send(ctx context.Context, r *http.Request) {
	a, began := &c.last, time.Now()
	if a.Err = ctx.Err(); a.Err == nil { // else it ended while the attempt waited, or an observer ended it
		a.Sent = true // unless Send knows better
		a.Answer = c.client.sender.Send(ctx, c.attemptRequest(r, began))
		if a.read(c.decoder, c.secrets) {
			return
		}
	}
	if c.budget != unbounded {
		c.budget -= time.Since(began)
	}
	if a.Err != nil {
		a.failure = cmp.Or(a.failure, new(Error))
		a.failure.cause = c.redactCause(a.Err)
	}
}

// attemptRequest is the request of an attempt that begins now.
func (c *call) attemptRequest(r *http.Request, now time.Time) exchange.Request {
	header := c.client.header(c.payload != nil)
	if cookies := r.Header["Cookie"]; cookies != nil {
		header = maps.Clone(header)
		header["Cookie"] = cookies
		delete(r.Header, "Cookie") // http.Client adds them anew to each attempt
	}
	limit := c.budget
	if timeout := c.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	var deadline time.Time // none but the caller's
	if limit != unbounded {
		deadline = now.Add(limit)
	}
	return exchange.Request{Method: r.Method, URL: r.URL, Header: header, Body: c.payload, Deadline: deadline}
}

// nextAttempt is the library's CheckRetry: it decides what follows the last attempt.
// It returns no error, which would replace the attempt's.
func (c *call) nextAttempt(context.Context, *http.Response, error) (bool, error) {
	if c.last.class == classRefused && c.refused != nil && c.whyOver() != nil {
		c.last = *c.refused // the call ended in line, after this answer
		return false, nil
	}
	c.action = actionFor(c.last.class, c.endpoint.Method)
	switch {
	case c.action == actionSuccess:
		c.client.retries.succeed()
	case c.action == actionRetry && !c.prepareRetry():
		c.action = actionError
	}
	if c.action != actionRetry {
		return false, nil
	}
	wait := c.pause
	if c.last.class == classLimited {
		wait = c.permits.closed
	}
	emit(c.ctx, c.client.handlers, slog.LevelDebug, Retry{
		Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: c.last.number, Outcome: retryTable[c.last.class].outcome, Wait: wait,
	})
	return true, nil
}

// prepareRetry sets the pause before the next attempt and takes it from the budgets.
// It reports false, with retryRefused set, if there is no further one. A renewed
// connection costs no attempt of the policy.
func (c *call) prepareRetry() bool {
	retry, asked := c.client.retry, time.Duration(0)
	if c.last.failure != nil {
		asked = c.last.failure.RetryAfter
	}
	switch c.pause = 0; {
	case c.last.Renewed && c.renewals < maxRenewals:
		c.renewals++
		return true
	case c.last.class == classLimited && retry.MaxAttempts > 1:
		var refusal *quota.Refusal
		c.permits.closed, refusal = c.permits.line.Forecast(c.ctx, &c.permits.waiter)
		if refusal != nil {
			c.retryRefused = c.tooLong(refusal.Patience, asked)
		}
		return refusal == nil
	case c.last.class == classLimited, c.failures() >= retry.MaxAttempts:
		return false
	}
	wait, ok := retry.wait(c.failures(), asked, min(c.longestWait(), c.budget-1), c.client.random())
	if ok && !c.client.retries.take(c.client.clockOrReal().Now()) {
		c.retryRefused = errWithheld
		return false
	}
	c.pause = wait
	return ok
}

// failures counts the attempts that the policy counts: a renewed connection and a
// 429 are no failures.
func (c *call) failures() int { return c.attempts - c.renewals - c.refusals }

// longestWait is how long one wait may be, by the policy and the deadline.
func (c *call) longestWait() time.Duration {
	longest := c.client.retry.MaxWait
	if deadline, has := c.ctx.Deadline(); has {
		longest = min(longest, time.Until(deadline)-1) // until the deadline would be too long
	}
	return longest
}

// sleep is the library's PrepareRetry: it waits out the pause. It takes the whole of
// it off the budget, however long the clock took for it.
func (c *call) sleep(*http.Request) error {
	if c.pause > 0 {
		clock := c.client.clockOrReal()
		began := clock.Now()
		c.clockError = clock.Sleep(c.ctx, c.pause)
		c.waited += max(0, clock.Now().Sub(began)) // a clock may go back
		if c.budget != unbounded {
			c.budget -= c.pause
		}
	}
	return c.whyOver()
}

// whyOver is why the call cannot go on: its context has ended, the client's
// timeout has passed, or the clock refused to wait.
func (c *call) whyOver() error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.clockError != nil:
		return c.clockError
	case c.budget <= 0:
		return context.DeadlineExceeded
	}
	return nil
}

func (c *call) asUnknown(cause *Error) error {
	e := &OutcomeUnknownError{Method: cause.Method, Path: cause.Path, TraceID: cause.TraceID, Missed: c.last.missed(c.whyOver()), Err: cause}
	if cause.StatusCode == 0 {
		e.Err = cause.cause // the endpoint is named already
	}
	return e
}

// fail describes the last attempt, and why there is no further one: ended, if the call
// could not go on.
func (c *call) fail(ended error) *Error {
	e := cmp.Or(c.last.failure, new(Error))
	if ended != nil {
		e.cause = c.redactCause(ended)
	}
	switch {
	case c.retryRefused != nil && e.cause == nil:
		e.cause = c.retryRefused
	case c.retryRefused != nil:
		e.cause = fmt.Errorf("%w (%w)", e.cause, c.retryRefused)
	}
	e.Method, e.Path, e.Attempts, e.Refusals = c.endpoint.Method, c.endpoint.Path, c.attempts, c.refusals
	c.failure = e
	return e
}

// redactCause takes the secrets out of an error that kept an attempt, or the call, from
// an answer. A transport returns the context's cause, or its error, or its own: all can
// be found.
func (c *call) redactCause(err error) error {
	return c.secrets.Error(c.nameTimeout(err), c.whyOver(), context.Cause(c.ctx))
}

// nameTimeout says whose deadline it was, where the caller's context has none that
// passed.
func (c *call) nameTimeout(cause error) error {
	perAttempt := c.client.httpClient.Timeout
	switch {
	case cause != context.DeadlineExceeded || c.ctx.Err() != nil:
		return cause
	case c.budget <= 0:
		return fmt.Errorf("%w: WithTimeout allows %s", cause, human(c.client.timeout))
	case perAttempt > 0:
		return fmt.Errorf("%w: the Timeout of the http.Client allows %s", cause, human(perAttempt))
	}
	return cause
}

// tooLong says why a call does not wait until its limit opens: the service has refused
// all calls for as long as it has patience, or opens it too late. It is nil if the
// policy and the deadline allow the wait.
func (c *call) tooLong(patience, opens time.Duration) error {
	if patience > 0 {
		return fmt.Errorf("the service has refused every call for %s", human(patience))
	}
	longest, what := c.client.retry.MaxWait, "later than the RetryPolicy waits"
	if deadline, has := c.ctx.Deadline(); has && time.Until(deadline) < longest {
		longest, what = time.Until(deadline), "after the call's deadline"
	}
	if opens <= longest {
		return nil
	}
	return fmt.Errorf("the next attempt is due in %s, %s (%s)", human(opens), what, human(longest))
}

// finish reports the finished call and fills its CallInfo.
func (c *call) finish(err error) {
	if c.info != nil {
		*c.info = c.last.info(c.secrets)
		c.info.Attempts, c.info.Renewals, c.info.Refusals, c.info.Waited = c.attempts, c.renewals, c.refusals, c.waited
		if c.failure != nil {
			c.info.TraceID = c.failure.TraceID
		}
	}
	if c.number != 0 {
		c.reportEnd(err)
	}
}
