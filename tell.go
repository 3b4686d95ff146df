package agentmessaging

import (
	"context"
	"log/slog"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// wanted reports whether anybody wants an event that loggers write at level: it
// costs time and memory, and most calls have nobody who wants one.
func (c *call) wanted(ctx context.Context, level slog.Level) bool {
	for _, l := range c.client.listeners {
		if l.wants == nil || level != silent && l.wants(ctx, level) {
			return true
		}
	}
	return false
}

// tell hands an event to all in order, and returns the context that the observers
// have made.
func (c *call) tell(ctx context.Context, event Event) context.Context {
	for _, l := range c.client.listeners {
		if next := l.hear(ctx, event); next != nil {
			ctx = next
		}
	}
	return ctx
}

// id numbers the call when the first event tells of it.
func (c *call) id() uint64 {
	if c.number == 0 {
		c.number = c.client.calls.Add(1)
	}
	return c.number
}

func (c *call) name() Endpoint {
	return Endpoint{Name: c.endpoint.Name, Method: c.endpoint.Method, Path: c.endpoint.Path}
}

func (c *call) start() {
	if c.client.listeners == nil {
		return
	}
	c.began = time.Now()
	if !c.wanted(c.Context, silent) {
		return
	}
	target := c.url
	c.Context = c.tell(c.Context, CallStart{Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, URL: &target})
}

// end reports the finished call and passes its error on.
func (c *call) end(err error) error {
	traceID, limitKey := c.out.traceID, ""
	if c.failure != nil {
		traceID, limitKey = c.failure.TraceID, c.failure.LimitKey
	}
	c.fillInfo(traceID)
	if c.wanted(c.Context, callLevel(c.out.status, err)) {
		c.tell(c.Context, CallEnd{
			Call: c.id(), Endpoint: c.name(), AgentID: c.knownAgentID(), StatusCode: c.out.status,
			TraceID: c.redacted(traceID), LimitKey: printable.Name(limitKey),
			Attempts: c.made(), Waited: c.waited, Elapsed: time.Since(c.began), Err: err,
		})
	}
	return err
}

// knownAgentID is the id of the agent that the call names, or has created.
func (c *call) knownAgentID() string {
	if created, ok := c.result.(interface{ createdID() string }); ok && c.agentID == "" {
		return c.redacted(created.createdID())
	}
	return c.agentID
}

// redacted makes a text of the service fit for observers. It keeps the last one:
// the end of an attempt and the end of its call tell the same trace_id.
func (c *call) redacted(text string) string {
	if text != c.shown.text {
		c.shown.text, c.shown.redacted = text, c.redactor().Text(text)
	}
	return c.shown.redacted
}

func (c *call) startAttempt(ctx context.Context) context.Context {
	if !c.wanted(ctx, slog.LevelDebug) {
		return ctx
	}
	c.attemptBegan = time.Now()
	if !c.wanted(ctx, silent) {
		return ctx
	}
	return c.tell(ctx, AttemptStart{Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, Attempt: c.attempts})
}

func (c *call) startRequest(ctx context.Context) context.Context {
	if !c.wanted(ctx, silent) {
		return ctx
	}
	return c.tell(ctx, RequestStart{Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, Attempt: c.attempts})
}

func (c *call) endAttempt(ctx context.Context) {
	if !c.wanted(ctx, slog.LevelDebug) {
		return
	}
	traceID, limitKey := c.redacted(c.out.traceID), ""
	if answer := c.out.answer; answer != nil {
		traceID, limitKey = answer.TraceID, printable.Name(answer.LimitKey)
	}
	c.tell(ctx, AttemptEnd{
		Call: c.id(), Endpoint: c.name(), AgentID: c.knownAgentID(), Attempt: c.attempts, StatusCode: c.out.status,
		TraceID: traceID, LimitKey: limitKey, Elapsed: time.Since(c.attemptBegan),
		Err: c.redactor().Error(c.out.err, c.ended()), // net/http returns the context's cause alone
	})
}

func (c *call) tellRetry(outcome string) {
	if c.wanted(c.Context, slog.LevelDebug) {
		c.tell(c.Context, Retry{
			Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, Attempt: c.attempts, Outcome: outcome, Wait: c.pause,
		})
	}
}

func (c *call) tellLimiterWait(ctx context.Context, limitKey string, wait time.Duration) {
	if c.wanted(ctx, slog.LevelDebug) {
		c.tell(ctx, LimiterWait{
			Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, Attempt: c.attempts, LimitKey: printable.Name(limitKey), Wait: wait,
		})
	}
}

func (c *call) tellCoolDown(ctx context.Context, limitKey string, wait time.Duration) {
	if c.wanted(ctx, slog.LevelInfo) {
		c.tell(ctx, CoolDown{
			Call: c.id(), Endpoint: c.name(), AgentID: c.agentID, LimitKey: printable.Name(limitKey), Wait: wait,
		})
	}
}

// fillInfo reports the call to the context's CallInfo.
func (c *call) fillInfo(traceID string) {
	if c.info == nil {
		return
	}
	c.redactor().Header(c.out.header)
	*c.info = CallInfo{
		Attempts:   c.made(),
		Waited:     c.waited,
		StatusCode: c.out.status,
		Header:     c.out.header,
		TraceID:    traceID,
		Body:       c.lastBody(),
	}
}

func (c *call) lastBody() []byte {
	if c.out.success() || c.out.body == nil {
		return c.out.body
	}
	return []byte(c.redactor().Text(string(c.out.body)))
}
