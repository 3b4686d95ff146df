package agentmessaging

import (
	"context"
	"net/http"
	"net/url"
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
