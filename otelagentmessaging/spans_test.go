package otelagentmessaging_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const messages = "/v1/agents/{agent_id}/messages"

var (
	server = attrs{"server.address": "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid", "server.port": int64(443)}

	sendMessage = server.with(attrs{
		"agentmessaging.method": "SendMessage", "gen_ai.operation.name": "invoke_agent",
		"gen_ai.provider.name": "agent_messaging_service", "gen_ai.agent.id": "agent_000001",
	})
	postMessage = server.with(attrs{
		"http.request.method": "POST", "url.template": messages,
		"url.full": "https://WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid/v1/agents/agent_000001/messages",
	})
	getAgent  = server.with(attrs{"agentmessaging.method": "GetAgent", "gen_ai.agent.id": "agent_000001"})
	readAgent = server.with(attrs{
		"http.request.method": "GET", "url.template": "/v1/agents/{agent_id}",
		"url.full": "https://WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid/v1/agents/agent_000001",
	})
)

// send makes an agent without a trace, and sends it a message.
func send(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
	id := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	_, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: "message-canary"})
	return err
}

// ends are the attributes that a call's span gets at its end.
func ends(attempts int, waited float64, traceID string) attrs {
	all := attrs{"agentmessaging.attempts": int64(attempts), "agentmessaging.waited": waited}
	if traceID != "" {
		all["agentmessaging.trace_id"] = traceID
	}
	return all
}

func TestSpansOfAMessage(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		ctx, user := r.tracer.Tracer("user").Start(ctx, "user")
		require.NoError(t, send(ctx, fake, client))
		user.End()
		assert.Equal(t, []span{
			{
				Name: "POST " + messages, Kind: trace.SpanKindClient, Parent: "invoke_agent", Status: "Unset",
				Attrs: postMessage.with(attrs{"http.response.status_code": int64(200)}),
			},
			{
				Name: "invoke_agent", Kind: trace.SpanKindClient, Parent: "user", Status: "Unset",
				Attrs: sendMessage.with(ends(1, 0, "trace_000001")),
			},
			{Name: "user", Kind: trace.SpanKindInternal, Status: "Unset", Attrs: attrs{}},
		}, r.ended())
		for _, s := range r.spans.GetSpans()[:2] {
			assert.Equal(t, "github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging", s.InstrumentationScope.Name)
			assert.Equal(t, agentmessaging.Version, s.InstrumentationScope.Version)
			assert.Equal(t, "https://opentelemetry.io/schemas/1.41.0", s.InstrumentationScope.SchemaURL)
		}
	})
}

func TestSpansOfACreation(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		_, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "prompt-canary"})
		require.NoError(t, err)
		spans := r.ended()
		require.Len(t, spans, 2)
		assert.Equal(t, span{
			Name: "create_agent", Kind: trace.SpanKindClient, Status: "Unset",
			Attrs: server.with(attrs{
				"agentmessaging.method": "CreateAgent", "gen_ai.operation.name": "create_agent",
				"gen_ai.provider.name": "agent_messaging_service", "gen_ai.agent.id": "agent_000001",
			}).with(ends(1, 0, "trace_000001")),
		}, spans[1])
	})
}

// TestSpansOfARetry also is the cool-down: the 429 parks the second attempt,
// whose turn comes as Retry-After ends.
func TestSpansOfARetry(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		require.NoError(t, send(ctx, fake, client))
		assert.Equal(t, []span{
			{
				Name: "POST " + messages, Kind: trace.SpanKindClient, Parent: "invoke_agent", Status: "Error",
				Attrs: postMessage.with(attrs{"http.response.status_code": int64(429), "error.type": "429"}),
			},
			{
				Name: "POST " + messages, Kind: trace.SpanKindClient, Parent: "invoke_agent", Status: "Unset",
				Attrs: postMessage.with(attrs{"http.response.status_code": int64(200), "http.request.resend_count": int64(1)}),
			},
			{
				Name: "invoke_agent", Kind: trace.SpanKindClient, Status: "Unset",
				Attrs: sendMessage.with(ends(2, 3, "trace_000002")),
				Events: []event{
					{"agentmessaging.cool_down", attrs{"agentmessaging.limit_key": "key_minute", "agentmessaging.wait": 3.0}},
					{"agentmessaging.retry", attrs{"agentmessaging.attempt": int64(1), "agentmessaging.retry.reason": "429", "agentmessaging.wait": 3.0}},
				},
			},
		}, r.ended())
	})
}

// TestSpansOfAWait holds a second caller up behind the cool-down of a first.
// The HTTP span begins when the wait is over.
func TestSpansOfAWait(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		require.ErrorIs(t, send(ctx, fake, client), agentmessaging.ErrRateLimited)
		r.spans.Reset()
		require.NoError(t, send(ctx, fake, client))
		spans, stubs := r.ended(), r.spans.GetSpans()
		require.Len(t, spans, 2)
		assert.Equal(t, []event{
			{"agentmessaging.limiter_wait", attrs{"agentmessaging.attempt": int64(1), "agentmessaging.wait": 3.0}},
		}, spans[1].Events)
		assert.Equal(t, 3*time.Second, stubs[0].StartTime.Sub(stubs[1].StartTime))
		assert.Zero(t, stubs[0].EndTime.Sub(stubs[0].StartTime))
	}, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1, MaxWait: exactWait}))
}

func TestSpansOfALocalRefusal(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
		require.ErrorIs(t, send(ctx, fake, client), agentmessaging.ErrRateLimited)
		r.spans.Reset()
		err := send(ctx, fake, client)
		var refused *agentmessaging.Error
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.Local)
		assert.Equal(t, []span{{
			Name: "invoke_agent", Kind: trace.SpanKindClient, Status: "Error",
			Attrs: sendMessage.with(attrs{"gen_ai.agent.id": "agent_000002", "error.type": "limiter_refused"}).with(ends(0, 0, "trace_000001")),
		}}, r.ended(), "no HTTP span, since nothing was sent; the trace id is that of the answer behind the refusal")
	})
}

func TestSpansOfAnUnknownOutcome(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Times(1)
		require.ErrorIs(t, send(ctx, fake, client), agentmessaging.ErrOutcomeUnknown)
		spans := r.ended()
		require.Len(t, spans, 2)
		assert.Equal(t, postMessage.with(attrs{"error.type": "_OTHER"}), spans[0].Attrs)
		assert.Equal(t, sendMessage.with(ends(1, 0, "")).with(attrs{"error.type": "outcome_unknown"}), spans[1].Attrs)
		assert.Equal(t, []string{"Error", "Error"}, []string{spans[0].Status, spans[1].Status}, "without a description")
	})
}

func TestSpansOfAMissingAgent(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		_, err := client.GetAgent(ctx, "agent_000001")
		require.ErrorIs(t, err, agentmessaging.ErrNotFound)
		failed := attrs{"error.type": "404"}
		assert.Equal(t, []span{
			{
				Name: "GET /v1/agents/{agent_id}", Kind: trace.SpanKindClient, Parent: "agentmessaging.GetAgent", Status: "Error",
				Attrs: readAgent.with(failed).with(attrs{"http.response.status_code": int64(404)}),
			},
			{
				Name: "agentmessaging.GetAgent", Kind: trace.SpanKindInternal, Status: "Error",
				Attrs: getAgent.with(failed).with(ends(1, 0, "trace_000001")),
			},
		}, r.ended())
	})
}

func TestRefusedArgumentsHaveNoSpan(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		_, err := client.SendMessage(ctx, "agent_000001", agentmessaging.MessageParams{})
		require.ErrorIs(t, err, agentmessaging.ErrInvalid)
		assert.Empty(t, r.ended())
		assert.Empty(t, r.metrics(t))
	})
}

// TestSpansOfAnEndedContext ends it while the answer is waited for, and before
// the call.
func TestSpansOfAnEndedContext(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.Hang())
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, err := client.GetAgent(ctx, "agent_000001")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		spans := r.ended()
		require.Len(t, spans, 2)
		assert.Equal(t, []any{"timeout", "timeout"}, []any{spans[0].Attrs["error.type"], spans[1].Attrs["error.type"]})

		r.spans.Reset()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = client.GetAgent(ended, "agent_000001")
		require.Error(t, err)
		assert.Equal(t, []string{" > agentmessaging.GetAgent"}, r.names(), "no request")
	})
}

func TestSpansOfACancellation(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.Hang())
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errors.New("cause-canary")) })
		_, err := client.GetAgent(ctx, "agent_000001")
		require.ErrorIs(t, err, context.Canceled)
		spans := r.ended()
		require.Len(t, spans, 2)
		assert.Equal(t, readAgent.with(attrs{"error.type": "canceled"}), spans[0].Attrs)
		assert.Equal(t, getAgent.with(attrs{"error.type": "canceled"}).with(ends(1, 0, "")), spans[1].Attrs)
	})
}
