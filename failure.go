package agentmessaging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// finish turns the last outcome into the call's error; nil is success.
func (c *call) finish(ctx context.Context) error {
	switch c.next {
	case stepSuccess:
		return nil
	case stepUnknown:
		return c.unknown(c.errorOf(ctx, c.out.err))
	case stepError:
		return c.errorOf(ctx, c.out.err)
	}
	return c.errorOf(ctx, c.ended(ctx)) // it ended before an attempt, or while waiting for one
}

func (c *call) unknown(cause *Error) error {
	e := &OutcomeUnknownError{Method: cause.Method, Path: cause.Path, TraceID: cause.TraceID, Err: cause}
	if cause.StatusCode == 0 {
		e.Err = cause.cause // the endpoint is named already
	}
	return e
}

// errorOf describes the last outcome; cause is what it lacks words for.
func (c *call) errorOf(ctx context.Context, cause error) *Error {
	scrub := c.scrub()
	e := &Error{
		StatusCode: c.out.status,
		TraceID:    scrub.text(c.out.traceID),
		RetryAfter: c.out.retryAfter(),
		Method:     c.endpoint.Method,
		Path:       c.endpoint.Path,
		Attempts:   c.made(),
	}
	if refusal := (*Error)(nil); c.out.refused && errors.As(cause, &refusal) {
		return refusedHere(refusal, e)
	}
	if c.out.status != 0 && !c.out.success() {
		c.describe(e, scrub)
	}
	if cause != nil {
		// A transport returns the context's cause, or its error, or its own.
		e.cause = scrub.error(cause, c.ended(ctx), context.Cause(ctx))
	}
	return e
}

// refusedHere is a limiter's refusal of the call that e describes.
func refusedHere(refusal, e *Error) *Error {
	local := *refusal
	local.Method, local.Path, local.Attempts, local.Local = e.Method, e.Path, e.Attempts, true
	return &local
}

// describe reads an error body (interface 2.1) of any shape. A body that is
// not the documented one is measured, not quoted: proxies echo requests.
func (c *call) describe(e *Error, scrub *scrubber) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(c.out.body, &members); err != nil || members == nil {
		e.cause = notDocumented(c.out.body, fmt.Errorf("%d bytes", len(c.out.body)))
	}
	for _, known := range [...]struct {
		name  string
		field *string
	}{
		{"error", &e.Code}, {"trace_id", &e.TraceID}, {"limit_key", &e.LimitKey}, {"reason", &e.Reason},
	} {
		if raw, ok := members[known.name]; ok && json.Unmarshal(raw, known.field) == nil {
			*known.field = scrub.text(*known.field)
			delete(members, known.name)
		}
	}
	for name, raw := range members {
		if e.Extra == nil {
			e.Extra = make(map[string]json.RawMessage, len(members))
		}
		e.Extra[scrub.text(name)] = scrub.raw(raw)
	}
	if host := redirectHost(c.out.status, c.out.header); host != "" {
		e.cause = fmt.Errorf("redirect to %s was not followed", scrub.text(host))
	}
}

// redirectHost is where a redirect points, without path and query, which may
// hold a credential.
func redirectHost(status int, header http.Header) string {
	if status < 300 || status > 399 || header.Get("Location") == "" {
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
