package agentmessaging

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// A handler is an observer or a logger, by its functions: a field of type
// *slog.Logger would have the linker keep all handlers of slog in programs that log
// nothing, 50 KiB.
type handler struct {
	wants  func(context.Context, slog.Level) bool // an event of that level; nil: an observer, which wants all
	handle func(context.Context, Event) context.Context
}

// silent is the level of an event that no logger writes.
const silent = slog.Level(1 << 30)

func (h handler) wanted(ctx context.Context, level slog.Level) bool {
	return h.wants == nil || level != silent && h.wants(ctx, level)
}

// wanted reports whether anybody wants an event of the level, for those that take time
// to make.
func (c *call) wanted(ctx context.Context, level slog.Level) bool {
	return slices.ContainsFunc(c.client.handlers, func(h handler) bool { return h.wanted(ctx, level) })
}

// emit hands an event to those who want one of its level, in order, and returns the
// context that the observers have made. It has a type parameter so that an event that
// nobody wants needs no memory.
func emit[E Event](ctx context.Context, c *call, level slog.Level, event E) context.Context {
	var boxed Event
	for _, h := range c.client.handlers {
		if !h.wanted(ctx, level) {
			continue
		}
		if boxed == nil {
			boxed = event
		}
		if next := h.handle(ctx, boxed); next != nil {
			ctx = next
		}
	}
	return ctx
}

func (c *call) reportStart() {
	if !c.wanted(c.ctx, silent) {
		return
	}
	shown := c.url
	c.ctx = emit(c.ctx, c, silent, CallStart{Call: c.number, Endpoint: c.subject, AgentID: c.agentID, URL: &shown})
}

// reportEnd has what is known of the last attempt and of the call's failure, if it
// has one.
func (c *call) reportEnd(err error) {
	level := callLevel(c.last.Status, err)
	if !c.wanted(c.ctx, level) {
		return
	}
	e := CallEnd{
		Call: c.number, Endpoint: c.subject, AgentID: c.knownAgentID(), StatusCode: c.last.Status, TraceID: c.last.safeTraceID(c.secrets),
		Attempts: c.attempts, Refusals: c.refusals, Waited: c.waited, Elapsed: time.Since(c.began), Err: err,
	}
	if c.failure != nil {
		e.TraceID, e.LimitKey = c.failure.TraceID, c.failure.LimitKey
	}
	emit(c.ctx, c, level, e)
}

// knownAgentID is the id of the agent that the call names, or has created.
func (c *call) knownAgentID() string {
	if c.createdID != nil && c.last.result != nil {
		return c.secrets.Identifier(c.createdID(c.last.result))
	}
	return c.agentID
}

// reportAttempt reports the end of the attempt. net/http returns the cause of a
// context's end alone, so the reason why the call cannot go on, if any, is added.
func (c *call) reportAttempt(ctx context.Context) {
	a := &c.last
	if !c.wanted(ctx, slog.LevelDebug) {
		return
	}
	e := AttemptEnd{
		Call: c.number, Endpoint: c.subject, AgentID: c.knownAgentID(), Attempt: a.number, StatusCode: a.Status,
		TraceID: a.safeTraceID(c.secrets), Verdict: a.verdict(), Elapsed: time.Since(a.began), Err: c.secrets.Error(a.Err, c.ended()),
	}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		e.LimitKey = a.failure.LimitKey
	}
	emit(ctx, c, slog.LevelDebug, e)
}

func (c *call) reportWait(ctx context.Context, w quota.Wait) {
	emit(ctx, c, slog.LevelDebug, LimiterWaitStart{
		Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: c.last.number, LimitKey: w.Limit, Place: w.Place, Expected: w.Ends,
	})
}
