// Package exchange makes one request and reads its answer. It sends a request
// once, and keeps net/http from sending it again where no retry policy, limiter
// or observer would know of it. It knows whether the service can have seen the
// request, and reads answers within bounds of size and time.
package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// A Sender sends requests to one service. It holds what its requests share.
type Sender struct {
	transport http.RoundTripper
	answered  atomic.Bool // the service has answered a request
}

// New returns a Sender through transport.
func New(transport http.RoundTripper) *Sender { return &Sender{transport: transport} }

// Request is what to send.
type Request struct {
	Method  string
	URL     *url.URL // copied
	Host    string
	Header  http.Header   // belongs to the request from then on: transports change it
	Body    []byte        // nil: none
	Timeout time.Duration // for the request and its answer; 0: only the context ends them
}

// Answer is what came of a request.
type Answer struct {
	Status int         // 0: none came
	Header http.Header // may belong to the transport: read it, or change a clone
	Body   []byte      // of a 2xx at most 1 MiB, of another status 64 KiB
	Err    error       // why no answer came, or why the body of a 2xx is not whole
	Missed Missed      // sorts Err
	Sent   bool        // the service may have seen the request
	// Renewed reports that the service has not seen the request, because its
	// HTTP/2 connection was closing or full: another connection takes it at once.
	Renewed bool
}

// Missed says how an answer was missed.
type Missed int

const (
	NotMissed  Missed = iota
	NoAnswer          // none before the context or the timeout ended the request
	Broken            // the connection could not be made, or broke
	Refused           // the HTTP/2 stream was refused (REFUSED_STREAM)
	Unreadable        // it is not HTTP, or its body does not end within the bounds
)

// Send sends the request once, whatever the transport would do, and reads the
// answer. When it returns, both are over.
func (s *Sender) Send(ctx context.Context, r Request) Answer {
	ctx, stop := bounded(ctx, r.Timeout)
	defer stop()
	// On the heap, and for this request alone: a transport may still use it
	// when RoundTrip has returned.
	a := &attempt{trace: trace{stop: stop}}
	a.build(a.within(ctx), r)
	resp, err := checked(s.transport.RoundTrip(&a.request))
	if err != nil {
		return Answer{
			Err:     a.reason(err),
			Missed:  a.missed(ctx, err),
			Sent:    a.maybeSent(ctx, s.transport, err),
			Renewed: s.answered.Load() && a.renewed(err) || a.crowded(err),
		}
	}
	if resp.StatusCode < 100 {
		resp.Body.Close()
		return Answer{Err: fmt.Errorf("the answer has the status %03d, which HTTP does not know", resp.StatusCode), Missed: Unreadable, Sent: true}
	}
	if !s.answered.Load() { // a store would be shared by all processors
		s.answered.Store(true)
	}
	answer := Answer{Status: resp.StatusCode, Header: resp.Header, Sent: true}
	answer.read(resp, stop)
	if answer.Err != nil {
		answer.Missed = a.missed(ctx, answer.Err)
	}
	return answer
}

// bounded is the context of a request that may take timeout.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// attempt is what a transport gets of a request.
type attempt struct {
	trace
	request http.Request
	url     url.URL
	body    bytes.Reader
}

// build makes the request. All that it refers to is its own: what a transport
// changes there ends with the attempt.
func (a *attempt) build(ctx context.Context, r Request) {
	a.url = *r.URL
	a.request = *(&http.Request{
		Method: r.Method,
		URL:    &a.url,
		Host:   r.Host,
		Header: r.Header,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if r.Body != nil {
		// No GetBody: net/http cannot send it again by itself. The type is one
		// that it knows to be in memory: header and body leave in one write.
		a.body.Reset(r.Body)
		a.request.Body, a.request.ContentLength = io.NopCloser(&a.body), a.body.Size()
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
