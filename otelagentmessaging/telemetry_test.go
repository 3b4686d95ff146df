package otelagentmessaging_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

// telemetry is what one observer has recorded.
type telemetry struct {
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	reader *metric.ManualReader
	meter  *metric.MeterProvider
}

func newTelemetry(opts ...sdktrace.TracerProviderOption) *telemetry {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	return &telemetry{
		spans:  spans,
		tracer: sdktrace.NewTracerProvider(append(opts, sdktrace.WithSyncer(spans))...),
		reader: reader,
		meter:  metric.NewMeterProvider(metric.WithReader(reader)),
	}
}

// observer returns an option of a client that records to the telemetry.
func (r *telemetry) observer(t testing.TB, opts ...otelagentmessaging.Option) agentmessaging.Option {
	providers := []otelagentmessaging.Option{otelagentmessaging.WithTracerProvider(r.tracer), otelagentmessaging.WithMeterProvider(r.meter)}
	observer, err := otelagentmessaging.NewObserver(append(providers, opts...)...)
	require.NoError(t, err)
	return agentmessaging.WithObserver(observer)
}

// retries makes so many attempts. A longest wait of 3 s leaves no room for
// jitter on top of a Retry-After of 3 s.
func retries(attempts int) agentmessaging.Option {
	return agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: attempts, MaxWait: 3 * time.Second})
}

func newClient(t testing.TB, fake *fakeserver.Server, opts ...agentmessaging.Option) *agentmessaging.Client {
	opts = append([]agentmessaging.Option{agentmessaging.WithHTTPClient(fake.HTTPClient(t)), retries(3)}, opts...)
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), opts...)
	require.NoError(t, err)
	return client
}

// attrs are attributes as they compare best; whole numbers are int64.
type attrs map[string]any

func attrsOf(set []attribute.KeyValue) attrs {
	all := attrs{}
	for _, a := range set {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

const host = "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid"

// usual are attributes that a story leaves out where they have these values.
var usual = attrs{"server.address": host, "server.port": int64(443), "url.scheme": "https", "gen_ai.provider.name": "agent_messaging_service"}

// String lists the attributes that tell something, by name.
func (a attrs) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if usual[name] != a[name] {
			fmt.Fprintf(&b, " %s=%v", name, a[name])
		}
	}
	return b.String()
}

// story is all that was recorded: each span below its parent, with its events,
// and then the points of the metrics. Without what samplers see, which another
// test has.
func (r *telemetry) story(t testing.TB) string {
	var b strings.Builder
	r.below(&b, trace.SpanID{}, "")
	return b.String() + strings.Join(r.points(t), "")
}

func (r *telemetry) below(b *strings.Builder, parent trace.SpanID, indent string) {
	spans := r.spans.GetSpans()
	for _, s := range spans {
		if s.Parent.SpanID() != parent {
			continue
		}
		all := attrsOf(s.Attributes)
		for _, start := range []string{"agentmessaging.method", "gen_ai.operation.name", "http.request.method", "url.full", "url.template"} {
			delete(all, start)
		}
		fmt.Fprintf(b, "%s%s, %s, %s", indent, s.Name, s.SpanKind, s.EndTime.Sub(s.StartTime))
		if s.Status.Code == codes.Error {
			fmt.Fprintf(b, ", failed%s", s.Status.Description)
		}
		fmt.Fprintf(b, ":%s\n", all)
		for _, e := range s.Events {
			fmt.Fprintf(b, "%s  * %s:%s\n", indent, e.Name, attrsOf(e.Attributes))
		}
		r.below(b, s.SpanContext.SpanID(), indent+"  ")
	}
}

// metrics are what was recorded, by name.
func (r *telemetry) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(context.Background(), &data))
	all := map[string]metricdata.Metrics{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// points are those of all metrics, sorted: the sum of a counter, and the number
// and sum of a histogram.
func (r *telemetry) points(t testing.TB) (lines []string) {
	for name, m := range r.metrics(t) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s%s: %d\n", name, attrsOf(p.Attributes.ToSlice()), p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s%s: %d, %v s\n", name, attrsOf(p.Attributes.ToSlice()), p.Count, p.Sum))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
