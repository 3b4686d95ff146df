//go:build unix

package bench_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otelmetric "go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// BenchmarkWith is a POST in memory with one thing switched on; the base has nothing on.
func BenchmarkWith(b *testing.B) {
	p, err := pacer.New([]pacer.Limit{{Max: 1 << 30, Window: time.Second}})
	require.NoError(b, err)
	ignore := agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return nil })
	for on, client := range map[string]opener{
		"call-info":      withCallInfo,
		"observer":       withOptions(agentmessaging.WithObserver(ignore)),
		"logger-info":    withOptions(agentmessaging.WithLogger(slog.New(discard(slog.LevelInfo)))),
		"logger-debug":   withOptions(agentmessaging.WithLogger(slog.New(discard(slog.LevelDebug)))),
		"otel-unsampled": telemetry(b, sdktrace.NeverSample(), noopmetric.NewMeterProvider()),
		"otel-batched":   telemetry(b, sdktrace.AlwaysSample(), noopmetric.NewMeterProvider()),
		"otel-metrics":   telemetry(b, sdktrace.AlwaysSample(), metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))),
		"pacer":          withOptions(agentmessaging.WithLimiter(p)),
	} {
		compare(b, "on="+on, "memory", withOptions(), client, func(b *testing.B, s subject) { repeat(b, s.send) })
	}
}

// withCallInfo is the client where each call has a CallInfo.
func withCallInfo(b *testing.B, transport http.RoundTripper, baseURL string) subject {
	send := withOptions()(b, transport, baseURL).send
	return subject{send: func(ctx context.Context) error {
		return send(agentmessaging.WithCallInfo(ctx, new(agentmessaging.CallInfo)))
	}}
}

// telemetry is what README.md of that module recommends for a service, with an
// exporter that drops what it is given.
func telemetry(b *testing.B, sampler sdktrace.Sampler, meters otelmetric.MeterProvider) opener {
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(tracers), otelagentmessaging.WithMeterProvider(meters))
	require.NoError(b, err)
	return withOptions(agentmessaging.WithObserver(observer))
}

// discard is a handler that drops records, those below its level unformatted.
type discard slog.Level

func (d discard) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.Level(d) }
func (d discard) Handle(context.Context, slog.Record) error    { return nil }
func (d discard) WithAttrs([]slog.Attr) slog.Handler           { return d }
func (d discard) WithGroup(string) slog.Handler                { return d }
