package otelagentmessaging_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The names, as dashboards have them.
const (
	requestDuration   = "http.client.request.duration"
	operationDuration = "gen_ai.client.operation.duration"
	callDuration      = "agentmessaging.client.call.duration"
	limiterWait       = "agentmessaging.client.limiter.wait"
	retries           = "agentmessaging.client.retries"
	coolDowns         = "agentmessaging.client.cool_downs"
)

var (
	httpPost = server.with(attrs{"http.request.method": "POST", "url.scheme": "https", "url.template": messages})
	httpGet  = server.with(attrs{"http.request.method": "GET", "url.scheme": "https", "url.template": "/v1/agents/{agent_id}"})
	sending  = server.with(attrs{"agentmessaging.method": "SendMessage"})
	reading  = server.with(attrs{"agentmessaging.method": "GetAgent"})
	invoking = server.with(attrs{"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "agent_messaging_service"})
)

func status(code int) attrs { return attrs{"http.response.status_code": int64(code)} }

func failed(why string) attrs { return attrs{"error.type": why} }

// TestMetrics sends a message that is refused once, and reads an agent slowly
// and one that is not there.
func TestMetrics(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		require.NoError(t, send(ctx, fake, client))
		fake.Inject(fakeserver.Latency(2 * time.Second)).Times(1)
		_, err := client.GetAgent(ctx, "agent_000001")
		require.NoError(t, err)
		_, err = client.GetAgent(ctx, "agent_000002")
		require.ErrorIs(t, err, agentmessaging.ErrNotFound)

		for name, want := range map[string][]point{
			requestDuration: {
				{httpPost.with(status(429)).with(failed("429")), 1, 0},
				{httpPost.with(status(200)), 1, 0},
				{httpGet.with(status(200)), 1, 2},
				{httpGet.with(status(404)).with(failed("404")), 1, 0},
			},
			operationDuration: {{invoking, 1, 3}},
			callDuration:      {{sending, 1, 3}, {reading, 1, 2}, {reading.with(failed("404")), 1, 0}},
			retries:           {{sending.with(attrs{"agentmessaging.retry.reason": "429"}), 1, 0}},
			coolDowns:         {{sending, 1, 0}},
			limiterWait:       nil,
		} {
			assert.ElementsMatch(t, want, r.points(t, name), name)
		}
	})
}

// TestMetricsOfTheLimiter parks a call for three seconds, which are not its
// request's, and refuses another.
func TestMetricsOfTheLimiter(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		require.Error(t, send(ctx, fake, client))
		require.NoError(t, send(ctx, fake, client))
		time.Sleep(time.Minute) // right after a cool-down calls go one by one
		fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
		require.Error(t, send(ctx, fake, client))
		require.Error(t, send(ctx, fake, client))
		for name, want := range map[string][]point{
			requestDuration: {{httpPost.with(status(429)).with(failed("429")), 2, 0}, {httpPost.with(status(200)), 1, 0}},
			limiterWait:     {{sending, 1, 3}},
			coolDowns:       {{sending, 2, 0}},
			callDuration:    {{sending, 1, 3}, {sending.with(failed("429")), 2, 0}, {sending.with(failed("limiter_refused")), 1, 0}},
			operationDuration: {
				{invoking, 1, 3}, {invoking.with(failed("429")), 2, 0}, {invoking.with(failed("limiter_refused")), 1, 0},
			},
			retries: nil,
		} {
			assert.ElementsMatch(t, want, r.points(t, name), name)
		}
	}, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1, MaxWait: exactWait}))
}

// TestInstruments states units, descriptions and buckets in its own digits.
func TestInstruments(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		fake.Inject(fakeserver.RateLimited("3")).Times(2)
		require.Error(t, send(ctx, fake, client))
		fake.Inject(fakeserver.RateLimited("3")).Nth(2)
		require.NoError(t, send(ctx, fake, client))
		calls := []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
		for name, want := range map[string]struct {
			unit, description string
			buckets           []float64
		}{
			requestDuration: {"s", "Duration of HTTP client requests.",
				[]float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}},
			operationDuration: {"s", "GenAI operation duration.", calls},
			callDuration:      {"s", "Duration of calls, their retries and waits included.", calls},
			limiterWait: {"s", "Waits of attempts for the client's limiter, from a millisecond.",
				[]float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90}},
			retries:   {"{retry}", "Attempts that were followed by another.", nil},
			coolDowns: {"{cool_down}", "Answers 429 that began or prolonged the cool-down of a limit.", nil},
		} {
			m, ok := r.metrics(t)[name]
			require.True(t, ok, name)
			assert.Equal(t, []string{want.unit, want.description}, []string{m.Unit, m.Description}, name)
			if histogram, ok := m.Data.(metricdata.Histogram[float64]); ok {
				assert.Equal(t, want.buckets, histogram.DataPoints[0].Bounds, name)
				assert.Equal(t, metricdata.CumulativeTemporality, histogram.Temporality, name)
			} else {
				assert.True(t, m.Data.(metricdata.Sum[int64]).IsMonotonic, name)
			}
		}
		assert.Len(t, r.metrics(t), 6)
	}, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 2, MaxWait: exactWait}))
}

// TestExemplars checks that a duration leads to the span that took it.
func TestExemplars(t *testing.T) {
	inBubble(t, func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		require.NoError(t, send(ctx, fake, client))
		for i, name := range []string{requestDuration, callDuration} {
			data := r.metrics(t)[name].Data.(metricdata.Histogram[float64])
			require.Len(t, data.DataPoints[0].Exemplars, 1, name)
			span := r.spans.GetSpans()[i].SpanContext.SpanID()
			assert.Equal(t, span[:], data.DataPoints[0].Exemplars[0].SpanID, name)
		}
	})
}
