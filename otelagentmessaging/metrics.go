package otelagentmessaging

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/semconv/v1.41.0/httpconv"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// Bounds of the histograms' buckets, in seconds. callBuckets are the bounds of the GenAI
// convention. waitBuckets fit limits that open after seconds or a minute, and the default
// MaxWait of 90 s. Package httpconv has the bounds for requests.
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
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	var (
		m    instruments
		errs [5]error
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
	return &m, errors.Join(errs[:]...)
}

// A request is the last request of a call. Its telemetry is recorded once it is known
// whether the call repeats it.
type request struct {
	attempt int // from 1; 0: nothing was sent
	began   time.Time
	status  int
	verdict agentmessaging.Verdict
	failure string
}

func (m *instruments) recordRequest(ctx context.Context, x *endpoint, r request) {
	options := x.requestSuccess
	if r.status != 200 || r.failure != "" {
		options = recorded(x.requestMetric, appendOutcome(nil, r.status, r.failure)...)
	}
	m.request.Float64Histogram.Record(ctx, time.Since(r.began).Seconds(), options...)
}

func (m *instruments) recordCall(ctx context.Context, x *endpoint, took float64, failure string) {
	call, operation := x.callSuccess, x.operationSuccess
	if failure != "" {
		failed := semconv.ErrorTypeKey.String(failure)
		call, operation = recorded(x.callMetric, failed), recorded(x.operationMetric, failed)
	}
	m.call.Record(ctx, took, call...)
	if x.operationMetric != nil {
		m.operation.Float64Histogram.Record(ctx, took, operation...)
	}
}
