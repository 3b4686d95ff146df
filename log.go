package agentmessaging

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// logEvent logs an event. It ignores events of types that it does not list.
func logEvent(ctx context.Context, logger *slog.Logger, event Event) {
	switch e := event.(type) {
	case AttemptEnd:
		logRecord(ctx, logger, slog.LevelDebug, "agentmessaging attempt", e.Subject,
			slog.Int("attempt", e.Attempt), slog.Int("status", e.StatusCode), slog.Duration("elapsed", e.Elapsed),
			slog.String("trace_id", e.TraceID), slog.String("limit_key", e.LimitKey), errorAttr(e.Err))
	case Retry:
		logRecord(ctx, logger, slog.LevelDebug, "agentmessaging retry", e.Subject,
			slog.Int("attempt", e.Attempt), slog.String("outcome", e.Outcome), slog.Duration("wait", e.Wait))
	case LimiterWaitStart:
		logRecord(ctx, logger, slog.LevelDebug, "agentmessaging limiter wait begins", e.Subject,
			slog.Int("attempt", e.Attempt), slog.String("limit_key", e.LimitKey), slog.Int("place", e.Place), slog.Duration("expected", e.Expected))
	case LimiterWait:
		logRecord(ctx, logger, slog.LevelDebug, "agentmessaging limiter wait", e.Subject,
			slog.Int("attempt", e.Attempt), slog.String("limit_key", e.LimitKey), slog.Duration("wait", e.Wait))
	case CoolDown:
		logRecord(ctx, logger, slog.LevelInfo, "agentmessaging cool-down", e.Subject,
			slog.String("limit_key", e.LimitKey), slog.Duration("wait", e.Wait))
	case CallEnd:
		level, message := callLevel(e.StatusCode, e.Err), "agentmessaging gave up"
		if errors.Is(e.Err, ErrOutcomeUnknown) {
			message = "agentmessaging outcome unknown: it may have been carried out"
		}
		logRecord(ctx, logger, level, message, e.Subject,
			slog.Int("attempts", e.Attempts), slog.Int("refusals", e.Refusals), slog.Duration("waited", e.Waited), slog.Duration("elapsed", e.Elapsed),
			slog.String("trace_id", e.TraceID), slog.String("limit_key", e.LimitKey), errorAttr(e.Err))
	}
}

// logRecord writes a record of the attributes that all records share, and of attrs. It
// leaves out empty strings.
func logRecord(ctx context.Context, logger *slog.Logger, level slog.Level, message string, s Subject, attrs ...slog.Attr) {
	all := append(make([]slog.Attr, 0, 12), // on the stack
		slog.String("method", s.Endpoint.Method), slog.String("path", s.Endpoint.Path), slog.Uint64("call", s.Call), slog.String("agent_id", s.AgentID))
	all = append(all, attrs...)
	isEmpty := func(a slog.Attr) bool { return a.Value.Kind() == slog.KindString && a.Value.String() == "" }
	logger.LogAttrs(ctx, level, message, slices.DeleteFunc(all, isEmpty)...)
}

// errorAttr returns an empty attribute, which logRecord leaves out, if err is nil.
func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.String("error", "")
	}
	return slog.String("error", printable.Line(err.Error(), maxErrorText))
}

// callLevel returns the level of a call's end. A failed call is a Warn, because an operator
// may have to act. An answer such as 404 is not logged, because the application handles it,
// and a cancellation is not, because the application caused it.
func callLevel(status int, err error) slog.Level {
	refused := status/100 == 4 && status != http.StatusTooManyRequests
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		return slog.LevelWarn
	case err == nil, refused, errors.Is(err, context.Canceled):
		return noLog
	}
	return slog.LevelWarn
}
