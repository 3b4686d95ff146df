package agentmessaging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
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
				told = append(told, fmt.Sprintf("agent %s at %s", e.AgentID, e.URL))
				e.URL.Host = "elsewhere.example" // a copy, which leads no request astray
				return context.WithValue(ctx, spanKey{}, within+"call")
			case agentmessaging.AttemptStart:
				told = append(told, fmt.Sprintf("%s> attempt %d", within, e.Attempt))
				return context.WithValue(ctx, spanKey{}, fmt.Sprintf("%s/%d", within, e.Attempt))
			case agentmessaging.RequestStart:
				told = append(told, fmt.Sprintf("%s> request %d", within, e.Attempt))
				return context.WithValue(ctx, spanKey{}, within+"/request")
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
			"agent agent_1 at https://service.example/v1/agents/agent_1/messages",
			"call> attempt 1", "call/1> request 1", "call/1< 429 after 0s", "call: 429, wait 3s",
			"call> attempt 2", "call/2> request 2", "call/2< 200 after 0s",
			"call< 2 attempts, waited 3s of 3s, trace t, err <nil>",
		}, told)
		sent := transport.sent()[1]
		assert.Equal(t, "call/2/request", sent.Context().Value(spanKey{}), "the transport sees the request's context")
		assert.Equal(t, "service.example", sent.URL.Host)
	})
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

func TestObserverOfACallThatTheLimiterRefuses(t *testing.T) {
	types, events := eventsOf(func(observer agentmessaging.Option) {
		err := post(t.Context(), newClient(t, &stub{}, agentmessaging.WithLimiter(refusing{}), observer))
		require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	})
	require.Equal(t, "CallStart AttemptStart AttemptEnd CallEnd ", types, "without a request")
	assert.Error(t, events[2].(agentmessaging.AttemptEnd).Err)
}

// refusing is a limiter that lets nothing pass.
type refusing struct{}

func (refusing) Acquire(context.Context, agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	return nil, &agentmessaging.Error{StatusCode: 429, RetryAfter: time.Hour}
}

func TestObserverOfARefusedArgumentIsToldNothing(t *testing.T) {
	types, _ := eventsOf(func(observer agentmessaging.Option) {
		_, err := newClient(t, &stub{}, observer).SendMessage(t.Context(), "agent_1", message{})
		require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	})
	assert.Empty(t, types)
}

// TestObserverIsToldOfACancellation checks that an attempt's error tells of
// it, though net/http returns the cause in its place.
func TestObserverIsToldOfACancellation(t *testing.T) {
	cause := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := answer{err: cause, before: func(*http.Request) { cancel(cause) }}
	_, events := eventsOf(func(observer agentmessaging.Option) {
		require.Error(t, post(ctx, newClient(t, &stub{answers: []answer{lost}}, observer)))
	})
	end := events[3].(agentmessaging.AttemptEnd)
	assert.ErrorIs(t, end.Err, context.Canceled)
	assert.ErrorIs(t, end.Err, cause)
	assert.EqualError(t, end.Err, "the user has left")
}

// TestObserverLearnsTheNewAgent checks the id that only the answer tells, in
// words that hold a secret too.
func TestObserverLearnsTheNewAgent(t *testing.T) {
	for told, want := range map[string]string{"agent_7": "agent_7", "agent-" + testKey: "agent-[redacted]"} {
		body := fmt.Sprintf(`{"agent_id":%q,"status":"active","trace_id":"trace-%s"}`, told, testKey)
		_, events := eventsOf(func(observer agentmessaging.Option) {
			agent, err := newClient(t, &stub{answers: []answer{{status: 200, body: body}}}, observer).
				CreateAgent(t.Context(), agentmessaging.CreateAgentParams{})
			require.NoError(t, err)
			assert.Equal(t, told, agent.ID, "the result is the service's word")
		})
		start, end := events[0].(agentmessaging.CallStart), events[len(events)-1].(agentmessaging.CallEnd)
		assert.Empty(t, start.AgentID)
		assert.Equal(t, want, end.AgentID)
		assert.Equal(t, "trace-[redacted]", end.TraceID)
	}
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

// TestLoggerNamesTheCauseOfALostAttempt checks that Debug tells more than
// status 0, and on one line.
func TestLoggerNamesTheCauseOfALostAttempt(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cause := errors.New("line\nbroken with " + testKey)
	_ = post(t.Context(), newClient(t, &stub{answers: []answer{{err: cause}}}, agentmessaging.WithLogger(logger), once))
	attempt, _, _ := strings.Cut(out.String(), "\n")
	assert.Contains(t, attempt, `"error":"line broken with [redacted]"`)
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

// TestEventsIdentifyTheirCall by number, agent, trace and limit, whoever of a
// family of clients makes it.
func TestEventsIdentifyTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		observer := agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
			fields := reflect.ValueOf(event)
			line := fmt.Sprint(strings.TrimPrefix(fields.Type().String(), "agentmessaging."), " ", fields.FieldByName("Call"), " ", fields.FieldByName("AgentID"))
			for _, name := range []string{"TraceID", "LimitKey"} {
				if f := fields.FieldByName(name); f.IsValid() && f.String() != "" {
					line += " " + f.String()
				}
			}
			told = append(told, line)
			return nil
		})
		refusal := answer{status: 429, header: retryAfter("3"), body: `{"error":"rate_limited","trace_id":"trace_1","limit_key":"key_minute"}`}
		transport := &stub{answers: []answer{refusal, {status: 200, body: anyReply}}}
		client := newClient(t, transport, agentmessaging.WithObserver(observer), jitterOf(0))
		require.NoError(t, post(t.Context(), client))
		other, err := client.With(agentmessaging.WithTimeout(time.Hour))
		require.NoError(t, err)
		require.NoError(t, creating(t.Context(), other))
		assert.Equal(t, []string{
			"CallStart 1 agent_1", "AttemptStart 1 agent_1", "RequestStart 1 agent_1", "CoolDown 1 agent_1 key_minute",
			"AttemptEnd 1 agent_1 trace_1 key_minute", "Retry 1 agent_1",
			"AttemptStart 1 agent_1", "RequestStart 1 agent_1", "AttemptEnd 1 agent_1 t", "CallEnd 1 agent_1 t",
			"CallStart 2 ", "AttemptStart 2 ", "RequestStart 2 ", "AttemptEnd 2 a t", "CallEnd 2 a t",
		}, told)
	})
}

// TestLoggerWarnsOfADoubledMessage with the agent that may get it, under what
// the caller's context holds.
func TestLoggerWarnsOfADoubledMessage(t *testing.T) {
	var records []string
	logger := slog.New(contextHandler{slog.DiscardHandler, func(ctx context.Context, r slog.Record) {
		line := fmt.Sprint(r.Level, " ", ctx.Value(spanKey{}))
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		records = append(records, line)
	}})
	lost := answer{err: errors.New("reset")}
	ctx := context.WithValue(t.Context(), spanKey{}, "request 7")
	require.ErrorIs(t, post(ctx, newClient(t, &stub{answers: []answer{lost}}, agentmessaging.WithLogger(logger))), agentmessaging.ErrOutcomeUnknown)
	require.Len(t, records, 2)
	assert.Regexp(t, "^DEBUG request 7 method=POST path=/v1/agents/{agent_id}/messages call=1 agent_id=agent_1 attempt=1", records[0])
	assert.Regexp(t, "^WARN request 7 method=POST path=/v1/agents/{agent_id}/messages call=1 agent_id=agent_1 attempts=1", records[1])
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

// TestCallInfoBody is that of the last answer, as it came; secrets that an
// error echoes are taken out.
func TestCallInfoBody(t *testing.T) {
	for _, tt := range []struct {
		answers []answer
		want    string
	}{
		{[]answer{{status: 200, body: `{"reply_text":"hi","trace_id":"t","mood":"good"}`}}, `{"reply_text":"hi","trace_id":"t","mood":"good"}`},
		{[]answer{{status: 404, body: "no " + testKey + " here"}}, "no [redacted] here"},
		{[]answer{{status: 429, body: "first"}, {err: dialError}}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var info agentmessaging.CallInfo
			_ = post(agentmessaging.WithCallInfo(t.Context(), &info), newClient(t, &stub{answers: tt.answers}))
			assert.Equal(t, tt.want, string(info.Body))
		})
	}
}
