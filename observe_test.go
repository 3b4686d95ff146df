package agentmessaging_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

type spanKey struct{}

// TestObserverIsToldInOrder checks the events of a call that is retried, and
// that contexts nest: an attempt's inside its call's.
func TestObserverIsToldInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		observer := agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
			within, _ := ctx.Value(spanKey{}).(string)
			switch e := event.(type) {
			case agentmessaging.CallStart:
				told = append(told, fmt.Sprintf("%s> call %s %s %s", within, e.Endpoint.Name, e.Endpoint.Method, e.Endpoint.Path))
				return context.WithValue(ctx, spanKey{}, within+"call")
			case agentmessaging.AttemptStart:
				told = append(told, fmt.Sprintf("%s> attempt %d", within, e.Attempt))
				return context.WithValue(ctx, spanKey{}, fmt.Sprintf("%s/%d", within, e.Attempt))
			case agentmessaging.AttemptEnd:
				told = append(told, fmt.Sprintf("%s< %d after %s", within, e.StatusCode, e.Elapsed))
			case agentmessaging.Retry:
				told = append(told, fmt.Sprintf("%s: %s, wait %s", within, e.Outcome, e.Wait))
			case agentmessaging.CallEnd:
				told = append(told, fmt.Sprintf("%s< %d attempts, waited %s of %s, trace %s, err %v", within, e.Attempts, e.Waited, e.Elapsed, e.TraceID, e.Err))
			}
			return nil
		})
		transport := &stub{answers: []answer{{status: 429, header: retryAfter("3")}, {status: 200, body: anyReply}}}
		client := newClient(t, transport, agentmessaging.WithObserver(observer), agentmessaging.WithRandom(func() float64 { return 0 }))
		require.NoError(t, post(t.Context(), client))
		assert.Equal(t, []string{
			"> call SendMessage POST /v1/agents/{agent_id}/messages",
			"call> attempt 1", "call/1< 429 after 0s", "call: 429, wait 3s",
			"call> attempt 2", "call/2< 200 after 0s",
			"call< 2 attempts, waited 3s of 3s, trace t, err <nil>",
		}, told)
		assert.Equal(t, "call/2", transport.sent()[1].Context().Value(spanKey{}), "the transport sees the attempt's context")
	})
}

func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		transport := &stub{answers: []answer{{status: 429, header: retryAfter("3")}, {status: 500, body: `{"error":"broken","reason":"` + testKey + `"}`}}}
		_, err := newClient(t, transport, agentmessaging.WithLogger(logger)).SendMessage(t.Context(), "agent_1", message{Text: "message-canary"})
		require.Error(t, err)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 5)
		for i, want := range []string{"level=INFO msg=\"agentmessaging cool-down\"", "level=DEBUG msg=\"agentmessaging attempt\"", "retry", "attempt=2", "level=WARN"} {
			assert.Contains(t, lines[i], want)
		}
		assert.NotContains(t, out.String(), "canary")
	})
}

func TestObserverIsToldNoSecret(t *testing.T) {
	var told strings.Builder
	observer := agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
		fmt.Fprintf(&told, "%v %+v %#v\n", event, event, event)
		return nil
	})
	cause := fmt.Errorf("transport says %s and message-canary", testKey)
	_, err := newClient(t, &stub{answers: []answer{{err: cause}}}, agentmessaging.WithObserver(observer)).
		SendMessage(t.Context(), "agent_1", message{Text: "message-canary"})
	require.Error(t, err)
	assert.Contains(t, told.String(), "[redacted]")
	assert.NotContains(t, told.String(), "canary")
}

func TestLoggerIsQuietAtInfo(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	for _, quiet := range []answer{{status: 200, body: anyReply}, {status: 404}, {err: context.Canceled}} {
		_ = post(t.Context(), newClient(t, &stub{answers: []answer{quiet}}, agentmessaging.WithLogger(logger)))
		assert.Empty(t, out.String())
	}
	_ = post(t.Context(), newClient(t, &stub{answers: []answer{{status: 429}}}, agentmessaging.WithLogger(logger), once))
	assert.Contains(t, out.String(), "gave up")
}

func TestCallInfoOnErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{status: 503, body: `{"error":"byok_unavailable","trace_id":"trace_3"}`, header: retryAfter("2")}}}
		var info agentmessaging.CallInfo
		_, err := newClient(t, transport).GetBYOK(agentmessaging.WithCallInfo(t.Context(), &info))
		require.ErrorIs(t, err, agentmessaging.ErrUnavailable)
		assert.Equal(t, 3, info.Attempts)
		assert.Equal(t, 503, info.StatusCode)
		assert.Equal(t, "2", info.Header.Get("Retry-After"))
		assert.Equal(t, "trace_3", info.TraceID)
		assert.GreaterOrEqual(t, info.Waited, 4*time.Second)
	})
}

func TestCallInfoOfARefusedCallIsEmpty(t *testing.T) {
	info := agentmessaging.CallInfo{Attempts: 3, StatusCode: 200}
	ctx := agentmessaging.WithCallInfo(t.Context(), &info)
	_, err := newClient(t, &stub{}).SendMessage(ctx, "agent_1", message{})
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	assert.Zero(t, info)
}
