// Package clienttest holds what the tests of the client share: a transport that
// answers from a list, a call of each endpoint, and the laws of every failure.
package clienttest

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Answer is one answer of a [Stub].
type Answer struct {
	Status int
	Body   string
	Header http.Header
	Err    error               // instead of an answer
	Reader func() io.Reader    // instead of Body
	Before func(*http.Request) // is called first
}

// Limited is a 429 that names a limit and asks to wait, unless either is "".
func Limited(retryAfter, limitKey string) Answer {
	a := Answer{Status: http.StatusTooManyRequests, Body: `{"error":"rate_limited","trace_id":"trace_1"}`}
	if retryAfter != "" {
		a.Header = http.Header{"Retry-After": {retryAfter}}
	}
	if limitKey != "" {
		a.Body = strings.Replace(a.Body, "{", `{"limit_key":"`+limitKey+`",`, 1)
	}
	return a
}

// OK answers every call with its documented success.
var OK = Answer{Status: http.StatusOK, Body: AnyReply}

// AnyReply satisfies the documented success body of every endpoint.
const AnyReply = `{"ok":true,"agent_id":"a","status":"active","reply_text":"hi","warmed":true,"mode":"hosted","trace_id":"t",` +
	`"byok":{"provider":"openai","fingerprint":"f","updated_at":"2026-01-01T00:00:00Z"}}`

// NotDialed is what net/http returns where nothing listens.
var NotDialed = Answer{Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "service.example"}}}

// Stub is a transport that answers from a list; the last answer repeats. It
// runs no httptrace hooks, so that the client has to assume that every request
// was sent.
type Stub struct {
	answers []Answer

	mu   sync.Mutex
	sent []Sent
}

// Answering returns a Stub; without answers, none may be asked for.
func Answering(answers ...Answer) *Stub { return &Stub{answers: answers} }

// Sent is a request and its body.
type Sent struct {
	*http.Request
	Text string
}

// Sent returns the requests so far.
func (s *Stub) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// RoundTrip answers.
func (s *Stub) RoundTrip(req *http.Request) (*http.Response, error) {
	a := s.record(req)
	if a.Before != nil {
		a.Before(req)
	}
	return a.response(req)
}

func (s *Stub) record(req *http.Request) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	s.sent = append(s.sent, Sent{req, string(body)})
	return s.answers[min(len(s.sent), len(s.answers))-1]
}

func (a Answer) response(req *http.Request) (*http.Response, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	header, body := a.Header, io.Reader(strings.NewReader(a.Body))
	if header == nil {
		header = http.Header{}
	}
	if a.Reader != nil {
		body = a.Reader()
	}
	return &http.Response{StatusCode: a.Status, Header: header, Body: io.NopCloser(body), ContentLength: -1, Request: req}, nil
}
