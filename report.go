package agentmessaging

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

func (c *call) reportStart() {
	if !c.client.handlers.wanted(c.ctx, silent) {
		return
	}
	shown := c.url
	c.ctx = emit(c.ctx, c.client.handlers, silent, CallStart{Call: c.number, Endpoint: c.subject, AgentID: c.agentID, URL: &shown})
}

// reportEnd has what is known of the last attempt and of the call's failure, if it
// has one.
func (c *call) reportEnd(err error) {
	level := callLevel(c.last.Status, err)
	if !c.client.handlers.wanted(c.ctx, level) {
		return
	}
	e := CallEnd{
		Call: c.number, Endpoint: c.subject, AgentID: c.knownAgentID(), StatusCode: c.last.Status, TraceID: c.last.safeTraceID(c.secrets),
		Attempts: c.attempts, Refusals: c.refusals, Waited: c.waited, Elapsed: time.Since(c.began), Err: err,
	}
	if c.failure != nil {
		e.TraceID, e.LimitKey = c.failure.TraceID, c.failure.LimitKey
	}
	emit(c.ctx, c.client.handlers, level, e)
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
	if !c.client.handlers.wanted(ctx, slog.LevelDebug) {
		return
	}
	e := AttemptEnd{
		Call: c.number, Endpoint: c.subject, AgentID: c.knownAgentID(), Attempt: a.number, StatusCode: a.Status,
		TraceID: a.safeTraceID(c.secrets), Verdict: a.verdict(), Elapsed: time.Since(a.began), Err: c.secrets.Error(a.Err, c.whyOver()),
	}
	if a.failure != nil && a.Status == http.StatusTooManyRequests {
		e.LimitKey = a.failure.LimitKey
	}
	emit(ctx, c.client.handlers, slog.LevelDebug, e)
}

func (c *call) reportWait(ctx context.Context, w quota.Wait) {
	emit(ctx, c.client.handlers, slog.LevelDebug, LimiterWaitStart{
		Call: c.number, Endpoint: c.subject, AgentID: c.agentID, Attempt: c.last.number, LimitKey: w.Limit, Place: w.Place, Expected: w.Ends,
	})
}
