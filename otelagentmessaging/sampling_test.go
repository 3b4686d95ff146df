package otelagentmessaging_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// onlyOnce is a limiter that lets the first attempt pass, and no other.
type onlyOnce struct{}

func (onlyOnce) Acquire(_ context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if attempt.Number > 1 {
		return nil, &agentmessaging.Error{StatusCode: 429}
	}
	return onlyOnce{}, nil
}

func (onlyOnce) Done(agentmessaging.AttemptOutcome) {}

// TestARefusedRepetition ends an attempt that had no request after one that
// had.
func TestARefusedRepetition(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		require.ErrorIs(t, send(ctx, fake, client), agentmessaging.ErrRateLimited)
		assert.Equal(t, []string{"invoke_agent > POST " + messages, " > invoke_agent"}, r.names())
		assert.Equal(t, "limiter_refused", r.ended()[1].Attrs["error.type"])
		assert.Equal(t, []point{{httpPost.with(status(429)).with(failed("429")), 1, 0}}, r.points(t, requestDuration))
	}, agentmessaging.WithLimiter(onlyOnce{}))
}

// noting is a sampler that keeps what it is shown.
type noting map[string]attrs

func (n noting) Description() string { return "noting" }

func (n noting) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	n[p.Name] = attrsOf(p.Attributes)
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

// TestSamplersSeeAttributes checks what is there from the start.
func TestSamplersSeeAttributes(t *testing.T) {
	r, seen, fake := newTelemetry(), noting{}, fakeserver.New(t)
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithSampler(seen))
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t))))
	assert.Equal(t, noting{"invoke_agent": sendMessage, "POST " + messages: postMessage}, seen)
}

// TestUnsampledCalls have metrics all the same.
func TestUnsampledCalls(t *testing.T) {
	r, fake := newTelemetry(), fakeserver.New(t)
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithSampler(sdktrace.NeverSample()))
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t))))
	assert.Empty(t, r.ended())
	assert.Len(t, r.points(t, requestDuration), 1)
	assert.Len(t, r.points(t, callDuration), 1)
}
