package agentmessaging

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// A handler is an observer or a logger, by its functions: a field of type
// *slog.Logger would have the linker keep all handlers of slog in programs that log
// nothing, 50 KiB.
type handler struct {
	wants  func(context.Context, slog.Level) bool // an event of that level; nil: an observer, which wants all
	handle func(context.Context, Event) context.Context
}

// reporter emits the events of one call. A nil reporter emits none: most calls have
// nobody who wants them, and events cost time and memory.
type reporter struct {
	handlers []handler
	calls    *atomic.Uint64 // how many calls of the client's family were reported
	request  *request
	redactor func() redact.Redactor

	number uint64 // of the call; 0: not reported yet
	began  time.Time
}

// wanted reports whether anybody wants an event that loggers write at level.
func (r *reporter) wanted(ctx context.Context, level slog.Level) bool {
	if r == nil {
		return false
	}
	for _, h := range r.handlers {
		if h.wants == nil || level != silent && h.wants(ctx, level) {
			return true
		}
	}
	return false
}

// emit hands an event to all in order, and returns the context that the observers
// have made.
func (r *reporter) emit(ctx context.Context, event Event) context.Context {
	for _, h := range r.handlers {
		if next := h.handle(ctx, event); next != nil {
			ctx = next
		}
	}
	return ctx
}

// id numbers the call with its first event.
func (r *reporter) id() uint64 {
	if r.number == 0 {
		r.number = r.calls.Add(1)
	}
	return r.number
}

func (r *reporter) name() Endpoint {
	return Endpoint{Name: r.request.endpoint.Name, Method: r.request.endpoint.Method, Path: r.request.endpoint.Path}
}

func (r *reporter) callStart(ctx context.Context, target *url.URL) context.Context {
	if r == nil {
		return ctx
	}
	r.began = time.Now()
	if !r.wanted(ctx, silent) {
		return ctx
	}
	shown := *target
	return r.emit(ctx, CallStart{Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, URL: &shown})
}

// callEnd completes the event with what is known of the last attempt and of the
// call's failure, if it has one.
func (r *reporter) callEnd(ctx context.Context, last *attempt, failure *Error, e CallEnd) {
	if r == nil || !r.wanted(ctx, callLevel(last.Status, e.Err)) {
		return
	}
	e.Call, e.Endpoint, e.AgentID = r.id(), r.name(), r.knownAgentID(last)
	e.StatusCode, e.TraceID, e.Elapsed = last.Status, last.safeTraceID(r.redactor()), time.Since(r.began)
	if failure != nil {
		e.TraceID, e.LimitKey = failure.TraceID, printable.Name(failure.LimitKey)
	}
	r.emit(ctx, e)
}

// knownAgentID is the id of the agent that the call names, or has created.
func (r *reporter) knownAgentID(a *attempt) string {
	if created := r.request.createdID; created != nil && a.result != nil {
		return r.redactor().Identifier(created(a.result))
	}
	return r.request.agentID
}

func (r *reporter) attemptStart(ctx context.Context, a *attempt) context.Context {
	if !r.wanted(ctx, slog.LevelDebug) {
		return ctx
	}
	a.began = time.Now()
	if !r.wanted(ctx, silent) {
		return ctx
	}
	return r.emit(ctx, AttemptStart{Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, Attempt: a.number})
}

func (r *reporter) requestStart(ctx context.Context, a *attempt) context.Context {
	if !r.wanted(ctx, silent) {
		return ctx
	}
	return r.emit(ctx, RequestStart{Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, Attempt: a.number})
}

// attemptEnd reports the attempt. ended is why the call cannot go on, if it cannot:
// net/http returns the cause of a context's end alone.
func (r *reporter) attemptEnd(ctx context.Context, a *attempt, ended error) {
	if !r.wanted(ctx, slog.LevelDebug) {
		return
	}
	e := AttemptEnd{
		Call: r.id(), Endpoint: r.name(), AgentID: r.knownAgentID(a), Attempt: a.number, StatusCode: a.Status,
		TraceID: a.safeTraceID(r.redactor()), Verdict: a.verdict(), Elapsed: time.Since(a.began), Err: r.redactor().Error(a.Err, ended),
	}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		e.LimitKey = printable.Name(a.failure.LimitKey)
	}
	r.emit(ctx, e)
}

func (r *reporter) retry(ctx context.Context, a *attempt, wait time.Duration) {
	if r.wanted(ctx, slog.LevelDebug) {
		r.emit(ctx, Retry{
			Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, Attempt: a.number, Outcome: retryTable[a.class].outcome, Wait: wait,
		})
	}
}

func (r *reporter) limiterWaitStart(ctx context.Context, a *attempt, w quota.Wait) {
	r.emit(ctx, LimiterWaitStart{
		Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, Attempt: a.number,
		LimitKey: printable.Name(w.Limit), Place: w.Place, Expected: w.Ends,
	})
}

func (r *reporter) limiterWait(ctx context.Context, a *attempt, limitKey string, wait time.Duration) {
	if r.wanted(ctx, slog.LevelDebug) {
		r.emit(ctx, LimiterWait{
			Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, Attempt: a.number, LimitKey: printable.Name(limitKey), Wait: wait,
		})
	}
}

func (r *reporter) coolDown(ctx context.Context, limitKey string, wait time.Duration) {
	if r.wanted(ctx, slog.LevelInfo) {
		r.emit(ctx, CoolDown{
			Call: r.id(), Endpoint: r.name(), AgentID: r.request.agentID, LimitKey: printable.Name(limitKey), Wait: wait,
		})
	}
}
