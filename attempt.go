package agentmessaging

import (
	"context"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
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
	return c.send(c.startRequest(ctx), cookies) // whatever context an observer has made
}

// send makes the attempt and leaves its outcome in c.out.
func (c *call) send(ctx context.Context, cookies []string) (*http.Response, error) {
	header := c.client.header(c.json != nil)
	if cookies != nil {
		header["Cookie"] = cookies
	}
	begin := time.Now()
	answer := c.client.sender.Send(ctx, exchange.Request{
		Method: c.endpoint.Method, URL: &c.url, Host: c.client.base.Host, Header: header, Body: c.json, Timeout: c.attemptTimeout(),
	})
	c.out = outcome{
		status: answer.Status, header: answer.Header, body: answer.Body,
		err: answer.Err, sent: answer.Sent, renewed: answer.Renewed,
	}
	if c.out.success() && c.out.err == nil {
		c.decodeSuccess()
	}
	if c.out.failed() {
		c.spend(time.Since(begin))
	}
	if answer.Status == 0 {
		return nil, answer.Err
	}
	if c.out.failed() {
		c.out.answer = c.describe()
	}
	return &http.Response{StatusCode: answer.Status, Header: answer.Header, Body: http.NoBody}, nil
}

func (c *call) decodeSuccess() {
	var err error
	if c.result, c.out.traceID, err = c.decode(c.out.body); err != nil {
		c.out.err = c.notDocumented(err)
	}
}
