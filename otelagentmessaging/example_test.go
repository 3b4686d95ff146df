package otelagentmessaging_test

import (
	"context"
	"fmt"

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
		fmt.Println(err)
		return
	}
	fmt.Println(talk(agentmessaging.WithObserver(observer)))
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.SpanKind, span.Name)
	}
	// Output:
	// <nil>
	// client create_agent
	// client invoke_agent
}

// talk creates an agent of a fake and sends it a message.
func talk(observer agentmessaging.Option) error {
	fake, err := fakeserver.Open()
	if err != nil {
		return err
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), observer)
	if err != nil {
		return err
	}
	agent, err := client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	_, err = client.SendMessage(context.Background(), agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	return err
}
