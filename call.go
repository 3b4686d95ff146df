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

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryloop"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// This file follows one call, from top to bottom. What calls what:
//
//	do                               every method ends in it
//	  newCall                        checks the arguments, encodes the body
//	  call.run                       reports to observers, returns the error
//	    retryloop.Loop.Run           has go-retryablehttp repeat:
//	      call.Attempt               decides, by the table in retry.go, whether another follows
//	        attempt.run              makes one attempt, see attempt.go
//	        call.planRetry           decides whether the limit, the time and the budget allow it
//	      call.Pause                 waits for it
//	    call.finishError             makes the error from the last attempt
//
// Errors are made in failure.go.

// do makes a call: every method ends in it. read turns the body of a success into the
// result. If it cannot, it sets answerBody.err.
func do[T any](ctx context.Context, c *Client, r request, read func(*answerBody) T) (T, error) {
	var result, none T
	call, err := c.newCall(ctx, r, func(body *answerBody) { result = read(body) })
	if err == nil {
		err = call.run()
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

// request has the arguments that a method passes to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string // empty if the endpoint's path has none
	invalid  error  // why the method refuses its arguments; nil: they are valid
	body     any    // encoded as JSON; nil sends no body
	setsBYOK bool   // spends a BYOK set (interface 8.1), whatever the endpoint spends
	// providerKey and userText are secrets: no error of this call shows them. userText is the
	// text that a person wrote, a system prompt or a message.
	providerKey, userText string
}

// call is one call of a method: what all its attempts share, and what one hands on to the next.
type call struct {
	request
	client     *Client
	readResult func(*answerBody) // keeps the result of a success
	ctx        context.Context   // the caller's context, or one that an observer returned
	url        url.URL
	payload    []byte                           // body, encoded
	secrets    redact.Redactor                  // hides the API key, providerKey and userText
	beforeSend func(context.Context, int) error // see WithBeforeSend; nil: none
	info       *CallInfo                        // see WithCallInfo; nil: none
	start      time.Time                        // by the client's clock; set if there are observers
	subject    Subject                          // for observers; the attempt that creates an agent adds its ID

	// engine makes the call wait for limits. It is the client's engine. Under
	// WithoutCoolDown it is nil until the first 429, and then an engine that no other call
	// uses.
	engine *quota.Engine
	waiter quota.Waiter // the call's place in the engine

	lastRefusal *Error        // the 429 that answered the last sent attempt; nil: another answer, or none
	timeLeft    time.Duration // of WithTimeout, for attempts and pauses
	pause       time.Duration // before the next attempt

	attempts, renewals, refusals int           // as in CallInfo
	waited                       time.Duration // for limits and between attempts

	last attempt        // the attempt that began last
	loop retryloop.Loop // part of the call, which saves an allocation
}

// failures returns how many attempts count against MaxAttempts. A 429 does not count, nor
// does an attempt that is repeated on a new connection.
func (c *call) failures() int { return c.attempts - c.renewals - c.refusals }

// newCall makes the checks that all calls share, and encodes the body.
func (c *Client) newCall(ctx context.Context, r request, readResult func(*answerBody)) (_ *call, err error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	if ctx == nil {
		return nil, &ValidationError{Field: "ctx", Reason: "is nil; use context.Background() when there is none"}
	}
	call := &call{request: r, client: c, readResult: readResult, ctx: ctx, engine: c.engine, timeLeft: c.timeout}
	call.secrets = c.credentials().redactor.With(r.providerKey, r.userText)
	call.beforeSend, _ = ctx.Value(beforeSendKey{}).(func(context.Context, int) error)
	if call.info, _ = ctx.Value(callInfoKey{}).(*CallInfo); call.info != nil {
		*call.info = CallInfo{} // stays empty if the call is refused below
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	if call.url, err = r.address(c); err != nil {
		return nil, err
	}
	if r.body != nil {
		call.payload, _ = strictjson.Encode(r.body) // cannot fail: strings, and metadata that is JSON already
	}
	call.waiter = quota.Waiter{Endpoint: r.endpoint, SetsBYOK: r.setsBYOK, MaxWait: c.retry.MaxWait, Patience: c.timeout, Clock: c.clock}
	if c.handlers != nil {
		call.start = c.clock.Now()
		call.subject = Subject{c.callCount.Add(1), Endpoint{r.endpoint.Name, r.endpoint.Method, r.endpoint.Path}, r.agentID}
		call.ctx = context.WithValue(ctx, callKey{}, call)
	}
	return call, nil
}

// address returns the request's address at a client. An agent id is opaque, but always
// exactly one path segment.
func (r *request) address(c *Client) (url.URL, error) {
	u := *c.base
	before, after, hasID := strings.Cut(r.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(r.agentID, c.credentials().apiKey); err != nil {
			return u, err
		}
	}
	// RawPath keeps the escapes of the base address and of PathEscape. Without RawPath,
	// net/url would not escape ; and , and some proxies drop the text after one of these.
	if escaped := url.PathEscape(r.agentID); u.RawPath != "" || escaped != r.agentID {
		u.RawPath = u.EscapedPath() + before + escaped + after
	}
	u.Path += before + r.agentID + after
	return u, nil
}

// run makes the attempts and returns the call's error. If a transport, an observer or a
// limiter panics, the deferred functions still run, and observers get quota.ErrPanic as
// the error.
func (c *call) run() (err error) {
	err = quota.ErrPanic
	if c.info != nil {
		defer c.fillInfo() // after the report: an observer may make a call, which fills the same CallInfo
	}
	if c.client.handlers != nil {
		stop := func() {}
		defer func() { stop() }() // last: the report comes with a context that has not ended
		defer func() { c.report(err) }()
		stop = c.client.handlers.begin(&c.ctx, func() Event {
			shown := c.url
			return CallStart{c.subject, &shown}
		})
	}
	if _, has := c.ctx.Deadline(); has {
		c.timeLeft = math.MaxInt64 // the deadline bounds the call, WithTimeout does not
	}
	stoppedBy := c.ctxErr()
	if stoppedBy == nil {
		stoppedBy = c.loop.Run(c.ctx, c.endpoint.Method, &c.url, c.client.httpClient.Jar, c)
	}
	if c.last.next == actionSuccess {
		return nil
	}
	return c.finishError(stoppedBy)
}

// Attempt makes one attempt, and decides, by the table in retry.go, whether there is
// another one. cookies are the jar's.
func (c *call) Attempt(cookies []string) (status int, header http.Header, again bool) {
	c.last = attempt{call: c, number: c.attempts + 1, cookies: cookies}
	a := &c.last
	a.run()
	a.next = a.outcome.idempotent
	if c.endpoint.Method == http.MethodPost {
		a.next = a.outcome.post
	}
	switch a.next {
	case actionSuccess:
		c.client.retryBudget.succeed()
	case actionRetry:
		if wait, planned := c.planRetry(); planned {
			c.client.handlers.emit(c.ctx, slog.LevelDebug, func() Event { return Retry{c.subject, a.number, a.outcome.name, wait} })
			return a.Status, a.Header, true
		}
		a.next = actionError
	}
	return a.Status, a.Header, false
}

// planRetry prepares another attempt, if that is allowed. wait is the time until that attempt:
// after a 429 the call spends it in line for the limit, otherwise in Pause. If the limit, the
// time or the retry budget forbids the attempt, the failure says so.
func (c *call) planRetry() (wait time.Duration, again bool) {
	c.pause = 0
	a, maxAttempts := &c.last, c.client.retry.MaxAttempts
	limited := a.outcome == outcomeLimited
	switch {
	case a.Unprocessed && c.renewals < maxRenewals: // at once, on another connection
		c.renewals++
		return 0, true
	case !limited && c.failures() < maxAttempts:
		return c.backOff()
	case !limited, maxAttempts == 1:
		return 0, false
	}
	wait, refusal := c.engine.Forecast(c.ctx, &c.waiter)
	if refusal != nil {
		a.failure.RetryAfter = max(a.failure.RetryAfter, refusal.RetryAfter)
		a.failure.addCause(c.whyRefused(refusal, a.failure.RetryAfter))
	}
	return wait, refusal == nil
}

// backOff sets the pause before the next attempt, and takes that attempt from the retry
// budget.
func (c *call) backOff() (wait time.Duration, again bool) {
	a := &c.last
	longest, _ := c.longestWait()
	wait, again = c.client.retry.wait(c.failures(), a.failure.RetryAfter, min(longest, c.timeLeft-1), c.client.random())
	switch {
	case !again:
		a.failure.addCause(cmp.Or(c.whyTooLong(wait), errNoTime))
		return 0, false
	case a.Sent && !c.client.retryBudget.take(c.client.clock.Now()): // an attempt that was not sent has spent no quota
		a.failure.addCause(errBudgetEmpty)
		return 0, false
	}
	c.pause = wait
	return wait, true
}

// Pause waits before the next attempt. It then takes the whole pause off timeLeft, even if
// a fake clock took no time.
func (c *call) Pause() (err error) {
	if c.pause > 0 {
		began := c.client.clock.Now()
		err = c.client.clock.Sleep(c.ctx, c.pause)
		c.waited += c.client.since(began)
		c.timeLeft -= c.pause
	}
	return cmp.Or(err, c.ctxErr())
}

// ctxErr returns why the call cannot go on: its context has ended, or its time under
// WithTimeout is used up. It returns nil if the call can go on.
func (c *call) ctxErr() error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.timeLeft <= 0:
		return fmt.Errorf("%w: WithTimeout allows %s", context.DeadlineExceeded, roundDuration(c.client.timeout))
	}
	return nil
}

// fillInfo fills the caller's CallInfo.
func (c *call) fillInfo() {
	a, info := &c.last, c.info
	*info = CallInfo{
		Attempts: c.attempts, Renewals: c.renewals, Refusals: c.refusals, Waited: c.waited,
		StatusCode: a.Status, Header: c.secrets.Header(a.Header), TraceID: a.safeTraceID(), Body: a.Body,
	}
	if a.failure != nil && a.Body != nil {
		info.Body = []byte(c.secrets.Hide(string(a.Body), redact.InText))
	}
}

// report tells observers of the call's end.
func (c *call) report(err error) {
	a := &c.last
	c.client.handlers.emit(c.ctx, callLevel(a.Status, err), func() Event {
		e := CallEnd{
			Subject: c.subject, StatusCode: a.Status, TraceID: a.safeTraceID(), Attempts: c.attempts,
			Refusals: c.refusals, Waited: c.waited, Elapsed: c.client.since(c.start), Err: err,
		}
		if a.failure != nil {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}
