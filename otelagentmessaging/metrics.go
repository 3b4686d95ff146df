package otelagentmessaging

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/semconv/v1.41.0/httpconv"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// Bounds of the histograms' buckets, in seconds: those that the convention
// asks for, and for waits such as fit limits that open after seconds or a
// minute, and the longest default wait of 90 s. Package httpconv has its own.
var (
	callBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	waitBuckets = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90}
)

type instruments struct {
	request   httpconv.ClientRequestDuration
	operation genaiconv.ClientOperationDuration
	call      metric.Float64Histogram
	wait      metric.Float64Histogram
	retries   metric.Int64Counter
	coolDowns metric.Int64Counter
}

func newInstruments(s *settings) (*instruments, error) {
	meter := s.meters.Meter(ScopeName,
		metric.WithInstrumentationVersion(agentmessaging.Version), metric.WithSchemaURL(semconv.SchemaURL))
	var (
		m    instruments
		errs [6]error
	)
	m.request, errs[0] = httpconv.NewClientRequestDuration(meter)
	m.operation, errs[1] = genaiconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(callBuckets...))
	m.call, errs[2] = meter.Float64Histogram("agentmessaging.client.call.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of calls, their retries and waits included."),
		metric.WithExplicitBucketBoundaries(callBuckets...))
	m.wait, errs[3] = meter.Float64Histogram("agentmessaging.client.limiter.wait",
		metric.WithUnit("s"), metric.WithDescription("Waits of attempts for the client's limiter, from a millisecond."),
		metric.WithExplicitBucketBoundaries(waitBuckets...))
	m.retries, errs[4] = meter.Int64Counter("agentmessaging.client.retries",
		metric.WithUnit("{retry}"), metric.WithDescription("Attempts that were followed by another."))
	m.coolDowns, errs[5] = meter.Int64Counter("agentmessaging.client.cool_downs",
		metric.WithUnit("{cool_down}"), metric.WithDescription("Answers 429 that began or prolonged the cool-down of a limit."))
	return &m, errors.Join(errs[:]...)
}

func (m *instruments) recordRequest(ctx context.Context, c *call, e agentmessaging.AttemptEnd, took float64, failure string) {
	if !m.request.Enabled(ctx) {
		return
	}
	attrs := c.with(semconv.HTTPRequestMethodKey.String(e.Endpoint.Method),
		semconv.URLScheme(c.scheme), semconv.URLTemplate(e.Endpoint.Path))
	if e.StatusCode != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(e.StatusCode))
	}
	m.request.RecordSet(ctx, took, attribute.NewSet(withFailure(attrs, failure)...))
}

func (m *instruments) recordCall(ctx context.Context, c *call, e agentmessaging.CallEnd, failure string) {
	if m.call.Enabled(ctx) {
		attrs := withFailure(c.with(keyMethod.String(e.Endpoint.Name)), failure)
		m.call.Record(ctx, e.Elapsed.Seconds(), metric.WithAttributes(attrs...))
	}
	if name, ok := operation(e.Endpoint.Name); ok && m.operation.Enabled(ctx) {
		attrs := withFailure(c.with(name, semconv.GenAIProviderNameKey.String(providerName)), failure)
		m.operation.RecordSet(ctx, e.Elapsed.Seconds(), attribute.NewSet(attrs...))
	}
}

func (m *instruments) recordRetry(ctx context.Context, c *call, e agentmessaging.Retry) {
	attrs := c.with(keyMethod.String(e.Endpoint.Name), keyRetryReason.String(e.Outcome))
	m.retries.Add(ctx, 1, metric.WithAttributes(attrs...))
}

func (m *instruments) recordLimiterWait(ctx context.Context, c *call, e agentmessaging.LimiterWait) {
	m.wait.Record(ctx, e.Wait.Seconds(), metric.WithAttributes(c.with(keyMethod.String(e.Endpoint.Name))...))
}

func (m *instruments) recordCoolDown(ctx context.Context, c *call, e agentmessaging.CoolDown) {
	m.coolDowns.Add(ctx, 1, metric.WithAttributes(c.with(keyMethod.String(e.Endpoint.Name))...))
}

// with are the attributes of a metric: the server's, and attrs.
func (c *call) with(attrs ...attribute.KeyValue) []attribute.KeyValue {
	return append(append(make([]attribute.KeyValue, 0, len(c.server)+len(attrs)+2), c.server...), attrs...)
}

func withFailure(attrs []attribute.KeyValue, failure string) []attribute.KeyValue {
	if failure == "" {
		return attrs
	}
	return append(attrs, semconv.ErrorTypeKey.String(failure))
}
