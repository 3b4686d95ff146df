package agentmessaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryloop"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// This file follows one call, from top to bottom. What calls what:
//
//	do                            every method of Client calls it
//	  newCall                     checks the arguments, encodes the body
//	  call.run                    reports to observers, returns the error
//	    retryloop.Loop.Run        repeats with go-retryablehttp:
//	      call.Attempt            makes one attempt:
//	        attempt.acquire       waits for the limits
//	        attempt.send          sends the request; attempt.read reads the answer
//	        attempt.classify      finds the outcome, a row of the table in retry.go
//	        attempt.reportOutcome reports it to the engine and to the user's limiter
//	      call.PlanNext           decides by the outcome whether another attempt follows
//	        attempt.planRetry     checks that the limit, the time and the retry budget allow it
//	      call.Pause              waits before it
//	    call.finishError          makes the error from the last attempt
//
// Errors are made in failure.go.

// do makes a call. read turns the body of a success into the result. If it cannot, it sets
// answerBody.err.
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

	// engine makes the call wait for limits. It is the client's. Under WithoutCoolDown, the first
	// 429 replaces it by an engine for this call alone; see Attempt.
	engine *quota.Engine
	waiter quota.Waiter // the call's place in the engine

	last429  *Error        // the service's answer to the last attempt that was sent, if it was a 429; else nil
	timeLeft time.Duration // of WithTimeout, for attempts and pauses
	pause    time.Duration // before the next attempt

	attempts, renewals, refusals int           // as in CallInfo
	waited                       time.Duration // for limits and between attempts

	last attempt        // the attempt that began last
	loop retryloop.Loop // part of the call, which saves an allocation
}

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
	call.waiter = quota.Waiter{Endpoint: r.endpoint, SetsBYOK: r.endpoint.Counts(spec.BYOKSets, r.providerKey != ""), MaxWait: c.retry.MaxWait, Patience: c.timeout, Clock: c.clock}
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
	stoppedBy := c.whyOver()
	if stoppedBy == nil {
		stoppedBy = c.loop.Run(c.ctx, c.endpoint.Method, &c.url, c.client.httpClient.Jar, c)
	}
	if c.last.next == actionSuccess {
		c.client.retryBudget.succeed()
		return nil
	}
	return c.finishError(stoppedBy)
}

// attempt is the state of one attempt. What the attempts of a call share is in call.
type attempt struct {
	call    *call
	number  int       // from 1
	began   time.Time // by the client's clock; set if there are observers
	cookies []string  // from the http.Client's jar
	permit  Permit    // from the user's limiter; reportOutcome reports the outcome to it; nil: none
	answer  exchange.Answer
	parsed  *answerBody // the body of a 2xx; nil: no 2xx came
	traceID string      // parsed.traceID without secrets; set by safeTraceID
	failure *Error      // nil: success, or the attempt is not over
	outcome *outcome    // nil: the attempt is not over
	next    action      // the step after the attempt; empty: not decided yet
}

// Attempt makes one attempt. cookies are the jar's. The deferred functions also run if a
// transport, an observer or a limiter panics: the limits learn of the outcome, then observers
// get the attempt's end, and then its context ends.
func (c *call) Attempt(cookies []string) (status int, header http.Header) {
	c.last = attempt{call: c, number: c.attempts + 1, cookies: cookies}
	a, ctx := &c.last, c.ctx
	if c.client.handlers != nil {
		var stop context.CancelFunc
		ctx, stop = a.reportStart()
		defer stop()
		defer a.reportEnd(ctx)
	}
	defer a.reportOutcome(ctx)
	if a.failure = a.acquire(ctx); a.failure != nil {
		a.outcome = outcomeRefusedHere
		return 0, nil
	}
	c.attempts++
	requestCtx := ctx
	if c.client.handlers != nil {
		stop := c.client.handlers.begin(&requestCtx, func() Event { return RequestStart{c.subject, a.number} })
		defer stop()
	}
	a.send(requestCtx)
	a.outcome = a.classify()
	c.last429 = nil
	if a.outcome == outcomeLimited {
		c.last429 = a.failure
		if c.refusals++; c.refusals == 1 && c.client.callsWaitAlone() {
			c.engine = quota.NewCoolDown(c.client.random) // so that the client's engine never learns of a 429
		}
	}
	return a.answer.Status, a.answer.Header
}

// minReportedWait is the shortest wait for a limit that is reported. A limiter takes a
// moment to decide even if it delays nothing; that moment is not a wait.
const minReportedWait = time.Millisecond

// acquire waits until the attempt may be sent: it asks the engine, then the user's
// limiter, then the function of WithBeforeSend. It returns the call's error if one of them
// refuses the attempt, or if ctx ends; nil if the attempt may be sent.
func (a *attempt) acquire(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil && a.call.last429 == nil { // no limit has delayed the call, so the error is not a 429
		return &Error{cause: a.call.causeOf(ctx, err)}
	}
	err := a.call.engine.Acquire(ctx, &a.call.waiter)
	limitKey, waited, byLimiter := a.call.waiter.LimitKey, a.call.waiter.Waited, false
	if err == nil && a.call.client.limiter != nil {
		var asked time.Duration
		asked, byLimiter, err = a.askLimiter(ctx)
		if asked >= minReportedWait {
			limitKey, waited = "", waited+asked // the user's limiter may have caused the wait, and it names no limit
		}
	}
	if waited >= minReportedWait {
		a.call.waited += waited
		a.call.client.handlers.emit(ctx, slog.LevelDebug, func() Event { return LimiterWait{a.call.subject, a.number, limitKey, waited} })
	}
	switch {
	case err != nil:
		return a.call.refusedHere(ctx, err, byLimiter)
	case a.call.beforeSend != nil:
		return a.askBeforeSend(ctx)
	}
	return nil
}

// askLimiter asks the user's limiter, after the engine has let the attempt pass. If a
// limit closes while the limiter makes the attempt wait, the attempt waits in the engine
// once more, in its old place. asked is the time that both waits took. byLimiter means
// that the error is the limiter's.
func (a *attempt) askLimiter(ctx context.Context) (asked time.Duration, byLimiter bool, err error) {
	began := a.call.client.clock.Now()
	a.permit, err = a.userPermit(ctx)
	asked = a.call.client.since(began)
	if err != nil || asked < minReportedWait {
		return asked, err != nil, err
	}
	if closed, _ := a.call.engine.Forecast(ctx, &a.call.waiter); closed > 0 {
		a.call.engine.Done(&a.call.waiter, quota.Outcome{})
		err = a.call.engine.Acquire(ctx, &a.call.waiter)
		asked += a.call.waiter.Waited
	}
	return asked, false, err
}

// userPermit returns a permit or an error of the user's limiter, never both, nor neither.
func (a *attempt) userPermit(ctx context.Context) (Permit, error) {
	permit, err := a.call.client.limiter.Acquire(ctx, LimitedAttempt{
		Method: a.call.endpoint.Method, Path: a.call.endpoint.Path, Number: a.number, SetsBYOK: a.call.waiter.SetsBYOK,
		MaxWait: a.call.client.retry.MaxWait, Clock: a.call.client.clock,
	})
	if isnil.Value(err) { // a nil *Error in an error
		err = nil
	}
	switch none := isnil.Value(permit); {
	case err == nil && none:
		err = errors.New("the limiter returned neither a permit nor an error")
	case err == nil:
		return permit, nil
	case !none:
		permit.Done(AttemptOutcome{}) // returned unused
	}
	return nil, err
}

// askBeforeSend calls the function of WithBeforeSend. If the function returns an error, the
// call fails with it.
func (a *attempt) askBeforeSend(ctx context.Context) *Error {
	nested := context.WithValue(ctx, beforeSendKey{}, nil) // calls that the function makes do not call it again
	err := a.call.beforeSend(nested, a.number)
	if isnil.Value(err) { // a nil *Error in an error
		return nil
	}
	return &Error{by: "function of WithBeforeSend", cause: a.call.causeOf(ctx, err), Local: true}
}

// send sends the attempt's request and reads the answer. It subtracts the time that this
// takes, by the machine's clock, from the call's timeLeft. ctx may end before or after
// the call's context: an observer may have added a deadline, or dropped the caller's
// cancellation.
func (a *attempt) send(ctx context.Context) {
	began := time.Now()
	limit := a.call.timeLeft
	if timeout := a.call.client.httpClient.Timeout; timeout > 0 {
		limit = min(limit, timeout)
	}
	if a.answer.Err = ctx.Err(); a.answer.Err == nil {
		a.answer.Sent = true // if Send panics, the service may have seen the request
		a.answer = a.call.client.sender.Send(ctx, exchange.Request{
			Method: a.call.endpoint.Method, URL: &a.call.url, Header: a.call.client.credentials().header, Cookies: a.cookies,
			Body: a.call.payload, Deadline: began.Add(limit),
		})
		if a.answer.Status != 0 {
			a.read()
		}
	}
	a.call.timeLeft -= time.Since(began)
	if a.answer.Err != nil {
		a.failure = cmp.Or(a.failure, new(Error))
		a.answer.Err = a.call.causeOf(ctx, a.call.nameTimeout(ctx, a.answer.Err))
		a.failure.cause = a.answer.Err
	}
}

// read reads the answer. If it is not a documented success, read sets failure.
func (a *attempt) read() {
	secrets := &a.call.secrets
	switch {
	case a.answer.Status/100 != 2:
		a.failure = readError(a.answer, secrets)
	case a.answer.Err != nil:
		a.failure = new(Error)
	default:
		a.parsed = parseBody(a.answer.Body)
		if a.call.readResult(a.parsed); a.parsed.err == nil {
			return
		}
		a.answer.Err, a.answer.Missed = bodyError(a.answer, a.parsed.err, secrets), exchange.Unreadable
		a.failure = &Error{TraceID: a.safeTraceID()}
	}
	a.failure.StatusCode, a.failure.RetryAfter = a.answer.Status, retryafter.Read(a.answer.Header, a.call.client.clock.Now())
}

// reportOutcome reports to the engine and to the user's limiter how the attempt ended, or
// that it was not sent.
func (a *attempt) reportOutcome(ctx context.Context) {
	o := quota.Outcome{Sent: a.answer.Sent, Unanswered: a.answer.Status == 0}
	if a.outcome == outcomeLimited {
		o.Refused, o.TraceID, o.LimitKey, o.RetryAfter = true, a.failure.TraceID, a.failure.LimitKey, a.failure.RetryAfter
	}
	if a.permit != nil { // deferred, since Done may panic: the engine learns of the 429 first
		defer a.permit.Done(AttemptOutcome{StatusCode: a.answer.Status, Sent: a.answer.Sent, LimitKey: o.LimitKey, RetryAfter: o.RetryAfter})
	}
	if a.call.engine.Done(&a.call.waiter, o) && !a.call.client.callsWaitAlone() {
		a.call.client.handlers.emit(ctx, slog.LevelInfo, func() Event { return CoolDown{a.call.subject, o.LimitKey, cmp.Or(o.RetryAfter, quota.MinClosed)} })
	}
}

// PlanNext plans another attempt, if the table in retry.go asks for one and planRetry allows it.
// It reports whether there is one.
func (c *call) PlanNext() bool {
	a := &c.last
	if a.next = a.outcome.actionAfter(c.endpoint.Method); a.next != actionRetry {
		return false
	}
	wait, planned := a.planRetry()
	if !planned {
		a.next = actionError
		return false
	}
	c.client.handlers.emit(c.ctx, slog.LevelDebug, func() Event { return Retry{c.subject, a.number, a.outcome.name, wait} })
	return true
}

// planRetry prepares another attempt, if that is allowed. wait is the time until that attempt:
// after a 429 the call spends it in line for the limit, otherwise in Pause. If the limit, the
// time or the retry budget forbids the attempt, the failure says so.
func (a *attempt) planRetry() (wait time.Duration, again bool) {
	a.call.pause = 0
	maxAttempts := a.call.client.retry.MaxAttempts
	switch limited := a.outcome == outcomeLimited; {
	case a.answer.OtherConnection && a.call.renewals < maxRenewals: // at once; the retry table has already allowed a repeat
		a.call.renewals++
		return 0, true
	case limited && maxAttempts > 1:
		expected, turnedAway := a.call.engine.Forecast(a.call.ctx, &a.call.waiter)
		if turnedAway != nil {
			a.failure.RetryAfter = max(a.failure.RetryAfter, turnedAway.RetryAfter)
			a.failure.addCause(a.call.whyTurnedAway(turnedAway, a.failure.RetryAfter))
		}
		return expected, turnedAway == nil
	case !limited && a.call.failures() < maxAttempts:
		return a.backOff()
	}
	return 0, false
}

// failures returns how many attempts count against MaxAttempts. A 429 does not count, nor
// does an attempt that is repeated on a new connection.
func (c *call) failures() int { return c.attempts - c.renewals - c.refusals }

// backOff sets the pause before the next attempt, and draws a retry from the budget. again is
// false if the time or the budget does not allow the retry.
func (a *attempt) backOff() (wait time.Duration, again bool) {
	longest, _ := a.call.longestWait()
	wait, again = a.call.client.retry.wait(a.call.failures(), a.failure.RetryAfter, min(longest, a.call.timeLeft-1), a.call.client.random())
	switch {
	case !again:
		a.failure.addCause(cmp.Or(a.call.whyTooLong(wait), errNoTime))
		return 0, false
	case a.answer.Sent && !a.call.client.retryBudget.take(a.call.client.clock.Now()): // an attempt that was not sent has spent no quota
		a.failure.addCause(errBudgetEmpty)
		return 0, false
	}
	a.call.pause = wait
	return wait, true
}

// Pause waits before the next attempt. It then takes the whole pause off timeLeft: by a fake clock,
// on which waits take no time, the call would otherwise go on for ever.
func (c *call) Pause() (err error) {
	if c.pause > 0 {
		began := c.client.clock.Now()
		err = c.client.clock.Sleep(c.ctx, c.pause)
		c.waited += c.client.since(began)
		c.timeLeft -= c.pause
	}
	return cmp.Or(err, c.whyOver())
}

// whyOver returns why the call cannot go on: its context has ended, or its time under
// WithTimeout is used up. It returns nil if the call can go on.
func (c *call) whyOver() error {
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.timeLeft <= 0:
		return fmt.Errorf("%w: WithTimeout allows %s", context.DeadlineExceeded, roundDuration(c.client.timeout))
	}
	return nil
}

// reportStart reports the attempt's start, and prepares the events about its wait and its end.
func (a *attempt) reportStart() (context.Context, context.CancelFunc) {
	a.began = a.call.client.clock.Now() // before the event: if the clock panics, there is no AttemptEnd
	begun := a.call.ctx
	stop := a.call.client.handlers.begin(&begun, func() Event { return AttemptStart{a.call.subject, a.number} })
	ctx := begun // never changed, so OnWait can keep it without an allocation
	a.call.waiter.OnWait = func(w quota.Wait) {
		a.call.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
			return LimiterWaitStart{a.call.subject, a.number, w.LimitKey, w.Place, w.Expected}
		})
	}
	return ctx, stop
}

// reportEnd sends observers the attempt's end.
func (a *attempt) reportEnd(ctx context.Context) {
	if a.parsed != nil && a.call.agentID == "" {
		a.call.subject.AgentID = a.call.secrets.Hide(a.parsed.agentID, redact.InName) // the agent that the call created
	}
	a.call.client.handlers.emit(ctx, slog.LevelDebug, func() Event {
		e := AttemptEnd{
			Subject: a.call.subject, Attempt: a.number, StatusCode: a.answer.Status, TraceID: a.safeTraceID(),
			Verdict: a.verdict(), Elapsed: a.call.client.since(a.began),
		}
		switch a.outcome {
		case nil: // after a panic the error is not redacted yet
		case outcomeRefusedHere:
			e.Err = a.call.withFacts(a.failure)
		default:
			e.Err = a.answer.Err
		}
		if a.outcome == outcomeLimited {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}

// report tells observers of the call's end.
func (c *call) report(err error) {
	a := &c.last
	c.client.handlers.emit(c.ctx, callLevel(a.answer.Status, err), func() Event {
		e := CallEnd{
			Subject: c.subject, StatusCode: a.answer.Status, TraceID: a.safeTraceID(), Attempts: c.attempts,
			Refusals: c.refusals, Waited: c.waited, Elapsed: c.client.since(c.start), Err: err,
		}
		if a.failure != nil {
			e.LimitKey = a.failure.LimitKey
		}
		return e
	})
}

// fillInfo fills the caller's CallInfo.
func (c *call) fillInfo() {
	a, info := &c.last, c.info
	*info = CallInfo{
		Attempts: c.attempts, Renewals: c.renewals, Refusals: c.refusals, Waited: c.waited,
		StatusCode: a.answer.Status, Header: c.secrets.Header(a.answer.Header), TraceID: a.safeTraceID(), Body: a.answer.Body,
	}
	if a.failure != nil && a.answer.Body != nil {
		info.Body = []byte(c.secrets.Hide(string(a.answer.Body), redact.InText))
	}
}

// safeTraceID returns the answer's trace_id without secrets; empty if there is none.
func (a *attempt) safeTraceID() string {
	switch {
	case a.answer.Status != 0 && a.failure != nil:
		return a.failure.TraceID
	case a.parsed != nil && a.traceID == "":
		a.traceID = printable.Line(a.call.secrets.Hide(a.parsed.traceID, redact.InName), maxTraceID)
	}
	return a.traceID
}

// verdict returns whether the service did what the attempt asked for. The POST column of
// the retry table answers this for every method: a POST is retried only if the service
// certainly did nothing.
func (a *attempt) verdict() Verdict {
	o := cmp.Or(a.outcome, outcomeUnsent) // nil after a panic
	switch {
	case o == outcomeSuccess:
		return VerdictDone
	case o.post == actionUnknown, a.outcome == nil && a.answer.Sent:
		return VerdictUnknown
	}
	return VerdictNotDone
}
