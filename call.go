package agentmessaging

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
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
