// Stdout prints the spans and metrics of a few calls to a fake service inside
// the program. One call is refused once, with a wait of a second.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stdout io.Writer) error {
	tracers, meters, err := newProviders(stdout)
	if err != nil {
		return err
	}
	observer, err := otelagentmessaging.NewObserver(
		otelagentmessaging.WithTracerProvider(tracers), otelagentmessaging.WithMeterProvider(meters))
	if err != nil {
		return err
	}
	err = talk(ctx, agentmessaging.WithObserver(observer))
	// Shutdown prints the metrics. A program does it at its end.
	return errors.Join(err, tracers.Shutdown(ctx), meters.Shutdown(ctx))
}

// newProviders print spans as they end, and metrics at shutdown. A program
// batches its spans: trace.WithBatcher.
func newProviders(stdout io.Writer) (*trace.TracerProvider, *metric.MeterProvider, error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(stdout), stdouttrace.WithPrettyPrint())
	if err != nil {
		return nil, nil, err
	}
	metrics, err := stdoutmetric.New(stdoutmetric.WithWriter(stdout), stdoutmetric.WithPrettyPrint())
	if err != nil {
		return nil, nil, err
	}
	return trace.NewTracerProvider(trace.WithSyncer(spans)),
		metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics))), nil
}

func talk(ctx context.Context, observer agentmessaging.Option) error {
	fake, err := fakeserver.Open()
	if err != nil {
		return err
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), observer)
	if err != nil {
		return err
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "Be brief."})
	if err != nil {
		return err
	}
	fake.Inject(fakeserver.RateLimited("1")).Times(1)
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	return err
}
