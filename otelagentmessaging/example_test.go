package otelagentmessaging_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // in a program, one that sends the spans somewhere
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := otelagentmessaging.NewObserver(otelagentmessaging.WithTracerProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{})
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.SpanKind, span.Name, err)
	}
	// Output: client create_agent <nil>
}
