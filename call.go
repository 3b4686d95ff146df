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
)

// This file follows one call, from top to bottom. What calls what:
//
//	do                               every method ends in it
//	  newCall                        checks the arguments, encodes the body
//	  call.run                       reports to observers, returns the error
//	    retryloop.Loop.Run           has go-retryablehttp repeat:
//	      call.Attempt
//	        attempt.run              makes one attempt, see attempt.go
//	        call.decide              decides, by the table in retry.go, whether another follows
//	      call.Pause                 waits for it
//	    call.finishError             makes the error from the last attempt

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

// request holds the arguments that a method passes to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string // empty if the endpoint's path has none
	invalid  error  // why the method refuses its arguments; nil: they are valid
	body     any    // encoded as JSON; nil sends no body
	setsBYOK bool   // spends the BYOK set limit (interface 8.1)
	// providerKey and userText are secrets: no error of this call shows them. userText is the
	// text that a person wrote, a system prompt or a message.
	providerKey, userText string
}

// url returns the address of the request. An agent id is opaque, but always exactly
// one path segment.
func (r *request) url(base *url.URL) (url.URL, error) {
	u := *base
	before, after, hasID := strings.Cut(r.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(r.agentID); err != nil {
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

// call is the state of one call of a method. An attempt holds the state of a single
// attempt.
type call struct {
	request
	client     *Client
	readResult func(*answerBody) // keeps the result of a success
	ctx        context.Context   // the caller's context, or one that an observer returned
	url        url.URL
	payload    []byte          // request.body, encoded
	secrets    redact.Redactor // hides the API key, providerKey and userText

	beforeSend func(context.Context, int) error // see WithBeforeSend; nil: none
	info       *CallInfo                        // see WithCallInfo; nil: none
	subject    Subject                          // for observers
	began      time.Time                        // by the client's clock; set if there are observers

	// engine makes the call wait for limits. It is the client's engine. Under
	// WithoutCoolDown it is nil until the first 429, and then an engine that no other call
	// uses.
	engine *quota.Engine
	waiter quota.Waiter // the call's place in the engine

	last     attempt       // the attempt that began last
	limited  *Error        // the 429 that answered the last sent attempt; nil: another answer, or none
	timeLeft time.Duration // of WithTimeout, for attempts and pauses
	pause    time.Duration // before the next attempt

	attempts, renewals, refusals int           // as in CallInfo
	waited                       time.Duration // for limits and between attempts

	loop retryloop.Loop // allocated together with the call
}

// newCall makes the checks that all calls share, and encodes the body.
func (c *Client) newCall(ctx context.Context, r request, readResult func(*answerBody)) (_ *call, err error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	if ctx == nil {
		return nil, &ValidationError{Field: "ctx", Reason: "is nil; use context.Background() when there is none"}
	}
	call := &call{request: r, readResult: readResult, client: c, ctx: ctx, engine: c.engine, timeLeft: c.timeout}
	call.secrets = c.redactor().With(r.providerKey, r.userText)
	call.last.call = call
	call.beforeSend, _ = ctx.Value(beforeSendKey{}).(func(context.Context, int) error)
	if call.info, _ = ctx.Value(callInfoKey{}).(*CallInfo); call.info != nil {
		*call.info = CallInfo{} // stays empty if the call is refused below
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	if key := c.apiKey(); len(key) >= redact.MinSecret && strings.Contains(r.agentID, key) { // URLs, events and logs show ids
		return nil, &ValidationError{Field: "agent_id", Reason: "holds the API key; give Agent.ID"}
	}
	if call.url, err = r.url(c.base); err != nil {
		return nil, err
	}
	if r.body != nil {
		call.payload, _ = encode(r.body) // cannot fail: strings, and metadata that is JSON already
	}
	call.waiter = quota.Waiter{Endpoint: r.endpoint, SetsBYOK: r.setsBYOK, MaxWait: c.retry.MaxWait, Patience: c.timeout, Clock: c.clock}
	if c.handlers != nil {
		call.began = c.clock.Now()
		call.subject = Subject{c.calls.Add(1), Endpoint{r.endpoint.Name, r.endpoint.Method, r.endpoint.Path}, r.agentID}
	}
	return call, nil
}

// run makes the attempts and returns the call's error. If a transport, an observer or a
// limiter panics, the deferred functions still run, and observers get quota.ErrPanic as
// the error.
func (c *call) run() (err error) {
	err = quota.ErrPanic
	if c.client.handlers != nil {
		stop := func() {}
		defer func() { stop() }() // last: the report comes with a context that has not ended
		defer func() { c.report(err) }()
		stop = c.observe()
	}
	if _, has := c.ctx.Deadline(); has {
		c.timeLeft = math.MaxInt64 // the deadline bounds the call, WithTimeout does not
	}
	if c.info != nil {
		defer c.fillInfo()
	}
	stoppedBy := c.ctxErr()
	if stoppedBy == nil {
		stoppedBy = c.loop.Run(c.ctx, c.endpoint.Method, &c.url, c.client.httpClient.Jar, c)
	}
	return c.finishError(&c.last, stoppedBy)
}

// observe tells observers that the call begins. The call goes on with the context that they
// return.
func (c *call) observe() (stop func()) {
	c.ctx, stop = withDeadline(c.client.handlers.emit(c.ctx, silent, func() Event {
		shown := c.url
		return CallStart{c.subject, &shown}
	}), c.ctx)
	return stop
}

// withDeadline returns ctx, which an observer returned, with the deadline of got, the
// context that the observer received. The observer may have dropped the deadline.
func withDeadline(ctx, got context.Context) (context.Context, context.CancelFunc) {
	deadline, has := got.Deadline()
	if kept, still := ctx.Deadline(); !has || still && !kept.After(deadline) { // most observers keep it
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

// finishError returns the error of a call whose last attempt is a; nil after a success.
// stoppedBy says why there was no attempt, or none after a.
func (c *call) finishError(a *attempt, stoppedBy error) error {
	switch {
	case a.next == actionSuccess:
		return nil
	case a.next == actionUnknown:
		return a.outcomeUnknownError()
	case a.next == actionError: // the failure is complete
	case c.limited != nil && c.ctx.Err() != nil: // reported as if the context had ended in line for the limit
		a.failure = c.refusal(c.ctx, stoppedBy, false)
	default:
		a.failure = cmp.Or(a.failure, new(Error))
		a.failure.add(c.redactCause(c.ctx, cmp.Or(c.ctxErr(), stoppedBy)))
	}
	return a.finishFailure()
}

// Attempt makes one attempt, reads the answer's body, and decides whether there is another
// attempt. cookies are the jar's.
func (c *call) Attempt(cookies []string) (status int, header http.Header, again bool) {
	c.last = attempt{call: c, number: c.attempts + 1, cookies: cookies}
	c.last.run()
	return c.last.Status, c.last.Header, c.decide()
}

// decide reports whether there is another attempt, and sets last.next.
func (c *call) decide() bool {
	a := &c.last
	if a.next = a.outcome.idempotent; c.endpoint.Method == http.MethodPost {
		a.next = a.outcome.post
	}
	switch a.next {
	case actionSuccess:
		c.client.retryBudget.succeed()
	case actionRetry:
		if wait, again := c.takeRetry(); again {
			c.client.handlers.emit(c.ctx, slog.LevelDebug, func() Event { return Retry{c.subject, a.number, a.outcome.name, wait} })
			return true
		}
		a.next = actionError
	}
	return false
}

// takeRetry decides whether another attempt is allowed. wait is the time until that attempt:
// after a 429 the call spends it in line for the limit, otherwise in Pause. If the limit, the
// time or the retry budget forbids the attempt, the failure says so.
func (c *call) takeRetry() (wait time.Duration, again bool) {
	c.pause = 0
	limited, most := c.last.outcome == outcomeLimited, c.client.retry.MaxAttempts
	switch {
	case c.last.TurnedAway && c.renewals < maxRenewals: // at once, on another connection
		c.renewals++
		return 0, true
	case limited && most > 1:
		return c.waitInLine()
	case limited, c.failures() >= most:
		return 0, false
	}
	return c.backOff()
}

// waitInLine asks the engine how long the next attempt will wait in line for the limit.
func (c *call) waitInLine() (wait time.Duration, again bool) {
	wait, refusal := c.engine.Forecast(c.ctx, &c.waiter)
	if refusal != nil {
		e := c.last.failure
		e.RetryAfter = max(e.RetryAfter, refusal.RetryAfter)
		e.add(c.whyRefused(refusal, e.RetryAfter))
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
		a.failure.add(cmp.Or(c.whyTooLong(wait), errNoTime))
		return 0, false
	case a.Sent && !c.client.retryBudget.take(c.client.clock.Now()): // an attempt that was not sent has spent no quota
		a.failure.add(errWithheld)
		return 0, false
	}
	c.pause = wait
	return wait, true
}

// failures returns how many attempts count against MaxAttempts. A 429 does not count, nor
// does an attempt that is repeated on a new connection.
func (c *call) failures() int { return c.attempts - c.renewals - c.refusals }

// longestWait returns the longest wait that MaxWait and the deadline allow, and words
// that describe a longer one.
func (c *call) longestWait() (longest time.Duration, beyond string) {
	longest, beyond = c.client.retry.MaxWait, "later than the RetryPolicy waits"
	if deadline, has := c.ctx.Deadline(); has && time.Until(deadline) < longest {
		longest, beyond = max(0, time.Until(deadline)-1), "after the call's deadline" // 1 ns before it: an attempt at the deadline is too late
	}
	return longest, beyond
}

// whyRefused returns why the engine refuses a call whose limit opens in a while: nobody got
// through for the call's patience, which is that of WithTimeout, or the wait is too long.
// Without a cool-down, only this call is in line.
func (c *call) whyRefused(refusal *quota.Refusal, opens time.Duration) error {
	if refusal.Patience > 0 {
		return fmt.Errorf("the service has refused every call in line for %s", roundDuration(refusal.Patience))
	}
	return c.whyTooLong(opens)
}

// whyTooLong returns why a call does not begin a wait; nil if the wait is allowed.
func (c *call) whyTooLong(wait time.Duration) error {
	longest, beyond := c.longestWait()
	if wait <= longest {
		return nil
	}
	return fmt.Errorf("the next attempt is due in %s, %s (%s)", roundDuration(wait), beyond, roundDuration(longest))
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

// redactCause turns err into a cause that an error of this package may wrap. err comes
// from a transport, a limiter, a context or a BeforeSend function. The cause has no
// secrets; it also says how ctx ended and why.
//
// errors.Is and errors.As find err in the cause, but no error of this package. Such an
// error is about another call: errgroup, for one, cancels the context of all calls with
// the first one's error.
func (c *call) redactCause(ctx context.Context, err error) error {
	return c.secrets.Error(isOwn, cmp.Or(ctx.Err(), c.ctxErr()), err, context.Cause(ctx))
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
			Refusals: c.refusals, Waited: c.waited, Elapsed: c.client.since(c.began), Err: err,
		}
		if a.failure != nil {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}
