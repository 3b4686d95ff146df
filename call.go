package agentmessaging

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
// RoundTripper of its own attempts, so that bodies are read, counted and
// decoded inside the attempt; the transport behind it stays out of reach, or
// the library would close its idle connections (they may be the caller's).
type call struct {
	client *Client
	ctx    context.Context
	request
	url    url.URL
	json   bytes.Buffer // request.body, encoded
	decode func(body []byte) (result any, traceID string, err error)
	result any // of the success, decoded

	library struct { // fields, so that they cost the call no memory of their own
		http  http.Client
		retry retryablehttp.Client
	}

	attempts     int
	waited       time.Duration
	budget       time.Duration // left of the client's timeout; see bounded
	seat         cooldown.Seat
	permit       Permit // of the limiter
	out          outcome
	next         step          // what follows out, as checkRetry decided
	pause        time.Duration // before the next attempt, likewise
	broken       error         // why the clock did not wait for it
	renewals     int           // attempts that were repeated at once on a new connection
	number       uint64        // for observers and loggers, as the times below
	began        time.Time
	attemptBegan time.Time
	scrubber     *scrub.Scrubber // once it is needed
}

// run makes the attempts and turns the last outcome into the call's error.
func (c *call) run() error {
	c.budget = c.client.timeout
	ctx := c.start(c.ctx)
	c.library.http = http.Client{
		Transport:     c,
		Jar:           c.client.httpClient.Jar,
		CheckRedirect: noRedirect,
	}
	c.library.retry = retryablehttp.Client{
		HTTPClient:   &c.library.http,
		RetryMax:     c.client.retry.MaxAttempts + maxRenewals,
		CheckRetry:   c.checkRetry,
		Backoff:      c.backoff,
		PrepareRetry: prepareRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// Answer and error are in c.out, where RoundTrip has put them whole: the
	// library's own error would hide what it replaces.
	_, _ = c.library.retry.Do(&retryablehttp.Request{Request: c.outline(ctx)}) //nolint:bodyclose // RoundTrip has read and closed it
	return c.end(ctx, c.finish(ctx))
}

// made is how many attempts were made; one that the limiter refused was not.
func (c *call) made() int {
	if c.out.refused {
		return c.attempts - 1
	}
	return c.attempts
}

// noRedirect hands a redirect to the caller as the answer that it is: following
// it would send the credential and the body to an address nobody chose.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// hasBudget reports whether the client's timeout bounds the call, because the
// caller has set no deadline.
func (c *call) hasBudget() bool {
	_, has := c.ctx.Deadline()
	return !has
}

// bounded is the context of one attempt's request, and how long it may take; 0
// is as long as the caller's context lasts.
func (c *call) bounded(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	limit := c.client.httpClient.Timeout
	if c.hasBudget() && (limit <= 0 || c.budget < limit) {
		limit = c.budget
	}
	if limit <= 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, 0
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, limit
}

// spend takes off the budget what a failed attempt took of its limit.
func (c *call) spend(ctx context.Context, limit time.Duration) {
	if deadline, has := ctx.Deadline(); has && c.hasBudget() {
		c.budget -= limit - time.Until(deadline)
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
	case c.budget <= 0 && c.hasBudget():
		return context.DeadlineExceeded
	}
	return nil
}

// outline is what http.Client needs of the request. It would clone a header:
// that, and the body, are added below it, by complete.
func (c *call) outline(ctx context.Context) *http.Request {
	req := http.Request{
		Method: c.endpoint.Method,
		URL:    &c.url,
		Header: http.Header{},
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return req.WithContext(ctx)
}

// prepareRetry gives the next attempt an outline without the cookies of the one
// before, to which the jar would add its own.
func prepareRetry(req *http.Request) error {
	req.Header = http.Header{}
	return nil
}

// complete adds to a copy of the outline what is sent.
func (c *call) complete(req *http.Request) {
	cookies := req.Header["Cookie"] // of the jar
	req.Host, req.Header = c.client.base.Host, c.client.header(c.body != nil)
	if cookies != nil {
		req.Header["Cookie"] = cookies
	}
	switch {
	case c.body != nil:
		// No GetBody: net/http cannot send it again by itself. The type is one
		// that it knows to be in memory: header and body leave in one write.
		req.ContentLength = int64(c.json.Len())
		req.Body = io.NopCloser(bytes.NewReader(c.json.Bytes()))
	case req.Method == http.MethodGet && c.url.Scheme == "http":
		req.Body, req.TransferEncoding = noReplay{}, identity
	}
}

// noReplay is an empty body, which keeps net/http from sending a GET over
// HTTP/1.1 again, as sentTrace does too, but lets it tell why the first one
// failed. HTTP/2 would send a frame for it.
type noReplay struct{}

func (noReplay) Read([]byte) (int, error) { return 0, io.EOF }
func (noReplay) Close() error             { return nil }

// WriteTo spares net/http a buffer of 32 KiB, with which it would copy the body.
func (noReplay) WriteTo(io.Writer) (int64, error) { return 0, nil }

// identity is no encoding at all. Said aloud, it saves net/http a goroutine for
// each GET, which looks whether noReplay has a first byte. Nobody writes to it.
var identity = []string{"identity"}

// scrub returns the scrubber of the call's secrets.
func (c *call) scrub() *scrub.Scrubber {
	if c.scrubber == nil {
		c.scrubber = scrub.New(c.client.secret(), scrub.Hide(c.secrets[0]), scrub.Hide(c.secrets[1]))
	}
	return c.scrubber
}

// scrubbed is err without the secrets of the call, and with the others in
// reach; nil stays nil.
func (c *call) scrubbed(err error, others ...error) error {
	if err == nil {
		return nil
	}
	return c.scrub().Error(err, others...)
}

// request is what one method asks of the one way through.
type request struct {
	endpoint *spec.Endpoint
	agentID  string
	body     any             // encoded as JSON; nil sends no body
	metadata json.RawMessage // a further member of the body; nil: none
	invalid  error           // why the arguments are refused, if they are
	secrets  [2]string       // what an error of this call must not show, beside the API key
	setsBYOK bool            // spends the BYOK set limit (interface 8.1)
}

// checkRetry decides what follows an attempt and, because Backoff is told
// neither the context nor the deadline, how long to wait. It never returns an
// error: the library would let it hide the attempt's own.
func (c *call) checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	if c.next == stepEnded {
		return false, nil
	}
	if c.attempts == 0 {
		c.out.err = err // http.Client refused the request before RoundTrip
	}
	class := c.out.classify(c.endpoint, c.ended(ctx))
	c.next = class.follow(c.endpoint.Method)
	if c.next != stepRetry {
		return false, nil
	}
	if c.out.renewed && c.renewals < maxRenewals {
		c.renewals, c.pause = c.renewals+1, 0
		c.tellRetry(ctx, retryTable[class].outcome)
		return true, nil
	}
	c.next = stepError // unless there is an attempt left, and time for it
	if c.attempts >= c.client.retry.MaxAttempts {
		return false, nil
	}
	told, random := c.out.toldToWait(), c.client.random()
	if c.seat.Parked {
		random = c.seat.Random // until the gate opens for all
	}
	wait, ok := c.client.retry.wait(c.attempts, told, c.longestPause(ctx), random)
	if !ok {
		return false, nil
	}
	c.seat.Waits(told, wait)
	c.next, c.pause = stepRetry, wait
	c.tellRetry(ctx, retryTable[class].outcome)
	c.rest(ctx)
	return true, nil
}

// longestPause is what the policy, the deadline and the client's timeout leave
// for one wait between attempts.
func (c *call) longestPause(ctx context.Context) time.Duration {
	longest := cooldown.Longest(ctx, c.client.retry.MaxWait)
	if c.hasBudget() {
		longest = min(longest, c.budget-1)
	}
	return longest
}

// rest waits out the pause, by the client's clock. It takes the whole of it off
// the budget, however long the clock took for it.
func (c *call) rest(ctx context.Context) {
	begin := c.client.time().Now()
	c.broken = c.client.time().Sleep(ctx, c.pause)
	c.waited += c.client.time().Now().Sub(begin)
	c.budget -= c.pause
}

// backoff is what is left to wait for the library, which knows nothing of the
// client's clock.
func (c *call) backoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }
