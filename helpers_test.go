package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
)

// The tests of the client share this file: a transport that answers from a list, a call of
// each endpoint, and checks that hold for every failure.

// The address and the key of every client of newClient.
const (
	serviceURL = "https://service.example"
	testKey    = "key-canary-4711"
)

// newClient returns a client that sends its calls through transport.
// If transport is a stub, it checks at the end that no body was left open.
func newClient(t testing.TB, transport http.RoundTripper, opts ...agentmessaging.Option) *agentmessaging.Client {
	if s, ok := transport.(*stub); ok {
		t.Cleanup(func() { assert.Zero(t, s.open.Load(), "open bodies") })
	}
	return clientAt(serviceURL, append([]agentmessaging.Option{through(transport)}, opts...)...)
}

// clientAt returns a client of the service at an address.
func clientAt(baseURL string, opts ...agentmessaging.Option) *agentmessaging.Client {
	return must(agentmessaging.NewClient(baseURL, testKey, opts...))
}

// through is WithHTTPClient for a transport.
func through(transport http.RoundTripper) agentmessaging.Option {
	return agentmessaging.WithHTTPClient(&http.Client{Transport: transport})
}

// once allows a call one attempt.
var once = agentmessaging.WithRetry(policy{MaxAttempts: 1})

// jitter fixes the random number, in [0, 1), that decides the jitter of every wait.
func jitter(random float64) agentmessaging.Option {
	return testoption.WithRandom(func() float64 { return random }).(agentmessaging.Option)
}

// doCall makes one call.
type doCall func(context.Context, *agentmessaging.Client) error

// A plainCall is a call whose parameters are the same in every test.
type plainCall func(context.Context, *agentmessaging.Client) (any, error)

var (
	getAgent   plainCall = func(ctx context.Context, c *agentmessaging.Client) (any, error) { return c.GetAgent(ctx, "agent_1") }
	readStatus plainCall = func(ctx context.Context, c *agentmessaging.Client) (any, error) { return c.Status(ctx) }
	readBYOK   plainCall = func(ctx context.Context, c *agentmessaging.Client) (any, error) { return c.GetBYOK(ctx) }
	deleteBYOK plainCall = func(ctx context.Context, c *agentmessaging.Client) (any, error) { return nil, c.ClearBYOK(ctx) }

	get, getStatus, getBYOK, clearBYOK = sending(getAgent), sending(readStatus), sending(readBYOK), sending(deleteBYOK)
)

// post calls an endpoint whose requests must not be repeated.
var post = sending(message{Text: "message-canary"})

// sending makes the call whose parameters have the type of params, or a plainCall.
func sending(params any) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		_, err := call(ctx, client, params)
		return err
	}
}

func call(ctx context.Context, client *agentmessaging.Client, params any) (result any, err error) {
	switch p := params.(type) {
	case create:
		return client.CreateAgent(ctx, p)
	case message:
		return client.SendMessage(ctx, "agent_1", p)
	case setBYOK:
		return client.SetBYOK(ctx, p)
	case agentmessaging.SMSMode:
		return client.EnableSMS(ctx, "agent_1", p)
	case agentmessaging.LLMMode:
		return client.WarmUp(ctx, p)
	case plainCall:
		return p(ctx, client)
	}
	panic(fmt.Sprintf("no call takes %#v", params))
}

// endpoint is a call of one endpoint.
type endpoint struct {
	method, name string
	secret       string // sent by the call, in addition to the API key
	call         doCall
}

// isPost reports whether the call is a POST, which must not be repeated.
func (e endpoint) isPost() bool { return e.method == http.MethodPost }

// endpoints are in the order of interface section 4.
var endpoints = []endpoint{
	{name: "Status", method: "GET", call: getStatus},
	{name: "WarmUp", method: "POST", call: sending(agentmessaging.LLMModeHosted)},
	{name: "GetBYOK", method: "GET", call: getBYOK},
	{name: "SetBYOK", method: "PUT", call: sending(setBYOK{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"}), secret: "provider-canary"},
	{name: "ClearBYOK", method: "DELETE", call: clearBYOK},
	{name: "CreateAgent", method: "POST", call: sending(create{SystemPrompt: "prompt-canary"}), secret: "prompt-canary"},
	{name: "GetAgent", method: "GET", call: get},
	{name: "SendMessage", method: "POST", call: post, secret: "message-canary"},
	{name: "EnableSMS", method: "POST", call: sending(agentmessaging.SMSModeSandbox)},
}

// The results of outcome.
const (
	success  = "success"
	unknown  = "outcome unknown"
	noAnswer = "no answer"
)

// outcome names what a call returned, such as "error 429".
func outcome(err error) string {
	var failure *agentmessaging.Error
	switch {
	case err == nil:
		return success
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return unknown
	case errors.As(err, &failure) && failure.StatusCode != 0:
		return fmt.Sprintf("error %d", failure.StatusCode)
	}
	return noAnswer
}

// holdsLaws checks what must hold for every failure: it has one of three types, it asks for
// a wait or for none, and its text is one short line without the secret.
func holdsLaws(t testing.TB, err error, secret string) {
	if err == nil {
		return
	}
	var (
		failure *agentmessaging.Error
		unknown *agentmessaging.OutcomeUnknownError
		invalid *agentmessaging.ValidationError
	)
	assert.True(t, errors.As(err, &failure) || errors.As(err, &unknown) || errors.As(err, &invalid), "%T", err)
	wait, asked := agentmessaging.RetryAfter(err)
	assert.True(t, wait >= 0 && asked == (wait > 0), "RetryAfter: %s, %t", wait, asked)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		assert.LessOrEqual(t, len(text), 512, text)
		assert.True(t, utf8.ValidString(text) && !strings.ContainsAny(text, "\n\r\u2028"), "%q", text)
		assert.NotContains(t, text, "<html>", "a page is not quoted")
		assert.NotContains(t, text, "GetBody", "net/http's advice is for others")
		assert.NotContains(t, text, secret, "%T", err)
		assert.True(t, text == err.Error() || invalid != nil, "%q is not %q", text, err)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		assert.NotPanics(t, func() { _ = map[error]bool{err: errors.Is(err, list{})} }, "%T", err)
	}
}

// madeCall is the result of makeCall.
type madeCall struct {
	Err     error
	Info    agentmessaging.CallInfo
	Sent    []sentRequest
	Elapsed time.Duration
}

// makeCall makes one call in virtual time, and answers it from a list. There is no jitter
// unless opts set it. timeout is the http.Client's; 0: none.
func makeCall(t *testing.T, timeout time.Duration, do doCall, answers []answer, opts ...agentmessaging.Option) (m madeCall) {
	synctest.Test(t, func(t *testing.T) {
		m.Info = agentmessaging.CallInfo{Attempts: 7, StatusCode: http.StatusOK} // as if an earlier call had filled it
		service, begin := answering(answers...), time.Now()
		hc := http.Client{Transport: service, Timeout: timeout}
		client := newClient(t, service, append(options{jitter(0), agentmessaging.WithHTTPClient(&hc)}, opts...)...)
		m.Err = do(agentmessaging.WithCallInfo(t.Context(), &m.Info), client)
		m.Sent, m.Elapsed = service.Sent(), time.Since(begin)
		assert.Equal(t, http.Client{Transport: service, Timeout: timeout}, hc, "the caller's http.Client is unchanged")
		for _, sent := range m.Sent {
			assert.Error(t, sent.Context().Err(), "the context of an attempt ends with it")
		}
	})
	return m
}

// answer is one answer of a [stub].
type answer struct {
	Status int
	Body   string
	Header http.Header
	Err    error               // the transport returns it instead of an answer
	Reader func() io.Reader    // if set, replaces Body
	Before func(*http.Request) // is called first
}

// breaksOff returns the Reader of a body that ends with an error.
func breaksOff(text string, err error) func() io.Reader {
	return func() io.Reader { return io.MultiReader(strings.NewReader(text), iotest.ErrReader(err)) }
}

// tooMany is a 429 that names a limit and asks to wait, unless either is "".
func tooMany(retryAfter, limitKey string) answer {
	a := answer{Status: http.StatusTooManyRequests, Body: `{"error":"rate_limited","trace_id":"trace_1"}`}
	if retryAfter != "" {
		a.Header = http.Header{"Retry-After": {retryAfter}}
	}
	if limitKey != "" {
		a.Body = strings.Replace(a.Body, "{", `{"limit_key":"`+limitKey+`",`, 1)
	}
	return a
}

// okAnswer is a documented success of every call.
var okAnswer = answer{Status: http.StatusOK, Body: anyReply}

// anyReply satisfies the documented success body of every endpoint.
const anyReply = `{"ok":true,"agent_id":"a","status":"active","reply_text":"hi","warmed":true,"mode":"hosted","trace_id":"t",` +
	`"byok":{"provider":"openai","fingerprint":"f","updated_at":"2026-01-01T00:00:00Z"}}`

// notDialed is what net/http returns if it cannot connect.
var notDialed = answer{Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "service.example"}}}

// stub is a transport that answers from a list; the last answer repeats. It runs a hook
// of httptrace only for notDialed, so the client has to assume that every other request
// was sent.
type stub struct {
	answers []answer
	open    atomic.Int32 // bodies that are not closed

	mu   sync.Mutex
	sent []sentRequest
}

// answering returns a stub. If it has no answers, every request panics.
func answering(answers ...answer) *stub { return &stub{answers: answers} }

// sentRequest is a request and its body.
type sentRequest struct {
	*http.Request
	Text string
}

// Sent returns the requests so far.
func (s *stub) Sent() []sentRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// RoundTrip implements http.RoundTripper.
func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	a := s.record(req)
	if a.Err == notDialed.Err {
		httptrace.ContextClientTrace(req.Context()).GetConn("") // as net/http does before it dials
	}
	if a.Before != nil {
		a.Before(req)
	}
	if a.Err != nil {
		return nil, a.Err
	}
	body := &stubBody{strings.NewReader(a.Body), &s.open}
	if a.Reader != nil {
		body.Reader = a.Reader()
	}
	s.open.Add(1)
	header := a.Header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: a.Status, Header: header, Body: body, ContentLength: -1, Request: req}, nil
}

func (s *stub) record(req *http.Request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 {
		panic(req.Method + " " + req.URL.Path + " was sent, and should have been refused here")
	}
	a := s.answers[min(1+len(s.sent), len(s.answers))-1]
	body := exchange.PeekBody(req) // a failed dial does not read the body
	if req.Body != nil && a.Err != notDialed.Err {
		body, _ = io.ReadAll(req.Body)
	}
	s.sent = append(s.sent, sentRequest{req, string(body)})
	return a
}

// CloseIdleConnections panics: only the owner of a transport may call it.
func (s *stub) CloseIdleConnections() { panic("the client closed the idle connections of its caller") }

type stubBody struct {
	io.Reader
	open *atomic.Int32
}

func (b *stubBody) Close() error { b.open.Add(-1); return nil }

// answered makes one call in virtual time, and answers each attempt with a.
func answered(t *testing.T, a answer, do doCall) (c cell, err error) {
	t.Helper()
	made := makeCall(t, 0, do, []answer{a})
	holdsLaws(t, made.Err, "canary")
	if failure := (*agentmessaging.Error)(nil); errors.As(made.Err, &failure) {
		assert.Len(t, made.Sent, failure.Attempts, "%d: Error.Attempts counts the requests", a.Status)
	}
	return cell{len(made.Sent), outcome(made.Err), made.Elapsed}, made.Err
}
