package agentmessaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/sent"
)

// attempter is the RoundTripper of the library. It reads, counts and decodes
// bodies inside the attempt. The transport behind it stays out of the library's
// reach, which would close its idle connections (they may be the caller's).
type attempter struct{}

// RoundTrip is one attempt of the call whose context the request has.
func (attempter) RoundTrip(outer *http.Request) (*http.Response, error) {
	return callOf(outer.Context()).attempt(outer)
}

func (c *call) attempt(outer *http.Request) (*http.Response, error) {
	if err := c.ended(); err != nil {
		c.next = stepEnded // c.out keeps the outcome of the attempt before
		return nil, err
	}
	cookies := outer.Header["Cookie"]
	delete(outer.Header, "Cookie") // the jar adds its own before each attempt
	c.attempts++
	c.out = outcome{}
	ctx := c.startAttempt(c.Context)
	defer c.endAttempt(ctx)
	if err := c.acquire(ctx); err != nil {
		c.out.err, c.out.refused = err, true
		return nil, err
	}
	defer c.release(ctx)
	ctx, stop, limit := c.bounded(c.startRequest(ctx)) // whatever context an observer has made
	defer stop()
	resp, err := c.send(ctx, stop, cookies)
	if deadline, has := ctx.Deadline(); has && c.out.failed() {
		c.spend(limit - time.Until(deadline))
	}
	return resp, err
}

// A sending belongs to one attempt alone, because a transport may still use it
// when the attempt has ended.
type sending struct {
	sent.Trace
	request http.Request
	body    bytes.Reader
}

// send makes the attempt, which stop ends, and leaves its outcome in c.out.
func (c *call) send(ctx context.Context, stop func(), cookies []string) (*http.Response, error) {
	s := &sending{Trace: sent.Trace{Stop: stop, Follower: c.client.coolDown}}
	c.build(s.Within(ctx), s, cookies)
	resp, err := checked(c.client.transport.RoundTrip(&s.request))
	if err != nil {
		c.out.sent = s.MaybeSent(ctx, c.client.transport, err)
		c.out.renewed = c.client.answered.Load() && s.Renewed(err) || s.Crowded(err)
		c.out.err = s.Reason(err)
		return nil, c.out.err
	}
	if !isStatus(resp.StatusCode) {
		resp.Body.Close()
		c.out.err, c.out.sent = fmt.Errorf("the answer has the status %03d, which HTTP does not know", resp.StatusCode), true
		return nil, c.out.err
	}
	if !c.client.answered.Load() {
		c.client.answered.Store(true)
	}
	c.out.status, c.out.header, c.out.sent = resp.StatusCode, resp.Header, true
	c.read(resp, stop)
	resp.Body = http.NoBody
	return resp, nil
}

// build makes the request of an attempt. Header and body are its own: what a
// transport changes in them ends with the attempt.
func (c *call) build(ctx context.Context, s *sending, cookies []string) {
	s.request = *(&http.Request{
		Method: c.endpoint.Method,
		URL:    &c.url,
		Host:   c.client.base.Host,
		Header: c.client.header(c.body != nil),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if cookies != nil {
		s.request.Header["Cookie"] = cookies
	}
	if c.body != nil {
		// No GetBody: net/http cannot send it again by itself. The type is one
		// that it knows to be in memory: header and body leave in one write.
		s.body.Reset(c.json)
		s.request.Body, s.request.ContentLength = io.NopCloser(&s.body), s.body.Size()
	}
}

// checked makes up for transports that break the rules of RoundTripper, as some
// do that were written for a test.
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

// read takes the body in, and what the answer says of a failure. stop ends the
// attempt. To close the body instead would be a race where another goroutine
// unpacks it, and the reading would go on.
func (c *call) read(resp *http.Response, stop func()) {
	defer resp.Body.Close()
	switch {
	case c.out.success():
		c.readSuccess(resp)
	case isFinal(resp.StatusCode):
		stalled := time.AfterFunc(errorBodyWait, stop)
		defer stalled.Stop()
		// Part of an error's body is enough: the status is known.
		c.out.body, _ = readBody(resp, maxErrorBody)
	default: // a protocol switch: what follows is not a body, and may never end
	}
	if c.out.failed() {
		c.out.answer = c.describe()
	}
}

func (c *call) readSuccess(resp *http.Response) {
	c.out.body, c.out.err = readBody(resp, maxSuccessBody)
	if c.out.err != nil {
		return
	}
	var err error
	if c.result, c.out.traceID, err = c.decode(c.out.body); err != nil {
		c.out.err = c.notDocumented(err)
	}
}

// readBody reads a body that may have at most limit bytes, and skips the byte order
// mark that some gateways put before JSON (RFC 8259, 8.1). With an error it returns
// what it has read.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	body, err := readWhole(resp, limit)
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

func readWhole(resp *http.Response, limit int) ([]byte, error) {
	if n := resp.ContentLength; n > 0 && n <= int64(limit) {
		body := make([]byte, n)
		read, err := io.ReadFull(resp.Body, body)
		return body[:read], err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if len(body) > limit {
		return body[:limit], errors.New("the body is larger than any documented one")
	}
	return body, err
}
