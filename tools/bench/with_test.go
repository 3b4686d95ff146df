//go:build unix

package bench_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// BenchmarkWith is a POST in memory with one thing switched on, beside one with
// nothing switched on.
func BenchmarkWith(b *testing.B) {
	p, err := pacer.New([]pacer.Limit{{Max: 1 << 30, Window: time.Second}})
	require.NoError(b, err)
	ignore := agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return nil })
	for _, on := range []struct {
		name string
		opts []agentmessaging.Option
	}{
		{"call-info", nil},
		{"observer", []agentmessaging.Option{agentmessaging.WithObserver(ignore)}},
		{"logger-info", []agentmessaging.Option{agentmessaging.WithLogger(slog.New(discard(slog.LevelInfo)))}},
		{"logger-debug", []agentmessaging.Option{agentmessaging.WithLogger(slog.New(discard(slog.LevelDebug)))}},
		{"otel-unsampled", telemetry(b, sdktrace.NeverSample(), false)},
		{"otel-batched", telemetry(b, sdktrace.AlwaysSample(), false)},
		{"otel-metrics", telemetry(b, sdktrace.AlwaysSample(), true)},
		{"pacer", []agentmessaging.Option{agentmessaging.WithLimiter(p)}},
	} {
		b.Run("on="+on.name+"/of=base", func(b *testing.B) { repeat(b, clientWith(b, new(answers), memory).send) })
		b.Run("on="+on.name+"/of=client", func(b *testing.B) {
			c := clientWith(b, new(answers), memory, on.opts...)
			repeat(b, func(ctx context.Context) error {
				if on.name == "call-info" {
					ctx = agentmessaging.WithCallInfo(ctx, new(agentmessaging.CallInfo))
				}
				return c.send(ctx)
			})
		})
	}
}

// telemetry is what README.md of that module recommends for a service, with an
// exporter that drops what it is given.
func telemetry(b *testing.B, sampler sdktrace.Sampler, metrics bool) []agentmessaging.Option {
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	meters := otelagentmessaging.WithMeterProvider(noopmetric.NewMeterProvider())
	if metrics {
		meters = otelagentmessaging.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	}
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(tracers), meters)
	require.NoError(b, err)
	return []agentmessaging.Option{agentmessaging.WithObserver(observer)}
}

// discard is a handler that drops records, those below its level unformatted.
type discard slog.Level

func (d discard) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.Level(d) }
func (d discard) Handle(context.Context, slog.Record) error    { return nil }
func (d discard) WithAttrs([]slog.Attr) slog.Handler           { return d }
func (d discard) WithGroup(string) slog.Handler                { return d }
