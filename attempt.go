package agentmessaging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// RoundTrip is one attempt. It is called by http.Client, never by users.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.ended(req.Context()); err != nil {
		c.next = stepEnded // c.out stays that of the attempt before
		return nil, err
	}
	c.attempts++
	c.out = outcome{}
	ctx := c.startAttempt(req.Context())
	defer c.endAttempt(ctx)
	if err := c.acquire(ctx); err != nil {
		c.out.err, c.out.refused = err, true
		return nil, err
	}
	defer c.release(ctx)
	ctx, stop, limit := c.bounded(ctx)
	defer stop()
	resp, err := c.send(c.startRequest(ctx), stop, req)
	if !c.out.success() || c.out.err != nil {
		c.spend(ctx, limit)
	}
	return resp, err
}

// send makes the attempt, which stop ends, and leaves its outcome in c.out.
func (c *call) send(ctx context.Context, stop func(), req *http.Request) (*http.Response, error) {
	trace := &sentTrace{coolDown: c.client.coolDown, stop: stop}
	req = req.WithContext(trace.within(ctx)) // a copy: what a transport changes in it ends with the attempt
	c.complete(req)
	resp, err := checked(c.client.transport.RoundTrip(req))
	if err != nil {
		err = trace.reason(err)
		c.out.err, c.out.sent = err, trace.maybeSent(ctx, c.client.transport, err)
		c.out.renewed = c.client.answered.Load() && trace.renewed(err) || trace.crowded(err)
		return nil, err
	}
	if resp.StatusCode < http.StatusContinue {
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

// read takes the body in. stop ends the attempt: closing a body that is being
// read would be a race where it is unpacked, and not end the reading.
func (c *call) read(resp *http.Response, stop func()) {
	defer resp.Body.Close()
	if c.out.success() {
		c.readSuccess(resp)
		return
	}
	if resp.StatusCode < http.StatusOK {
		return // a protocol switch: what follows is not a body, and may never end
	}
	stalled := time.AfterFunc(errorBodyWait, stop)
	defer stalled.Stop()
	// What arrived of an error's body is enough: its status stands.
	c.out.body, _ = readUpTo(resp.Body, maxErrorBody)
}

func (c *call) readSuccess(resp *http.Response) {
	body, err := readBody(resp, maxSuccessBody)
	c.out.body = body
	if err == nil {
		c.result, c.out.traceID, err = c.decode(body)
	}
	c.out.err = err
}

// readBody reads a body that may have at most limit bytes.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	if n := resp.ContentLength; n > 0 && n <= int64(limit) {
		body := make([]byte, n)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	body, err := readUpTo(resp.Body, limit+1)
	if err == nil && len(body) > limit {
		err = errTooLarge
	}
	return body, err
}

// readUpTo reads until the end, or limit bytes. Each buffer is twice the one
// before: those of io.ReadAll grow by a quarter before Go 1.26, and take five
// times a large body.
func readUpTo(r io.Reader, limit int) ([]byte, error) {
	body := make([]byte, 0, min(512, limit))
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			return body, nil
		case err != nil || len(body) == limit:
			return body, err
		case len(body) == cap(body):
			body = append(make([]byte, 0, min(2*cap(body), limit)), body...)
		}
	}
}

var errTooLarge = errors.New("the body is larger than any documented one")
