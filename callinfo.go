package agentmessaging

import (
	"context"
	"net/http"
	"time"
)

// CallInfo are the facts of one call that its result leaves out. It is filled
// when the call returns, on errors too.
type CallInfo struct {
	// Attempts is how many attempts were made, also without reaching the
	// service; 0 where the arguments were refused.
	Attempts int
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
	// service in preview has added and this version does not know. Of an answer
	// that is no success there are at most 64 KiB, and secrets are taken out;
	// nil if there was none. It is not to be logged: it holds the texts.
	Body []byte
}

type callInfoKey struct{}

// WithCallInfo returns a context under which a call fills info. Use one
// context and one CallInfo for each call: calls made at once under the same
// one race.
func WithCallInfo(ctx context.Context, info *CallInfo) context.Context {
	return context.WithValue(ctx, callInfoKey{}, info)
}

// callInfo is the context's CallInfo, nil if it has none.
func callInfo(ctx context.Context) *CallInfo {
	if ctx == nil {
		return nil
	}
	info, _ := ctx.Value(callInfoKey{}).(*CallInfo)
	return info
}
