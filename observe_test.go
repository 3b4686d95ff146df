package agentmessaging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

type spanKey struct{}

// retriedCall is what is told of a message that meets a 429, and of a creation.
var retriedCall = []string{
	"CallStart Call=1 SendMessage AgentID=agent_1 URL=https://service.example/v1/agents/agent_1/messages",
	"call 1: AttemptStart Call=1 SendMessage AgentID=agent_1 Attempt=1",
	"call 1: attempt: RequestStart Call=1 SendMessage AgentID=agent_1 Attempt=1",
	"call 1: attempt: CoolDown Call=1 SendMessage AgentID=agent_1 LimitKey=key_minute Wait=3s",
	"call 1: attempt: AttemptEnd Call=1 SendMessage AgentID=agent_1 Attempt=1 StatusCode=429 TraceID=trace_1 LimitKey=key_minute Verdict=not done",
	"call 1: Retry Call=1 SendMessage AgentID=agent_1 Attempt=1 Outcome=429 Wait=3s",
	"call 1: AttemptStart Call=1 SendMessage AgentID=agent_1 Attempt=2",
	"call 1: attempt: LimiterWaitStart Call=1 SendMessage AgentID=agent_1 Attempt=2 LimitKey=key_minute Place=1 Expected=3s",
	"call 1: attempt: LimiterWait Call=1 SendMessage AgentID=agent_1 Attempt=2 LimitKey=key_minute Wait=3s",
	"call 1: attempt: RequestStart Call=1 SendMessage AgentID=agent_1 Attempt=2",
	"call 1: attempt: AttemptEnd Call=1 SendMessage AgentID=agent_1 Attempt=2 StatusCode=200 TraceID=t Verdict=done Elapsed=3s",
	"call 1: CallEnd Call=1 SendMessage AgentID=agent_1 StatusCode=200 TraceID=t Attempts=2 Refusals=1 Waited=3s Elapsed=3s",
	"CallStart Call=2 CreateAgent URL=https://service.example/v1/agents",
	"call 2: AttemptStart Call=2 CreateAgent Attempt=1",
	"call 2: attempt: RequestStart Call=2 CreateAgent Attempt=1",
	"call 2: attempt: AttemptEnd Call=2 CreateAgent AgentID=a Attempt=1 StatusCode=200 TraceID=t Verdict=done",
	"call 2: CallEnd Call=2 CreateAgent AgentID=a StatusCode=200 TraceID=t Attempts=1",
}

// TestObserver checks the events of a call that is retried, and of another
// client of the family, which adds an observer: who, what and when. Contexts
// nest, an attempt's inside its call's.
func TestObserver(t *testing.T) {
	var told []string
	observer := agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
		within, _ := ctx.Value(spanKey{}).(string)
		told = append(told, strings.TrimSpace(within+" "+lineOf(event)))
		switch e := event.(type) {
		case agentmessaging.CallStart:
			e.URL.Host = "elsewhere.example" // a copy, which leads no request astray
			return context.WithValue(ctx, spanKey{}, fmt.Sprint("call ", e.Call, ":"))
		case agentmessaging.AttemptStart:
			return context.WithValue(ctx, spanKey{}, fmt.Sprint(within, " attempt:"))
		case agentmessaging.RequestStart:
			return context.WithValue(ctx, spanKey{}, fmt.Sprint(within, " request:"))
		}
		return nil
	})
	heedless := agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return nil }))
	limited(t, "key_minute", options{agentmessaging.WithObserver(observer), heedless, heedless}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(3*time.Second, messagesPath)
		require.NoError(t, post(t.Context(), client))
		assert.Equal(t, "call 1: attempt: request:", service.last.Context().Value(spanKey{}), "the transport sees the request's context")
		assert.Equal(t, "service.example", service.last.URL.Host)
		further, _ := eventsOf(func(further agentmessaging.Option) {
			other, err := client.With(further)
			require.NoError(t, err)
			_, err = client.With(heedless) // takes no place in the other's list
			require.NoError(t, err)
			require.NoError(t, sending(create{})(t.Context(), other))
			require.NoError(t, sending(create{})(t.Context(), client))
		})
		assert.Equal(t, "CallStart AttemptStart RequestStart AttemptEnd CallEnd ", further, "of its own client's call")
	})
	require.Len(t, told, 12+5+5)
	assert.Equal(t, retriedCall, told[:17])
}

// eventsOf makes a call and returns the events that it told, by type in one
// string and in full.
func eventsOf(do func(agentmessaging.Option)) (types string, events []agentmessaging.Event) {
	do(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		types += strings.TrimPrefix(fmt.Sprintf("%T ", event), "agentmessaging.")
		events = append(events, event)
		return nil
	})))
	return types, events
}

// TestBeforeSend: it is asked after every wait and directly before the request. Its
// error sends nothing, costs no permit and is the call's.
func TestBeforeSend(t *testing.T) {
	var order []string
	note := func(format string, args ...any) { order = append(order, fmt.Sprintf(format, args...)) }
	limiter := &limiterStub{wait: time.Minute}
	request := func(a answer) answer { a.Before = func(*http.Request) { note("request") }; return a }
	full := errors.New("the journal is full of " + testKey)
	journal := func(ctx context.Context, attempt int) error {
		note("attempt %d, %d permits", attempt, len(limiter.asked))
		if attempt == 3 {
			return full
		}
		return nil
	}
	types, events := eventsOf(func(observer agentmessaging.Option) {
		made := makeCall(t, func(ctx context.Context, client *agentmessaging.Client) error {
			return post(agentmessaging.WithBeforeSend(ctx, journal), client)
		}, []answer{request(tooMany("3", "k")), request(notDialed)}, agentmessaging.WithLimiter(limiter), observer)
		var failure *agentmessaging.Error
		require.ErrorAs(t, made.Err, &failure)
		assert.ErrorIs(t, made.Err, full)
		assert.EqualError(t, made.Err, "agentmessaging: POST /v1/agents/{agent_id}/messages: the journal is full of [redacted]"+
			" (refused here by the function of WithBeforeSend, 2 attempts, 1 of them refused with 429)")
		assert.Equal(t, []any{true, 2, 2}, []any{failure.Local, failure.Attempts, made.Info.Attempts})
	})
	assert.Equal(t, []string{"attempt 1, 1 permits", "request", "attempt 2, 2 permits", "request", "attempt 3, 3 permits"}, order)
	assert.Len(t, limiter.done, 3)
	assert.Zero(t, limiter.done[2], "not sent")
	const attempt = "AttemptStart LimiterWait "
	assert.Equal(t, "CallStart "+attempt+"RequestStart CoolDown AttemptEnd Retry AttemptStart LimiterWaitStart LimiterWait RequestStart AttemptEnd Retry "+
		attempt+"AttemptEnd CallEnd ", types)
	assert.Equal(t, agentmessaging.VerdictNotDone, events[len(events)-2].(agentmessaging.AttemptEnd).Verdict)
	inner := agentmessaging.WithBeforeSend(agentmessaging.WithBeforeSend(t.Context(), journal), nil)
	assert.NoError(t, post(inner, newClient(t, answering(okAnswer))), "the last one counts")
}

// TestObserverIsToldOfACancellation: an attempt's error tells of it, though
// net/http returns the cause in its place.
func TestObserverIsToldOfACancellation(t *testing.T) {
	cause := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := answer{Err: cause, Before: func(*http.Request) { cancel(cause) }}
	_, events := eventsOf(func(observer agentmessaging.Option) {
		require.Error(t, post(ctx, newClient(t, answering(lost), observer)))
	})
	end := events[3].(agentmessaging.AttemptEnd)
	assert.ErrorIs(t, end.Err, context.Canceled)
	assert.ErrorIs(t, end.Err, cause)
	assert.EqualError(t, end.Err, "the user has left")
	types, _ := eventsOf(func(observer agentmessaging.Option) {
		assert.ErrorIs(t, post(ctx, newClient(t, answering(), observer)), context.Canceled)
	})
	assert.Equal(t, "CallStart CallEnd ", types, "it had left before the call")
}

// TestObserversAndLoggersSeeNoSecret, whatever the transport and the service
// say. The result is the service's word.
func TestObserversAndLoggersSeeNoSecret(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	const id = "agent-" + testKey
	for _, a := range []answer{
		{Err: fmt.Errorf("transport says %s and prompt-canary", testKey)},
		{Status: 500, Body: `{"error":"broken","reason":"prompt-canary of ` + testKey + `"}`},
		{Status: 200, Body: `{"agent_id":"` + id + `","status":"active","trace_id":"` + testKey + `"}`},
	} {
		_, events := eventsOf(func(observer agentmessaging.Option) {
			client := newClient(t, answering(a), observer, agentmessaging.WithLogger(logger))
			agent, err := client.CreateAgent(t.Context(), create{SystemPrompt: "prompt-canary"})
			assert.True(t, err != nil || agent.ID == id, "%+v: %+v", a, agent)
		})
		for _, event := range events {
			fmt.Fprintf(&out, "%v %+v %#v\n", event, event, event)
		}
	}
	assert.Contains(t, out.String(), "agent-[redacted]")
	assert.NotContains(t, out.String(), "canary")
}

// TestCallInfoOfARefusal: a call that is refused here leaves no facts of an earlier one.
func TestCallInfoOfARefusal(t *testing.T) {
	old := agentmessaging.CallInfo{Attempts: 7, StatusCode: 200}
	_, err := newClient(t, answering()).SendMessage(agentmessaging.WithCallInfo(t.Context(), &old), "agent_1", message{})
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	assert.Zero(t, old)
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
