package agentmessaging

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
)

// finish turns the last outcome into the call's error; nil is success.
func (c *call) finish() error {
	switch c.next {
	case stepSuccess:
		return nil
	case stepUnknown:
		return c.unknown(c.errorOf(c.out.err))
	case stepError:
		return c.errorOf(c.out.err)
	}
	return c.errorOf(c.ended()) // it ended before an attempt, or while waiting for one
}

func (c *call) unknown(cause *Error) error {
	e := &OutcomeUnknownError{Method: cause.Method, Path: cause.Path, TraceID: cause.TraceID, Err: cause}
	if cause.StatusCode == 0 {
		e.Err = cause.cause // the endpoint is named already
	}
	return e
}

// errorOf describes the last outcome; cause is the Go error behind it, where no
// answer explains the failure.
func (c *call) errorOf(cause error) *Error {
	e := c.out.answer
	if c.out.refused {
		e = c.refusal(cause)
	}
	if e == nil {
		e = new(Error)
	}
	if cause != nil && !e.Local {
		if c.out.refused && c.Err() != nil {
			cause = fmt.Errorf("in line for a limit: %w", cause)
		}
		// A transport returns the context's cause, or its error, or its own.
		e.cause = c.redactor().Error(c.bound(cause), c.ended(), context.Cause(c))
	}
	if c.out.limited() && c.attempts < c.client.retry.MaxAttempts {
		e.cause = cmp.Or(e.cause, c.collision(e.RetryAfter)) // why there was no further attempt
	}
	e.Method, e.Path, e.Attempts = c.endpoint.Method, c.endpoint.Path, c.made()
	c.failure = e
	return e
}

// bound says whose deadline it was, where the caller's context has none that
// passed.
func (c *call) bound(cause error) error {
	perAttempt := c.client.httpClient.Timeout
	switch {
	case cause != context.DeadlineExceeded || c.Err() != nil:
		return cause
	case c.budget <= 0:
		return fmt.Errorf("%w: WithTimeout allows %s", cause, human(c.client.timeout))
	case perAttempt > 0:
		return fmt.Errorf("%w: the Timeout of the http.Client allows %s", cause, human(perAttempt))
	}
	return cause
}

// refusal is a limiter's own account of the attempt that it refused; nil if it
// returned another error.
func (c *call) refusal(err error) *Error {
	var said *Error
	if !errors.As(err, &said) {
		return nil
	}
	e := *said
	e.Local, e.cause = true, cmp.Or(said.cause, c.collision(said.RetryAfter))
	return &e
}

// collision says what the turn of a call would have come too late for; nil if
// for nothing.
func (c *call) collision(turn time.Duration) error {
	longest, what := c.client.retry.MaxWait, "the longest wait that the RetryPolicy allows is"
	if deadline, has := c.Deadline(); has && time.Until(deadline) < longest {
		longest, what = time.Until(deadline), "the call's deadline is in"
	}
	if turn <= longest {
		return nil
	}
	return fmt.Errorf("%s %s, its turn in %s", what, human(longest), human(turn))
}

// describe reads what an answer that is no success says of itself.
func (c *call) describe() *Error {
	e := &Error{
		StatusCode: c.out.status,
		TraceID:    c.redacted(c.out.traceID),
		RetryAfter: retryafter.Read(c.out.header),
	}
	if !c.out.success() {
		c.readError(e, c.redactor())
	}
	return e
}

// readError reads an error body (interface 2.1) of any shape. Of one that is not
// the documented one it quotes what proxies say, and nothing that may be a request.
func (c *call) readError(e *Error, secrets redact.Redactor) {
	body, err := readErrorBody(c.out.body)
	switch raw, has := body.Extra["message"]; { // as gateways call it
	case err != nil:
		e.cause = c.notDocumented(c.measured(string(c.out.body)))
	case has && body.Code == "":
		var message string
		_ = json.Unmarshal(raw, &message)
		if words := secrets.Excerpt(message); words != "" {
			e.cause = errors.New(words)
		}
	}
	e.Code, e.TraceID = secrets.Text(body.Code), secrets.Text(body.TraceID)
	e.LimitKey, e.Reason = secrets.Text(body.LimitKey), secrets.Text(body.Reason)
	if len(body.Extra) > 0 {
		e.Extra = make(map[string]json.RawMessage, len(body.Extra))
	}
	for name, raw := range body.Extra {
		e.Extra[secrets.Text(name)] = secrets.JSON(raw)
	}
	if host := redirectHost(c.out.status, c.out.header); host != "" {
		e.cause = fmt.Errorf("redirect to %s was not followed", secrets.Text(host))
	}
}

// notDocumented says why the body is not the documented one.
func (c *call) notDocumented(err error) error {
	if strings.HasPrefix(http.DetectContentType(c.out.body), "text/html") {
		return fmt.Errorf("the body is HTML, probably a page of a proxy (%w)", c.measured(redact.HTMLTitle(c.out.body)))
	}
	return fmt.Errorf("the body is not the documented JSON: %w", err)
}

// measured is the size of the body, and what a proxy says in it.
func (c *call) measured(said string) error {
	if words := c.redactor().Excerpt(said); words != "" {
		return fmt.Errorf("%d bytes, %q", len(c.out.body), words)
	}
	return fmt.Errorf("%d bytes", len(c.out.body))
}

// redirectHost is where a redirect points, without path and query, which may
// hold a credential.
func redirectHost(status int, header http.Header) string {
	if !isRedirect(status) || header.Get("Location") == "" {
		return ""
	}
	u, err := url.Parse(header.Get("Location"))
	if err != nil {
		return "an address that cannot be read"
	}
	if u.Host == "" {
		return "the same host"
	}
	return u.Host
}

// ended is why the call cannot go on: its context has ended, the client's
// timeout has passed, or the clock refused to wait.
func (c *call) ended() error {
	switch {
	case c.Err() != nil:
		return c.Err()
	case c.broken != nil:
		return c.broken
	case c.budget <= 0:
		return context.DeadlineExceeded
	}
	return nil
}

// redactor hides the call's secrets.
func (c *call) redactor() redact.Redactor {
	return redact.New(c.client.apiKey(), c.secrets[0], c.secrets[1])
}
