package otelagentmessaging_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
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

func newTelemetry() *telemetry {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	return &telemetry{
		spans:  spans,
		tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		reader: reader,
		meter:  metric.NewMeterProvider(metric.WithReader(reader)),
	}
}

// observer returns an option of a client that records to the telemetry.
func (r *telemetry) observer(t testing.TB, opts ...otelagentmessaging.Option) agentmessaging.Option {
	opts = append(opts, otelagentmessaging.WithTracerProvider(r.tracer), otelagentmessaging.WithMeterProvider(r.meter))
	observer, err := otelagentmessaging.NewObserver(opts...)
	require.NoError(t, err)
	return agentmessaging.WithObserver(observer)
}

// exactWait as the longest wait leaves no room for jitter on top of it.
const exactWait = 3 * time.Second

var exactWaits = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: exactWait})

// inBubble runs f in a synctest bubble with a fake and an observed client of
// it.
func inBubble(t *testing.T, f func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client, r *telemetry), opts ...agentmessaging.Option) {
	synctest.Test(t, func(t *testing.T) {
		fake, r := fakeserver.New(t), newTelemetry()
		f(t.Context(), fake, newClient(t, fake, append(opts, r.observer(t))...), r)
	})
}

func newClient(t testing.TB, fake *fakeserver.Server, opts ...agentmessaging.Option) *agentmessaging.Client {
	opts = append([]agentmessaging.Option{agentmessaging.WithHTTPClient(fake.HTTPClient(t)), exactWaits}, opts...)
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

func attrsOfSet(set attribute.Set) attrs { return attrsOf(set.ToSlice()) }

// with returns the attributes and others.
func (a attrs) with(others attrs) attrs {
	all := attrs{}
	for _, set := range []attrs{a, others} {
		for name, value := range set {
			all[name] = value
		}
	}
	return all
}

// span is a span as it compares best.
type span struct {
	Name   string
	Kind   trace.SpanKind
	Parent string // its name; empty: a root
	Status string
	Attrs  attrs
	Events []event
}

type event struct {
	Name  string
	Attrs attrs
}

// ended returns the spans in the order in which they ended.
func (r *telemetry) ended() []span {
	stubs := r.spans.GetSpans()
	var all []span
	for _, s := range stubs {
		found := span{Name: s.Name, Kind: s.SpanKind, Status: strings.TrimSpace(s.Status.Code.String() + " " + s.Status.Description), Attrs: attrsOf(s.Attributes)}
		for _, e := range s.Events {
			found.Events = append(found.Events, event{e.Name, attrsOf(e.Attributes)})
		}
		if s.Parent.IsValid() {
			found.Parent = "unknown"
		}
		if i := slices.IndexFunc(stubs, func(p tracetest.SpanStub) bool { return p.SpanContext.Equal(s.Parent) }); i >= 0 {
			found.Parent = stubs[i].Name
		}
		all = append(all, found)
	}
	return all
}

// names are the spans in the order in which they ended, each after its parents.
func (r *telemetry) names() []string {
	var names []string
	for _, s := range r.ended() {
		names = append(names, fmt.Sprintf("%s > %s", s.Parent, s.Name))
	}
	return names
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

// points are a metric's, by attributes; a counter has its sum, a histogram its
// values' number and sum.
func (r *telemetry) points(t testing.TB, name string) []point {
	t.Helper()
	var points []point
	switch data := r.metrics(t)[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attrsOfSet(p.Attributes), uint64(p.Value), 0})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attrsOfSet(p.Attributes), p.Count, p.Sum})
		}
	}
	return points
}

type point struct {
	Attrs attrs
	Count uint64
	Sum   float64
}
