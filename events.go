package agentmessaging

import (
	"context"
	"log/slog"
	"net/url"
	"time"
)

// An Observer gets the events of calls, in order and on the goroutine that calls the
// method of the client. It must not block, and its panic reaches the caller. No event holds a
// key, a message, a prompt or a body. If the service repeats another member of the request in
// an error, such as customer_ref, so does Err.
type Observer interface {
	// Observe takes one event. ctx is the caller's context, with its values, or the one
	// that an Observer returned. After a [CallStart], the client uses the returned context
	// for the rest of the call; after an [AttemptStart], for the rest of the attempt; and
	// after a [RequestStart], for the request. So spans nest. After any other event, the
	// returned context goes only to the next Observer, for the same event. Derive the
	// context from ctx, or return nil: the client ignores a context without the values of
	// ctx, in which other Observers would not find theirs.
	Observe(ctx context.Context, event Event) context.Context
}

// ObserverFunc makes a function an [Observer].
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
	// Call is the number of the call, from 1. A client and the clients that With makes of it
	// count together. The calls of a client without an observer or a logger do not count.
	Call uint64
	// Endpoint is the endpoint that the method calls.
	Endpoint Endpoint
	// AgentID names the agent that the call is about, or that it created; empty if there
	// is none.
	AgentID string
}

func (s Subject) subject() Subject { return s }

// CallStart is the start of a method's call. A call whose arguments are refused
// ([ErrInvalid]) has no events at all.
type CallStart struct {
	Subject
	URL *url.URL // of every attempt; do not change it. It holds the agent's ID
}

// CallEnd is the end of a call. Each [CallStart] has one. If a transport, a limiter or an
// observer panics, Err says only that something panicked.
type CallEnd struct {
	Subject
	StatusCode int           // of the answer to the last attempt; 0: it got none, or was not sent
	TraceID    string        // of that answer; one line of at most 128 bytes
	LimitKey   string        // of the limit that refused the call, here or at the service; one line of at most 64 bytes
	Attempts   int           // as in [CallInfo]
	Refusals   int           // attempts that the service refused with 429
	Waited     time.Duration // as in [CallInfo]
	Elapsed    time.Duration // by the client's clock, waits included
	Err        error         // what the method returns
}

// AttemptStart is the start of one attempt, before it waits for limits.
type AttemptStart struct {
	Subject
	Attempt int // from 1
}

// RequestStart is the start of an attempt's request, after all waits for limits. If a limit,
// a [Limiter] or the function of [WithBeforeSend] refuses the attempt, nothing is sent, and
// there is no RequestStart: the next event is the [AttemptEnd].
//
// An Observer that returns context.WithoutCancel(ctx) here lets a request that has left
// finish when the caller's context is canceled. The deadline still holds.
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
	Elapsed    time.Duration // since the [AttemptStart], by the client's clock; includes the wait for limits
	Err        error         // why no answer came, or why a success could not be read; an [*Error] if the attempt was refused here
}

// Verdict says whether the service has done what an attempt asked for.
//
// A program that must survive its own death writes a note to a journal in
// [WithBeforeSend], and closes the note with the verdict. After a crash, the calls of
// open notes are in doubt. An attempt that was refused before the function was called has
// a verdict too, so close only your own notes.
type Verdict string

// The verdicts.
const (
	// VerdictDone means that a documented success came.
	VerdictDone Verdict = "done"
	// VerdictNotDone means that the attempt was refused or never sent. The service has done
	// nothing, unless a proxy forwarded the request and then answered with a 3xx or 4xx.
	//
	// The exception is a 2xx answer to SetBYOK or ClearBYOK that is a JSON object without ok
	// true, or to SetBYOK one without a configuration: the service did not confirm the call, but
	// may have carried it out.
	VerdictNotDone Verdict = "not done"
	// VerdictUnknown means that the answer was missed, or is a 5xx other than a documented
	// 503 of the endpoint.
	VerdictUnknown Verdict = "unknown"
)

// Retry is the decision to make another attempt.
type Retry struct {
	Subject
	Attempt int // the attempt that failed
	// Outcome says how that attempt ended: a row of the table in the package documentation,
	// such as "429" or "answer lost, truncated or not JSON".
	Outcome string
	// Wait is the time until the next attempt. After a 429 it is an estimate of the wait for
	// the limit; the real wait is in [LimiterWait].
	Wait time.Duration
}

// LimiterWaitStart is the start of a wait in line for the cool-down or a Pacer, so that a
// batch can show its place. It comes again if the wait turns out longer, but not when the
// place moves up. A [LimiterWait] follows if the wait took a millisecond or more. A wait in
// your own [Limiter] has no such event.
type LimiterWaitStart struct {
	Subject
	Attempt  int    // the attempt that waits
	LimitKey string // of the limit that it waits for; one line of at most 64 bytes, empty if not known
	Place    int    // among the waiting calls of this endpoint (under a Pacer: of the same limits and priority), from 1
	// Expected is an estimate of the rest of the wait. A Pacer's is close. The cool-down's is
	// the time until the limit opens, until it has seen how many calls a limit lets through.
	Expected time.Duration
}

// LimiterWait is the end of a wait of a millisecond or more for the cool-down or the
// [Limiter], before anything of the attempt is sent.
type LimiterWait struct {
	Subject
	Attempt  int    // the attempt that waited
	LimitKey string // of the limit that it waited for; one line of at most 64 bytes, empty if not known
	Wait     time.Duration
}

// CoolDown is a 429 that began the cool-down of a limit, or prolonged it by a second or
// more. The event belongs to the refused call. The other calls that wait each have a
// [LimiterWait]. Under [WithoutCoolDown] the event comes only if the client has a Pacer.
type CoolDown struct {
	Subject
	LimitKey string        // one line of at most 64 bytes; empty if the answer named none
	Wait     time.Duration // until the limit opens, by Retry-After; a second if the answer had none
}

// Endpoint names the operation that a call uses.
type Endpoint struct {
	Name         string // the client's method, such as SendMessage
	Method, Path string // Path is the template, such as /v1/agents/{agent_id}
}

// A handler is an observer or a logger, as two functions. A field of type *slog.Logger
// would link all handlers of slog, 50 KiB, into programs that log nothing.
type handler struct {
	wants  func(context.Context, slog.Level) bool // whether it takes events of the level
	handle func(context.Context, Event) context.Context
}

// noLog is the level of events that only observers get.
const noLog = slog.Level(1 << 30)

// handlers get each event in this order.
type handlers []handler

// callKey is the context key by which emit recognizes a context that is derived from the
// call's. Its value is a pointer, unique for each call.
type callKey struct{}

// emit gives an event to the handlers that want events of its level, and returns the context
// that the observers returned. If no handler wants the event, emit does not make it.
func (all handlers) emit(ctx context.Context, level slog.Level, event func() Event) context.Context {
	var made Event
	for _, h := range all {
		if !h.wants(ctx, level) {
			continue
		}
		if made == nil {
			made = event()
		}
		if next := h.handle(ctx, made); next != nil && next.Value(callKey{}) == ctx.Value(callKey{}) {
			ctx = next
		}
	}
	return ctx
}

// begin emits the event of a start, such as a CallStart, and sets ctx to the context for what
// starts: the one that the observers returned, with the deadline that ctx had if they dropped
// it. If an observer panics, ctx is the context for the event of the end.
func (all handlers) begin(ctx *context.Context, event func() Event) (stop context.CancelFunc) {
	deadline, has := (*ctx).Deadline()
	for i := range all { // one by one: if one panics, ctx is the context that those before it returned
		*ctx = all[i:i+1].emit(*ctx, noLog, event)
	}
	if kept, still := (*ctx).Deadline(); !has || still && !kept.After(deadline) { // most observers keep it
		return func() {}
	}
	*ctx, stop = context.WithDeadline(*ctx, deadline)
	return stop
}
