package client

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// An extra is what can be switched on for a client, or for one call.
type extra struct {
	name      string
	opts      func() []agentmessaging.Option
	transport func(http.RoundTripper) http.RoundTripper // nil: the one in memory as it is
	ctx       func(context.Context) context.Context     // nil: the caller's own
}

var extras = []extra{
	{name: "none"},
	{name: "call-info", ctx: func(ctx context.Context) context.Context {
		return agentmessaging.WithCallInfo(ctx, new(agentmessaging.CallInfo))
	}},
	{name: "observer", opts: options(agentmessaging.WithObserver(agentmessaging.ObserverFunc(
		func(ctx context.Context, _ agentmessaging.Event) context.Context { return nil })))},
	{name: "logger-info", opts: options(agentmessaging.WithLogger(slog.New(discard{slog.LevelInfo})))},
	{name: "logger-debug", opts: options(agentmessaging.WithLogger(slog.New(discard{slog.LevelDebug})))},
	{name: "otel-unsampled", opts: telemetry(sdktrace.NeverSample(), false)},
	{name: "otel-sampled", opts: telemetry(sdktrace.AlwaysSample(), false)},
	{name: "otel-metrics", opts: telemetry(sdktrace.AlwaysSample(), true)},
	{name: "otelhttp", transport: func(t http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(t, otelhttp.WithTracerProvider(tracer(sdktrace.AlwaysSample())), otelhttp.WithMeterProvider(meter()))
	}},
	{name: "pacer", opts: func() []agentmessaging.Option {
		p, err := pacer.New([]pacer.Limit{{Max: 1 << 30, Window: time.Second}})
		if err != nil {
			panic(err)
		}
		return []agentmessaging.Option{agentmessaging.WithLimiter(p)}
	}},
	{name: "no-limiter", opts: options(agentmessaging.WithoutCoolDown())},
}

func options(opts ...agentmessaging.Option) func() []agentmessaging.Option {
	return func() []agentmessaging.Option { return opts }
}

// telemetry is what README.md of that module recommends for a service, with an
// exporter that drops what it is given.
func telemetry(sampler sdktrace.Sampler, metrics bool) func() []agentmessaging.Option {
	return func() []agentmessaging.Option {
		opts := []otelagentmessaging.Option{otelagentmessaging.WithTracerProvider(tracer(sampler))}
		if metrics {
			opts = append(opts, otelagentmessaging.WithMeterProvider(meter()))
		} else {
			opts = append(opts, otelagentmessaging.WithMeterProvider(noopmetric.NewMeterProvider()))
		}
		observer, err := otelagentmessaging.NewObserver(opts...)
		if err != nil {
			panic(err)
		}
		return []agentmessaging.Option{agentmessaging.WithObserver(observer)}
	}
}

func tracer(sampler sdktrace.Sampler) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
}

func meter() *metric.MeterProvider {
	return metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
}

// discard is a handler that drops its records.
type discard struct{ level slog.Level }

func (d discard) Enabled(_ context.Context, l slog.Level) bool { return l >= d.level }
func (d discard) Handle(context.Context, slog.Record) error    { return nil }
func (d discard) WithAttrs([]slog.Attr) slog.Handler           { return d }
func (d discard) WithGroup(string) slog.Handler                { return d }

func (e extra) call() func(context.Context) error {
	var opts []agentmessaging.Option
	if e.opts != nil {
		opts = e.opts()
	}
	var transport http.RoundTripper = serviceAnswers
	if e.transport != nil {
		transport = e.transport(transport)
	}
	client := ownWith(transport, memory, opts...)
	return bounded(func(ctx context.Context) error {
		if e.ctx != nil {
			ctx = e.ctx(ctx)
		}
		return client.send(ctx, "Where is it?") // shorter than a trace id, which is searched for it
	})
}

// BenchmarkExtra is a POST under a caller's deadline, answered in memory, with
// one thing switched on.
func BenchmarkExtra(b *testing.B) {
	for _, e := range extras {
		b.Run("on="+e.name, func(b *testing.B) { repeat(b, e.call()) })
	}
}
