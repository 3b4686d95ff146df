package agentmessaging

import (
	"context"
	"net/http"
	"time"
)

// This file has the values that a caller passes in the context of a call.

// CallInfo holds the facts of one call that are not in its result. The client fills it
// when the call returns, on errors too.
type CallInfo struct {
	// Attempts is how many attempts were made; 0 if the arguments were refused. Attempts
	// that did not reach the service count. An attempt that a limit or the function of
	// [WithBeforeSend] refused does not count.
	Attempts int
	// Renewals is how many of the attempts were made at once on a new HTTP/2
	// connection, because the old one was closing and did not take the request.
	// There are at most two, and [RetryPolicy].MaxAttempts does not count them.
	Renewals int
	// Refusals is how many of the attempts the service refused with status 429.
	// MaxAttempts does not count them either: a 429 is not a failure.
	Refusals int
	// Waited is the time spent between attempts, and in waits of a millisecond or more for a
	// limit or a [Limiter].
	Waited time.Duration
	// StatusCode and Header belong to the answer to the last attempt; 0 and nil if it got
	// none, or was not sent.
	StatusCode int
	Header     http.Header
	// TraceID is that answer's trace_id.
	TraceID string
	// Body is that answer's body, decompressed; nil if there was none. Read members in it
	// that the service has added since this version. Of a 2xx it holds at most 1 MiB, of
	// another status 64 KiB. Secrets are taken out unless the answer is a documented
	// success. Do not log the body, because it holds the texts of people and agents.
	Body []byte
}

type callInfoKey struct{}

// WithCallInfo returns a context under which a call fills info. Use one context and one
// CallInfo for each call: concurrent calls that fill the same one race. If a context
// has several, a call fills the one that was added last.
func WithCallInfo(ctx context.Context, info *CallInfo) context.Context {
	return context.WithValue(ctx, callInfoKey{}, info)
}

type beforeSendKey struct{}

// WithBeforeSend returns a context under which each attempt of a call first calls
// before: on the caller's goroutine, after every wait for a limit and directly before the
// request goes out. attempt counts from 1, as [CallInfo].Attempts does. ctx ends with the
// caller's context, but not after [WithTimeout]. Calls that before makes with ctx do not
// call it again.
//
// It is for a journal: before writes a note that the request may reach the service, and the
// [AttemptEnd] closes the note. After a crash, the calls of open notes are in doubt. An
// AttemptEnd also comes for an attempt without a note: a limit refused it before the function
// was called, or the function returned an error. If several workers share one journal, an open
// note may belong to another worker: close only your own notes.
//
// If before returns an error, the call sends nothing, gives its permits back unspent, and
// returns an [*Error] with Local set that wraps the error. If a context has several
// functions, the one that was added last is called; if that is nil, none is.
func WithBeforeSend(ctx context.Context, before func(ctx context.Context, attempt int) error) context.Context {
	return context.WithValue(ctx, beforeSendKey{}, before)
}
