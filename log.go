package agentmessaging

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
)

// logObserver writes events to a slog.Logger.
type logObserver struct{ logger *slog.Logger }

func (l logObserver) Observe(ctx context.Context, event Event) context.Context {
	switch e := event.(type) {
	case AttemptEnd:
		attrs := append(e.Endpoint.attrs(),
			slog.Int("attempt", e.Attempt), slog.Int("status", e.StatusCode), slog.Duration("elapsed", e.Elapsed))
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", oneLine(e.Err.Error(), maxErrorText)))
		}
		l.logger.LogAttrs(ctx, slog.LevelDebug, "agentmessaging attempt", attrs...)
	case Retry:
		l.logger.LogAttrs(ctx, slog.LevelDebug, "agentmessaging retry", append(e.Endpoint.attrs(),
			slog.Int("attempt", e.Attempt), slog.String("outcome", e.Outcome), slog.Duration("wait", e.Wait))...)
	case LimiterWait:
		l.logger.LogAttrs(ctx, slog.LevelDebug, "agentmessaging limiter wait", append(e.Endpoint.attrs(),
			slog.Int("attempt", e.Attempt), slog.Duration("wait", e.Wait))...)
	case CoolDown:
		l.logger.LogAttrs(ctx, slog.LevelInfo, "agentmessaging cool-down", append(e.Endpoint.attrs(),
			slog.String("limit_key", e.LimitKey), slog.Duration("wait", e.Wait))...)
	case CallEnd:
		if gaveUp(e) {
			l.logger.LogAttrs(ctx, slog.LevelWarn, "agentmessaging gave up", append(e.Endpoint.attrs(),
				slog.Int("attempts", e.Attempts), slog.Duration("waited", e.Waited), slog.String("error", e.Err.Error()))...)
		}
	}
	return ctx
}

// gaveUp reports a call that failed though it was right, which somebody should
// know of. An answer such as 404 is the application's own affair.
func gaveUp(e CallEnd) bool {
	refused := e.StatusCode >= 400 && e.StatusCode <= 499 && e.StatusCode != http.StatusTooManyRequests
	return e.Err != nil && !refused && !errors.Is(e.Err, context.Canceled)
}

func (e Endpoint) attrs() []slog.Attr {
	return []slog.Attr{slog.String("method", e.Method), slog.String("path", e.Path)}
}
