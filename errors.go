package agentmessaging

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Error says why a call failed. StatusCode is set if the service, or a proxy in front of
// it, answered with anything but a documented success, and if a limit refused the
// call in this process. Otherwise Unwrap returns why no answer came.
//
// If a POST returns an Error without an [*OutcomeUnknownError] around it, the service did
// not carry it out. The one exception is a proxy that forwards the request and then
// answers with a 3xx or 4xx itself.
type Error struct {
	// StatusCode is the answer's HTTP status; 0 if there was no answer: then Unwrap
	// returns why. It is also 429 if the call's deadline passed in line for a limit, or if the
	// cool-down, a Pacer, or a [Limiter] of yours with an *Error of status 429 refused the
	// call (see Local). Any other error of your Limiter leaves it 0.
	StatusCode int
	// Code is the body's error member, such as rate_limited (interface 2.1); empty if the
	// body was not the documented one. If the cool-down or a Pacer refused the call, it is
	// rate_limited, or what the service answered to the attempt before. A [Limiter] of yours
	// sets Code in its own *Error. Code and Reason have no secrets, but are not shortened:
	// each can be as long as the 64 KiB that the client reads of a body.
	Code string
	// TraceID is the answer's trace_id; quote it when reporting an issue. With Local it
	// belongs to the answer that closed the limit. One line of at most 128 bytes.
	TraceID string
	// LimitKey names the limiter that refused the call (interface 7). One line of at most
	// 64 bytes.
	LimitKey string
	// Reason is the body's reason member.
	Reason string
	// RetryAfter is how long the service, the cool-down or the limiter asks to wait
	// before the same call can succeed; 0 if none does.
	RetryAfter time.Duration
	// Extra holds the body's members that the interface does not list, and listed members
	// that have another type or appear twice. Secrets are taken out.
	Extra map[string]json.RawMessage
	// Method and Path name the endpoint; Path is the template, such as
	// /v1/agents/{agent_id}.
	Method, Path string
	// Attempts is how many attempts the call made. Attempts that did not reach the
	// service count, attempts that were refused here do not.
	Attempts int
	// Refusals is how many of them the service refused with status 429.
	// [RetryPolicy].MaxAttempts does not count them.
	Refusals int
	// Local is true if the last attempt was not sent, because the cool-down, a [Limiter]
	// of yours or the function of [WithBeforeSend] refused it, or because the deadline
	// passed in line for a limit.
	Local bool

	cause error
	by    string // who refused the call, if Local is true; empty: the limiter
}

// Error returns one line of at most 512 bytes, which holds no key and no message.
func (e *Error) Error() string {
	parts := []string{prefix(e.Method, e.Path)}
	if e.StatusCode != 0 {
		parts = append(parts, fmt.Sprintf("%d %s", e.StatusCode, e.codeAndReason()))
	}
	if e.cause != nil {
		parts = append(parts, printable.Line(e.cause.Error(), maxCause))
	}
	text := strings.Join(parts, ": ")
	if details := e.details(); len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return printable.Line(text, maxErrorText)
}

// prefix returns the beginning of an error's text. An error that a program made itself, such
// as a Limiter's *Error, names no endpoint until a call returns it.
func prefix(method, path string) string {
	if method == "" {
		return "agentmessaging"
	}
	return "agentmessaging: " + method + " " + path
}

// The longest text of an error and of its parts, in bytes. The bounds on the parts leave
// room for the other parts.
const (
	maxErrorText = 512
	maxTraceID   = 128
	maxCause     = 200
	maxReason    = 160
	maxLimitKey  = 40
)

// codeAndReason returns the answer's code, or else the name of the status, and the reason.
func (e *Error) codeAndReason() string {
	words := cmp.Or(printable.Name(e.Code), http.StatusText(e.StatusCode), "unknown status")
	if e.Reason != "" {
		words += ": " + printable.Line(e.Reason, maxReason)
	}
	return words
}

func (e *Error) details() []string {
	var details []string
	add := func(present bool, words ...any) {
		if present {
			details = append(details, fmt.Sprint(words...))
		}
	}
	add(e.Local, "refused here by the ", cmp.Or(e.by, "limiter"))
	add(e.StatusCode == 0 && e.Method == http.MethodPost && !e.Local, "not carried out") // else it is in an OutcomeUnknownError
	add(e.LimitKey != "", "limit ", printable.Line(e.LimitKey, maxLimitKey))
	add(e.RetryAfter > 0, "retry after ", roundDuration(e.RetryAfter))
	advice := adviceOn(e.StatusCode, e.Code, e.Method, e.Path)
	add(advice != "", advice)
	add(e.TraceID != "", "trace ", printable.Name(e.TraceID))
	add(e.Attempts > 1, e.Attempts, " attempts")
	add(e.Refusals > 0 && e.Attempts > 1, e.Refusals, " of them refused with 429")
	return details
}

// addCause adds the reason why the call was not retried, or ended before that.
func (e *Error) addCause(why error) {
	if why != nil && e.cause != nil {
		why = fmt.Errorf("%w (%w)", e.cause, why)
	}
	e.cause = cmp.Or(why, e.cause)
}

// roundDuration rounds a duration for a message: 250ms, 30.217s, 4m59s. Below two minutes it keeps
// milliseconds, because a message may compare a wait with a deadline.
func roundDuration(d time.Duration) time.Duration {
	if d < 2*time.Minute {
		return cmp.Or(d.Round(time.Millisecond), d)
	}
	return d.Round(time.Second)
}

// GoString is Error, so that %#v shows no more than %v.
func (e *Error) GoString() string { return e.Error() }

// Is reports whether target is the kind of the error's status, such as [ErrNotFound]. A nil
// *Error has no kind.
func (e *Error) Is(target error) bool {
	return e != nil && target != nil && target == kindOf(e.StatusCode)
}

// Unwrap returns why no answer came, such as a net.Error or the context's error and its
// cause, or why the call did not wait after a 429. It returns nil if the answer says
// everything.
//
// errors.Is and errors.As find no error of this package in it. An error of this package
// that came from a context's cause, a [Limiter], the function of [WithBeforeSend] or a
// transport is about another call, so it is only in the text. The same holds for errors
// whose methods Is or As match an error of this package.
func (e *Error) Unwrap() error { return cmp.Or(e, new(Error)).cause }

// RetryAfter returns how long the service, or the client's limiter, asks to wait
// before the call that returned err can succeed: the longest [Error].RetryAfter that err
// wraps. It reports false if there is none.
func RetryAfter(err error) (longest time.Duration, asked bool) {
	if e := (*Error)(nil); errors.As(err, &e) && e != nil { // also asks the As methods of errors that wrap nothing
		longest = e.RetryAfter
	}
	for _, inner := range redact.Wrapped(err) {
		wait, _ := RetryAfter(inner)
		longest = max(longest, wait)
	}
	return longest, longest > 0
}

// OutcomeUnknownError is the error of a POST that may have been carried out: its request
// may have reached the service, but the answer was lost, cannot be read, or is a 5xx
// other than the documented 503 of the endpoint (interface 4.2). The client does not
// retry it, because only the caller knows whether doing it twice is worse than not doing
// it. After EnableSMS, GetAgent shows the channel. No call shows whether a message arrived,
// or whether an agent was created.
type OutcomeUnknownError struct {
	// Method and Path name the endpoint; Path is the template.
	Method, Path string
	// TraceID is the answer's trace_id; empty if the answer did not come whole.
	TraceID string
	// Missed says how the answer was missed.
	Missed Missed
	// Err says what happened: an [*Error] with the answer, if there was one.
	Err error
}

// Missed says how the answer to a POST was missed. More values may be added.
type Missed string

// The ways to miss an answer.
const (
	// MissedTimeout means that no answer came before the deadline of the context,
	// [WithTimeout], the Timeout of the http.Client or a timeout of its transport.
	MissedTimeout Missed = "no answer in time"
	// MissedCanceled means that the context was canceled before the answer came.
	MissedCanceled Missed = "canceled"
	// MissedConnection means that the connection broke, before the answer or in the middle
	// of its body.
	MissedConnection Missed = "connection broken"
	// MissedStream means that the HTTP/2 stream was refused, possibly by a proxy after the
	// service had read the request.
	MissedStream Missed = "stream refused"
	// MissedUnreadable means that the answer is not the documented one: it is too large, is
	// not JSON, or lacks a required member.
	MissedUnreadable Missed = "unreadable answer"
	// MissedServerError means that the answer is a 5xx that the interface does not list for
	// the endpoint, or a listed 503 without an error code, which may come from a proxy.
	MissedServerError Missed = "server error"
)

// Error returns one line of at most 512 bytes.
func (e *OutcomeUnknownError) Error() string {
	endpoint := prefix(e.Method, e.Path) + ": "
	text := endpoint + "the request may have been carried out, so a repeat may do it twice"
	if e.Err != nil {
		text += ": " + strings.TrimPrefix(e.Err.Error(), endpoint)
	}
	return printable.Line(text, maxErrorText)
}

// GoString is Error, so that %#v shows no more than %v.
func (e *OutcomeUnknownError) GoString() string { return e.Error() }

// Is reports whether target is [ErrOutcomeUnknown].
func (e *OutcomeUnknownError) Is(target error) bool { return target == ErrOutcomeUnknown }

// Unwrap returns Err.
func (e *OutcomeUnknownError) Unwrap() error { return cmp.Or(e, new(OutcomeUnknownError)).Err }

// ValidationError is the error of an argument or an option that was refused before
// anything was sent: by the interface the service would refuse it, or it makes no sense,
// such as a timeout of 0.
type ValidationError struct {
	// Field names what was refused: a member of the request in wire names, such
	// as llm.model; else a parameter of the function, such as apiKey, the
	// environment variable, the option, such as WithTimeout, or a field of its struct, such
	// as RetryPolicy.MinWait.
	Field string
	// Reason says what was wrong and what is allowed. It quotes no text that was given.
	Reason string
}

// Error returns the field and the reason.
func (e *ValidationError) Error() string { return "agentmessaging: " + e.Field + ": " + e.Reason }

// Is reports whether target is [ErrInvalid].
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }

// kind is the type of [ErrNotFound] and the other kinds. isOwn recognizes them by this type.
type kind string

func (k kind) Error() string { return string(k) }

// isOwn reports whether an error belongs to this package, or has a method As or Is that
// matches an error of this package, as some lists of errors have.
func isOwn(err error) bool {
	switch err.(type) {
	case *Error, *OutcomeUnknownError, *ValidationError, kind:
		return true
	}
	if list, ok := err.(interface{ As(any) bool }); ok &&
		(list.As(new(*Error)) || list.As(new(*OutcomeUnknownError)) || list.As(new(*ValidationError))) {
		return true
	}
	list, ok := err.(interface{ Is(error) bool })
	return ok && slices.ContainsFunc(allKinds, list.Is)
}

// Kinds of errors, for errors.Is. A status that the interface does not list has no kind,
// unless it is a 5xx: look at [Error].StatusCode.
var (
	// ErrBadRequest is status 400: the service refused the body. Do not
	// repeat the call unchanged (interface 7).
	ErrBadRequest error = kind("agentmessaging: bad request")
	// ErrUnauthorized is status 401: the API key is missing, unknown or
	// revoked (interface 5). Use a valid key; every call with this one fails.
	ErrUnauthorized error = kind("agentmessaging: unauthorized")
	// ErrPaymentRequired is status 402: the plan is inactive (interface 5).
	// Activate one in the dashboard.
	ErrPaymentRequired error = kind("agentmessaging: payment required")
	// ErrForbidden is status 403: a BYOK operation, or a warm-up in byok mode, with a key that
	// the dashboard did not issue (interface 5 and 7). Use a dashboard-issued key.
	ErrForbidden error = kind("agentmessaging: forbidden")
	// ErrNotFound is status 404: no such agent for this key. Use the key that
	// created it. If the call names no agent, or Error.Code is empty, check the
	// base address.
	ErrNotFound error = kind("agentmessaging: not found")
	// ErrConflict is status 409: warm-up in byok mode without a BYOK
	// configuration (interface 4.2). Call SetBYOK first.
	ErrConflict error = kind("agentmessaging: conflict")
	// ErrRateLimited is status 429, answered by the service or, with
	// [Error].Local set, by the client's cool-down or limiter (interface 8).
	// Come back after [RetryAfter]. If a deadline passed in line for a limit, the
	// error is context.DeadlineExceeded too.
	ErrRateLimited error = kind("agentmessaging: rate limited")
	// ErrUnavailable is status 503: BYOK is not available (interface 7), or a proxy
	// could not reach the service. Try later. For a POST it comes inside an
	// [*OutcomeUnknownError], unless the endpoint lists 503 and the body has an error
	// code.
	ErrUnavailable error = kind("agentmessaging: unavailable")
	// ErrServer is any other 5xx, from the service or a proxy in front of it. Try later.
	// For a POST it comes inside an [*OutcomeUnknownError].
	ErrServer error = kind("agentmessaging: server error")
	// ErrOutcomeUnknown is the kind of every [*OutcomeUnknownError]. If you repeat the call,
	// the service may do it twice.
	ErrOutcomeUnknown error = kind("agentmessaging: outcome unknown")
	// ErrInvalid is the kind of every [*ValidationError]. Correct what its Field
	// names.
	ErrInvalid error = kind("agentmessaging: invalid argument")
)

// allKinds lists the kinds for isOwn.
var allKinds = []error{
	ErrBadRequest, ErrUnauthorized, ErrPaymentRequired, ErrForbidden, ErrNotFound, ErrConflict,
	ErrRateLimited, ErrUnavailable, ErrServer, ErrOutcomeUnknown, ErrInvalid,
}

// kinds has the kind of each status that the interface lists, and advice for the message;
// "" if RetryAfter or the cause already says what to do.
var kinds = map[int]struct {
	err    error
	advice string
}{
	http.StatusBadRequest:         {ErrBadRequest, "correct the call"},
	http.StatusUnauthorized:       {ErrUnauthorized, "check the API key"},
	http.StatusPaymentRequired:    {ErrPaymentRequired, "activate a plan in the dashboard"},
	http.StatusForbidden:          {ErrForbidden, "use a key that the dashboard issued"},
	http.StatusNotFound:           {ErrNotFound, "check the base address"},
	http.StatusConflict:           {ErrConflict, "store a provider key first"},
	http.StatusTooManyRequests:    {ErrRateLimited, ""},
	http.StatusServiceUnavailable: {ErrUnavailable, ""},
}

// adviceOn returns what to do next, for the message. It returns "" if RetryAfter or the cause
// says it, or if the answer may mean anything: a 403 or 409 that the endpoint does not list, or
// a 400 without an error code. An answer without a code does not come from the service
// (interface 2.1), so after such a 404 the base address may be wrong.
func adviceOn(status int, code, method, path string) string {
	endpoint := spec.Find(method, path)
	listed := endpoint != nil && endpoint.Lists(status)
	switch {
	case status == http.StatusNotFound && code != "" && strings.Contains(path, "{agent_id}"):
		return "check the agent's id and the key"
	case status == http.StatusNotFound && code != "" && endpoint == spec.ClearBYOK:
		return "there may be nothing to clear"
	case status == http.StatusBadRequest && code == "", !listed && (status == http.StatusForbidden || status == http.StatusConflict):
		return ""
	}
	return kinds[status].advice
}

func kindOf(status int) error {
	kind := kinds[status].err
	if kind == nil && isServerError(status) && status <= 599 {
		return ErrServer
	}
	return kind
}

// isServerError is also true above 599, where HTTP defines no status: the service may
// have done the work.
func isServerError(status int) bool { return status >= 500 }
