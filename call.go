package agentmessaging

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
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
	url    *url.URL
	body   []byte
	decode func(body []byte) (traceID string, err error)

	attempts int
	waited   time.Duration
	out      outcome
	next     step          // what follows out, as checkRetry decided
	pause    time.Duration // before the next attempt, likewise
	paused   time.Time     // when that pause began; zero outside of one
	began    timeline      // set for an observer only
}

// outcome is how one attempt ended.
type outcome struct {
	status  int // 0: no answer
	header  http.Header
	body    []byte // of an answer that is not a success; bounded
	traceID string // of a success
	err     error  // no answer, or why a 2xx cannot be read
	sent    bool   // the service may have seen the request
	refused bool   // by the limiter; nothing was sent
}

// run makes the attempts and turns the last outcome into the call's error.
func (c *call) run() error {
	ctx, cancel := c.withDeadline()
	defer cancel()
	ctx = c.start(ctx)
	retrying := retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     c,
			Jar:           c.client.jar,
			CheckRedirect: noRedirect,
		},
		RetryMax:     c.client.retry.MaxAttempts,
		CheckRetry:   c.checkRetry,
		Backoff:      c.backoff,
		PrepareRetry: c.prepareRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	req, err := c.newRequest(ctx)
	if err != nil {
		return err
	}
	// Answer and error are in c.out, where RoundTrip has put them whole: the
	// library's own error would hide what it replaces.
	_, _ = retrying.Do(req) //nolint:bodyclose // RoundTrip has read and closed it
	c.endPause()
	return c.end(ctx, c.finish(ctx))
}

// endPause counts the time that was really waited, which a cancellation cuts
// short.
func (c *call) endPause() {
	if !c.paused.IsZero() {
		c.waited += time.Since(c.paused)
		c.paused = time.Time{}
	}
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

func (c *call) withDeadline() (context.Context, context.CancelFunc) {
	if _, has := c.ctx.Deadline(); has {
		return c.ctx, func() {}
	}
	return context.WithTimeout(c.ctx, c.client.timeout)
}

// header is that of one attempt.
func (c *call) header() http.Header {
	header := c.client.header()
	if c.body != nil {
		header["Content-Type"] = []string{jsonType}
	}
	return header
}

// prepareRetry gives each attempt a header of its own: to that of the attempt
// before, the cookie jar and the transport may have added.
func (c *call) prepareRetry(req *http.Request) error {
	req.Header = c.header()
	return nil
}

func (c *call) newRequest(ctx context.Context) (*retryablehttp.Request, error) {
	req := (&http.Request{
		Method: c.endpoint.Method,
		URL:    c.url,
		Host:   c.url.Host,
		Header: c.header(),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	retryable := &retryablehttp.Request{Request: req}
	if c.body == nil {
		return retryable, nil
	}
	return retryable, retryable.SetBody(c.body)
}

// RoundTrip is one attempt. It is called by http.Client, never by users.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.endPause()
	if err := req.Context().Err(); err != nil {
		c.next = stepEnded // c.out stays that of the attempt before
		return nil, err
	}
	c.attempts++
	c.out = outcome{}
	ctx := c.startAttempt(req.Context())
	defer c.endAttempt(ctx)
	permit, err := c.acquire(ctx)
	if err != nil {
		c.out.err, c.out.refused = err, true
		return nil, err
	}
	defer func() { permit.Done(c.out.report()) }()
	if c.client.tryTimeout > 0 { // not the http.Client's: that would count the limiter's wait
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.client.tryTimeout)
		defer cancel()
	}
	return c.send(ctx, req)
}

// send makes the attempt and leaves its outcome in c.out.
func (c *call) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	var trace sentTrace
	req = req.WithContext(httptrace.WithClientTrace(ctx, trace.hooks()))
	resp, err := checked(c.client.transport.RoundTrip(req))
	if err != nil {
		c.out.err, c.out.sent = err, trace.maybeSent(ctx, c.client.transport, err)
		return nil, err
	}
	c.out.status, c.out.header, c.out.sent = resp.StatusCode, resp.Header, true
	c.read(resp)
	resp.Body = http.NoBody
	return resp, nil
}

// checked makes up for transports that break the rules of RoundTripper, as
// those that are written for a test do.
func checked(resp *http.Response, err error) (*http.Response, error) {
	if resp != nil && resp.Body == nil {
		resp.Body = http.NoBody
	}
	switch {
	case err != nil && resp != nil:
		resp.Body.Close()
	case err == nil && resp == nil:
		err = errors.New("the transport returned neither an answer nor an error")
	}
	return resp, err
}

// Bounds on what is read of an answer, counted after decompression. The
// documented bodies take a few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// errorBodyWait is how long the rest of an error's body is waited for: its
	// status is known, and a body that stalls must not hold up the retry.
	errorBodyWait = 5 * time.Second
)

func (c *call) read(resp *http.Response) {
	defer resp.Body.Close()
	if c.out.success() {
		c.readSuccess(resp)
		return
	}
	if resp.StatusCode < http.StatusOK {
		return // a protocol switch: what follows is not a body, and may never end
	}
	stalled := time.AfterFunc(errorBodyWait, func() { resp.Body.Close() })
	defer stalled.Stop()
	// What arrived of an error's body is enough: its status stands.
	c.out.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
}

func (c *call) readSuccess(resp *http.Response) {
	body, err := readBody(resp, maxSuccessBody)
	if err == nil {
		c.out.traceID, err = c.decode(body)
	}
	c.out.err = err
}

// readBody reads a body that may have at most limit bytes.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if n := resp.ContentLength; n > 0 && n <= limit {
		body := make([]byte, n)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errTooLarge
	}
	return body, err
}

var errTooLarge = errors.New("the body is larger than any documented one")

// success reports a 2xx status; whether its body can be read is told by err.
func (o *outcome) success() bool { return o.status >= 200 && o.status <= 299 }

// sentTrace learns from net/http whether the service can have seen a request.
// The hooks run on the transport's goroutines and may fire after RoundTrip
// has returned.
type sentTrace struct{ started, connected, wroteHeaders atomic.Bool }

func (t *sentTrace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:      func(string) { t.started.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { t.connected.Store(true) },
		WroteHeaders: func() { t.wroteHeaders.Store(true) },
	}
}

// maybeSent is false only where it is certain that the service has seen no
// whole request header. Without hooks it is in doubt, unless the transport is
// net/http's own, which runs them; and so it is when the attempt's context
// ends while the header may be on its way.
func (t *sentTrace) maybeSent(ctx context.Context, transport http.RoundTripper, err error) bool {
	switch {
	case isDialError(err):
		return false
	case t.wroteHeaders.Load():
		return true
	case !t.started.Load():
		_, runsHooks := transport.(*http.Transport)
		return !runsHooks
	}
	return t.connected.Load() && (ctx.Err() != nil || isTimeoutOrCancel(err))
}
