package agentmessaging_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestLogger writes who, what and why, each on one line.
func TestLogger(t *testing.T) {
	const sent = " method=POST path=/v1/agents/{agent_id}/messages call=1 agent_id=agent_1"
	for _, tt := range []struct {
		wait    time.Duration // for the limiter
		answers []answer
		want    []string // how each record begins
	}{
		{0, []answer{clienttest.OK}, []string{"DEBUG agentmessaging attempt" + sent + " attempt=1 status=200"}},
		{0, []answer{{Status: 399}}, []string{"DEBUG", "WARN agentmessaging gave up" + sent + " attempts=1"}},
		{0, []answer{{Status: 400}}, []string{"DEBUG agentmessaging attempt" + sent + " attempt=1 status=400"}},
		{0, []answer{{Status: 499}}, []string{"DEBUG agentmessaging attempt" + sent + " attempt=1 status=499"}},
		{0, []answer{{Err: context.Canceled}}, []string{"DEBUG agentmessaging attempt" + sent + " attempt=1 status=0"}},
		{time.Minute, []answer{clienttest.OK}, []string{"DEBUG agentmessaging limiter wait" + sent + " attempt=1 wait=1m0s", "DEBUG"}},
		{0, []answer{{Err: errors.New("line\nbroken with " + clienttest.Key)}}, []string{
			"DEBUG agentmessaging attempt" + sent + " attempt=1 status=0 elapsed=0s error=line broken with [redacted]",
			"WARN agentmessaging outcome unknown: it may have been carried out" + sent + " attempts=1 refusals=0 waited=0s elapsed=0s error=",
		}},
		{0, []answer{clienttest.Limited("3", "key_minute"), {Status: 500}}, []string{
			"INFO agentmessaging cool-down" + sent + " limit_key=key_minute wait=3s",
			"DEBUG agentmessaging attempt" + sent + " attempt=1 status=429 elapsed=0s trace_id=trace_1 limit_key=key_minute",
			"DEBUG agentmessaging retry" + sent + " attempt=1 outcome=429 wait=3s",
			"DEBUG agentmessaging limiter wait begins" + sent + " attempt=2 limit_key=key_minute place=1 expected=3s",
			"DEBUG agentmessaging limiter wait" + sent + " attempt=2 limit_key=key_minute wait=3s",
			"DEBUG agentmessaging attempt" + sent + " attempt=2 status=500",
			"WARN agentmessaging outcome unknown: it may have been carried out" + sent + " attempts=2 refusals=1 waited=3s elapsed=3s error=",
		}},
		{0, []answer{clienttest.NotDialed}, []string{
			"DEBUG", "DEBUG", "DEBUG", "DEBUG", "DEBUG", "WARN agentmessaging gave up" + sent + " attempts=3 refusals=0 waited=1.5s",
		}},
	} {
		records := recordsOf(t, tt.answers, agentmessaging.WithLimiter(&limiterStub{wait: tt.wait}))
		require.Len(t, records, len(tt.want), "%q", records)
		for i, want := range tt.want {
			assert.True(t, strings.HasPrefix(records[i], want), "record %d is %q, want %q", i, records[i], want)
		}
	}
}

// recordsOf makes one call and returns what it logged, under what the caller's
// context holds.
func recordsOf(t *testing.T, answers []answer, opts ...agentmessaging.Option) (records []string) {
	t.Helper()
	logger := slog.New(contextHandler{slog.DiscardHandler, func(ctx context.Context, r slog.Record) {
		assert.Equal(t, "request 7", ctx.Value(spanKey{}))
		line := r.Level.String() + " " + r.Message
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		records = append(records, line)
	}})
	within := func(ctx context.Context, client *agentmessaging.Client) error {
		return post(context.WithValue(ctx, spanKey{}, "request 7"), client)
	}
	clienttest.Make(t, within, answers, append(opts, agentmessaging.WithLogger(logger))...)
	return records
}

// contextHandler sees each record with its context.
type contextHandler struct {
	slog.Handler
	see func(context.Context, slog.Record)
}

func (contextHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	h.see(ctx, r)
	return nil
}
