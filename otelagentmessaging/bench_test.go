package otelagentmessaging_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

var (
	getStatus     = agentmessaging.Endpoint{Name: "Status", Method: http.MethodGet, Path: "/v1/status"}
	statusURL     = &url.URL{Scheme: "https", Host: "service.example", Path: "/v1/status"}
	noopProviders = []otelagentmessaging.Option{
		otelagentmessaging.WithTracerProvider(nooptrace.NewTracerProvider()),
		otelagentmessaging.WithMeterProvider(noopmetric.NewMeterProvider()),
	}
)

// sdkProviders record everything and keep no span.
func sdkProviders() []otelagentmessaging.Option {
	return []otelagentmessaging.Option{
		otelagentmessaging.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(tracetest.NewNoopExporter()))),
		otelagentmessaging.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))),
	}
}

// BenchmarkObserver asks the fake for its status, without a connection, to show
// what an observer adds to a call: one that does nothing, ours over providers
// that do nothing, and ours over the SDK.
func BenchmarkObserver(b *testing.B) {
	empty := agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return nil })
	noop, sdk := newObserver(b, noopProviders...), newObserver(b, sdkProviders()...)
	for _, c := range []struct {
		name string
		opts []agentmessaging.Option
	}{
		{"none", nil},
		{"empty", []agentmessaging.Option{agentmessaging.WithObserver(empty)}},
		{"noop", []agentmessaging.Option{noop}},
		{"sdk", []agentmessaging.Option{sdk}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkStatus(b, c.opts...) })
	}
}

// BenchmarkEvents tells an observer the events of a call, without the call.
func BenchmarkEvents(b *testing.B) {
	for name, opts := range map[string][]otelagentmessaging.Option{"noop": noopProviders, "sdk": sdkProviders()} {
		observer, err := otelagentmessaging.NewObserver(opts...)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := observer.Observe(b.Context(), agentmessaging.CallStart{Endpoint: getStatus, URL: statusURL})
				_ = observer.Observe(ctx, agentmessaging.RequestStart{Endpoint: getStatus, Attempt: 1})
				_ = observer.Observe(ctx, agentmessaging.AttemptEnd{Endpoint: getStatus, Attempt: 1, StatusCode: 200})
				_ = observer.Observe(ctx, agentmessaging.CallEnd{Endpoint: getStatus, Attempts: 1, TraceID: "trace_000001"})
			}
		})
	}
}

func benchmarkStatus(b *testing.B, opts ...agentmessaging.Option) {
	fake := fakeserver.New(b, fakeserver.WithCallLimit(1))
	opts = append(opts, agentmessaging.WithHTTPClient(&http.Client{Transport: fake.Direct()}))
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), opts...)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Status(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func newObserver(b *testing.B, opts ...otelagentmessaging.Option) agentmessaging.Option {
	observer, err := otelagentmessaging.NewObserver(opts...)
	require.NoError(b, err)
	return agentmessaging.WithObserver(observer)
}
