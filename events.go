package agentmessaging

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// An Observer gets the events of calls. It runs on the calling
// goroutine, gets the events in order, and must not block. No event holds a
// key, a text or a body.
type Observer interface {
	// Observe takes one event. ctx is the caller's context, with its values, or what
	// an Observer made of it. The context that Observe returns replaces the call's
	// after a [CallStart], the attempt's after an [AttemptStart] and the transport's
	// after a [RequestStart], so that spans nest. After other events, or where it is
	// nil, the client ignores it.
	Observe(ctx context.Context, event Event) context.Context
}

// ObserverFunc is a function as an [Observer].
type ObserverFunc func(ctx context.Context, event Event) context.Context

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, event Event) context.Context { return f(ctx, event) }

// Event is one of [CallStart], [CallEnd], [AttemptStart], [RequestStart],
// [AttemptEnd], [Retry], [LimiterWaitStart], [LimiterWait] and [CoolDown]. More may be
// added, and fields to each: ignore what you do not know. Each has the fields of a
// [Subject].
type Event interface{ subject() Subject }

// Subject is the call that an [Event] is about.
type Subject struct {
	// Call numbers, from 1, the calls of a client and of all that With made of it.
	Call uint64
	// Endpoint is the one that the method calls.
	Endpoint Endpoint
	// AgentID names the agent that the call is about, or has created; empty if there is
	// none.
	AgentID string
}

func (s Subject) subject() Subject { return s }

// CallStart is the start of a method's call. A call whose arguments are
// refused ([ErrInvalid]) has none, and no other event.
type CallStart struct {
	Subject
	URL *url.URL // of every attempt; a copy. It holds the agent's ID
}

// CallEnd is the end of a call: each [CallStart] has one, whatever became of it. Where
// a part of the program panics, such as a transport, Err says only that.
type CallEnd struct {
	Subject
	StatusCode int           // of the last answer; 0: none
	TraceID    string        // of the last answer; one line of at most 128 bytes
	LimitKey   string        // of the limit that refused the call here or there; one line of at most 64 bytes
	Attempts   int           // made, also without reaching the service
	Refusals   int           // of them, those that the service refused with 429
	Waited     time.Duration // between attempts and for the limiter
	Elapsed    time.Duration // by the client's clock, waits included
	Err        error         // what the method returns
}

// AttemptStart is the start of one attempt, before the limiter is asked.
type AttemptStart struct {
	Subject
	Attempt int // from 1
}

// RequestStart is the start of an attempt's request, when the limiter has let
// it pass. Where the limiter, or the function of [WithBeforeSend], refuses the
// attempt there is none: nothing was sent, and the next event is its [AttemptEnd].
type RequestStart struct {
	Subject
	Attempt int // from 1
}

// AttemptEnd is the end of an attempt, and of its request. It comes before any wait
// for the next one.
type AttemptEnd struct {
	Subject
	Attempt    int
	StatusCode int           // 0: no answer
	TraceID    string        // of the answer; one line of at most 128 bytes
	LimitKey   string        // of a 429; one line of at most 64 bytes
	Verdict    Verdict       // whether the service has done what was asked
	Elapsed    time.Duration // since the [AttemptStart], by the client's clock; the limiter's wait is part of it
	Err        error         // no answer, or a success that cannot be read; an [*Error] if the attempt was refused here
}

// Verdict says whether the service has done what an attempt asked for. A journal
// that notes each attempt in [WithBeforeSend] closes the note with the verdict. If the
// process dies, the notes that are still open are in doubt. An attempt that was not sent
// has a verdict too, whether or not the function was asked: close only a note of your own.
type Verdict string

// The verdicts.
const (
	// VerdictDone is a documented success.
	VerdictDone Verdict = "done"
	// VerdictNotDone is an attempt that was refused or never sent: the service has
	// certainly done nothing.
	VerdictNotDone Verdict = "not done"
	// VerdictUnknown is an attempt whose answer was missed, or a 5xx other than a
	// documented 503 of the endpoint.
	VerdictUnknown Verdict = "unknown"
)

// Retry is the decision to wait and try again.
type Retry struct {
	Subject
	Attempt int // that failed
	// Outcome is how it ended, in the words of the first column of the table in the
	// package documentation: "429", or "answer lost, truncated or not JSON".
	Outcome string
	Wait    time.Duration // before the next attempt; after a 429, how long the limit is closed: [LimiterWait] tells how long it took
}

// LimiterWaitStart is the start of a wait in the line of the cool-down or of a Pacer, so
// that a batch can show its place. A [LimiterWait] follows if the wait took a
// millisecond or more. The waits of a [Limiter] of yours have no such event.
type LimiterWaitStart struct {
	Subject
	Attempt  int           // that waits
	LimitKey string        // that it waits for; one line of at most 64 bytes, empty if not known
	Place    int           // among those who wait for the same, from 1
	Expected time.Duration // how long the wait will probably take
}

// LimiterWait is a wait of a millisecond at least for the cool-down or the
// [Limiter], within an attempt and before anything of it is sent. The event
// comes when the wait is over.
type LimiterWait struct {
	Subject
	Attempt  int    // that the limiter held up
	LimitKey string // that it waited for; one line of at most 64 bytes, empty if not known
	Wait     time.Duration
}

// CoolDown is a 429 that began the cool-down of a limit, or prolonged it by a
// second at least. The refused call has this event; each call that waits has
// a [LimiterWait]. With [WithoutCoolDown] only a Pacer has it.
type CoolDown struct {
	Subject
	LimitKey string        // one line of at most 64 bytes; empty if the answer named none
	Wait     time.Duration // until the limit opens, by Retry-After
}

// Endpoint names what a call calls.
type Endpoint struct {
	Name         string // the client's method, such as SendMessage
	Method, Path string // Path is the template, such as /v1/agents/{agent_id}
}

// CallInfo are the facts of one call that its result leaves out. It is filled
// when the call returns, on errors too.
type CallInfo struct {
	// Attempts is how many attempts were made, also without reaching the
	// service; 0 where the arguments were refused.
	Attempts int
	// Renewals is how many of the attempts were made at once on a new HTTP/2
	// connection, because the old one was closing and did not take the request.
	// There are at most two, and [RetryPolicy].MaxAttempts does not count them.
	Renewals int
	// Refusals is how many of the attempts the service refused with status 429.
	// MaxAttempts does not count them either: a 429 is not a failure.
	Refusals int
	// Waited is the time spent between attempts and, where it is a
	// millisecond or more, waiting for the limiter.
	Waited time.Duration
	// StatusCode and Header belong to the last answer; 0 and nil if there was
	// none.
	StatusCode int
	Header     http.Header
	// TraceID is the last answer's trace_id.
	TraceID string
	// Body is the last answer's body as it came, unpacked: for members that a
	// service in preview has added and this version does not know. Of a 2xx there is
	// at most 1 MiB, of another status 64 KiB. Where the answer is no documented
	// success, secrets are taken out. nil: there was no answer. Do not log it: it
	// holds the texts.
	Body []byte
}

type callInfoKey struct{}

// WithCallInfo returns a context under which a call fills info. Use one
// context and one CallInfo for each call: calls made at once under the same
// one race. Of several on one context the last one given is filled, and no other.
func WithCallInfo(ctx context.Context, info *CallInfo) context.Context {
	return context.WithValue(ctx, callInfoKey{}, info)
}

type beforeSendKey struct{}

// WithBeforeSend returns a context under which a call asks before each attempt, after
// every wait for a limit and directly before the request goes out, on the caller's
// goroutine. attempt counts from 1, as [CallInfo].Attempts does. ctx ends with the
// caller's context, but not after [WithTimeout]. before notes in a journal that the
// request may reach the service. If the process dies, the notes without an
// [AttemptEnd] are in doubt. Calls that before makes with its own ctx do not ask it.
//
// An AttemptEnd also comes for an attempt that before refused, or for which it was not
// asked, because the wait for a limit failed. Where several workers send from one journal,
// another may hold the note then: take back only a note of your own.
//
// An error ends the call and sends nothing: permits are given back unspent, and the
// call returns an [*Error] around it that has Local set. Of several functions the
// last one given counts.
func WithBeforeSend(ctx context.Context, before func(ctx context.Context, attempt int) error) context.Context {
	return context.WithValue(ctx, beforeSendKey{}, before)
}

// A handler is an observer or a logger, as two functions. A field of type *slog.Logger
// would link all handlers of slog, 50 KiB, into programs that log nothing.
type handler struct {
	wants  func(context.Context, slog.Level) bool // an event of that level
	handle func(context.Context, Event) context.Context
}

// silent is the level of an event that no logger writes.
const silent = slog.Level(1 << 30)

// handlers get each event in this order.
type handlers []handler

// wanted reports whether anybody wants an event of the level.
func (all handlers) wanted(ctx context.Context, level slog.Level) bool {
	return slices.ContainsFunc(all, func(h handler) bool { return h.wants(ctx, level) })
}

// emit hands an event to those who want one of its level, and returns the context that the
// observers have made. An event that nobody wants is not made.
func (all handlers) emit(ctx context.Context, level slog.Level, event func() Event) context.Context {
	var made Event
	for _, h := range all {
		if !h.wants(ctx, level) {
			continue
		}
		if made == nil {
			made = event()
		}
		if next := h.handle(ctx, made); next != nil {
			ctx = next
		}
	}
	return ctx
}
