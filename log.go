package agentmessaging

import (
	"context"
	"errors"
	"log/slog"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// write writes an event to a logger, if it concerns one.
func write(ctx context.Context, logger *slog.Logger, event Event) {
	switch e := event.(type) {
	case AttemptEnd:
		r := begin(e.Call, e.Endpoint, e.AgentID)
		r.add(slog.Int("attempt", e.Attempt), slog.Int("status", e.StatusCode), slog.Duration("elapsed", e.Elapsed))
		r.addText("trace_id", e.TraceID)
		r.addText("limit_key", e.LimitKey)
		r.addError(e.Err)
		r.write(ctx, logger, slog.LevelDebug, "agentmessaging attempt")
	case Retry:
		r := begin(e.Call, e.Endpoint, e.AgentID)
		r.add(slog.Int("attempt", e.Attempt), slog.String("outcome", e.Outcome), slog.Duration("wait", e.Wait))
		r.write(ctx, logger, slog.LevelDebug, "agentmessaging retry")
	case LimiterWaitStart:
		r := begin(e.Call, e.Endpoint, e.AgentID)
		r.add(slog.Int("attempt", e.Attempt), slog.String("limit_key", e.LimitKey), slog.Int("place", e.Place), slog.Duration("expected", e.Expected))
		r.write(ctx, logger, slog.LevelDebug, "agentmessaging limiter wait begins")
	case LimiterWait:
		r := begin(e.Call, e.Endpoint, e.AgentID)
		r.add(slog.Int("attempt", e.Attempt), slog.String("limit_key", e.LimitKey), slog.Duration("wait", e.Wait))
		r.write(ctx, logger, slog.LevelDebug, "agentmessaging limiter wait")
	case CoolDown:
		r := begin(e.Call, e.Endpoint, e.AgentID)
		r.add(slog.String("limit_key", e.LimitKey), slog.Duration("wait", e.Wait))
		r.write(ctx, logger, slog.LevelInfo, "agentmessaging cool-down")
	case CallEnd:
		writeCallEnd(ctx, logger, e)
	}
}

func writeCallEnd(ctx context.Context, logger *slog.Logger, e CallEnd) {
	level := callLevel(e.StatusCode, e.Err)
	if level == silent {
		return
	}
	r := begin(e.Call, e.Endpoint, e.AgentID)
	r.add(slog.Int("attempts", e.Attempts))
	if e.Refusals > 0 {
		r.add(slog.Int("refusals", e.Refusals))
	}
	r.add(slog.Duration("waited", e.Waited), slog.Duration("elapsed", e.Elapsed))
	r.addText("trace_id", e.TraceID)
	r.addText("limit_key", e.LimitKey)
	r.addError(e.Err)
	if errors.Is(e.Err, ErrOutcomeUnknown) {
		r.write(ctx, logger, level, "agentmessaging outcome unknown: it may have been carried out")
		return
	}
	r.write(ctx, logger, level, "agentmessaging gave up")
}

// callLevel is the level of a call's end: Warn for one that failed though it was
// right, which somebody should know of. An answer such as 404 is the
// application's own affair.
func callLevel(status int, err error) slog.Level {
	refused := isClientError(status) && !isLimited(status)
	if err == nil || refused || errors.Is(err, context.Canceled) {
		return silent
	}
	return slog.LevelWarn
}

// record gathers the attributes of a record without allocating.
type record struct {
	attrs [12]slog.Attr
	n     int
}

func begin(call uint64, endpoint Endpoint, agentID string) (r record) {
	r.add(slog.String("method", endpoint.Method), slog.String("path", endpoint.Path), slog.Uint64("call", call))
	r.addText("agent_id", agentID)
	return r
}

func (r *record) add(attrs ...slog.Attr) { r.n += copy(r.attrs[r.n:], attrs) }

func (r *record) addText(name, text string) {
	if text != "" {
		r.add(slog.String(name, text))
	}
}

func (r *record) addError(err error) {
	if err != nil {
		r.add(slog.String("error", printable.Line(err.Error(), maxErrorText)))
	}
}

func (r *record) write(ctx context.Context, logger *slog.Logger, level slog.Level, message string) {
	logger.LogAttrs(ctx, level, message, r.attrs[:r.n]...)
}

// silent is the level of what no logger writes.
const silent = slog.Level(1 << 30)
